//! The text of a message, in [Slack's markup](https://docs.slack.dev/messaging/formatting-message-text).

use crate::record::{Parcel, Record};

/// Slack cuts longer texts off [at 40,000 characters](https://docs.slack.dev/changelog/2018-truncating-really-long-messages); people stop
/// reading before that.
const MOST: usize = 3_900;
/// The most characters of a line about one change: a digest of a hundred has less than 40,000.
const LINE: usize = 300;

pub(super) fn text(parcel: &Parcel<'_>) -> String {
    match parcel.records[..] {
        [record] => one(record, parcel),
        _ => many(parcel),
    }
}

/// The summary of one record alone.
pub(super) fn brief(parcel: &Parcel<'_>) -> String {
    parcel.records.first().map(|record| line(record, parcel)).unwrap_or_default()
}

/// The summary, and the differences in a block, as many lines as fit.
fn one(record: &Record, parcel: &Parcel<'_>) -> String {
    let mut text = line(record, parcel);
    if record.details.is_empty() {
        return text;
    }
    let lines = record.details.lines().count();
    let mut block = String::new();
    let mut shown = 0;
    for detail in record.details.lines() {
        let detail = escape(detail).replace("```", "'''");
        if text.len() + block.len() + detail.len() > MOST {
            break;
        }
        block.push_str(&detail);
        block.push('\n');
        shown += 1;
    }
    if !block.is_empty() {
        text.push_str(&format!("\n```\n{block}```"));
    }
    if shown < lines {
        text.push_str(&format!("\n… and {} more lines", lines - shown));
    }
    text
}

/// Each change in a line.
fn many(parcel: &Parcel<'_>) -> String {
    let mut text = format!("{} changes:", parcel.records.len());
    for record in &parcel.records {
        text.push_str("\n• ");
        text.push_str(&line(record, parcel));
    }
    text
}

fn line(record: &Record, parcel: &Parcel<'_>) -> String {
    let mut text = String::new();
    if parcel.is_late {
        text.push_str("_(late)_ ");
    }
    text.push_str(&escape(&cut(&record.summary)));
    let missing: Vec<String> = parcel
        .missing_before(record.entry.number)
        .iter()
        .take(5)
        .map(|number| format!("#{number}"))
        .collect();
    if !missing.is_empty() {
        text.push_str(&format!(" _(before this, {} could not be delivered)_", missing.join(", ")));
    }
    text
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(LINE) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

/// The three characters that mean something to Slack.
fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
