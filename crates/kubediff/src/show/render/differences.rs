//! The lines that show differences.

use anstyle::Style;
use serde_json::Value;

use super::painter::{CYAN, DIM, GREEN, PLAIN, Painter, RED, YELLOW};
use super::{INDENT, Renderer};
use crate::model::diff::{Difference, Edit, Side, TextEdit};
use crate::text::terminal::{escape, flow, shorten, shorten_part, width, without_common_start};

/// Of a value with a narrower place than this, nothing would be left.
const MIN_VALUE: usize = 24;

/// Between old and new.
const ARROW: usize = 3;

/// Where a value begins that does not fit behind its path.
const DEEPER: usize = INDENT + 4;

pub(super) fn differences(renderer: &Renderer, differences: &[Difference], out: &mut Painter) {
    let shown = differences.get(..renderer.max_differences).unwrap_or(differences);
    let lines =
        Lines { width: renderer.width, max_lines: renderer.max_lines, column: column(renderer, shown) };
    for difference in shown {
        lines.difference(difference, out);
    }
    let more = differences.len() - shown.len();
    if more > 0 {
        out.spaces(INDENT).put(DIM, &format!("… {more} more differences")).line();
    }
}

/// Where values begin, so that they stand below each other: behind the longest path with which all still fit that
/// would fit behind their own path.
fn column(renderer: &Renderer, differences: &[Difference]) -> usize {
    let mut fitting: Vec<(usize, usize)> = differences
        .iter()
        .filter_map(|difference| Some((start(difference), one_line(&difference.edit)?)))
        .filter(|(start, value)| start + value <= renderer.width)
        .collect();
    fitting.sort_unstable();
    while let Some(&(column, _)) = fitting.last() {
        if fitting.iter().all(|(_, value)| column + value <= renderer.width) {
            return column;
        }
        fitting.pop();
    }
    0
}

/// How many columns the edit takes on one line, if it is a thing of one line.
fn one_line(edit: &Edit) -> Option<usize> {
    match edit {
        Edit::Added { new: value } | Edit::Removed { old: value } if lines_of(value).is_none() => {
            Some(width(&flow(value)))
        }
        Edit::Changed { old, new } => Some(width(&flow(old)) + ARROW + width(&flow(new))),
        Edit::Reordered { old, new, .. } => {
            Some(width(&escape(&old.join(", "))) + ARROW + width(&escape(&new.join(", "))))
        }
        Edit::Added { .. } | Edit::Removed { .. } | Edit::Text { .. } => None,
    }
}

/// The lines of a text that has several.
fn lines_of(value: &Value) -> Option<Vec<&str>> {
    let lines: Vec<&str> = value.as_str()?.lines().collect();
    (lines.len() > 1).then_some(lines)
}

/// Where the value begins at the earliest: indentation, mark, path, colon, space.
fn start(difference: &Difference) -> usize {
    INDENT + 2 + width(&path(difference)) + 2
}

fn path(difference: &Difference) -> String {
    escape(&difference.path.to_string()).into_owned()
}

struct Lines {
    width: usize,
    max_lines: usize,
    column: usize,
}

impl Lines {
    fn difference(&self, difference: &Difference, out: &mut Painter) {
        let (mark, style) = match difference.edit {
            Edit::Added { .. } => ("+", GREEN),
            Edit::Removed { .. } => ("-", RED),
            _ => ("~", YELLOW),
        };
        out.spaces(INDENT).put(style, mark).put(PLAIN, " ").put(CYAN, &path(difference)).put(DIM, ":");
        let column = self.column.max(start(difference));
        let gap = column - start(difference) + 1;
        let room = self.width.saturating_sub(column);
        match &difference.edit {
            Edit::Added { new: value } | Edit::Removed { old: value } => {
                self.value(value, style, gap, room, out)
            }
            Edit::Changed { old, new } => self.pair(&flow(old), &flow(new), gap, room, out),
            Edit::Reordered { old, new, .. } => self.pair(&old.join(", "), &new.join(", "), gap, room, out),
            Edit::Text { lines } => self.text(lines, out),
        }
    }

