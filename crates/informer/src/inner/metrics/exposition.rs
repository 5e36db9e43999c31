//! The metrics of informers as text.

use std::borrow::Cow;
use std::collections::BTreeMap;

use informer_core::exposition::{
    self, Family, Format, Kind, Labelled, Sample, Value, labelled, one, seconds,
};
use informer_core::reflector::Status;

use super::{FactoryMetrics, HandlerMetrics, HotMetrics, InformerMetrics};

impl FactoryMetrics {
    /// The metrics as text. Handlers of one informer with the same name are added up.
    pub fn to_text(&self, format: Format) -> String {
        let mut text = String::new();
        self.write(&mut text, format);
        exposition::finish(&mut text, format);
        text
    }

    /// The same without the end mark, for texts that have more.
    #[doc(hidden)]
    pub fn write(&self, text: &mut String, format: Format) {
        exposition::write(text, format, FAMILIES, &self.informers);
        exposition::write(text, format, HOT_FAMILIES, &self.hot);
    }
}

/// The rows of the table in `docs/METRICS.md`.
const FAMILIES: &[Family<InformerMetrics>] = &[
    Family {
        name: "informer_objects",
        kind: Kind::Gauge,
        help: "Objects in the cache.",
        samples: |informer| one(informer.objects as u64),
    },
    Family {
        name: "informer_held_bytes",
        kind: Kind::Gauge,
        help: "Bytes of memory that the cache takes.",
        samples: |informer| one(informer.held_bytes as u64),
    },
    Family {
        name: "informer_hot_bytes",
        kind: Kind::Gauge,
        help: "Bytes of informer_held_bytes that are hot: bytes of events, and decoded values.",
        samples: |informer| one(informer.hot_bytes as u64),
    },
    Family {
        name: "informer_synced",
        kind: Kind::Gauge,
        help: "1 once the initial list is in the cache.",
        samples: |informer| one(u64::from(informer.is_synced)),
    },
    Family {
        name: "informer_state",
        kind: Kind::Gauge,
        help: "1 for the current state of the informer, 0 for the others.",
        samples: |informer| {
            let current = state(&informer.status);
            STATES.iter().map(|name| labelled("state", *name, u64::from(*name == current))).collect()
        },
    },
    Family {
        name: "informer_resource_version",
        kind: Kind::Gauge,
        help: "The resourceVersion that the cache reflects, where it is a number.",
        samples: |informer| informer.resource_version.to_string().parse().map(one).unwrap_or_default(),
    },
    Family {
        name: "informer_last_update_age_seconds",
        kind: Kind::Gauge,
        help: "Time since the last event, bookmark or list; of several namespaces, the longest.",
        samples: |informer| informer.last_update_age.into_iter().map(seconds).collect(),
    },
    Family {
        name: "informer_requests_total",
        kind: Kind::Counter,
        help: "Requests sent, by purpose.",
        samples: |informer| {
            let requests = &informer.requests;
            Vec::from([
                labelled("request", "list", requests.lists),
                labelled("request", "page", requests.pages),
                labelled("request", "streaming_list", requests.streaming_lists),
                labelled("request", "watch", requests.watches),
                labelled("request", "probe", requests.probes),
            ])
        },
    },
    Family {
        name: "informer_relists_total",
        kind: Kind::Counter,
        help: "Re-lists, by cause.",
        samples: |informer| {
            informer.relists.iter().map(|(cause, count)| labelled("cause", *cause, *count)).collect()
        },
    },
    Family {
        name: "informer_events_total",
        kind: Kind::Counter,
        help: "Events of watches and streaming lists, by type.",
        samples: |informer| {
            let events = &informer.events;
            Vec::from([
                labelled("type", "added", events.added),
                labelled("type", "modified", events.modified),
                labelled("type", "deleted", events.deleted),
                labelled("type", "bookmark", events.bookmarks),
                labelled("type", "error", events.errors),
            ])
        },
    },
    Family {
        name: "informer_list_items_total",
        kind: Kind::Counter,
        help: "Items of lists, unchanged ones included.",
        samples: |informer| one(informer.list_items),
    },
    Family {
        name: "informer_outside_share_total",
        kind: Kind::Counter,
        help: "Items of lists and events left out, because their objects are not in the share.",
        samples: |informer| one(informer.outside_share),
    },
    Family {
        name: "informer_unreadable_total",
        kind: Kind::Counter,
        help: "Undecodable objects and events, which were left out.",
        samples: |informer| one(informer.unreadable),
    },
    Family {
        name: "informer_quarantined",
        kind: Kind::Gauge,
        help: "Objects whose newest version is undecodable.",
        samples: |informer| one(informer.quarantined as u64),
    },
    Family {
        name: "informer_saves_total",
        kind: Kind::Counter,
        help: "Saves of the cache to its file, by result.",
        samples: |informer| {
            Vec::from([
                labelled("result", "ok", informer.saves),
                labelled("result", "failed", informer.failed_saves),
            ])
        },
    },
    Family {
        name: "informer_received_bytes_total",
        kind: Kind::Counter,
        help: "Bytes of responses, as they came over the wire.",
        samples: |informer| one(informer.received_bytes),
    },
    Family {
        name: "informer_decode_seconds_total",
        kind: Kind::Counter,
        help: "Time spent turning bytes into objects.",
        samples: |informer| Vec::from([seconds(informer.decode_time)]),
    },
    Family {
        name: "informer_handler_backlog",
        kind: Kind::Gauge,
        help: "Changes that wait for a handler or stream.",
        samples: |informer| per_handler(informer, |handler| Value::Count(handler.backlog as u64)),
    },
    Family {
        name: "informer_handler_calls_total",
        kind: Kind::Counter,
        help: "Calls of a handler that have ended.",
        samples: |informer| per_handler(informer, |handler| Value::Count(handler.calls)),
    },
    Family {
        name: "informer_handler_seconds_total",
        kind: Kind::Counter,
        help: "The duration of these calls, with what they awaited.",
        samples: |informer| per_handler(informer, |handler| Value::Seconds(handler.call_time)),
    },
    Family {
        name: "informer_handler_call_age_seconds",
        kind: Kind::Gauge,
        help: "The age of the running call; 0 without one.",
        samples: |informer| {
            per_handler(informer, |handler| Value::Seconds(handler.call_under_way.unwrap_or_default()))
        },
    },
];

