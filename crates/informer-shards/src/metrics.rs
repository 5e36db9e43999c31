//! The metrics of a member.

use std::fmt::Write;

use informer::metrics::Format;

use crate::ShardsStatus;

/// The metrics of one member at one moment.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ShardsMetrics {
    /// The name of the shards: the label `name`.
    pub name: String,
    /// `shards_generation`: the number of the map; 0 before one was found.
    pub generation: u64,
    /// `shards_members`: the members in the map.
    pub members: usize,
    /// `shards_assigned`: the part of all hashes that this member has in the map, from 0 to 1.
    pub assigned: f64,
    /// `shards_owned`: the part on which it acts.
    pub owned: f64,
    /// `shards_waiting_for`: the live members that have not acknowledged the map.
    pub waiting_for: usize,
    /// `shards_losses_total`: how often it has lost its lease.
    pub losses: u64,
    /// `shards_controllers_total`: controllers that were made for new shares.
    pub controllers: u64,
}

impl ShardsMetrics {
    pub(crate) fn of(status: &ShardsStatus) -> Self {
        Self {
            name: status.name.clone(),
            generation: status.generation.unwrap_or(0),
            members: status.members.len(),
            assigned: status.share().fraction(),
            owned: status.acts_on.fraction(),
            waiting_for: status.waiting_for.len(),
            losses: status.losses,
            controllers: status.controllers,
        }
    }

    /// The metrics as text.
    pub fn to_text(&self, format: Format) -> String {
        // A name of a lease needs no escapes.
        let Self { name, generation, members, assigned, owned, waiting_for, losses, controllers } = self;
        let mut text = String::new();
        let mut family = |metric: &str, kind: &str, help: &str, value: &dyn std::fmt::Display| {
            // In OpenMetrics a counter's family has no `_total`.
            let of = match format {
                Format::OpenMetrics => metric.trim_end_matches("_total"),
                _ => metric,
            };
            let _ =
                writeln!(text, "# HELP {of} {help}\n# TYPE {of} {kind}\n{metric}{{name=\"{name}\"}} {value}");
        };
        family("shards_generation", "gauge", "The number of the map.", generation);
        family("shards_members", "gauge", "The members in the map.", members);
        family(
            "shards_assigned",
            "gauge",
            "The part of all hashes that this member has in the map.",
            assigned,
        );
        family("shards_owned", "gauge", "The part of all hashes on which this member acts.", owned);
        family(
            "shards_waiting_for",
            "gauge",
            "Live members that have not acknowledged the map.",
            waiting_for,
        );
        family("shards_losses_total", "counter", "How often this member has lost its lease.", losses);
        family("shards_controllers_total", "counter", "Controllers made for new shares.", controllers);
        if format == Format::OpenMetrics {
            text.push_str("# EOF\n");
        }
        text
    }
}
