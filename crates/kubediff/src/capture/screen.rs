//! The output: changes on standard output or in a recording, everything else on standard error.

use std::fs::File;
use std::io::{self, Write};
use std::time::Duration;

use jiff::Timestamp;

use crate::args::{Output, ShowArgs};
use crate::model::gap::Gap;
use crate::show::render::{self, Renderer};
use crate::{Change, Noise, Session};

pub(crate) struct Screen {
    output: Output,
    oneline: bool,
    objects: bool,
    renderer: Renderer,
    out: Box<dyn Write + Send>,
    /// When something was shown last: a line says that another day has begun.
    last: Timestamp,
}

impl Screen {
    pub(crate) fn new(args: &ShowArgs) -> Self {
        Self {
            output: args.output,
            oneline: args.oneline,
            objects: args.objects,
            renderer: Renderer::default(),
            out: Box::new(args.color.stream(io::stdout())),
            last: Timestamp::now(),
        }
    }

    /// All that there is to know of each change, for [`Recording`](crate::Recording).
    pub(crate) fn recording(file: File) -> Self {
        Self {
            output: Output::Json,
            oneline: false,
            objects: true,
            renderer: Renderer::default(),
            out: Box::new(file),
            last: Timestamp::now(),
        }
    }

    pub(crate) fn change(&mut self, change: &Change) -> io::Result<()> {
        let text = match self.output {
            Output::Diff => {
                // The terminal may have been resized.
                let columns = render::terminal_width();
                self.renderer.width = columns.unwrap_or(self.renderer.width);
                let date = self.date(change.observed_at);
                let text = match self.oneline {
                    true => self.renderer.line(change, columns),
                    false => self.renderer.text(change),
                };
                date + &text
            }
            Output::Json if self.objects => render::json_line(&change.with_objects())?,
            Output::Json => render::json_line(change)?,
        };
        self.write(&text)
    }

    pub(crate) fn gap(&mut self, gap: &Gap) -> io::Result<()> {
        let text = match self.output {
            Output::Diff => self.date(gap.to.unwrap_or(self.last)) + &self.renderer.gap(gap, self.oneline),
            Output::Json => render::json_line(gap)?,
        };
        self.write(&text)
    }

    /// At the end. As text it belongs to what was shown; JSON lines hold changes and gaps only.
    pub(crate) fn summary(&mut self, session: &Session, elapsed: Duration) -> io::Result<()> {
        let text = session.text(elapsed);
        match self.output {
            Output::Diff => write!(self.out, "\n{text}"),
            Output::Json => write!(io::stderr(), "{text}"),
        }
    }

    pub(crate) fn noise_rules(&mut self, noise: &Noise) -> io::Result<()> {
        let width = noise.rules().map(|rule| rule.name().len()).max().unwrap_or(0);
        for rule in noise.rules() {
            let on = if rule.is_on() { "hidden" } else { "shown " };
            writeln!(self.out, "{on}  {:width$}  {}", rule.name(), rule.about())?;
        }
        Ok(())
    }

    fn date(&mut self, now: Timestamp) -> String {
        let before = std::mem::replace(&mut self.last, now);
        self.renderer.date(before, now).unwrap_or_default()
    }

    fn write(&mut self, text: &str) -> io::Result<()> {
        self.out.write_all(text.as_bytes())?;
        self.out.flush()
    }
}
