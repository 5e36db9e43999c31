//! Putting coloured text together.

use std::fmt::Write as _;

use anstyle::{AnsiColor, Style};

use crate::text::terminal::escape;

pub(crate) const PLAIN: Style = Style::new();
pub(super) const BOLD: Style = Style::new().bold();
pub(crate) const DIM: Style = Style::new().dimmed();
pub(super) const GREEN: Style = AnsiColor::Green.on_default();
pub(super) const RED: Style = AnsiColor::Red.on_default();
pub(super) const YELLOW: Style = AnsiColor::Yellow.on_default();
pub(super) const MAGENTA: Style = AnsiColor::Magenta.on_default();
pub(crate) const CYAN: Style = AnsiColor::Cyan.on_default();

/// The text so far. Everything put in is escaped, so that no control sequence but ours gets out.
#[derive(Default)]
pub(crate) struct Painter(String);

impl Painter {
    pub(crate) fn put(&mut self, style: Style, text: &str) -> &mut Self {
        let text = escape(text);
        if style.is_plain() || text.is_empty() {
            self.0.push_str(&text);
        } else {
            let _ = write!(self.0, "{style}{text}{style:#}");
        }
        self
    }

    pub(crate) fn spaces(&mut self, count: usize) -> &mut Self {
        self.0.extend(std::iter::repeat_n(' ', count));
        self
    }

    pub(crate) fn line(&mut self) {
        self.0.truncate(self.0.trim_end_matches(' ').len());
        self.0.push('\n');
    }

    pub(crate) fn finish(self) -> String {
        self.0
    }
}
