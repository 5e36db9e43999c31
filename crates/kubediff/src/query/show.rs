//! `kubediff show`.

use jiff::Zoned;
use kubediff_history::{At, ChangeRecord, Number, Reader, Verb, Version};
use serde_json::json;

use super::args::{ShowRevisionArgs, VersionFormat};
use super::error::QueryError;
use super::output::Output;
use crate::Change;
use crate::ask::period::{covered, nothing};
use crate::ask::{AskError, full_name, names, object, shown};
use crate::show::render::yaml;
use crate::text::clock::date_and_time;
use crate::text::terminal::{escape, say};

pub(super) fn run(args: &ShowRevisionArgs, now: &Zoned) -> Result<(), QueryError> {
    let mut reader = args.source.open()?;
    let version = match args.object.trim_start_matches('#').parse() {
        Ok(number) => numbered(&mut reader, Number(number), now)?,
        Err(_) => find(&mut reader, args, now)?,
    };
    let is_gone = version.change.as_ref().is_some_and(|change| change.verb == Verb::Deleted);
    let mut output = Output::paged(args.screen, now);
    let shown = show(&mut output, &version, args, now);
    output.finish()?;
    shown?;
    if is_gone && args.output == VersionFormat::Yaml {
        say(&format!(
            "deleted at {}; this was its last state",
            date_and_time(version.observed_at, now.time_zone())
        ));
    }
    Ok(())
}

/// The version of a record of the log.
fn numbered(reader: &mut Reader, number: Number, now: &Zoned) -> Result<Version, QueryError> {
    match reader.version_of(number)? {
        Some(version) => Ok(version),
        None => Err(nothing(reader, format!("the history has no change #{number}"), now.time_zone()).into()),
    }
}

/// The version that is written as `KIND/NAME@REV`.
fn find(reader: &mut Reader, args: &ShowRevisionArgs, now: &Zoned) -> Result<Version, QueryError> {
    let (object, revision) = match args.object.rsplit_once('@') {
        Some((object, revision)) => (object, Some(revision)),
        None => (args.object.as_str(), None),
    };
    let at = revision.map(|text| names::revision(text, now)).transpose()?.unwrap_or(At::Newest);
    let found = names::object(reader, &[object.to_owned()], args.namespace.as_deref(), now.time_zone())?;
    for incarnation in found.incarnations.iter().rev() {
        if let Some(version) = reader.version(incarnation, &at)? {
            return Ok(version);
        }
    }
    let what = match at {
        At::Newest => "version".to_owned(),
        At::Number(number) => format!("change #{number}"),
        At::Before(number) => format!("version before change #{number}"),
        At::Rv(rv) => format!("version {rv}"),
        At::Time(time) => format!("state at {}", date_and_time(time, now.time_zone())),
    };
    let target = found.target;
    let covered = covered(reader, now.time_zone())?;
    Err(AskError::Nothing(format!(
        "the history has no {what} of {target}; `kubediff log {object}` shows what it has; {covered}"
    ))
    .into())
}

fn show(
    output: &mut Output,
    version: &Version,
    args: &ShowRevisionArgs,
    now: &Zoned,
) -> Result<(), QueryError> {
    let manifest = shown(version, args.show_managed_fields);
    match args.output {
        VersionFormat::Yaml => return Ok(output.text(&yaml(&manifest)?)?),
        VersionFormat::Json => {
            return Ok(output.json(&json!({
                "number": version.number, "rv": version.rv, "observed_at": version.observed_at,
                "change": version.change, "object": manifest,
            }))?);
        }
        VersionFormat::Text => {}
    }
    match &version.change {
        Some(record) => {
            let mut change = Change::of_record(ChangeRecord { cluster: None, ..(**record).clone() })?;
            change.new = Some(object(version));
            output.text(&output.renderer.text(&change))?;
        }
        None => {
            let (time, number) = (date_and_time(version.observed_at, now.time_zone()), version.number);
            let object = full_name(&version.object);
            let first = format!("{time}    {object}  (there when the history began) #{number}");
            output.text(&format!("{}\n", escape(&first)))?;
        }
    }
    output.text("\n")?;
    Ok(output.text(&yaml(&manifest)?)?)
}
