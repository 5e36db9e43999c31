//! Showing changes: coloured text for people, JSON lines for programs.
//!
//! Everything from the cluster is escaped, in both: a user who may write a label must not write to the terminal.

use std::fmt::Write as _;
use std::io;
use std::str::FromStr;

use anstream::{AutoStream, ColorChoice};
use anstyle::Style;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde::Serialize;
use serde_json::Value;

use crate::changes::change::{Change, Verb};
use crate::changes::facts::{age, facts};
use crate::model::gap::Gap;
use crate::text::terminal::{is_unsafe, shorten, width, wrap};
use painter::{DIM, Painter};

mod differences;
pub(crate) mod event;
mod gap;
pub(crate) mod header;
pub(crate) mod painter;
mod story;

const INDENT: usize = 4;

/// Where a terminal's width is not known.
const DEFAULT_WIDTH: usize = 120;

/// Writes changes for people.
///
/// The text is coloured always; [`Color::stream`] takes the colours out where they are not wanted.
#[derive(Debug, Clone)]
pub struct Renderer {
    /// Columns that a line may take. Names and paths are never shortened, values are.
    pub width: usize,
    /// For the time of day.
    pub time_zone: TimeZone,
    /// How many differences of one change are shown.
    pub max_differences: usize,
    /// How many lines of one text, or fields of one value, are shown.
    pub max_lines: usize,
    /// Whether to show what the noise rules left out.
    pub show_dropped: bool,
    /// Whether each change has its date, and its number in the history, as in a log.
    pub log: bool,
}

/// When to use colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Color {
    /// On a terminal, unless the environment says otherwise (`NO_COLOR`, `CLICOLOR`, `CLICOLOR_FORCE`, `TERM=dumb`).
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// A text that says nothing about colours.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not one of auto, always, never")]
pub struct InvalidColor(String);

impl Default for Renderer {
    /// For the terminal that standard output is, in the system's time zone.
    fn default() -> Self {
        Self {
            width: terminal_width().unwrap_or(DEFAULT_WIDTH),
            time_zone: TimeZone::system(),
            max_differences: 60,
            max_lines: 24,
            show_dropped: false,
            log: false,
        }
    }
}

/// The columns of the terminal that standard output is. They change when it is resized.
pub fn terminal_width() -> Option<usize> {
    let (width, _) = terminal_size::terminal_size_of(io::stdout())?;
    // Some terminals say 0 as long as they do not know.
    Some(usize::from(width.0)).filter(|width| *width > 0)
}

impl Renderer {
    /// The change in a few lines, each ended by a line feed.
    pub fn text(&self, change: &Change) -> String {
        let mut out = Painter::default();
        header::header(self, change, &mut out);
        self.body(change, &mut out);
        out.finish()
    }

    /// The lines of [`text`](Self::text) below the first one.
    pub fn differences(&self, change: &Change) -> String {
        let mut out = Painter::default();
        self.body(change, &mut out);
        out.finish()
    }

    fn body(&self, change: &Change, out: &mut Painter) {
        match change.verb {
            Verb::Added | Verb::Deleted => self.facts(change, out),
            Verb::Recreated if change.diff.is_empty() => {
                out.spaces(INDENT).put(DIM, "same content").line();
            }
            Verb::Updated if change.diff.is_empty() => {
                out.spaces(INDENT).put(DIM, "changed, and changed back").line();
            }
            Verb::Updated | Verb::Recreated => differences::differences(self, &change.diff, out),
        }
        if self.show_dropped && !change.dropped.is_empty() {
            let rules: Vec<String> =
                change.dropped.iter().map(|(rule, count)| format!("{rule} {count}")).collect();
            out.spaces(INDENT).put(DIM, &format!("left out: {}", rules.join(", "))).line();
        }
    }

    /// The change with its summary instead of its differences.
    pub fn brief(&self, change: &Change) -> String {
        let mut out = Painter::default();
        header::header(self, change, &mut out);
        for line in wrap(&header::summary(change), ", ", self.width.saturating_sub(INDENT)) {
            out.spaces(INDENT).put(Style::new(), &line).line();
        }
        out.finish()
    }

    /// The change on one line, which is cut to `columns` where a number is given.
    pub fn line(&self, change: &Change, columns: Option<usize>) -> String {
        header::line(self, change, columns)
    }

    /// A gap in two lines, or on one.
    pub fn gap(&self, gap: &Gap, one_line: bool) -> String {
        gap::gap(self, gap, one_line)
    }

    /// A scrub of the history, on one line.
    pub(crate) fn scrubbed(&self, scrubbed: &kubediff_history::Scrubbed) -> String {
        gap::scrubbed(self, scrubbed)
    }

