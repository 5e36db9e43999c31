//! One change: what, by which manager, and the object after it.

use kubediff_history::{ChangeRecord, Filter, Number, Page, Reader, Record, Scope, Verb};
use serde_json::{Value, json};

use super::manifest;
use crate::Change;
use crate::ask::period::covered;
use crate::ask::{object, shown};
use crate::show::render::header::ways;
use crate::text::clock::date_and_time;
use crate::web::address;
use crate::web::params::Params;
use crate::web::problem::Problem;
use crate::web::row::{Rows, by, headline, of_change, title};
use crate::web::store::Asked;
use crate::web::template::{Frame, render, sentence};

/// The page of a change.
pub(in crate::web) fn change(
    asked: &mut Asked<'_>,
    number: Number,
    params: &Params,
) -> Result<String, Problem> {
    let zone = asked.now.time_zone().clone();
    let Some(version) = asked.reader.version_of(number)? else { return other(asked, number, params) };
    let Some(record) = version.change.as_deref().cloned() else { return other(asked, number, params) };
    let subject = title(&version.object);
    let heading = format!("{} {subject}, #{number}", record.verb.as_str());
    let frame = Frame::new(&heading, "", params, &[]);
    let (older, newer) = neighbours(asked.reader, &record)?;
    let story = story_of(asked, number)?;
    let (at, summary, author, source) =
        (record.observed_at, headline(&record), by(&record), ways(&record).join(", "));
    let dropped: Vec<Value> =
        record.dropped.iter().map(|(rule, count)| json!({ "rule": rule, "count": count })).collect();
    let (rv, rv_before, verb) = (record.rv.clone(), record.rv_before.clone(), record.verb);
    let mut change =
        Change::of_record(ChangeRecord { cluster: None, ..record }).map_err(crate::ask::AskError::from)?;
    change.new = Some(object(&version));
    let context = json!({
        "page": frame.json(asked),
        "change": {
            "number": number, "verb": verb, "object": subject, "object_href": address::object(&version.object),
            "time": date_and_time(at, &zone), "iso": at, "by": author, "source": source, "summary": summary,
            "dropped": dropped, "rv": rv, "rv_before": rv_before, "story": story,
            "older": older.map(address::change), "newer": newer.map(address::change),
            "json_href": format!("/v1/changes/{number}"),
            "blame_href": address::with(&address::object(&version.object), [("rev", number.to_string())]),
            "command": format!("kubediff show {number}"),
        },
        "differences": of_change(&change),
        "noise_note": if dropped.is_empty() { None } else { Some("Noise rules leave out some differences, which are in the object below.") },
        "manifest": manifest::plain(
            if verb == Verb::Deleted { "Its last state" } else { "The object after this change" },
            &shown(&version, false),
        ),
    });
    Ok(render("change.html", context)?)
}

/// The changes of the same object before and after this one.
fn neighbours(
    reader: &mut Reader,
    record: &ChangeRecord,
) -> Result<(Option<Number>, Option<Number>), Problem> {
    let scope = Scope { uid: Some(record.object.uid.clone()), ..Scope::default() };
    let filter = Filter { scope, ..Filter::default() };
    let number = record.number.unwrap_or_default();
    let mut beyond = |page: Page| -> Result<_, Problem> {
        let found = reader.records(&filter, &page.after(number))?.records;
        Ok(found.first().map(Record::number))
    };
    Ok((beyond(Page::newest(1))?, beyond(Page::oldest(1))?))
}

/// The story that a record belongs to, in words.
fn story_of(asked: &mut Asked<'_>, number: Number) -> Result<Value, Problem> {
    let known = asked.store.stories(asked.reader, asked.now.timestamp())?;
    let Some(stories) = known.stories() else { return Ok(Value::Null) };
    let Some(id) = stories.of_record(asked.reader, number)? else { return Ok(Value::Null) };
    let Some(told) = stories.told(asked.reader, id)? else { return Ok(Value::Null) };
    let words = told.story.words(told.root.as_ref().map(|root| root.summary.as_str()));
    let text = format!("{}: {words}", title(&told.story.object));
    Ok(json!({ "number": id, "text": text, "href": address::story(id) }))
}

/// A number that no change has, but perhaps a gap, an Event or a scrub.
fn other(asked: &mut Asked<'_>, number: Number, params: &Params) -> Result<String, Problem> {
    let zone = asked.now.time_zone().clone();
    let filter = Filter { gaps: true, events: true, ..Filter::default() };
    let page = Page::oldest(1).after(Number(number.0.saturating_sub(1))).until(number);
    let found = asked.reader.records(&filter, &page)?.records;
    let Some(record) = found.first() else {
        let covered = covered(asked.reader, &zone)?;
        let detail = sentence(&covered);
        return Err(Problem::missing(format!("There is no change #{number}"), detail)
            .hint("Retention may have removed it, or the number is one of another history."));
    };
    let mut rows = Rows::new(&zone);
    rows.record(record);
    let heading = format!("Record #{number}");
    let context = json!({
        "page": Frame::new(&heading, "", params, &[]).json(asked),
        "rows": rows.rows,
    });
    Ok(render("record.html", context)?)
}
