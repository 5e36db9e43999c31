//! Entries of the log as rows of a page.

use jiff::SignedDuration;
use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use kubediff_history::{ChangeRecord, ObjectId, Record, Verb};
use serde_json::{Value, json};

use super::address;
use crate::Change;
use crate::ask::log::Item;
use crate::model::diff::{Difference, Edit};
use crate::model::gap::Gap;
use crate::show::render::event::Remark;
use crate::show::render::header::{authors, mark, ways};
use crate::story::{Story, Verdict};
use crate::text::clock::time_of_day;
use crate::text::terminal::{flow, thousands};

/// Rows below each other. The first one of a day has the date.
pub(super) struct Rows {
    zone: TimeZone,
    day: Option<Date>,
    pub(super) rows: Vec<Value>,
}

impl Rows {
    pub(super) fn new(zone: &TimeZone) -> Self {
        Self { zone: zone.clone(), day: None, rows: Vec::new() }
    }

    pub(super) fn item(&mut self, item: &Item) {
        match item {
            Item::Record(record) => self.record(record),
            Item::Gap(gap) => self.gap(gap),
            Item::Story(told) => self.story(&told.story, told.root.as_deref()),
        }
    }

    pub(super) fn record(&mut self, record: &Record) {
        match record {
            Record::Change(change) => self.change(change),
            Record::Gap(gap) => self.gap(
                &Gap::since(gap.from, gap.resource.iter().cloned().collect(), gap.reason.clone())
                    .until(gap.to),
            ),
            Record::Event(event) => {
                let remark = Remark::of(&event.object);
                self.push(
                    event.observed_at,
                    json!({
                        "sort": "event", "number": event.number, "mark": "*",
                        "tone": if remark.is_warning { "warning" } else { "plain" },
                        "kind": remark.kind, "name": remark.name, "href": null,
                        "object_href": about(&event.object),
                        "text": format!("{}: {}", remark.reason, remark.message),
                        "by": remark.words, "size": "", "source": "",
                    }),
                );
            }
            Record::Scrubbed(scrubbed) => {
                let versions = if scrubbed.masked == 1 { "version was" } else { "versions were" };
                self.push(scrubbed.at, json!({
                    "sort": "scrub", "number": scrubbed.number, "mark": "!", "tone": "gap", "kind": "", "name": "",
                    "href": null, "object_href": null,
                    "text": format!("{} {versions} masked: {}", scrubbed.masked, scrubbed.cause),
                    "by": "", "size": "", "source": "",
                }));
            }
        }
    }

    fn change(&mut self, change: &ChangeRecord) {
        let number = change.number.unwrap_or_default();
        let tone = match change.verb {
            Verb::Added => "added",
            Verb::Deleted => "deleted",
            Verb::Updated | Verb::Recreated => "updated",
        };
        self.push(
            change.observed_at,
            json!({
                "sort": "change", "number": number, "mark": mark(change.verb).0, "tone": tone,
                "kind": change.object.gvk.kind, "name": name(&change.object),
                "href": address::change(number), "object_href": address::object(&change.object),
                "text": headline(change), "by": by(change), "size": "", "source": ways(change).join(", "),
            }),
        );
    }

    fn gap(&mut self, gap: &Gap) {
        let to = gap.to.unwrap_or(gap.from);
        let lasted = crate::changes::facts::duration(to.as_second().saturating_sub(gap.from.as_second()));
        self.push(
            to,
            json!({
                "sort": "gap", "number": 0, "mark": "!", "tone": "gap", "kind": "", "name": "", "href": null,
                "object_href": null,
                "text": format!("not watched for {lasted}, from {}: {}", self.time(gap.from), gap.what()),
                "by": "", "size": "", "source": gap.cause,
            }),
        );
    }

    pub(super) fn story(&mut self, story: &Story, root: Option<&ChangeRecord>) {
        // It stands where its last record does.
        let is_long = story.last_at.duration_since(story.opened_at) >= SignedDuration::from_mins(1);
        let until = if is_long { format!("until {}", self.time(story.last_at)) } else { String::new() };
        self.push(
            story.opened_at,
            json!({
                "sort": "story", "number": story.id, "mark": "▸", "tone": tone(story),
                "kind": story.object.gvk.kind, "name": name(&story.object),
                "href": address::story(story.id), "object_href": address::object(&story.object),
                "text": story.words(root.map(|root| root.summary.as_str())),
                "by": root.map(by).unwrap_or_default(), "size": story.size(), "source": until,
            }),
        );
    }

    fn push(&mut self, at: Timestamp, mut row: Value) {
        let local = at.to_zoned(self.zone.clone());
        let date = local.date();
        let day = (self.day != Some(date)).then(|| date.strftime("%A, %-d %B %Y").to_string());
        self.day = Some(date);
        row["day"] = json!(day);
        row["time"] = json!(time_of_day(at, &self.zone));
        row["iso"] = json!(at);
        self.rows.push(row);
    }

