//! The meaning of resource names on a server.

use expect_test::expect;
use informer::{Catalog, SharedInformerFactory};
use kube_client::config::{KubeConfigOptions, Kubeconfig};
use kubediff::Gvk;
use kubediff::config::Config;
use kubediff::route::Routes;
use testapi::TestApi;

async fn catalog() -> Catalog {
    let server = TestApi::builder().start().await.unwrap();
    let kubeconfig = Kubeconfig::from_yaml(&server.kubeconfig()).unwrap();
    let options = KubeConfigOptions::default();
    let config = kube_client::Config::from_custom_kubeconfig(kubeconfig, &options).await.unwrap();
    let catalog = SharedInformerFactory::new(config).unwrap().catalog().await.unwrap();
    server.stop().await;
    catalog
}

#[tokio::test]
async fn what_the_server_does_not_have_is_told_and_another_version_is_watched() {
    let catalog = catalog().await;
    let seed = "\
resources:
  - kind: v1/pods
  - kind: networking.k8s.io/v1beta1/ingresses
  - kind: example.com/v1/widgets
";
    let ours = "\
watch:
  resources: [deploy/cart, cm, ing, gadgets, cm/settings, configmaps]
  exclude: {resources: [gizmos]}
noise: {ignore: [{resource: thing, paths: [spec]}]}
hide: [{resource: deploy, path: spec}, {resource: stuff, path: spec}]
sinks: {log: stdout}
routes: [{match: {resources: [deploy, apps/v1beta1/deployments, junk]}, sinks: [log]}]
";
    let mut said = String::new();
    for (file, text) in [("config.yaml", seed), ("kubediff.yaml", ours)] {
        let loaded = Config::of_text(text, file).unwrap();
        let targets: Vec<String> =
            loaded.config.targets(&catalog).iter().map(|target| target.text()).collect();
        said += &format!("{}\n", targets.join(" "));
        for warning in loaded.unserved(&catalog) {
            said += &format!("{warning}\n");
        }
    }
    expect![[r#"
        pods ingresses.networking.k8s.io
        config.yaml:3:11: resources[1].kind: the server has no resource networking.k8s.io/v1beta1/ingresses: networking.k8s.io/v1/ingresses is used instead, which it has
        config.yaml:4:11: resources[2].kind: the server has no resource example.com/v1/widgets: nothing matches it until it does
        deployments.apps/cart configmaps ingresses.networking.k8s.io
        kubediff.yaml:2:37: watch.resources[3]: the server has no resource gadgets: nothing matches it until it does
        kubediff.yaml:3:25: watch.exclude.resources[0]: the server has no resource gizmos: nothing matches it until it does
        kubediff.yaml:4:29: noise.ignore[0].resource: the server has no resource thing: nothing matches it until it does
        kubediff.yaml:5:51: hide[1].resource: the server has no resource stuff: nothing matches it until it does
        kubediff.yaml:7:39: routes[0].match.resources[1]: the server has no resource apps/v1beta1/deployments: apps/v1/deployments is used instead, which it has
        kubediff.yaml:7:65: routes[0].match.resources[2]: the server has no resource junk: nothing matches it until it does
    "#]].assert_eq(&said);
}

#[tokio::test]
async fn short_names_stand_for_what_the_server_says() {
    let catalog = catalog().await;
    let text = "\
watch: {exclude: {resources: [deploy, '*.batch']}}
hide: [{resource: cm, path: data}]
sinks: {log: stdout}
routes: [{match: {resources: [all]}, sinks: [log]}]
";
    let mut config = Config::of_text(text, "kubediff.yaml").unwrap().config;
    let before = config.clone();
    let (deployment, map) = (Gvk::new("apps/v1", "Deployment"), Gvk::new("v1", "ConfigMap"));
    let hidden = |config: &Config| config.hide[0].scopes().iter().any(|scope| scope.matches(&map));
    let routed =
        |config: &Config| config.routes.as_ref().unwrap()[0].matches.resources[0].matches(&deployment);
    assert!(!hidden(&config) && !routed(&config));
    config.resolve(&catalog);
    assert!(hidden(&config) && routed(&config));
    // The answers of the server are no difference between two files.
    assert_eq!(config, before);
    let targets = config.targets(&catalog);
    assert!(targets.iter().any(|target| target.text() == "statefulsets.apps"));
    let excluded = |target: &kubediff::targets::Target| {
        target.resource.plural == "deployments" || target.resource.group == "batch"
    };
    assert!(!targets.iter().any(excluded));
}

#[tokio::test]
async fn a_gap_goes_where_a_change_of_its_resource_could_have_gone() {
    let routes = r#"
sinks: {ops: stdout, bus: stdout, log: stdout, late: stdout, unused: stdout}
routes:
  - {match: {resources: [secrets]}, sinks: []}
  - {match: {resources: [deploy, v1/nodes], namespaces: [shop]}, sinks: [ops]}
  - {match: {resources: ["*.networking.k8s.io"]}, sinks: [bus], continue: true}
  - {match: {resources: [ing]}, sinks: [ops]}
  - {match: {resources: [Vertex.example.com]}, sinks: [late]}
  - {match: {changes: [deleted]}, sinks: [log]}
  - {match: {resources: ["*"]}, sinks: [log]}
  - {sinks: [unused]}
"#;
    let mut config = Config::of_text(routes, "kubediff.yaml").unwrap().config;
    config.resolve(&catalog().await);
    let routes = Routes::new(&config).unwrap();
    for (resource, expected) in [
        (Some("secrets"), expect![[r#""#]]),
        // A deployment of another namespace would have gone on.
        (Some("deployments.apps"), expect!["log ops"]),
        (Some("deployments.extensions"), expect!["log"]),
        (Some("nodes"), expect!["log ops"]),
        (Some("nodes.metrics.k8s.io"), expect!["log"]),
        (Some("networkpolicies.networking.k8s.io"), expect!["bus log"]),
        (Some("ingresses.networking.k8s.io"), expect!["bus ops"]),
        // The server does not know the kind yet, and how its plural is made.
        (Some("vertices.example.com"), expect!["late log"]),
        (Some("configmaps"), expect!["log"]),
        (None, expect!["bus late log ops"]),
    ] {
        let sinks: Vec<&str> = routes.of_gap(resource).into_iter().collect();
        expected.assert_eq(&sinks.join(" "));
    }

    let everything = Config::of_text("sinks: {ops: stdout, log: stdout}", "kubediff.yaml").unwrap().config;
    let everything = Routes::new(&everything).unwrap();
    for resource in [None, Some("pods")] {
        assert_eq!(everything.of_gap(resource).into_iter().collect::<Vec<_>>(), ["log", "ops"]);
    }
}
