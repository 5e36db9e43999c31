//! The parts of a change besides the difference: its kind, its managers, and all that as JSON.

use expect_test::expect;
use kubediff::render::json_line;
use kubediff::{Change, Compared, Gvk, Origin, Session, Sighting, States, Tally, Undecodable, managers};
use serde_json::{Value, json};

use crate::support::{both, change, deployment, edited, now, profile};

fn entry(manager: &str, time: &str, fields: &Value) -> Value {
    json!({"manager": manager, "operation": "Update", "apiVersion": "apps/v1", "time": time, "fieldsV1": fields})
}

fn who(old: &Value, new: &Value) -> Vec<String> {
    let object = |entries: &Value| json!({"metadata": {"managedFields": entries}});
    managers(Some(&object(old)), Some(&object(new))).into_iter().map(|it| it.manager).collect()
}

#[test]
fn managers_that_wrote() {
    let a = entry("a", "2026-03-01T10:00:00Z", &json!({"f:spec": {"f:x": {}, "f:y": {}}}));
    let later = entry("a", "2026-03-01T11:00:00Z", &json!({"f:spec": {"f:x": {}, "f:y": {}}}));
    let b = entry("b", "2026-03-01T11:00:01Z", &json!({"f:spec": {"f:y": {}}}));
    assert_eq!(who(&json!([a]), &json!([later, b])), ["b", "a"]);
    assert_eq!(who(&json!([a]), &json!([a])), [""; 0]);
    assert_eq!(who(&json!([a]), &json!(null)), [""; 0]);

    // `b` took a field from `a`, which did nothing.
    let robbed = entry("a", "2026-03-01T10:00:00Z", &json!({"f:spec": {"f:x": {}}}));
    assert_eq!(who(&json!([a]), &json!([robbed, b])), ["b"]);
    // Within a second.
    assert_eq!(who(&json!([robbed]), &json!([a])), ["a"]);
}

