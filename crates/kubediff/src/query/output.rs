//! Where answers go: standard output, or a pager.

use std::io::{self, BufWriter, Write};
use std::process::Child;

use anstream::{AutoStream, ColorChoice};
use jiff::Zoned;
use serde::Serialize;

use super::args::ScreenArgs;
use super::pager;
use crate::show::render::{self, Color, Renderer};

/// An answer on its way. The output is complete when it is finished.
pub(super) struct Output {
    /// For changes and gaps.
    pub(super) renderer: Renderer,
    columns: Option<usize>,
    stream: AutoStream<Box<dyn Write>>,
    pager: Option<Child>,
}

impl Output {
    /// An answer that people read page by page.
    pub(super) fn paged(args: ScreenArgs, now: &Zoned) -> Self {
        let mut output = Self::new(args.color, if args.no_pager { None } else { pager::start() });
        output.renderer.time_zone = now.time_zone().clone();
        if let Some(columns) = args.columns {
            output.renderer.width = columns;
            output.columns = Some(columns);
        }
        output
    }

    /// An answer that is printed whatever its length is.
    pub(super) fn whole() -> Self {
        Self::new(Color::Never, None)
    }

    fn new(color: Color, mut pager: Option<Child>) -> Self {
        // A pager is asked for on a terminal only, so that its colours are those of standard output.
        let choice = match color {
            Color::Auto => AutoStream::choice(&io::stdout()),
            Color::Always => ColorChoice::Always,
            Color::Never => ColorChoice::Never,
        };
        let raw: Box<dyn Write> = match pager.as_mut().and_then(|pager| pager.stdin.take()) {
            Some(stdin) => Box::new(BufWriter::new(stdin)),
            None => Box::new(BufWriter::new(io::stdout())),
        };
        let renderer = Renderer { log: true, ..Renderer::default() };
        Self { renderer, columns: render::terminal_width(), stream: AutoStream::new(raw, choice), pager }
    }

    /// From now on, texts have fewer columns: what stands before them takes this many.
    pub(super) fn indent(&mut self, by: usize) {
        self.renderer.width = self.renderer.width.saturating_sub(by);
        self.columns = self.columns.map(|columns| columns.saturating_sub(by));
    }

    /// Text in which everything from the cluster is escaped already.
    pub(super) fn text(&mut self, text: &str) -> io::Result<()> {
        self.stream.write_all(text.as_bytes())
    }

    /// One line of JSON.
    pub(super) fn json(&mut self, value: &impl Serialize) -> io::Result<()> {
        self.text(&render::json_line(value)?)
    }

    /// The columns that a text may take: those of the terminal, if the answer is shown on one.
    pub(super) fn columns(&self) -> Option<usize> {
        self.columns
    }

    /// Writes what is left, and waits until the user leaves the pager. Its error counts before those of writing: they say only
    /// that the pager is gone.
    pub(super) fn finish(mut self) -> io::Result<()> {
        let flushed = self.stream.flush();
        // The pager reads to the end of its input.
        drop(self.stream);
        pager::leave(self.pager)?;
        flushed
    }
}
