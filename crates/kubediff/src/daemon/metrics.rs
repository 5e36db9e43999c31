//! Metrics in the text format of OpenMetrics, which Prometheus reads: as they are when somebody asks.

use std::sync::{Arc, PoisonError};

use informer::metrics::FactoryMetrics;
use informer::metrics::text::{Family, Format, Kind, Labelled, Sample, finish, labelled, one, write};
use kubediff_delivery::Status;

use super::current::{Current, Waits};
use crate::show::summary::Counts;
use kubediff_history::Reader;

pub(super) const FORMAT: Format = Format::OpenMetrics;

/// A subject with its labels.
struct Of<T> {
    labels: Vec<(String, String)>,
    inner: T,
}

impl<T> Labelled for Of<T> {
    fn labels(&self) -> &[(String, String)] {
        &self.labels
    }
}

impl<T> Of<T> {
    /// Of a cluster, where there are several.
    fn cluster(name: Option<&str>, inner: T) -> Self {
        let labels = name.map(|name| ("cluster".to_owned(), name.to_owned()));
        Self { labels: labels.into_iter().collect(), inner }
    }

    fn and(mut self, label: &str, value: &str) -> Self {
        self.labels.push((label.to_owned(), value.to_owned()));
        self
    }
}

/// What runs or stands by, of the cluster of this name where there are several.
type Named<T> = (Option<String>, Arc<T>);

/// The metrics of the daemon, then those of its informers.
pub(super) fn text(
    ready: impl Iterator<Item = (Option<String>, bool)>,
    running: &[Named<Current>],
    standing_by: &[Named<Waits>],
) -> String {
    let mut text = String::new();
    let version = Of::cluster(None, ()).and("version", env!("CARGO_PKG_VERSION"));
    write(&mut text, FORMAT, BUILD, &[version]);
    let ready = ready.map(|(cluster, is_ready)| Of::cluster(cluster.as_deref(), is_ready));
    write(&mut text, FORMAT, READY, &ready.collect::<Vec<_>>());
    if !standing_by.is_empty() {
        let shadows =
            standing_by.iter().map(|(cluster, waits)| Of::cluster(cluster.as_deref(), waits.shadow()));
        write(&mut text, FORMAT, STANDBY, &shadows.collect::<Vec<_>>());
    }
    if !running.is_empty() {
        let all = running.iter().map(|(cluster, current)| Of::cluster(cluster.as_deref(), current.clone()));
        write(&mut text, FORMAT, DAEMON, &all.collect::<Vec<_>>());
        let (mut changes, mut sinks) = (Vec::new(), Vec::new());
        for (cluster, current) in running {
            let of = |label, value, inner| Of::cluster(cluster.as_deref(), inner).and(label, value);
            let session = current.session.lock().unwrap_or_else(PoisonError::into_inner);
            changes.extend(session.shown.iter().map(|(resource, counts)| of("resource", resource, *counts)));
            let of = |label, value, inner| Of::cluster(cluster.as_deref(), inner).and(label, value);
            let statuses = current.sinks.iter();
            sinks.extend(statuses.map(|(name, status)| of("sink", name, status.borrow().clone())));
        }
        write(&mut text, FORMAT, CHANGES, &changes);
        write(&mut text, FORMAT, SINKS, &sinks);
    }
    let running = running.iter().map(|(cluster, current)| (cluster, &current.informers));
    let standing_by = standing_by.iter().map(|(cluster, waits)| (cluster, &waits.informers));
    let informers = running.chain(standing_by).map(|(cluster, informers)| match cluster {
        Some(cluster) => informers().labelled("cluster", cluster),
        None => informers(),
    });
    match informers.reduce(FactoryMetrics::and) {
        Some(informers) => text += &informers.to_text(FORMAT),
        None => finish(&mut text, FORMAT),
    }
    text
}

const BUILD: &[Family<Of<()>>] = &[Family {
    name: "kubediff_build_info",
    kind: Kind::Gauge,
    help: "The version of kubediff.",
    samples: |_| one(1),
}];

const READY: &[Family<Of<bool>>] = &[Family {
    name: "kubediff_ready",
    kind: Kind::Gauge,
    help: "Whether all that the server allows was listed once, something is watched, and the history can be written, by this process or by the one \
           that it stands by for.",
    samples: |ready| one(u64::from(ready.inner)),
}];

/// How many changes a standby keeps, and how many resources it would list again, if that is known.
type Shadow = (usize, Option<usize>);

const STANDBY: &[Family<Of<Shadow>>] = &[
    Family {
        name: "kubediff_standby_kept",
        kind: Kind::Gauge,
        help: "Of a process that stands by: how many changes it keeps that the other process may not have recorded.",
        samples: |shadow| one(shadow.inner.0 as u64),
    },
    Family {
        name: "kubediff_standby_torn",
        kind: Kind::Gauge,
        help: "Of a process that stands by: how many resources it would list again, and have a gap for, if it recorded now.",
        samples: |shadow| shadow.inner.1.map_or_else(Vec::new, |torn| one(torn as u64)),
    },
];

