//! The metrics of kube-apiserver, in the text format of Prometheus.

/// The number of requests with a verb and a resource that count. A watch counts in `apiserver_request_total` once it has ended, and
/// in `apiserver_longrunning_requests` before.
pub fn requests(text: &str, count: fn(&str, &str) -> bool) -> f64 {
    let counts = text.lines().filter_map(|line| {
        let (name, rest) = line.split_once('{')?;
        let (labels, value) = rest.rsplit_once("} ")?;
        let of = |label: &str| {
            let values =
                labels.split(',').filter_map(|it| it.split_once('=')).find(|(name, _)| *name == label);
            values.map_or("", |(_, value)| value.trim_matches('"'))
        };
        let verb = of("verb").to_lowercase();
        let is_known = match name {
            "apiserver_request_total" => true,
            "apiserver_longrunning_requests" => verb == "watch",
            _ => false,
        };
        let is_counted = is_known && count(&verb, of("resource"));
        value.parse::<f64>().ok().filter(|_| is_counted)
    });
    counts.sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_counted_by_verb_and_resource() {
        let text = r#"# HELP apiserver_request_total Counter of apiserver requests
apiserver_request_total{code="200",component="apiserver",resource="pods",verb="LIST",version="v1"} 3
apiserver_request_total{code="0",component="apiserver",resource="pods",verb="WATCH",version="v1"} 4
apiserver_request_total{code="200",component="apiserver",resource="pods",verb="PATCH",version="v1"} 70
apiserver_longrunning_requests{component="apiserver",resource="pods",verb="WATCH",version="v1"} 2
apiserver_longrunning_requests{component="apiserver",resource="pods",verb="CONNECT",version="v1"} 50
apiserver_watch_events_total{kind="Pod"} 100
"#;
        assert_eq!(requests(text, |verb, _| matches!(verb, "list" | "watch")), 9.0);
        assert_eq!(requests(text, |verb, resource| resource == "pods" && verb != "watch"), 73.0);
        assert_eq!(requests(text, |_, resource| resource == "nodes"), 0.0);
    }
}