    /// An Event, in one line or two.
    pub(crate) fn event(&self, event: &kubediff_history::Event, one_line: bool) -> String {
        event::event(self, event, one_line)
    }

    /// A story with the change that it began with, on one line or in two.
    pub(crate) fn story(
        &self,
        story: &crate::story::Story,
        root: Option<&kubediff_history::ChangeRecord>,
        one_line: bool,
    ) -> String {
        story::story(self, story, root, one_line)
    }

    /// The date of `now`, as a line, if `before` was on another day.
    pub fn date(&self, before: Timestamp, now: Timestamp) -> Option<String> {
        let date = |at: Timestamp| at.to_zoned(self.time_zone.clone()).date();
        let (before, now) = (date(before), date(now));
        let mut out = Painter::default();
        out.put(DIM, &format!("-- {}", now.strftime("%A, %Y-%m-%d"))).line();
        (before != now).then(|| out.finish())
    }

    fn facts(&self, change: &Change, out: &mut Painter) {
        let Some(object) = change.new.as_ref().or(change.old.as_ref()) else {
            // A record of the history has its headline, and no objects.
            let headline = &change.summary;
            if !headline.is_empty() {
                out.spaces(INDENT)
                    .put(Style::new(), &shorten(headline, self.width.saturating_sub(INDENT)))
                    .line();
            }
            return;
        };
        let mut facts = facts(object);
        if change.verb == Verb::Deleted {
            facts.splice(0..0, age(object, change.observed_at));
        }
        let column = facts.iter().map(|fact| width(&fact.label)).max().unwrap_or(0) + 2;
        for fact in &facts {
            let gap = column - width(&fact.label);
            let room = self.width.saturating_sub(INDENT + column);
            out.spaces(INDENT)
                .put(DIM, &fact.label)
                .spaces(gap)
                .put(Style::new(), &shorten(&fact.text, room));
            out.line();
        }
    }
}

impl Color {
    /// Standard output, or whatever else, with colours or without.
    pub fn stream<S: anstream::stream::RawStream>(self, raw: S) -> AutoStream<S> {
        let choice = match self {
            Self::Auto => ColorChoice::Auto,
            Self::Always => ColorChoice::Always,
            Self::Never => ColorChoice::Never,
        };
        AutoStream::new(raw, choice)
    }
}

impl FromStr for Color {
    type Err = InvalidColor;

    fn from_str(text: &str) -> Result<Self, InvalidColor> {
        match text {
            "auto" => Ok(Self::Auto),
            "always" => Ok(Self::Always),
            "never" => Ok(Self::Never),
            _ => Err(InvalidColor(text.to_owned())),
        }
    }
}

/// A text without colours.
pub(crate) fn plain(text: &str) -> String {
    anstream::adapter::strip_str(text).to_string()
}

/// `value` as YAML, as kubectl writes it, safe for a terminal. A value with characters that a terminal would act on is
/// written as JSON, which is YAML, too, and can escape them.
///
/// # Errors
///
/// When the value cannot be YAML. JSON always can.
pub fn yaml(value: &Value) -> Result<String, serde_json::Error> {
    let options = serde_saphyr::ser_options! { folded_wrap_chars: usize::MAX };
    match serde_saphyr::to_string_with_options(value, options) {
        Ok(text) if !text.contains(|c| c != '\n' && is_unsafe(c)) => Ok(text),
        _ => json_pretty(value),
    }
}

/// `value` as JSON of several lines, with the same escapes as [`json_line`].
///
/// # Errors
///
/// When the value cannot be JSON.
pub fn json_pretty(value: &impl Serialize) -> Result<String, serde_json::Error> {
    // Line feeds of the layout stand between values only; those in texts are escaped already.
    let lines: Vec<String> = serde_json::to_string_pretty(value)?.lines().map(escape_json).collect();
    Ok(lines.join("\n") + "\n")
}

/// `value` as one line of JSON, ended by a line feed. Characters that a terminal would act on are escaped, which JSON
/// allows for all of them.
///
/// # Errors
///
/// When the value cannot be JSON. A [`Change`] and a [`Session`](crate::Session) always can.
pub fn json_line(value: &impl Serialize) -> Result<String, serde_json::Error> {
    Ok(json(value)? + "\n")
}

/// The same without its end.
pub(crate) fn json(value: &impl Serialize) -> Result<String, serde_json::Error> {
    serde_json::to_string(value).map(|json| escape_json(&json))
}

fn escape_json(json: &str) -> String {
    let mut line = String::with_capacity(json.len() + 1);
    let mut units = [0; 2];
    for c in json.chars() {
        if is_unsafe(c) {
            for unit in c.encode_utf16(&mut units) {
                let _ = write!(line, "\\u{unit:04x}");
            }
        } else {
            line.push(c);
        }
    }
    line
}
