//! The file of arriqaaq/kubediff.

use expect_test::{Expect, expect};
use kubediff::config::{Config, ConfigError, Format, Sink};
use serde_json::json;

use crate::support;

/// The file that its page shows, and its chart has, with all notifiers.
const FILE: &str = "\
mode: diff
resources:
  - kind: v1/pods
  - kind: apps/v1/deployments
  - kind: networking.k8s.io/v1beta1/ingresses
  - kind: v1/nodes
namespaces:
  - all
notifier:
  slack:
    enabled: true
    channel: 'SLACK_CHANNEL'
    token: 'SLACK_API_TOKEN'
    title: 'kubediff \"event\" {{ 7 }}'
  webhook:
    enabled: true
    url: 'http://example.com/hook'
  noop:
    enabled: true
";

fn check(text: &str, expected: Expect) {
    let said: String = match Config::of_text(text, "config.yaml") {
        Ok(loaded) => {
            assert!(loaded.is_arriqaaq);
            loaded.warnings.iter().map(|warning| format!("warning: {warning}\n")).collect()
        }
        Err(ConfigError::Invalid(problems)) => {
            problems.iter().map(|problem| format!("{problem}\n")).collect()
        }
        Err(error) => panic!("{error}"),
    };
    expected.assert_eq(&said);
}

