//! The contents of the history, its watches, gaps and sinks.

use kubediff_history::{Page, Record, Scope};
use serde_json::{Value, json};

use crate::ask::period::{covered, unwatched};
use crate::history::notes::OPEN;
use crate::model::position;
use crate::text::clock::date_and_time;
use crate::text::terminal::thousands;
use crate::web::address;
use crate::web::params::Params;
use crate::web::problem::Problem;
use crate::web::row::Rows;
use crate::web::store::Asked;
use crate::web::template::{Frame, render};

/// Gaps that are shown.
const GAPS: usize = 20;

/// The page about the history.
pub(in crate::web) fn about(asked: &mut Asked<'_>, params: &Params) -> Result<String, Problem> {
    let zone = asked.now.time_zone().clone();
    let frame = Frame::new("About this history", "about", params, &[]);
    let mut history = vec![
        ("Cluster", asked.store.cluster.clone()),
        ("Time", covered(asked.reader, &zone)?.replace("the history covers ", "")),
    ];
    // The numbers of all would say something of those whom a user may not see.
    if !asked.reader.is_limited()? {
        let size = asked.reader.size()?;
        let count = |count: u64| thousands(usize::try_from(count).unwrap_or(usize::MAX));
        history.extend([
            ("Changes", count(size.changes)),
            ("Events", count(size.events)),
            ("Objects", format!("{}, of which {} exist", count(size.objects), count(size.existing))),
            ("Gaps", count(size.gaps)),
            ("Size", format!("{} bytes", count(size.bytes))),
        ]);
    }
    let notes = asked.reader.notes()?;
    let watches: Vec<Value> = asked
        .reader
        .positions()?
        .into_keys()
        .filter(|name| position::is_target(name))
        .map(|target| {
            let open = notes.get(&format!("{OPEN}{target}")).and_then(|note| note.split_once(' '));
            let since = open.and_then(|(since, _)| since.parse().ok());
            let since = since.map(|since| date_and_time(since, &zone)).unwrap_or_default();
            let state =
                open.map_or_else(|| "watched".to_owned(), |(_, cause)| format!("not watched: {cause}"));
            json!({ "target": target, "since": since, "state": state })
        })
        .collect();
    let mut gaps = Rows::new(&zone);
    for gap in asked.reader.gaps(&Scope::default(), None, None, &Page::newest(GAPS))? {
        gaps.record(&Record::Gap(gap));
    }
    let mut sinks = Vec::new();
    for sink in asked.reader.sinks()? {
        let behind = asked.reader.count_after(sink.position)?;
        sinks.push(json!({
            "name": sink.name, "position": sink.position, "behind": behind, "dead": sink.dead, "lost": sink.lost,
        }));
    }
    let mut names: Vec<String> = asked
        .reader
        .kinds()?
        .into_iter()
        .map(|(gvk, plural)| if gvk.group.is_empty() { plural } else { format!("{plural}.{}", gvk.group) })
        .collect();
    names.sort_unstable();
    names.dedup();
    let kinds: Vec<Value> = names
        .into_iter()
        .map(|name| json!({ "href": address::with("/", [("kind", name.clone()), ("since", "-24h".to_owned())]), "label": name }))
        .collect();
    let now = asked.now.timestamp();
    let remarks = unwatched(&asked.reader.standing()?, &Scope::default(), now, &zone);
    let context = json!({
        "page": frame.json(asked),
        "history": history.iter().map(|(name, value)| json!({ "name": name, "value": value })).collect::<Vec<_>>(),
        "watches": watches, "gaps": gaps.rows, "sinks": sinks, "kinds": kinds, "remarks": remarks,
    });
    Ok(render("about.html", context)?)
}

/// The help.
pub(in crate::web) fn help(asked: &mut Asked<'_>, params: &Params) -> Result<String, Problem> {
    let frame = Frame::new("Help", "help", params, &[]);
    Ok(render("help.html", json!({ "page": frame.json(asked) }))?)
}
