//! `kubediff diff`: the net difference between two times.

use jiff::Zoned;
use serde::Serialize;

use super::args::{DiffArgs, DiffFormat};
use super::error::QueryError;
use super::output::Output;
use crate::ask::names::Target;
use crate::ask::net::Net as Differences;
use crate::ask::period::{Period, covered};
use crate::changes::change::WithObjects;
use crate::model::patch::PatchOp;
use crate::text::clock::date_and_time;
use crate::text::terminal::say;
use crate::{Change, Noise, Redacted};

pub(super) fn run(args: &DiffArgs, now: &Zoned) -> Result<(), QueryError> {
    let mut reader = args.source.open()?;
    let period = Period::read(args.from.as_deref(), Some(&args.to), now)?;
    let (Some(from), Some(to)) = (period.from, period.to) else { return Ok(()) };
    let noise = noise(args)?;
    let target = Target::read(&mut reader, &args.target, args.namespaces.one())?;
    let cluster = reader.cluster().map(|it| Some(it.name.unwrap_or(it.uid)))?;
    let mut differences = Differences::of(&mut reader, &target.scope, (from, to), noise)?;
    let mut output = Output::paged(args.screen, now);
    let mut shown = 0;
    let mut show = || -> Result<(), QueryError> {
        while let Some(mut change) = differences.next(&mut reader)? {
            // All of a history is of one cluster, so that only programs are told which.
            change.cluster = cluster.clone().filter(|_| args.output == DiffFormat::Json);
            write(&mut output, &change, args.output)?;
            shown += 1;
        }
        Ok(())
    };
    let written = show();
    output.finish()?;
    written?;
    let zone = now.time_zone();
    if shown == 0 {
        let (from, to) = (date_and_time(from, zone), date_and_time(to, zone));
        let covered = covered(&mut reader, zone)?;
        let what = target.of_it();
        say(&format!("nothing{what} differs between {from} and {to}; {covered}"));
    }
    differences.noise().iter().for_each(|noise| say(&format!("{noise}; --show all shows them")));
    differences.remarks(&mut reader, zone)?.iter().for_each(|remark| say(remark));
    Ok(())
}

pub(super) fn noise(args: &DiffArgs) -> Result<Noise, QueryError> {
    let mut noise = Noise::default();
    noise.show(&args.show)?;
    for rule in &args.hide {
        noise.adjust(rule)?;
    }
    Ok(noise)
}

/// A net difference, for programs.
#[derive(Serialize)]
pub(super) struct Net<'a> {
    #[serde(flatten)]
    change: WithObjects<'a>,
    patch: Redacted<Vec<PatchOp>>,
}

impl<'a> Net<'a> {
    pub(super) fn of(change: &'a Change) -> Self {
        Self { change: change.with_objects(), patch: change.patch() }
    }
}

fn write(output: &mut Output, change: &Change, format: DiffFormat) -> Result<(), QueryError> {
    let text = match format {
        DiffFormat::Json => {
            return Ok(output.json(&Net::of(change))?);
        }
        DiffFormat::Oneline => output.renderer.line(change, output.columns()),
        DiffFormat::Text => output.renderer.text(change),
    };
    Ok(output.text(&text)?)
}
