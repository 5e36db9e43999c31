//! From a request to its answer.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderValue, Request, Response, StatusCode, header};
use jiff::Zoned;
use kubediff_history::Number;
use serde_json::json;
use serve::{Body, full};

use super::assets::asset;
use super::etag::Condition;
use super::live::Live;
use super::params::Params;
use super::past::{self, Past};
use super::problem::Problem;
use super::screen::{self, Named};
use super::store::{Asked, Store};
use super::template::{Frame, render};
use super::viewer::Viewer;
use super::wanted::Wanted;
use super::{address, question, v1};

pub(super) const HTML: &str = "text/html; charset=utf-8";
const TEXT: &str = "text/markdown; charset=utf-8";
pub(super) const JSON: &str = "application/json";
const PROBLEM: &str = "application/problem+json";

/// The answers of a page, to those who are inside.
pub(super) struct Routes {
    store: Arc<Store>,
    live: Live,
    past: Past,
    /// `http` or `https`, for links that leave the page.
    scheme: &'static str,
}

/// The content of an answer.
pub(super) enum Answer {
    Html(String),
    Json(String),
    Markdown(String),
    /// Another address has it.
    Elsewhere(String),
}

impl Routes {
    pub(super) fn new(store: Arc<Store>, scheme: &'static str) -> Self {
        Self { live: Live::new(store.clone()), past: Past::new(store.clone()), store, scheme }
    }

    /// Answers a request, with what its sender may see.
    pub(super) async fn answer(&self, request: &Request<Bytes>, viewer: &Viewer) -> Response<Body> {
        let path = request.uri().path();
        if let Some(address) = past::Address::of(path) {
            return self.past.answer(request, &address, viewer).await;
        }
        if let Some(name) = path.strip_prefix("/static/") {
            return match asset(name) {
                Some(asset) => {
                    let of = |content: &'static str| self::content(StatusCode::OK, asset.kind, content);
                    Condition::of(request).file(asset.content).response(of)
                }
                None => refusal(path, missing(path), &Zoned::now()),
            };
        }
        let params = Params::parse(request.uri().query().unwrap_or_default());
        if matches!(path, "/live" | "/v1/live") {
            let resumed =
                request.headers().get("last-event-id").and_then(|id| id.to_str().ok()?.parse().ok());
            return match self.live.stream(viewer, params, resumed.map(Number), path == "/live").await {
                Ok(response) => response,
                Err(problem) => self.refusal(path, problem),
            };
        }
        let segments: Option<Vec<String>> = path.split('/').skip(1).map(address::text).collect();
        let named = request.headers().get(header::HOST).and_then(|host| host.to_str().ok());
        // HTTP/2 has it in the address.
        let host = request.uri().authority().map(http::uri::Authority::as_str).or(named).unwrap_or_default();
        let origin = format!("{}://{host}", self.scheme);
        let whole = path.to_owned();
        let condition = Condition::of(request);
        let answer = match segments {
            Some(segments) => match viewer.seen(&Wanted::of(&segments, &params)).await {
                Ok(seen) => {
                    let answer = move |asked: &mut Asked<'_>| {
                        let segments: Vec<&str> = segments.iter().map(String::as_str).collect();
                        let make =
                            |asked: &mut Asked<'_>| dispatch(asked, &segments, &params, &origin, &whole);
                        condition.answer(asked, &segments, &params, make)
                    };
                    self.store.ask(seen, answer).await
                }
                Err(problem) => Err(problem),
            },
            None => Err(missing(path)),
        };
        match answer {
            Ok(tagged) => tagged.response(|answer| match answer {
                Answer::Html(html) => content(StatusCode::OK, HTML, html),
                Answer::Json(json) => content(StatusCode::OK, JSON, json),
                Answer::Markdown(text) => content(StatusCode::OK, TEXT, text),
                Answer::Elsewhere(to) => moved(&to),
            }),
            Err(problem) => self.refusal(path, problem),
        }
    }

    pub(super) fn store(&self) -> &Arc<Store> {
        &self.store
    }

    /// A refusal, with the name of the cluster where it is a page.
    fn refusal(&self, path: &str, problem: Problem) -> Response<Body> {
        let now = Zoned::now().with_time_zone(self.store.zone.clone());
        refusal_in(&self.store.cluster, path, problem, &now)
    }
}

