//! One story: its outcome, its pods over time, the change that it began with, and all its records.

use std::fmt::Write as _;

use jiff::SignedDuration;
use kubediff_history::{Number, Page, Record, Scope};
use serde_json::{Value, json};

use super::strip::{self, Lane};
use crate::Change;
use crate::ask::Stories;
use crate::changes::facts::duration;
use crate::story::Story;
use crate::text::clock::{date_and_time, time_of_day};
use crate::web::address;
use crate::web::params::Params;
use crate::web::problem::Problem;
use crate::web::row::{Rows, by, headline, name, of_change, title, tone};
use crate::web::store::Asked;
use crate::web::template::{Frame, render};

/// Records of a story that are shown.
const RECORDS: usize = 2_000;
/// Gaps within a story that are drawn.
const GAPS: usize = 50;

/// A story with its records.
struct Whole {
    story: Story,
    root: Option<kubediff_history::ChangeRecord>,
    records: Vec<Record>,
    more: usize,
}

fn read(asked: &mut Asked<'_>, id: Number) -> Result<Whole, Problem> {
    let known = asked.store.stories(asked.reader, asked.now.timestamp())?;
    let none = || {
        Problem::missing(format!("There is no story #{id}"), "")
            .hint("A story has the number of the change that it began with. The timeline shows stories.")
    };
    let stories: &Stories = known.stories().ok_or_else(none)?;
    let id = match stories.story(asked.reader, id)? {
        Some(_) => id,
        // The number of one of its records means it, too.
        None => stories.of_record(asked.reader, id)?.ok_or_else(none)?,
    };
    let told = stories.told(asked.reader, id)?.ok_or_else(none)?;
    let records = stories.records(asked.reader, id, RECORDS)?;
    let more = stories.members(asked.reader, id)?.len().saturating_sub(records.len());
    Ok(Whole { story: told.story, root: told.root.map(|root| *root), records, more })
}

/// The page of a story.
pub(in crate::web) fn story(asked: &mut Asked<'_>, id: Number, params: &Params) -> Result<String, Problem> {
    let zone = asked.now.time_zone().clone();
    let Whole { story, root, records, more } = read(asked, id)?;
    let subject = title(&story.object);
    let frame = Frame::new(&subject, "", params, &[]);
    let lanes = strip::lanes(asked.reader, &records, &story)?;
    let scope = Scope::default();
    let gaps = asked.reader.gaps(&scope, Some(story.opened_at), Some(story.last_at), &Page::newest(GAPS))?;
    let mut rows = Rows::new(&zone);
    records.iter().for_each(|record| rows.record(record));
    let differences = match &root {
        Some(root) => of_change(&Change::of_record(root.clone()).map_err(crate::ask::AskError::from)?),
        None => Vec::new(),
    };
    let before = story.opened_at.checked_sub(SignedDuration::from_secs(1)).unwrap_or(story.opened_at);
    let before = before.round(jiff::Unit::Second).unwrap_or(before);
    let namespace = story.object.namespace.clone().unwrap_or_default();
    let place = if namespace.is_empty() { " -A".to_owned() } else { format!(" -n {namespace}") };
    let next = story.next.map(|next| {
        let text = format!(
            "{} by #{next}",
            if story.verdict == crate::story::Verdict::RolledBack { "rolled back" } else { "superseded" }
        );
        json!({ "text": text, "href": address::change(next) })
    });
    let unseen = story.unseen.map(|(from, to)| {
        format!(
            "Some of it may be missing: not watched from {} to {}.",
            date_and_time(from, &zone),
            date_and_time(to, &zone)
        )
    });
    let context = json!({
        "page": frame.json(asked),
        "story": {
            "number": story.id, "kind": story.kind, "object": subject, "object_href": address::object(&story.object),
            "text": root.as_ref().map(headline).unwrap_or_default(), "outcome": story.outcome(), "tone": tone(&story),
            "from": date_and_time(story.opened_at, &zone),
            "to": date_and_time(story.done_at.unwrap_or(story.last_at), &zone),
            "by": root.as_ref().map(by).unwrap_or_default(), "size": story.size(), "phrases": story.of_pods(), "unseen": unseen,
            "at_href": address::with(&format!("/at/{before}/"), [("ns", namespace)]),
            "before_command": format!("kubediff get {}{place} --at {before}", story.object.resource),
            "markdown_href": format!("/story/{}.md", story.id), "json_href": format!("/v1/stories/{}", story.id), "next": next,
        },
        "strip": strip::strip(&lanes, &story, &gaps, &zone),
        "pods": pods(&story, &lanes),
        "differences": differences,
        "rows": rows.rows,
        "more": more,
    });
    Ok(render("story.html", context)?)
}