const HOT_FAMILIES: &[Family<HotMetrics>] = &[
    Family {
        name: "informer_hot_set_bytes",
        kind: Kind::Gauge,
        help: "Bytes of a factory's hot set that count towards its bound.",
        samples: |hot| one(hot.bytes as u64),
    },
    Family {
        name: "informer_hot_set_limit_bytes",
        kind: Kind::Gauge,
        help: "The bound of a factory's hot set.",
        samples: |hot| one(hot.bound as u64),
    },
    Family {
        name: "informer_hot_set_hits_total",
        kind: Kind::Counter,
        help: "Reads of a value that was hot.",
        samples: |hot| one(hot.hits),
    },
    Family {
        name: "informer_hot_set_misses_total",
        kind: Kind::Counter,
        help: "Reads of a value that had to be decoded.",
        samples: |hot| one(hot.misses),
    },
];

const STATES: [&str; 8] =
    ["not_started", "connecting", "syncing", "live", "retrying", "denied", "stalled", "stopped"];

fn state(status: &Status) -> &'static str {
    let [not_started, connecting, syncing, live, retrying, denied, stalled, stopped] = STATES;
    match status {
        Status::NotStarted => not_started,
        Status::Connecting => connecting,
        Status::Syncing { .. } => syncing,
        Status::Live { .. } => live,
        Status::Retrying { .. } => retrying,
        Status::Denied { .. } => denied,
        Status::Stalled => stalled,
        _ => stopped,
    }
}

/// One sample per name: a duplicate series would make the whole text invalid.
fn per_handler(informer: &InformerMetrics, value: fn(&HandlerMetrics) -> Value<'static>) -> Vec<Sample<'_>> {
    let mut by_name = BTreeMap::<&str, Value<'static>>::new();
    for handler in &informer.handlers {
        let value = value(handler);
        by_name
            .entry(&handler.name)
            .and_modify(|sum| match (sum, &value) {
                (Value::Count(sum), Value::Count(more)) => *sum += more,
                (Value::Seconds(sum), Value::Seconds(more)) => *sum += *more,
                _ => {}
            })
            .or_insert(value);
    }
    let labelled = |(name, value)| Sample { label: Some(("handler", Cow::Borrowed(name))), value };
    by_name.into_iter().map(labelled).collect()
}

impl Labelled for InformerMetrics {
    fn labels(&self) -> &[(String, String)] {
        &self.labels
    }
}

impl Labelled for HotMetrics {
    fn labels(&self) -> &[(String, String)] {
        &self.labels
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The page is written by hand. This test keeps it in agreement with the code.
    #[test]
    fn m1_the_documented_table_is_what_is_served() {
        let page = include_str!("../../../../../docs/METRICS.md");
        let rows: Vec<_> = page.lines().filter(|line| line.starts_with("| `informer_")).collect();
        assert_eq!(rows.len(), FAMILIES.len() + HOT_FAMILIES.len());
        let of_informers = FAMILIES.iter().map(|family| (family.name, family.kind));
        let of_hot_sets = HOT_FAMILIES.iter().map(|family| (family.name, family.kind));
        for (row, (name, kind)) in rows.iter().zip(of_informers.chain(of_hot_sets)) {
            let said = if kind == Kind::Gauge { "gauge" } else { "counter" };
            assert!(row.starts_with(&format!("| `{name}` | {said} |")), "{row}: {name}");
            assert_eq!(name.ends_with("_total"), kind == Kind::Counter, "{name}");
        }
    }
}
