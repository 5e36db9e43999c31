//! The metrics of an election, under client-go's names.

use std::fmt::Write;

use informer::metrics::Format;

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
        let name: String = self.name.chars().flat_map(escaped).collect();
        let mut text = String::new();
        let mut family = |metric: &str, kind: &str, help: &str, value: u64| {
            // In OpenMetrics a counter's family has no `_total`.
            let of = match format {
                Format::OpenMetrics => metric.trim_end_matches("_total"),
                _ => metric,
            };
            let _ =
                writeln!(text, "# HELP {of} {help}\n# TYPE {of} {kind}\n{metric}{{name=\"{name}\"}} {value}");
        };
        let leading = u64::from(self.is_leading);
        family("leader_election_master_status", "gauge", "Whether this candidate leads.", leading);
        let slow = "Renewals that needed a further look at the lease.";
        family("leader_election_slowpath_total", "counter", slow, self.slow_renewals);
        if format == Format::OpenMetrics {
            text.push_str("# EOF\n");
        }
        text
    }
}

fn escaped(character: char) -> impl Iterator<Item = char> {
    let escape = matches!(character, '"' | '\\').then_some('\\');
    escape.into_iter().chain([if character == '\n' { ' ' } else { character }])
}

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
