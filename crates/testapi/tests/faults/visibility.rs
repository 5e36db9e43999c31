//! Resources that come and go.

use http::Method;
use serde_json::Value;
use testapi::TestApi;

use crate::client::{Client, MAPS, get, request, start_with, watch_from};

const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// The names of the core's resources, as both forms of discovery say.
async fn discovered(api: &TestApi) -> [Vec<String>; 2] {
    let legacy = get(api, "/api/v1").await.json().await;
    let legacy = names(&legacy["resources"], "name");
    let request = request(Method::GET, "/api", &[("accept", AGGREGATED), ("accept-encoding", "gzip")], "");
    let aggregated = Client::connect(api).await.send(request).await.unwrap().json().await;
    let aggregated = names(&aggregated["items"][0]["versions"][0]["resources"], "resource");
    [legacy, aggregated]
}

fn names(resources: &Value, name: &str) -> Vec<String> {
    resources.as_array().unwrap().iter().map(|resource| resource[name].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn a_hidden_resource_is_not_found_not_discovered_and_not_watched() {
    let api = start_with(1).await;
    let [legacy, aggregated] = discovered(&api).await;
    for names in [&legacy, &aggregated] {
        assert!(names.iter().any(|name| name == "configmaps"), "{names:?}");
    }
    let mut watch = get(&api, &watch_from(api.api().revision())).await;

    api.faults().hide("configmaps");
    assert_eq!(watch.event().await.unwrap(), None);
    let mut refused = get(&api, MAPS).await;
    assert_eq!(refused.status, 404);
    assert_eq!(refused.json().await["message"], "the server could not find the requested resource");
    let without = discovered(&api).await;
    for (names, before) in without.iter().zip([&legacy, &aggregated]) {
        let expected: Vec<_> = before.iter().filter(|name| *name != "configmaps").cloned().collect();
        assert_eq!(*names, expected);
    }
    assert_eq!(get(&api, "/api/v1/pods").await.status, 200);

    api.faults().show("configmaps");
    assert_eq!(get(&api, MAPS).await.json().await["items"].as_array().unwrap().len(), 1);
    assert_eq!(discovered(&api).await, [legacy, aggregated]);
}

#[tokio::test]
async fn subresources_go_with_their_resource_and_others_stay() {
    let api = start_with(0).await;
    api.faults().hide("pods");
    let [legacy, _] = discovered(&api).await;
    assert!(!legacy.iter().any(|name| name == "pods" || name.starts_with("pods/")), "{legacy:?}");
    assert!(legacy.iter().any(|name| name == "podtemplates"));
}
