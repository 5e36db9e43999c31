//! `kubediff replay`.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

use jiff::Zoned;

use super::args::{Format, ReplayArgs};
use super::error::QueryError;
use super::output::Output;
use crate::changes::recording::{Entry, Recording};

pub(super) fn run(args: &ReplayArgs) -> Result<(), QueryError> {
    let recording = Recording::new(open(&args.file)?);
    let mut output = Output::paged(args.screen, &Zoned::now());
    let shown = recording.map(|entry| Ok(show(args, &mut output, entry.map_err(within(&args.file))?)?));
    let shown: Result<(), QueryError> = shown.collect();
    output.finish()?;
    shown
}

fn open(file: &Path) -> Result<Box<dyn BufRead>, QueryError> {
    if file == Path::new("-") {
        return Ok(Box::new(BufReader::new(io::stdin())));
    }
    let opened = File::open(file);
    let opened = opened.map_err(|source| QueryError::Recording(format!("{}: {source}", file.display())))?;
    Ok(Box::new(BufReader::new(opened)))
}

fn within<E: std::error::Error>(file: &Path) -> impl Fn(E) -> QueryError {
    move |error| QueryError::Recording(format!("{}: {}", file.display(), informer::error_chain(&error)))
}

fn show(args: &ReplayArgs, output: &mut Output, entry: Entry) -> io::Result<()> {
    let format = if args.oneline { Format::Oneline } else { args.output };
    let (renderer, columns) = (&output.renderer, output.columns());
    let text = match (format, entry) {
        (Format::Json, Entry::Gap(gap)) => return output.json(&gap),
        (Format::Json, Entry::Change(change)) if args.objects => return output.json(&change.with_objects()),
        (Format::Json, Entry::Change(change)) => return output.json(&change),
        (format, Entry::Gap(gap)) => renderer.gap(&gap, format == Format::Oneline),
        (format, Entry::Change(mut change)) => {
            // All of a recording is of one cluster.
            change.cluster = None;
            if format == Format::Oneline { renderer.line(&change, columns) } else { renderer.text(&change) }
        }
    };
    output.text(&text)
}
