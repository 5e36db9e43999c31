//! Metrics in the text format of OpenMetrics, which Prometheus reads.

use std::fmt;
use std::sync::PoisonError;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use super::current::Current;

/// [OpenMetrics 1.0](https://github.com/prometheus/OpenMetrics/blob/main/specification/OpenMetrics.md).
pub(super) const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Version {
    version: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct State {
    state: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Kind {
    resource: String,
    change: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Rule {
    rule: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Sink {
    sink: String,
}

/// All metrics, as they are now. They are counted elsewhere, and written when somebody asks.
pub(super) fn text(current: Option<&Current>) -> Result<String, fmt::Error> {
    let mut registry = Registry::with_prefix("kubediff");
    let info = Family::<Version, Gauge>::default();
    info.get_or_create(&Version { version: env!("CARGO_PKG_VERSION") }).set(1);
    registry.register("build_info", "The version of kubediff", info);
    if let Some(current) = current {
        watches(&mut registry, current);
        changes(&mut registry, current);
        sinks(&mut registry, current);
        let records = Gauge::<i64>::default();
        records.set(gauge(*current.newest.borrow()));
        registry.register("history_last_record", "The number of the newest record of the history", records);
        let bytes = Gauge::<i64>::default();
        bytes.set(gauge(kubediff_history::Reader::bytes(&current.path)));
        registry.register(
            "history_bytes",
            "The size of the file of the history, and of the log beside it",
            bytes,
        );
    }
    let mut text = current.map(|current| (current.informers)()).unwrap_or_default();
    encode(&mut text, &registry)?;
    Ok(text)
}

fn watches(registry: &mut Registry, current: &Current) {
    let states = Family::<State, Gauge>::default();
    let standing = current.standing.borrow();
    for state in ["listing", "watched", "denied", "lost"] {
        let count = standing.watches.values().filter(|watch| watch.state() == state).count();
        states.get_or_create(&State { state }).set(gauge(count as u64));
    }
    registry.register("watches", "How many resources are in each state", states);
    let ready = Gauge::<i64>::default();
    let is_ready = current.trouble.borrow().is_none() && standing.why_not_ready().is_none();
    ready.set(i64::from(is_ready));
    registry.register("ready", "Whether everything that the server allows is watched", ready);
}

fn changes(registry: &mut Registry, current: &Current) {
    let session = current.session.lock().unwrap_or_else(PoisonError::into_inner);
    let changes = Family::<Kind, Counter>::default();
    for (resource, counts) in &session.shown {
        let verbs = [
            ("added", counts.added),
            ("updated", counts.updated),
            ("deleted", counts.deleted),
            ("recreated", counts.recreated),
        ];
        for (change, count) in verbs {
            changes.get_or_create(&Kind { resource: resource.clone(), change }).inc_by(count);
        }
    }
    registry.register("changes", "Changes that were recorded", changes);
    let noise = Family::<Rule, Counter>::default();
    for (rule, count) in &session.tally.changes {
        noise.get_or_create(&Rule { rule: rule.clone() }).inc_by(*count);
    }
    registry.register("noise_changes", "Changes that were nothing but noise, by rule", noise);
    let merged = Counter::<u64>::default();
    merged.inc_by(session.merged);
    registry.register(
        "merged_changes",
        "Changes that were merged into others, because the disk was slow",
        merged,
    );
}

fn sinks(registry: &mut Registry, current: &Current) {
    let position = Family::<Sink, Gauge>::default();
    let behind = Family::<Sink, Gauge>::default();
    let dead = Family::<Sink, Gauge>::default();
    let failing = Family::<Sink, Gauge>::default();
    for (name, status) in &current.sinks {
        let (label, status) = (Sink { sink: name.clone() }, status.borrow());
        position.get_or_create(&label).set(gauge(status.position));
        behind.get_or_create(&label).set(gauge(status.behind));
        dead.get_or_create(&label).set(gauge(status.dead));
        failing.get_or_create(&label).set(i64::from(status.trouble.is_some()));
    }
    registry.register("sink_position", "The number of the last record that a sink has taken", position);
    registry.register("sink_behind", "How many records were made since the last one that a sink has settled, those that its routes leave out among them", behind);
    registry.register("sink_dead_letters", "How many records a sink has refused for good, so far", dead);
    registry.register("sink_failing", "Whether a sink takes nothing at the moment", failing);
}

fn gauge(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}
