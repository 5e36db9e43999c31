//! The output: changes on standard output, everything else on standard error.

use std::io::{self, Stdout, Write};
use std::time::Duration;

use anstream::AutoStream;

use crate::args::{Output, ShowArgs};
use crate::render::{self, Renderer};
use crate::{Change, Noise, Session, terminal};

pub(super) struct Screen {
    output: Output,
    renderer: Renderer,
    stdout: AutoStream<Stdout>,
}

impl Screen {
    pub(super) fn new(args: &ShowArgs) -> Self {
        Self { output: args.output, renderer: Renderer::default(), stdout: args.color.stream(io::stdout()) }
    }

    pub(super) fn change(&mut self, change: &Change) -> io::Result<()> {
        let text = match self.output {
            Output::Diff => self.renderer.text(change),
            Output::Json => render::json_line(change)?,
        };
        self.stdout.write_all(text.as_bytes())?;
        self.stdout.flush()
    }

    /// Something about the watching itself.
    pub(super) fn note(&self, text: &str) {
        say(text);
    }

    /// At the end. As text it belongs to what was shown; JSON lines hold changes only.
    pub(super) fn summary(&mut self, session: &Session, elapsed: Duration) -> io::Result<()> {
        let text = session.text(elapsed);
        match self.output {
            Output::Diff => write!(self.stdout, "\n{text}"),
            Output::Json => write!(io::stderr(), "{text}"),
        }
    }

    pub(super) fn noise_rules(&mut self, noise: &Noise) -> io::Result<()> {
        let width = noise.rules().map(|rule| rule.name().len()).max().unwrap_or(0);
        for rule in noise.rules() {
            let on = if rule.is_on() { "on " } else { "off" };
            writeln!(self.stdout, "{on}  {:width$}  {}", rule.name(), rule.about())?;
        }
        Ok(())
    }
}

pub(super) fn say(text: &str) {
    // Some texts come from a server, so they are escaped. Standard error may be closed; there is no other place to
    // report to.
    let _ = writeln!(io::stderr(), "kubediff: {}", terminal::escape(text));
}