    fn value(&self, value: &Value, style: Style, gap: usize, room: usize, out: &mut Painter) {
        if let Some(lines) = lines_of(value) {
            out.put(DIM, &format!(" {} lines", lines.len())).line();
            let mark = if style == GREEN { '+' } else { '-' };
            for line in lines.iter().take(self.max_lines) {
                out.spaces(DEEPER).put(style, &format!("{mark}{}", self.deeper(&escape(line)))).line();
            }
            return self.more(lines.len(), "lines", out);
        }
        let text = flow(value);
        match value {
            Value::Object(map) if width(&text) > room && map.len() > 1 => {
                out.line();
                for (name, value) in map.iter().take(self.max_lines) {
                    let name = format!("{}: ", escape(name));
                    let room = self.width.saturating_sub(DEEPER + width(&name)).max(MIN_VALUE);
                    out.spaces(DEEPER).put(DIM, &name).put(style, &shorten(&flow(value), room)).line();
                }
                self.more(map.len(), "fields", out);
            }
            _ if width(&text) > room && room < MIN_VALUE => {
                out.line();
                out.spaces(DEEPER).put(style, &self.deeper(&text)).line();
            }
            _ => out.spaces(gap).put(style, &shorten(&text, room)).line(),
        }
    }

    fn pair(&self, old: &str, new: &str, gap: usize, room: usize, out: &mut Painter) {
        let (old, new) = (escape(old), escape(new));
        if width(&old) + ARROW + width(&new) <= room {
            out.spaces(gap).put(RED, &old).put(DIM, " → ").put(GREEN, &new).line();
            return;
        }
        let long = width(&old).max(width(&new)) > self.width.saturating_sub(DEEPER + 2);
        let bytes = (old.len(), new.len());
        let (old, new) = if long { without_common_start(&old, &new) } else { (old.into(), new.into()) };
        let room = self.width.saturating_sub(DEEPER + 2).max(MIN_VALUE);
        out.line();
        out.spaces(DEEPER).put(RED, &format!("- {}", shorten_part(&old, room, bytes.0))).line();
        out.spaces(DEEPER).put(GREEN, &format!("+ {}", shorten_part(&new, room, bytes.1))).line();
    }

    fn text(&self, edit: &TextEdit, out: &mut Painter) {
        let count =
            |mark: &str, count: usize| if count == 0 { String::new() } else { format!(" {mark}{count}") };
        let lines = if edit.added + edit.removed == 1 { "line" } else { "lines" };
        let counts = format!("{}{} {lines}", count("+", edit.added), count("-", edit.removed));
        out.put(DIM, &counts).line();
        let mut shown = 0;
        let total: usize = edit.hunks.iter().map(|hunk| hunk.lines.len()).sum();
        for hunk in &edit.hunks {
            if shown >= self.max_lines {
                break;
            }
            out.spaces(DEEPER).put(DIM, &hunk.header()).line();
            for line in hunk.lines.iter().take(self.max_lines - shown) {
                let style = match line.side {
                    Side::Old => RED,
                    Side::New => GREEN,
                    Side::Both => PLAIN,
                };
                let text = escape(&line.text);
                out.spaces(DEEPER).put(style, &format!("{}{}", line.side.mark(), self.deeper(&text)));
                if !line.ends && line.side != Side::Both {
                    out.put(DIM, " (no line end)");
                }
                out.line();
                shown += 1;
            }
        }
        self.more(total, "lines", out);
    }

    fn more(&self, total: usize, what: &str, out: &mut Painter) {
        let more = total.saturating_sub(self.max_lines);
        if more > 0 {
            out.spaces(DEEPER).put(DIM, &format!("… {more} more {what}")).line();
        }
    }

    fn deeper(&self, text: &str) -> String {
        shorten(text, self.width.saturating_sub(DEEPER + 2).max(MIN_VALUE))
    }
}
