//! The query parameters of requests.

use informer_core::reflector::{ListRequest, Request, WatchRequest};

fn query(request: &Request) -> String {
    let pairs = request.query().into_iter().map(|(name, value)| format!("{name}={value}"));
    pairs.collect::<Vec<_>>().join("&")
}

#[test]
fn l1_l2_l4_queries_of_lists() {
    let list = |version: &str, limit, continue_token: Option<&str>, not_older_than| {
        query(&Request::List(ListRequest {
            resource_version: version.into(),
            limit,
            continue_token: continue_token.map(str::to_owned),
            not_older_than,
        }))
    };
    assert_eq!(list("", None, None, false), "");
    assert_eq!(list("0", Some(500), None, false), "limit=500&resourceVersion=0");
    assert_eq!(list("", Some(500), Some("next"), false), "limit=500&continue=next");
    assert_eq!(list("7", None, None, true), "resourceVersion=7&resourceVersionMatch=NotOlderThan");
}

#[test]
fn w1_s1_queries_of_watches() {
    let watch = |version: &str, initial_events| {
        let resource_version = version.into();
        query(&Request::Watch(WatchRequest { resource_version, timeout_seconds: 300, initial_events }))
    };
    let both = "watch=true&allowWatchBookmarks=true&timeoutSeconds=300";
    assert_eq!(watch("7", false), format!("{both}&resourceVersion=7"));
    assert_eq!(watch("", true), format!("{both}&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"));
}
