//! Showing changes: coloured text for people, JSON lines for programs.
//!
//! Everything from the cluster is escaped, in both: a user who may write a label must not write to the terminal.

use std::fmt::Write as _;
use std::io;
use std::str::FromStr;

use anstream::{AutoStream, ColorChoice};
use anstyle::Style;
use jiff::tz::TimeZone;
use serde::Serialize;

use crate::change::{Change, Origin, Verb};
use crate::facts::{age, facts};
use crate::managers::Manager;
use crate::terminal::{is_unsafe, shorten, width};
use painter::{BOLD, DIM, GREEN, MAGENTA, Painter, RED, YELLOW};

mod differences;
pub(crate) mod painter;

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
        let size = terminal_size::terminal_size_of(io::stdout());
        // Some terminals say 0 as long as they do not know.
        let width = size.map(|(width, _)| usize::from(width.0)).filter(|width| *width > 0);
        Self {
            width: width.unwrap_or(DEFAULT_WIDTH),
            time_zone: TimeZone::system(),
            max_differences: 60,
            max_lines: 24,
            show_dropped: false,
        }
    }
}

impl Renderer {
    /// The change in a few lines, each ended by a line feed.
    pub fn text(&self, change: &Change) -> String {
        let mut out = Painter::default();
        self.header(change, &mut out);
        match change.verb {
            Verb::Added => self.facts(change, &mut out),
            Verb::Deleted => self.facts(change, &mut out),
            Verb::Recreated if change.diff.is_empty() => {
                out.spaces(INDENT).put(DIM, "same content").line();
            }
            Verb::Updated | Verb::Recreated => differences::differences(self, &change.diff, &mut out),
        }
        if self.show_dropped && !change.dropped.is_empty() {
            let rules: Vec<String> =
                change.dropped.iter().map(|(rule, count)| format!("{rule} {count}")).collect();
            out.spaces(INDENT).put(DIM, &format!("left out: {}", rules.join(", "))).line();
        }
        out.finish()
    }

    fn header(&self, change: &Change, out: &mut Painter) {
        let (mark, style) = mark(change.verb);
        let time = change.observed_at.to_zoned(self.time_zone.clone()).strftime("%H:%M:%S").to_string();
        let group =
            if change.gvk.group.is_empty() { String::new() } else { format!(".{}", change.gvk.group) };
        let object = match &change.namespace {
            Some(namespace) => format!("{namespace}/{}", change.name),
            None => change.name.clone(),
        };
        out.put(DIM, &time).spaces(2).put(style.bold(), mark).spaces(1);
        if let Some(cluster) = &change.cluster {
            out.put(DIM, &format!("{cluster} "));
        }
        out.put(style, &change.resource).put(DIM, &group).spaces(1).put(BOLD, &object).spaces(2);
        out.put(DIM, &format!("({})", circumstances(change))).line();
    }

    fn facts(&self, change: &Change, out: &mut Painter) {
        let Some(object) = change.new.as_ref().or(change.old.as_ref()) else { return };
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

fn mark(verb: Verb) -> (&'static str, Style) {
    match verb {
        Verb::Added => ("+", GREEN),
        Verb::Updated => ("~", YELLOW),
        Verb::Deleted => ("-", RED),
        Verb::Recreated => ("±", MAGENTA),
    }
}

/// `updated by kubectl-edit, seen in a list`.
fn circumstances(change: &Change) -> String {
    let mut text = change.verb.as_str().to_owned();
    let mut names: Vec<String> = Vec::new();
    for Manager { manager, subresource, .. } in &change.managers {
        let name = match subresource {
            Some(subresource) => format!("{manager}/{subresource}"),
            None => manager.clone(),
        };
        if !names.contains(&name) {
            names.push(name);
        }
    }
    if !names.is_empty() {
        let more = names.len().saturating_sub(3);
        names.truncate(3);
        let _ = write!(text, " by {}", names.join(", "));
        if more > 0 {
            let _ = write!(text, " and {more} more");
        }
    }
    match change.origin {
        Origin::Watch => {}
        Origin::List => text.push_str(", seen in a list"),
        Origin::Restart => text.push_str(", while kubediff did not run"),
    }
    text
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

/// `value` as one line of JSON, ended by a line feed. Characters that a terminal would act on are escaped, which JSON
/// allows for all of them.
///
/// # Errors
///
/// When the value cannot be JSON. A [`Change`] and a [`Session`](crate::Session) always can.
pub fn json_line(value: &impl Serialize) -> Result<String, serde_json::Error> {
    let json = serde_json::to_string(value)?;
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
    line.push('\n');
    Ok(line)
}