/// A refusal for somebody who may not know of which cluster this is.
pub(super) fn refusal(path: &str, problem: Problem, now: &Zoned) -> Response<Body> {
    refusal_in("", path, problem, now)
}

/// A refusal, as a page or as JSON.
fn refusal_in(cluster: &str, path: &str, problem: Problem, now: &Zoned) -> Response<Body> {
    let status = problem.status;
    if past::Address::of(path).is_some() {
        return past::refused(problem);
    }
    if path.starts_with("/v1/") {
        let json = serde_json::to_string(&problem).unwrap_or_default() + "\n";
        return content(status, PROBLEM, json);
    }
    let page = Frame::new(&problem.title, "", &Params::default(), &[]).around(cluster, now);
    let error = json!({
        "status": status.as_u16(), "title": problem.title, "detail": problem.detail, "hint": problem.hint, "retry": null,
    });
    match render("error.html", json!({ "page": page, "error": error })) {
        Ok(html) => content(status, HTML, html),
        Err(_) => content(status, "text/plain; charset=utf-8", format!("{}\n", problem.title)),
    }
}

/// The screen or the data at an address.
fn dispatch(
    asked: &mut Asked<'_>,
    segments: &[&str],
    params: &Params,
    origin: &str,
    path: &str,
) -> Result<Answer, Problem> {
    let number = |text: &str| text.parse().map(Number).map_err(|_| missing(path));
    Ok(match segments {
        [""] => Answer::Html(screen::timeline(asked, params)?),
        ["search"] => Answer::Elsewhere(question::searched(asked, params.text("s"))?),
        ["change", it] => Answer::Html(screen::change(asked, number(it)?, params)?),
        ["story", it] => match it.strip_suffix(".md") {
            Some(it) => Answer::Markdown(screen::markdown(asked, number(it)?, origin)?),
            None => Answer::Html(screen::story(asked, number(it)?, params)?),
        },
        ["o", resource, namespace, name] => {
            Answer::Html(screen::object(asked, &Named::new(resource, namespace, name), params)?)
        }
        ["diff"] => Answer::Html(screen::diff(asked, params)?),
        ["at"] | ["at", ""] => match params.get("time") {
            Some(text) => Answer::Elsewhere(format!("/at/{}/", screen::moment(asked, "time", text)?)),
            None => Answer::Html(screen::instant(asked, None, params)?),
        },
        ["at", time] => Answer::Elsewhere(params.address(&format!("/at/{time}/"), &["kind", "ns"], &[])),
        ["at", time, ""] => {
            let at = screen::moment(asked, "time", time)?;
            Answer::Html(screen::instant(asked, Some(at), params)?)
        }
        ["about"] => Answer::Html(screen::about(asked, params)?),
        ["help"] => Answer::Html(screen::help(asked, params)?),
        ["v1", rest @ ..] => Answer::Json(v1::answer(asked, rest, params)?.ok_or_else(|| missing(path))?),
        _ => return Err(missing(path)),
    })
}

fn missing(path: &str) -> Problem {
    Problem::missing("There is no such page", format!("Nothing is at {path}."))
}

/// An answer with all its content.
pub(super) fn content(status: StatusCode, kind: &'static str, text: impl Into<Bytes>) -> Response<Body> {
    let mut response = Response::new(full(text));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

pub(super) fn moved(to: &str) -> Response<Body> {
    let mut response = Response::new(full(Bytes::new()));
    *response.status_mut() = StatusCode::SEE_OTHER;
    if let Ok(to) = HeaderValue::from_str(to) {
        response.headers_mut().insert(header::LOCATION, to);
    }
    response
}