const DAEMON: &[Family<Of<Arc<Current>>>] = &[
    Family {
        name: "kubediff_watches",
        kind: Kind::Gauge,
        help: "How many resources are in each state.",
        samples: |Of { inner: current, .. }| {
            let standing = current.standing.borrow();
            let count =
                |state| standing.watches.values().filter(|watch| watch.state() == state).count() as u64;
            ["listing", "watched", "denied", "lost"]
                .map(|state| labelled("state", state, count(state)))
                .into()
        },
    },
    Family {
        name: "kubediff_noise_changes_total",
        kind: Kind::Counter,
        help: "Changes that were nothing but noise, by rule.",
        samples: |Of { inner: current, .. }| {
            let session = current.session.lock().unwrap_or_else(PoisonError::into_inner);
            let changes = session.tally.changes.iter();
            changes.map(|(rule, count)| labelled("rule", rule.clone(), *count)).collect()
        },
    },
    Family {
        name: "kubediff_merged_changes_total",
        kind: Kind::Counter,
        help: "Changes that were merged into others, because the disk was slow.",
        samples: |Of { inner: current, .. }| {
            one(current.session.lock().unwrap_or_else(PoisonError::into_inner).merged)
        },
    },
    Family {
        name: "kubediff_history_last_record",
        kind: Kind::Gauge,
        help: "The number of the newest record of the history.",
        samples: |Of { inner: current, .. }| one(*current.newest.borrow()),
    },
    Family {
        name: "kubediff_stories_record",
        kind: Kind::Gauge,
        help: "The number of the last record whose story is decided; folded routes have not told later ones.",
        samples: |Of { inner: current, .. }| one(*current.decided.borrow()),
    },
    Family {
        name: "kubediff_page_requests_total",
        kind: Kind::Counter,
        help: "Requests to the page that were answered, by the status of the answer.",
        samples: |Of { inner: current, .. }| {
            let Some(page) = &current.page else { return Vec::new() };
            let answered = page.lock().unwrap_or_else(PoisonError::into_inner);
            answered.iter().map(|(code, count)| labelled("code", code.to_string(), *count)).collect()
        },
    },
    Family {
        name: "kubediff_audit_events_total",
        kind: Kind::Counter,
        help: "Audit events: writes that were taken, those that were passed over because too many waited, and what was no event.",
        samples: |Of { inner: current, .. }| {
            let Some(counts) = current.audit.as_ref().map(|counts| *counts.borrow()) else {
                return Vec::new();
            };
            let of = [
                ("write", counts.writes),
                ("passed-over", counts.passed_over),
                ("malformed", counts.malformed),
            ];
            of.map(|(event, count)| labelled("event", event, count)).into()
        },
    },
    Family {
        name: "kubediff_memory_short",
        kind: Kind::Gauge,
        help: "Whether over 80 % of the memory limit is used and caches are given up.",
        samples: |Of { inner: current, .. }| one(u64::from(current.memory.borrow().is_short)),
    },
    Family {
        name: "kubediff_history_bytes",
        kind: Kind::Gauge,
        help: "The size of the file of the history, and of the log beside it.",
        samples: |Of { inner: current, .. }| {
            current.location.file().map_or_else(Vec::new, |file| one(Reader::bytes(file)))
        },
    },
];

const CHANGES: &[Family<Of<Counts>>] = &[Family {
    name: "kubediff_changes_total",
    kind: Kind::Counter,
    help: "Changes that were recorded.",
    samples: |Of { inner: counts, .. }| {
        let verbs = [
            ("added", counts.added),
            ("updated", counts.updated),
            ("deleted", counts.deleted),
            ("recreated", counts.recreated),
        ];
        verbs.map(|(change, count)| labelled("change", change, count)).into()
    },
}];

const SINKS: &[Family<Of<Status>>] = &[
    sink("kubediff_sink_position", "The number of the last record that a sink has taken.", |sink| {
        one(sink.inner.position)
    }),
    sink(
        "kubediff_sink_behind",
        "How many records were made since the last one that a sink has settled, those that its routes leave out among them.",
        |sink| one(sink.inner.behind),
    ),
    sink("kubediff_sink_dead_letters", "How many records a sink has refused for good, so far.", |sink| {
        one(sink.inner.dead)
    }),
    sink("kubediff_sink_failing", "Whether a sink refuses records or fails at the moment.", |sink| {
        one(u64::from(sink.inner.trouble.is_some()))
    }),
];

const fn sink(
    name: &'static str,
    help: &'static str,
    samples: fn(&Of<Status>) -> Vec<Sample<'_>>,
) -> Family<Of<Status>> {
    Family { name, kind: Kind::Gauge, help, samples }
}