#[test]
fn as_json() {
    let old = deployment();
    let new = edited(&old, |it| {
        it["spec"]["replicas"] = 3.into();
        it["metadata"]["labels"]["tier"] = Value::Null;
        let fields = json!({"f:spec": {"f:replicas": {}}});
        let scaled = json!({"manager": "kubectl-scale", "operation": "Update", "subresource": "scale",
            "time": "2026-03-01T14:03:21Z", "fieldsV1": fields});
        it["metadata"]["managedFields"].as_array_mut().unwrap().push(scaled);
    });
    let change = change(Some(&old), Some(&new)).unwrap();
    expect![[r#"
        {"cluster":null,"gvk":{"group":"apps","version":"v1","kind":"Deployment"},"resource":"deployments","namespace":"shop","name":"cart","uid":"2c3b9c1e-7d5a-4f0e-9b62-0d7c1f6a8e11","change":"updated","rv_before":"1001","rv":"1002","observed_at":"2026-03-01T14:03:22Z","source":"watch","managers":[{"manager":"kubectl-scale","operation":"Update","subresource":"scale","time":"2026-03-01T14:03:21Z"}],"paths":["metadata.labels.tier","spec.replicas"],"diff":[{"path":"metadata.labels.tier","kind":"changed","old":"web","new":null},{"path":"spec.replicas","kind":"changed","old":2,"new":3}],"summary":"replicas 2 -> 3, label tier: web -> null","dropped":{"managed-fields":1,"resource-version":1},"key":"9b35d16b"}
    "#]].assert_eq(&json_line(&change).unwrap());
    let pretty: Value = serde_json::to_value(change.with_objects()).unwrap();
    assert_eq!(pretty["old"], old);
    assert_eq!(pretty["new"], new);
}

#[test]
fn json_lines_hold_nothing_that_a_terminal_acts_on() {
    let new = edited(&deployment(), |it| {
        it["metadata"]["labels"]["app"] = "\u{9b}31m\u{1b}[2J\u{202e}\u{7f}x\u{e0041}".into()
    });
    let change = change(None, Some(&new)).unwrap();
    let line = json_line(&change.with_objects()).unwrap();
    assert!(line.trim_end().chars().all(|c| !c.is_control() && c != '\u{202e}'), "{line:?}");
    let back: Value = serde_json::from_str(&line).unwrap();
    assert_eq!(back["new"], new);
}

#[test]
fn bytes_that_are_no_json() {
    let gvk = Gvk::new("v1", "Pod");
    let sighting = Sighting {
        cluster: Some("prod"),
        gvk: &gvk,
        resource: "pods",
        observed_at: now(),
        origin: Origin::List,
    };
    let mut tally = Tally::default();
    let mut between = |old: Option<&[u8]>, new: Option<&[u8]>| {
        let states = States::read(old, new)?;
        Ok::<_, Undecodable>(Change::between(&sighting, states, 1, &profile(), &mut tally).change())
    };
    let error = between(Some(b"{"), Some(b"{}")).unwrap_err();
    expect!["the old state is undecodable: EOF while parsing an object at line 1 column 1"]
        .assert_eq(&error.to_string());
    assert!(between(Some(b"{}"), Some(b"{}")).unwrap().is_none());
    assert!(between(None, Some(b"[1, {}]")).unwrap().is_some());
    assert_eq!(tally.unchanged, 1);
}

#[test]
fn the_end_of_a_session() {
    let mut session = Session::default();
    let old = deployment();
    let new = edited(&old, |it| it["spec"]["replicas"] = 3.into());
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "uid": "1"}});
    let again = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "uid": "2"}});
    let states = [
        (None, Some(&old)),
        (Some(&old), Some(&new)),
        (None, Some(&pod)),
        (Some(&pod), Some(&again)),
        (Some(&again), None),
        (Some(&old), Some(&old)),
    ];
    for (old, new) in states {
        let gvk = crate::support::gvk(new.or(old).unwrap());
        let sighting = Sighting {
            cluster: None,
            gvk: &gvk.0,
            resource: &gvk.1,
            observed_at: now(),
            origin: Origin::Watch,
        };
        let compared = Change::between(&sighting, both(old, new), 1, &profile(), &mut session.tally);
        if let Some(change) = compared.change() {
            session.record(&change);
        }
    }
    let lease = json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "l"}, "spec": {"renewTime": "1"}});
    let (gvk, resource) = crate::support::gvk(&lease);
    let sighting =
        Sighting { cluster: None, gvk: &gvk, resource: &resource, observed_at: now(), origin: Origin::Watch };
    for time in 0..40 {
        let renewed = edited(&lease, |it| it["spec"]["renewTime"] = format!("{time}+").into());
        let states = both(Some(&lease), Some(&renewed));
        let compared = Change::between(&sighting, states, 1, &profile(), &mut session.tally);
        assert!(matches!(compared, Compared::Noise(_)));
    }
    session.not_watched("secrets", "forbidden: the user may not list secrets in the cluster");
    session.not_watched("widgets.example.com", "not found");
    session.watched("widgets.example.com");
    expect![[r#"
        Not watched: secrets (forbidden: the user may not list secrets in the cluster)
        40 changes not shown:
          lease-renewal  40
        5 changes of 2 kinds in 12m
          deployments.apps  +1  ~1
          pods              +1  -1  ±1
    "#]]
    .assert_eq(&session.text(std::time::Duration::from_secs(754)));
    expect![[r#"
        {"shown":{"deployments.apps":{"added":1,"updated":1,"deleted":0,"recreated":0},"pods":{"added":1,"updated":0,"deleted":1,"recreated":1}},"differences":{"identity":1,"lease-renewal":40,"resource-version":41},"changes":{"lease-renewal":40},"unchanged":1,"not_watched":{"secrets":"forbidden: the user may not list secrets in the cluster"},"gaps":[],"merged":0}
    "#]].assert_eq(&json_line(&session).unwrap());
}

/// As a day with `kubediff watch` showed: 5 bytes were said to be 8.
#[test]
fn sizes_are_those_of_the_content() {
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"},
        "data": {"a": "12345"}, "binaryData": {"b": "AAECAwQ=", "c": ""}});
    expect![[r#"
        14:03:22  - configmaps c  (deleted)
            data        a (5 bytes)
            binaryData  b (5 bytes), c (0 bytes)
    "#]]
    .assert_eq(&crate::support::rendered(Some(&map), None));
}
