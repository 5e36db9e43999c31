//! New records as they come: Server-sent events (HTML Standard, 9.2), each with the number of its last record, with which a client goes on.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt as _;
use http::{HeaderValue, Response, StatusCode, header};
use http_body_util::{BodyExt as _, StreamBody};
use hyper::body::Frame;
use kubediff_history::{Number, Order};
use serde_json::json;
use serve::Body;
use tokio::sync::Semaphore;

use super::params::Params;
use super::problem::Problem;
use super::question::{SCOPE, question};
use super::row::Rows;
use super::store::{Asked, Store};
use super::template::render;
use super::v1::Entry;
use super::viewer::Viewer;
use super::wanted::Wanted;
use crate::ask::cursor::Cursor;
use crate::ask::log::{Item, Step, Walk};
use crate::show::render::json;

/// How often the history is looked at.
const LOOK: Duration = Duration::from_millis(500);
/// After so many looks without news, a comment shows that the connection lives.
const QUIET: u32 = 30;
/// Entries of one event. A client that is further behind reads pages.
const MOST: usize = 200;
/// Streams at once.
const STREAMS: usize = 64;

/// The streams of a page.
pub(super) struct Live {
    store: Arc<Store>,
    room: Arc<Semaphore>,
}

/// A stream on its way.
struct Following {
    params: Params,
    after: Number,
    is_html: bool,
    quiet: u32,
}

/// A part of a stream, and the record that it goes to.
struct Part {
    text: String,
    after: Number,
}

impl Live {
    pub(super) fn new(store: Arc<Store>) -> Self {
        Self { store, room: Arc::new(Semaphore::new(STREAMS)) }
    }

    /// A stream of what the parameters mean, after a record; from now on without one.
    pub(super) async fn stream(
        &self,
        viewer: &Viewer,
        params: Params,
        resumed: Option<Number>,
        is_html: bool,
    ) -> Result<Response<Body>, Problem> {
        let room = self.room.clone().try_acquire_owned().map_err(|_| {
            Problem::new(StatusCode::SERVICE_UNAVAILABLE, "Too many pages are live")
                .hint("Close some of them, or load the page anew by hand.")
        })?;
        let of_viewer = viewer.room_for_stream()?;
        let known: Vec<&str> = SCOPE.iter().copied().chain(["after"]).collect();
        if let Some(name) = params.unknown(&known).first() {
            return Err(Problem::wrong(
                name,
                format!("There is no parameter `{name}` here; there are {}.", known.join(", ")),
            ));
        }
        let asked = params.clone();
        let number = |text: &str| {
            text.parse().map_err(|_| Problem::wrong("after", "It is the number of a record, such as 812."))
        };
        let named = params.get("after").map(number).transpose()?.map(Number);
        let wanted = Wanted::of(&[], &params);
        let after = self
            .store
            .ask(viewer.seen(&wanted).await?, move |it| {
                question(&asked, it.reader, &it.now)?;
                let last = it.reader.last()?.map_or(Number(0), |(last, _)| last);
                Ok(resumed.or(named).unwrap_or(last))
            })
            .await?;
        let (store, viewer) = (self.store.clone(), viewer.clone());
        let following = Following { params, after, is_html, quiet: 0 };
        let ticks = tokio::time::interval(LOOK);
        let parts = futures_util::stream::unfold(
            (following, ticks, (room, of_viewer)),
            move |(mut following, mut ticks, room)| {
                let (store, viewer, wanted) = (store.clone(), viewer.clone(), wanted.clone());
                async move {
                    loop {
                        ticks.tick().await;
                        let (params, after, is_html) =
                            (following.params.clone(), following.after, following.is_html);
                        // Sessions, tokens and rights end while a stream goes on.
                        if !viewer.is_in().await.ok()? {
                            return None;
                        }
                        let seen = viewer.seen(&wanted).await.ok()?;
                        let part =
                            store.ask(seen, move |asked| news(asked, &params, after, is_html)).await.ok()?;
                        if let Some(part) = part {
                            (following.after, following.quiet) = (part.after, 0);
                            if !part.text.is_empty() {
                                return Some((part.text, (following, ticks, room)));
                            }
                        }
                        following.quiet += 1;
                        if following.quiet >= QUIET {
                            following.quiet = 0;
                            return Some((":\n\n".to_owned(), (following, ticks, room)));
                        }
                    }
                }
            },
        );
        let frames = parts.map(|text| Ok::<_, Infallible>(Frame::data(Bytes::from(text))));
        let body = StreamBody::new(frames).map_err(|never| match never {}).boxed_unsync();
        let mut response = Response::new(body);
        let kind = HeaderValue::from_static("text/event-stream");
        response.headers_mut().insert(header::CONTENT_TYPE, kind);
        Ok(response)
    }
}

/// The part of the stream after a record; nothing where no record follows.
fn news(
    asked: &mut Asked<'_>,
    params: &Params,
    after: Number,
    is_html: bool,
) -> Result<Option<Part>, Problem> {
    let last = asked.reader.last()?.map_or(Number(0), |(last, _)| last);
    if last <= after {
        return Ok(None);
    }
    let mut question = question(params, asked.reader, &asked.now)?;
    // The period of a page moves on with the time.
    (question.period.from, question.period.to) = (None, None);
    let folds = params.flag("fold", is_html)?;
    let known = if folds { Some(asked.store.stories(asked.reader, asked.now.timestamp())?) } else { None };
    let stories = known.as_ref().and_then(|known| known.stories());
    let cursor = Cursor { after, shown: BTreeSet::new() };
    let mut walk = Walk::new(asked.reader, &question, Order::OldestFirst, MOST)?.from(cursor);
    let (mut items, mut is_whole) = (Vec::new(), false);
    while items.len() < MOST {
        match walk.next(asked.reader, stories)? {
            Step::Item(item) => items.push((item, walk.taken().unwrap_or(after))),
            Step::Bound | Step::End => {
                is_whole = true;
                break;
            }
        }
    }
    if !is_whole {
        let count = asked.reader.count_after(after)?;
        let data = json!({ "from": after, "to": last, "count": count });
        return Ok(Some(Part { text: event("lag", last, &data.to_string()), after: last }));
    }
    if items.is_empty() {
        return Ok(Some(Part { text: String::new(), after: last }));
    }
    let text = if is_html {
        items.reverse();
        let mut rows = Rows::new(asked.now.time_zone());
        let mut gone = BTreeSet::new();
        for (item, _) in &items {
            rows.item(item);
            if let (Item::Story(told), Some(stories)) = (item, stories) {
                let members = stories.members(asked.reader, told.story.id)?;
                gone.extend(members.into_iter().rev().take(MOST).map(|number| format!("change/{number}")));
            }
        }
        let html = render("live.html", json!({ "rows": rows.rows }))?;
        let data = json!({ "html": html, "count": items.len(), "newest": last, "gone": gone });
        event("rows", last, &data.to_string())
    } else {
        let mut text = String::new();
        for (item, number) in items {
            let name = match &item {
                Item::Record(_) => "change",
                Item::Story(_) => "story",
                Item::Gap(_) => "gap",
            };
            let entry = Entry::of(item, &asked.store.cluster);
            text.push_str(&event(name, number, &json(&entry).unwrap_or_default()));
        }
        text + &event("through", last, "{}")
    };
    Ok(Some(Part { text, after: last }))
}

fn event(name: &str, id: Number, data: &str) -> String {
    format!("event: {name}\nid: {id}\ndata: {data}\n\n")
}
