//! The tables of docs/SCALE.md.

use std::fmt::Write as _;

use super::model::{Cost, DAY, Load, Need, Units, first_limit, needs};
use super::{Point, is_fitted};
use crate::figures::show;
use crate::machine::Machine;

/// What is further away from a measurement than this is marked.
const FAR: f64 = 10.0;
/// Clusters of 10,000 objects.
const FLEETS: [Load; 2] = [
    Load { clusters: 100.0, objects: 1e6, changes: 2_000.0 },
    Load { clusters: 100.0, objects: 1e6, changes: 50_000.0 },
];

type Part = fn(&Load) -> f64;

/// The tables, and where they were measured.
pub(super) fn text(machine: &Machine, postgres: &str, units: &Units, points: &[Point]) -> String {
    let memory = machine.memory_bytes as f64 / f64::from(1 << 30);
    let about = format!("{} cores, {memory:.0} GiB of memory, {postgres}.\n\n", machine.cores);
    let loads: Vec<Load> = points.iter().map(|point| point.load).collect();
    let tables = [unit_costs(units), held_against(units, points), fleets(units, &loads)];
    let heads = ["Unit costs", "Computed / measured", "A fleet, computed"];
    about
        + &heads
            .iter()
            .zip(tables)
            .map(|(head, table)| format!("### {head}\n\n{table}\n"))
            .collect::<String>()
}

fn unit_costs(units: &Units) -> String {
    let mut out = String::from("| | a second of a daemon | a commit | a change |\n|---|---|---|---|\n");
    let mut row = |what: &str, cost: Cost, unit: &str| {
        let [idle, commit, change] = [cost.idle, cost.commit, cost.change].map(|value| show(value, unit));
        put(&mut out, format_args!("| {what} | {idle} | {commit} | {change} |\n"));
    };
    row("CPU of the daemon", units.daemon, "s");
    row("CPU of PostgreSQL", units.postgres, "s");
    row("its write-ahead log", units.log, "B");
    row("its tables and indexes", units.tables, "B");
    let (base, object) = units.memory;
    let (base, object) = (show(base, "B"), show(object, "B"));
    put(
        &mut out,
        format_args!(
            "\nA daemon takes {base} of memory, {object} more for each object, and {:.1} connections.\n",
            units.connections
        ),
    );
    out
}

/// What the formula says of each point, beside what was measured.
fn held_against(units: &Units, points: &[Point]) -> String {
    let mut out = String::from(
        "| clusters | changes/s: made / recorded | CPU of daemons | CPU of PostgreSQL | write-ahead log | tables | memory of a daemon |\n\
         |---|---|---|---|---|---|---|\n",
    );
    for (number, point) in points.iter().enumerate() {
        let load = point.load;
        let cell = |computed: f64, measured: f64, unit: &str| {
            format!("{} / {} = {:.2}", show(computed, unit), show(measured, unit), computed / measured)
        };
        let cells = [
            cell(units.daemon.of(load), point.daemon, "s"),
            cell(units.postgres.of(load), point.postgres, "s"),
            cell(units.log.of(load), point.log, "B"),
            cell(units.tables.of(load), point.tables, "B"),
            cell(units.memory(load), point.memory, "B"),
        ];
        let fitted = if is_fitted(number) { " (fitted)" } else { "" };
        let cells = cells.join(" | ");
        put(
            &mut out,
            format_args!(
                "| {}{fitted} | {} | {cells} |\n",
                load.clusters,
                cell(point.offered, point.recorded, "")
            ),
        );
    }
    out
}

fn fleets(units: &Units, measured: &[Load]) -> String {
    let mut out = String::from("| |");
    for load in FLEETS {
        put(&mut out, format_args!(" {} changes/s | of the limit |", load.changes));
    }
    out.push_str(" limit |\n|---|---|---|---|---|---|\n");
    let mut row = |what: &str, cells: [(String, String); FLEETS.len()], limit: &str| {
        let cells = cells.map(|(value, share)| format!(" {value} | {share} |")).concat();
        put(&mut out, format_args!("| {what} |{cells} {limit} |\n"));
    };
    let million = |load: Load| (format!("{:.0} million", load.changes * DAY / 1e6), String::new());
    row("changes a day", FLEETS.map(million), "");
    row("CPU of all daemons", FLEETS.map(|load| (cores(units.daemon.of(load)), String::new())), "");
    let [few, many] = FLEETS.map(|load| needs(units, load));
    for (few, many) in few.iter().zip(&many) {
        row(few.what, [few, many].map(|it| (value(it, it.needed), percent(it))), &value(few, few.limit));
    }
    let first = |needs: &[Need]| {
        first_limit(needs).map_or_else(Default::default, |it| (format!("**{}**", it.what), percent(it)))
    };
    row("first limit", [first(&few), first(&many)], "");
    let far: [(&str, Part); 4] = [
        ("clusters / the most measured", |it| it.clusters),
        ("objects / the most measured", |it| it.objects),
        ("changes/s / the most measured", |it| it.changes),
        ("changes/s of a cluster / the most measured", |it| it.changes / it.clusters),
    ];
    for (what, of) in far {
        let most = measured.iter().map(of).fold(0.0, f64::max);
        let times = |load: Load| of(&load) / most;
        let mark = |times: f64| if times > FAR { " (far)" } else { "" };
        row(what, FLEETS.map(|it| (format!("{:.2}{}", times(it), mark(times(it))), String::new())), "");
    }
    out
}

fn cores(value: f64) -> String {
    format!("{value:.2} cores")
}

fn value(need: &Need, value: f64) -> String {
    match need.unit {
        "cores" => cores(value),
        "B" if value >= 1e12 => format!("{:.1} TB", value / 1e12),
        "B" if value >= 1e9 => format!("{:.1} GB", value / 1e9),
        unit => show(value, unit),
    }
}

fn percent(need: &Need) -> String {
    format!("{:.0} %", need.share() * 100.0)
}

/// Writing to a string cannot fail.
fn put(out: &mut String, text: std::fmt::Arguments<'_>) {
    let _ = out.write_fmt(text);
}
