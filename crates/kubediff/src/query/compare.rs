//! `kubediff diff --to-cluster`: the object of one name in two clusters.

use jiff::Zoned;
use serde::Serialize;

use super::args::{DiffArgs, DiffFormat};
use super::diff::{Net, noise};
use super::error::QueryError;
use super::fleet::{Fleet, Member, Remarks};
use super::output::Output;
use crate::ask::instant::instant;
use crate::ask::names::Target;
use crate::ask::period::doubts;
use crate::ask::twins::Twins;
use crate::ask::{AskError, UnknownName, full_name};
use crate::changes::change::Verb;
use crate::show::render::painter::{CYAN, DIM, Painter};
use crate::text::clock::date_and_time;
use crate::text::terminal::say;

pub(super) fn run(args: &DiffArgs, other: &str, now: &Zoned) -> Result<(), QueryError> {
    let (zone, noise) = (now.time_zone(), noise(args)?);
    let at = args.at.as_deref().map(|text| instant(text, now)).transpose()?;
    let [mut one, mut other] = clusters(args, other)?;
    let target = target(args, &mut one, &mut other)?;
    let readers = [&mut one.reader, &mut other.reader];
    let Twins { object, change, remarks } = Twins::of(readers, &target, (at, now.timestamp()), noise, zone)?;
    let (a, b) = (&one.cluster, &other.cluster);
    let mut output = Output::paged(args.screen, now);
    let mut write = || -> Result<(), QueryError> {
        let Some(change) = &change else { return Ok(()) };
        if args.output == DiffFormat::Json {
            let net = Net::of(change);
            return Ok(output.json(&OfTwo { from_cluster: a, to_cluster: b, net })?);
        }
        let which = match change.verb {
            Verb::Added => format!("only in {b}"),
            Verb::Deleted => format!("only in {a}"),
            Verb::Updated | Verb::Recreated => format!("{a} → {b}"),
        };
        let mut line = Painter::default();
        line.put(CYAN, &full_name(&object)).spaces(2).put(DIM, &which);
        if args.output == DiffFormat::Oneline {
            line.spaces(2).put(DIM, &change.summary);
        }
        line.line();
        output.text(&line.finish())?;
        match args.output {
            DiffFormat::Text => Ok(output.text(&output.renderer.differences(change))?),
            _ => Ok(()),
        }
    };
    let written = write();
    output.finish()?;
    written?;
    if change.is_none() {
        let when = at.map(|at| format!(" at {}", date_and_time(at, zone))).unwrap_or_default();
        say(&format!("nothing of {target} differs between {a} and {b}{when}"));
    }
    remarks.iter().for_each(|remark| say(remark));
    let mut remarks = Remarks::new(true);
    let at = at.unwrap_or_else(|| now.timestamp());
    for Member { cluster, reader, .. } in [&mut one, &mut other] {
        doubts(reader, &target.scope, at, zone)?.into_iter().for_each(|doubt| remarks.add(cluster, doubt));
    }
    remarks.say();
    Ok(())
}

/// The difference between two clusters, for programs.
#[derive(Serialize)]
struct OfTwo<'a> {
    from_cluster: &'a str,
    to_cluster: &'a str,
    #[serde(flatten)]
    net: Net<'a>,
}

/// The two clusters.
fn clusters(args: &DiffArgs, other: &str) -> Result<[Member; 2], QueryError> {
    let location = args.source.location()?;
    if location.file().is_some() {
        return Err(QueryError::OneFile);
    }
    let one = args.source.cluster(&location)?.ok_or(QueryError::OtherCluster)?;
    let names = [one.clone(), other.to_owned()];
    let mut members = Fleet::all(&args.source, &location, &names)?.members;
    let is_of = |member: &mut Member| {
        Ok::<_, kubediff_history::Error>(member.cluster == one || member.reader.cluster()?.uid == one)
    };
    if let [first, _] = members.as_mut_slice()
        && !is_of(first)?
    {
        members.reverse();
    }
    members.try_into().map_err(|_| QueryError::Clusters(names.join(",")))
}

/// The object that is asked for: a kind may be known in one of the clusters alone.
fn target(args: &DiffArgs, one: &mut Member, other: &mut Member) -> Result<Target, QueryError> {
    let read = |member: &mut Member| Target::read(&mut member.reader, &args.target, args.namespaces.one());
    let target = match read(one) {
        Err(AskError::Name(UnknownName::Kind { .. })) => read(other)?,
        read => read?,
    };
    if target.scope.name.is_none() || target.scope.kinds.len() > 1 {
        return Err(UnknownName::NoName(args.target.join("/")).into());
    }
    Ok(target)
}