    fn time(&self, at: Timestamp) -> String {
        time_of_day(at, &self.zone)
    }
}

/// `shop/cart`.
pub(super) fn name(object: &ObjectId) -> String {
    match &object.namespace {
        Some(namespace) => format!("{namespace}/{}", object.name),
        None => object.name.clone(),
    }
}

/// `Deployment shop/cart`.
pub(super) fn title(object: &ObjectId) -> String {
    format!("{} {}", object.gvk.kind, name(object))
}

/// The managers of a change, with how sure that is.
pub(super) fn by<D>(change: &ChangeRecord<D>) -> String {
    let words = |(by, names): (&str, String)| {
        let by = by.trim_start_matches([',', ' ']);
        format!("{}{names}", by.strip_prefix("by ").unwrap_or(by))
    };
    authors(change).map(words).unwrap_or_default()
}

/// The change in a few words.
pub(super) fn headline(change: &ChangeRecord) -> String {
    let is_empty = change.diff.as_array().is_none_or(Vec::is_empty);
    match change.verb {
        Verb::Updated if is_empty => "changed, and changed back".to_owned(),
        _ if change.summary.is_empty() => change.verb.as_str().to_owned(),
        _ => change.summary.clone(),
    }
}

/// How a story stands, as a colour says it besides its words.
pub(super) fn tone(story: &Story) -> &'static str {
    match story.verdict {
        Verdict::Complete => "good",
        Verdict::Failing | Verdict::Stuck => "bad",
        Verdict::Ongoing | Verdict::Paused => "going",
        Verdict::Superseded | Verdict::RolledBack => "plain",
    }
}

/// The object that an Event is about.
fn about(event: &Value) -> Option<String> {
    let about = &event["involvedObject"];
    let text = |name: &str| about[name].as_str().filter(|text| !text.is_empty());
    let group =
        text("apiVersion").and_then(|version| version.split_once('/')).map(|(group, _)| format!(".{group}"));
    let kind = text("kind").filter(|kind| kind.chars().all(|c| c.is_ascii_alphanumeric()))?;
    let kind = kind.to_lowercase() + &group.unwrap_or_default();
    Some(address::named(&kind, text("namespace"), text("name")?))
}

/// The differences of a change, as the page shows them.
pub(super) fn differences<'a>(differences: impl IntoIterator<Item = &'a Difference>) -> Vec<Value> {
    differences.into_iter().map(difference).collect()
}

fn difference(Difference { path, edit }: &Difference) -> Value {
    /// Lines of one text.
    const LINES: usize = 2_000;
    let path = path.to_string();
    let one = |mark: &str, old: Option<String>, new: Option<String>, note: &str| json!({ "path": path, "mark": mark, "old": old, "new": new, "lines": [], "note": note });
    match edit {
        Edit::Added { new } => one("+", None, Some(text(new)), ""),
        Edit::Removed { old } => one("-", Some(text(old)), None, ""),
        Edit::Changed { old, new } => one("~", Some(text(old)), Some(text(new)), ""),
        Edit::Reordered { old, new, matters } => {
            let note =
                if *matters { "the order changed" } else { "the order changed, which means nothing here" };
            one("~", Some(old.join(", ")), Some(new.join(", ")), note)
        }
        Edit::Text { lines } => {
            let text = lines.to_string();
            let lines: Vec<Value> = text
                .lines()
                .take(LINES)
                .map(|line| {
                    if line.starts_with("@@") {
                        return json!({ "mark": "@", "text": line });
                    }
                    let (mark, rest) = line.split_at_checked(1).unwrap_or((" ", line));
                    json!({ "mark": mark, "text": rest })
                })
                .collect();
            let more = text.lines().count().saturating_sub(lines.len());
            let note = if more > 0 { format!("{more} more lines") } else { String::new() };
            json!({ "path": path, "mark": "~", "old": null, "new": null, "lines": lines, "note": note })
        }
    }
}

/// A value: a text as it is, also of several lines, anything else on one line.
pub(super) fn text(value: &Value) -> String {
    match value.as_str() {
        Some(text) if text.contains('\n') => clipped(text.to_owned()),
        _ => clipped(flow(value)),
    }
}

/// The beginning of a very long text, with its length.
pub(super) fn clipped(text: String) -> String {
    /// More helps nobody on a page.
    const MOST: usize = 10_000;
    match text.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}… ({} bytes)", &text[..end], thousands(text.len())),
        None => text,
    }
}

/// The differences of a recorded change.
pub(super) fn of_change(change: &Change) -> Vec<Value> {
    differences(&*change.diff)
}
