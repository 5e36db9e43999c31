//! The metrics of kube-apiserver, in the text format of Prometheus.

/// The number of list and watch requests. A watch counts in `apiserver_request_total` once it has ended, and in
/// `apiserver_longrunning_requests` before.
pub fn lists_and_watches(text: &str) -> f64 {
    let counts = text.lines().filter_map(|line| {
        let (name, rest) = line.split_once('{')?;
        let (labels, value) = rest.rsplit_once("} ")?;
        let has = |label: &str| labels.split(',').any(|it| it == label);
        let is_counted = match name {
            "apiserver_request_total" => has(r#"verb="LIST""#) || has(r#"verb="WATCH""#),
            "apiserver_longrunning_requests" => has(r#"verb="WATCH""#),
            _ => false,
        };
        value.parse::<f64>().ok().filter(|_| is_counted)
    });
    counts.sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_and_watches_are_counted_and_nothing_else() {
        let text = r#"# HELP apiserver_request_total Counter of apiserver requests
apiserver_request_total{code="200",component="apiserver",resource="pods",verb="LIST",version="v1"} 3
apiserver_request_total{code="0",component="apiserver",resource="pods",verb="WATCH",version="v1"} 4
apiserver_request_total{code="200",component="apiserver",resource="pods",verb="PATCH",version="v1"} 70
apiserver_longrunning_requests{component="apiserver",resource="pods",verb="WATCH",version="v1"} 2
apiserver_longrunning_requests{component="apiserver",resource="pods",verb="CONNECT",version="v1"} 50
apiserver_watch_events_total{kind="Pod"} 100
"#;
        assert_eq!(lists_and_watches(text), 9.0);
    }
}