/// The pods as a table.
fn pods(story: &Story, lanes: &[Lane]) -> Vec<Value> {
    let row = |lane: &Lane| {
        let pod = story.pods.get(&lane.object.uid);
        let troubles: Vec<&str> =
            pod.iter().flat_map(|pod| &pod.troubles).map(|trouble| trouble.words()).collect();
        json!({
            "name": lane.object.name, "href": address::object(&lane.object), "node": lane.node,
            "state": if lane.is_new { "new" } else { "old" },
            "ready_after": lane.ready_after().map(|took| duration(took.as_secs())).unwrap_or_default(),
            "restarts": pod.map_or(0, |pod| pod.restarts), "trouble": troubles.join(", "),
            "ended": pod.is_some_and(|pod| pod.is_gone),
        })
    };
    lanes.iter().map(row).collect()
}

/// A story as Markdown, with links to this page.
pub(in crate::web) fn markdown(asked: &mut Asked<'_>, id: Number, origin: &str) -> Result<String, Problem> {
    let zone = asked.now.time_zone().clone();
    let Whole { story, root, records, .. } = read(asked, id)?;
    let mut out = String::new();
    let words = story.words(root.as_ref().map(|root| root.summary.as_str()));
    let link = format!("{origin}{}", address::story(story.id));
    let _ = writeln!(out, "### [{} {}]({link})\n", story.object.gvk.kind, plain(&name(&story.object)));
    let _ = writeln!(out, "{}\n", plain(&words));
    let from = date_and_time(story.opened_at, &zone);
    let to = date_and_time(story.done_at.unwrap_or(story.last_at), &zone);
    let hours = asked.now.strftime("%:z");
    let author = root.as_ref().map(by).filter(|by| !by.is_empty());
    let author = author.map(|by| format!(", by {}", plain(&by))).unwrap_or_default();
    let _ = writeln!(out, "{from} to {to} (UTC{hours}){author}; {}\n", story.size());
    if let Some(change) = root.and_then(|root| Change::of_record(root).ok()) {
        for difference in change.diff.iter().take(50) {
            let _ = writeln!(out, "- `{}`", difference.path.to_string().replace('`', "'"));
        }
        out.push('\n');
    }
    let _ = writeln!(out, "| time | change | object | |\n|---|---|---|---|");
    for record in records.iter().take(100) {
        if let Record::Change(change) = record {
            let at = time_of_day(change.observed_at, &zone);
            let number = change.number.unwrap_or_default();
            let link = format!("[#{number}]({origin}{})", address::change(number));
            let object = plain(&format!("{} {}", change.object.gvk.kind, name(&change.object)));
            let _ = writeln!(out, "| {at} | {link} | {object} | {} |", plain(&headline(change)));
        }
    }
    Ok(out)
}

/// A text that Markdown takes as it is.
fn plain(text: &str) -> String {
    let mut out = String::new();
    for c in crate::text::terminal::escape(text).chars() {
        if "\\`*_[]<>|#&!".contains(c) {
            out.push('\\');
        }
        out.push(c);
    }
    out
}