#[test]
fn it_is_read_as_it_is() {
    let loaded = Config::of_text(FILE, "config.yaml").unwrap();
    let config = loaded.config;
    assert_eq!(
        config.watch.resources,
        ["v1/pods", "apps/v1/deployments", "networking.k8s.io/v1beta1/ingresses", "v1/nodes"]
    );
    assert!(config.watch.namespaces.is_empty());
    let names: Vec<&String> = config.sinks.keys().collect();
    assert_eq!(names, ["log", "slack", "webhook"]);
    let Some(Sink::Webhook(webhook)) = config.sinks.get("webhook") else { panic!() };
    assert_eq!((webhook.format, webhook.batch), (Format::ArriqaaqDiff, 1));
    check(
        FILE,
        expect![[r#"
        warning: config.yaml:1:7: mode: creations and deletions are reported, too, which the diff mode of arriqaaq/kubediff left out; the object is the new one, which was the old one there; `kubediff config convert` writes a file in which you can choose
        warning: config.yaml:13:12: notifier.slack.token: a secret stands in the file, for all who may read it: put it into an environment variable or a file of its own, and write `{env: NAME}` or `{file: PATH}` here
        warning: config.yaml:19:5: notifier.noop: it has no effect of its own: all changes are written to standard output, as arriqaaq/kubediff did
    "#]],
    );
}

#[test]
fn its_watch_mode_is_the_default_and_a_version_may_be_missing() {
    let text = "resources:\n  - kind: pods\nnamespaces: [shop]\nnotifier:\n  webhook: {enabled: true, url: 'http://x'}\n";
    let config = Config::of_text(text, "config.yaml").unwrap().config;
    assert_eq!(
        (config.watch.resources, config.watch.namespaces),
        (vec!["pods".to_owned()], vec!["shop".to_owned()])
    );
    let Some(Sink::Webhook(webhook)) = config.sinks.get("webhook") else { panic!() };
    assert_eq!(webhook.format, Format::ArriqaaqWatch);
    // All sinks get every change.
    assert_eq!(config.routes, None);
}

#[test]
fn what_it_took_in_silence_is_a_mistake() {
    check(
        "\
mode: wacth
resource:
  - kind: v1/pods
resources:
  - kind: v1/pods
  - knid: v1/services
  - v1/nodes
namespaces: [all, shop]
notifier:
  slack: {enabled: yes please}
  webhok: {}
",
        expect![[r#"
            config.yaml:1:7: mode: `wacth` is not known here; did you mean `watch`?
            config.yaml:2:1: resource: there is no such field; did you mean `resources`?
            config.yaml:6:5: resources[1].knid: there is no such field; did you mean `kind`?
            config.yaml:7:5: resources[2]: expected a map with fields, found a text
            config.yaml:10:20: notifier.slack.enabled: expected true or false, found a text
            config.yaml:11:3: notifier.webhok: there is no such field; did you mean `webhook`?
        "#]],
    );
    check(
        "\
mode: watch
namespaces: [all, shop]
notifier:
  slack: {enabled: true, token: SLACK_API_TOKEN}
  webhook: {enabled: true, url: WEBHOOK_URL}
",
        expect![[r#"
            config.yaml:1:1: resources: expected at least one resource, as in `- kind: apps/v1/deployments`
            config.yaml:2:14: namespaces[0]: `all` stands alone: take it or the others out
            config.yaml:4:10: notifier.slack: expected `token` and `channel`, because it is enabled
            config.yaml:5:33: notifier.webhook.url: expected an address that begins with https:// or http://
        "#]],
    );
}

#[test]
fn the_former_names_of_its_formats_are_accepted() {
    for (name, format) in [
        ("seed", Format::ArriqaaqWatch),
        ("arriqaaq-watch", Format::ArriqaaqWatch),
        ("seed-diff", Format::ArriqaaqDiff),
        ("arriqaaq-diff", Format::ArriqaaqDiff),
    ] {
        let text =
            format!("sinks: {{hook: {{webhook: {{url: {{env: HOOK}}, batch: 1, format: {name}}}}}}}\n");
        let config = Config::of_text(&text, "kubediff.yaml").unwrap().config;
        let Some(Sink::Webhook(webhook)) = config.sinks.get("hook") else { panic!() };
        assert_eq!(webhook.format, format, "{name}");
    }
}

#[test]
fn its_envelope_has_its_fields() {
    let object = |replicas: u32| {
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": "cart", "namespace": "shop", "uid": "1"},
            "spec": {"replicas": replicas},
        })
    };
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "db", "namespace": "shop", "uid": "2"},
        "data": {"password": "aHVudGVyMg=="},
    });
    let mut said = String::new();
    for (old, new) in [(Some(object(1)), Some(object(2))), (None, Some(secret)), (Some(object(2)), None)] {
        let change = support::change(old.as_ref(), new.as_ref()).unwrap();
        for is_diff_mode in [false, true] {
            said += std::str::from_utf8(&change.envelope(is_diff_mode)).unwrap();
            said.push('\n');
        }
    }
    assert!(!said.contains("aHVudGVyMg"));
    expect![[r#"
        {"meta":{"Type":"EventUpdate","Kind":"apps/v1/deployments","Obj":{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"cart","namespace":"shop","uid":"1"},"spec":{"replicas":2}},"Diff":null},"timestamp":"2026-03-01T14:03:22Z"}
        {"meta":{"Type":"EventUpdate","Kind":"apps/v1/deployments","Obj":{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"cart","namespace":"shop","uid":"1"},"spec":{"replicas":2}},"Diff":["spec.replicas: 1 != 2"]},"timestamp":"2026-03-01T14:03:22Z"}
        {"meta":{"Type":"EventAdd","Kind":"v1/secrets","Obj":{"apiVersion":"v1","data":{"password":"<hmac:ba7f6c4fb770caa8 7 bytes>"},"kind":"Secret","metadata":{"name":"db","namespace":"shop","uid":"2"}},"Diff":null},"timestamp":"2026-03-01T14:03:22Z"}
        {"meta":{"Type":"EventAdd","Kind":"v1/secrets","Obj":{"apiVersion":"v1","data":{"password":"<hmac:ba7f6c4fb770caa8 7 bytes>"},"kind":"Secret","metadata":{"name":"db","namespace":"shop","uid":"2"}},"Diff":null},"timestamp":"2026-03-01T14:03:22Z"}
        {"meta":{"Type":"EventDelete","Kind":"apps/v1/deployments","Obj":{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"cart","namespace":"shop","uid":"1"},"spec":{"replicas":2}},"Diff":null},"timestamp":"2026-03-01T14:03:22Z"}
        {"meta":{"Type":"EventDelete","Kind":"apps/v1/deployments","Obj":{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"cart","namespace":"shop","uid":"1"},"spec":{"replicas":2}},"Diff":null},"timestamp":"2026-03-01T14:03:22Z"}
    "#]].assert_eq(&said);
}
