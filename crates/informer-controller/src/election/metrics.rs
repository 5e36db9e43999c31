//! The metrics of an election, under client-go's names.

use informer::metrics::Format;
use informer_core::exposition::{self, Family, Kind, Labelled, one};

/// The metrics of one election at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ElectionMetrics {
    /// The name of the lease, without its namespace: the label `name`.
    pub name: String,
    /// `leader_election_master_status`: 1 if this candidate leads, otherwise 0.
    pub is_leading: bool,
    /// `leader_election_slowpath_total`: renewals that needed a further look at the lease.
    pub slow_renewals: u64,
}

impl ElectionMetrics {
    /// The metrics as text.
    ///
    /// ```no_run
    /// # fn example(election: informer_controller::election::Election) {
    /// let format = informer::metrics::Format::Prometheus;
    /// println!("{}", election.metrics().to_text(format));
    /// # }
    /// ```
    pub fn to_text(&self, format: Format) -> String {
        let mut text = String::new();
        write(&mut text, format, std::slice::from_ref(self));
        exposition::finish(&mut text, format);
        text
    }
}

/// Appends the metrics of several elections. Leases of one name, in several namespaces or clusters, get a number in the label `lease`.
pub(crate) fn write(text: &mut String, format: Format, elections: &[ElectionMetrics]) {
    let shown = |metrics: &ElectionMetrics| Shown {
        labels: vec![("name".to_owned(), metrics.name.clone())],
        metrics: metrics.clone(),
    };
    let mut all: Vec<_> = elections.iter().map(shown).collect();
    exposition::labels::tell_apart(all.iter_mut().map(|one| &mut one.labels), "lease");
    exposition::write(text, format, FAMILIES, &all);
}

struct Shown {
    labels: Vec<(String, String)>,
    metrics: ElectionMetrics,
}

impl Labelled for Shown {
    fn labels(&self) -> &[(String, String)] {
        &self.labels
    }
}

const FAMILIES: &[Family<Shown>] = &[
    Family {
        name: "leader_election_master_status",
        kind: Kind::Gauge,
        help: "Whether this candidate leads.",
        samples: |shown| one(u64::from(shown.metrics.is_leading)),
    },
    Family {
        name: "leader_election_slowpath_total",
        kind: Kind::Counter,
        help: "Renewals that needed a further look at the lease.",
        samples: |shown| one(shown.metrics.slow_renewals),
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn q8_metrics_have_the_names_of_client_go() {
        let metrics = ElectionMetrics { name: "cart".into(), is_leading: true, slow_renewals: 2 };
        let text = metrics.to_text(Format::Prometheus);
        assert!(text.contains("leader_election_master_status{name=\"cart\"} 1\n"), "{text}");
        assert!(text.contains("leader_election_slowpath_total{name=\"cart\"} 2\n"), "{text}");
        assert!(!text.contains("EOF"));
        assert!(metrics.to_text(Format::OpenMetrics).ends_with("# EOF\n"));
    }
}
