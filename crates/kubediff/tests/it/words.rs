//! Issue 12, first item 5: what people read.

use expect_test::expect;
use jiff::Timestamp;
use kubediff::render::{Renderer, json_line};
use kubediff::{Change, Gap, Gvk, Noise, Origin, Profile, Session, Sighting, Tally, managers};
use serde_json::{Value, json};

use crate::support::{
    both, change, change_with, deployment, edited, now, plain, profile, rendered, renderer,
};

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn outage() -> Gap {
    let resources = ["configmaps", "deployments.apps", "pods", "secrets"].map(str::to_owned).to_vec();
    Gap::since(at("2026-03-01T14:05:01Z"), resources, "https://10.0.0.1:6443: connection refused")
}

#[test]
fn gaps_have_from_and_to() {
    let few =
        Gap::since(at("2026-02-28T23:58:00Z"), vec!["secrets".to_owned()], "403 Forbidden: no\u{1b}[2J");
    let mut texts = String::new();
    for gap in [outage().until(at("2026-03-01T14:07:12Z")), outage(), few.until(at("2026-03-01T00:00:30Z"))] {
        texts += &plain(&renderer().gap(&gap, false));
        texts += &plain(&renderer().gap(&gap, true));
        texts += &json_line(&gap).unwrap();
    }
    expect![[r#"
        14:07:12  ! not watched from 14:05:01 to 14:07:12 (2m11s): 4 resources
            https://10.0.0.1:6443: connection refused
        14:07:12  ! not watched from 14:05:01 to 14:07:12 (2m11s): 4 resources  (https://10.0.0.1:6443: connection refused)
        {"cluster":null,"change":"gap","from":"2026-03-01T14:05:01Z","to":"2026-03-01T14:07:12Z","resources":["configmaps","deployments.apps","pods","secrets"],"cause":"https://10.0.0.1:6443: connection refused"}
        14:05:01  ! not watched since 14:05:01: 4 resources
            https://10.0.0.1:6443: connection refused
        14:05:01  ! not watched since 14:05:01: 4 resources  (https://10.0.0.1:6443: connection refused)
        {"cluster":null,"change":"gap","from":"2026-03-01T14:05:01Z","to":null,"resources":["configmaps","deployments.apps","pods","secrets"],"cause":"https://10.0.0.1:6443: connection refused"}
        00:00:30  ! not watched from 2026-02-28 23:58:00 to 00:00:30 (2m30s): secrets
            403 Forbidden: no\e[2J
        00:00:30  ! not watched from 2026-02-28 23:58:00 to 00:00:30 (2m30s): secrets  (403 Forbidden: no\e[2J)
        {"cluster":null,"change":"gap","from":"2026-02-28T23:58:00Z","to":"2026-03-01T00:00:30Z","resources":["secrets"],"cause":"403 Forbidden: no\u001b[2J"}
    "#]].assert_eq(&texts);
}

#[test]
fn a_line_says_that_another_day_has_begun() {
    let date = |before, now| renderer().date(at(before), at(now)).map(|line| plain(&line));
    assert_eq!(date("2026-03-01T14:00:00Z", "2026-03-01T23:59:59Z"), None);
    expect!["-- Monday, 2026-03-02\n"]
        .assert_eq(&date("2026-03-01T23:59:59Z", "2026-03-02T00:00:00Z").unwrap());
}

#[test]
fn one_line_per_change() {
    let old = deployment();
    let new = edited(&old, |it| {
        it["spec"]["replicas"] = 3.into();
        it["spec"]["template"]["spec"]["containers"][0]["image"] = "nginx:1.28".into();
        it["metadata"]["managedFields"].as_array_mut().unwrap().push(json!({
            "manager": "kubectl-edit", "operation": "Update", "time": "2026-03-01T14:03:21Z", "fieldsV1": {"f:spec": {}},
        }));
    });
    let changes = [change(None, Some(&old)), change(Some(&old), Some(&new)), change(Some(&new), None)]
        .map(Option::unwrap);
    let mut texts = String::new();
    for change in &changes {
        texts += &plain(&renderer().line(change, None));
        for columns in 64..160 {
            let line = plain(&renderer().line(change, Some(columns)));
            assert!(
                line.trim_end().chars().count() <= columns && line.matches('\n').count() == 1,
                "{columns}: {line}"
            );
        }
    }
    expect![[r#"
        14:03:22  + deployments.apps shop/cart  image web: nginx:1.27, replicas 2  (added by helm)
        14:03:22  ~ deployments.apps shop/cart  image web 1.27 -> 1.28, replicas 2 -> 3  (updated by kubectl-edit)
        14:03:22  - deployments.apps shop/cart  age 3d4h, image web: nginx:1.28, replicas 3  (deleted)
    "#]].assert_eq(&texts);
}

#[test]
fn a_headline_breaks_between_words() {
    let old = deployment();
    let new = edited(&old, |it| {
        it["spec"]["replicas"] = 3.into();
        it["metadata"]["managedFields"].as_array_mut().unwrap().push(json!({
            "manager": "kube-controller-manager", "operation": "Update", "subresource": "status",
            "time": "2026-03-01T14:03:21Z", "fieldsV1": {"f:spec": {}},
        }));
    });
    let change = change(Some(&old), Some(&new)).unwrap();
    let mut texts = String::new();
    for width in [100, 80, 40] {
        texts += &plain(&Renderer { width, ..renderer() }.text(&change));
    }
    expect![[r#"
        14:03:22  ~ deployments.apps shop/cart  (updated by kube-controller-manager/status)
            ~ spec.replicas: 2 → 3
        14:03:22  ~ deployments.apps shop/cart
            (updated by kube-controller-manager/status)
            ~ spec.replicas: 2 → 3
        14:03:22  ~ deployments.apps shop/cart
            (updated by kube-controller-manager/status)
            ~ spec.replicas: 2 → 3
    "#]]
    .assert_eq(&texts);
}

#[test]
fn an_event_says_reason_object_and_message() {
    let core = json!({"apiVersion": "v1", "kind": "Event", "metadata": {"name": "cart.1", "namespace": "shop"}, "type": "Warning",
        "reason": "BackOff", "message": "Back-off restarting failed container", "involvedObject": {"kind": "Pod", "name": "cart-1"}});
    let events = json!({"apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {"name": "cart.2", "namespace": "shop"},
        "type": "Normal", "reason": "Scheduled", "note": "Successfully assigned", "regarding": {"kind": "Pod", "name": "cart-2"}});
    let mut profile = profile();
    let mut texts = String::new();
    for event in [&core, &events] {
        assert_eq!(
            change_with(&profile, None, Some(event), &mut Tally::default()),
            None,
            "noise, as long as nobody asks"
        );
    }
    profile.noise.show_kind(&Gvk::new("v1", "Event"));
    profile.noise.show_kind(&Gvk::new("events.k8s.io/v1", "Event"));
    for event in [&core, &events] {
        let change = change_with(&profile, None, Some(event), &mut Tally::default()).unwrap();
        texts += &plain(&renderer().text(&change));
        texts += &format!("= {}\n", change.summary);
    }
    expect![[r#"
        14:03:22  + events shop/cart.1  (added)
            reason   BackOff
            object   Pod/cart-1
            message  Back-off restarting failed container
        = reason BackOff, object Pod/cart-1, message Back-off restarting failed container
        14:03:22  + events.events.k8s.io shop/cart.2  (added)
            reason   Scheduled
            object   Pod/cart-2
            message  Successfully assigned
        = reason Scheduled, object Pod/cart-2, message Successfully assigned
    "#]]
    .assert_eq(&texts);
}

/// EndpointSlices say the same, with names and zones besides.
#[test]
fn readiness_is_told_once() {
    let endpoints = json!({"apiVersion": "v1", "kind": "Endpoints", "metadata": {"name": "cart", "namespace": "shop"},
        "subsets": [{"addresses": [{"ip": "10.0.0.1"}]}]});
    let slice = json!({"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "metadata": {"name": "cart-x", "namespace": "shop"},
        "endpoints": [{"addresses": ["10.0.0.1"]}]});
    let mut tally = Tally::default();
    let told =
        |object: &Value, tally: &mut Tally| change_with(&profile(), None, Some(object), tally).is_some();
    assert!(!told(&endpoints, &mut tally));
    assert!(told(&slice, &mut tally));
    assert_eq!(tally.changes["endpoints"], 1, "counted");
}

#[test]
fn rules_are_shown_and_hidden_by_name() {
    let on = |noise: &Noise| noise.rules().filter(|rule| rule.is_on()).count();
    let mut noise = Noise::default();
    let all = noise.rules().count();
    assert_eq!(on(&noise), all - 1);
    noise.adjust("-all").unwrap();
    assert_eq!(on(&noise), 0);
    noise.adjust("status, managed-fields").unwrap();
    assert_eq!(on(&noise), 2);
}

fn states(entries: &Value, old: &Value, new: &Value) -> (Value, Value) {
    let object = |state: &Value| {
        let mut object = state.clone();
        object["metadata"]["managedFields"] = entries.clone();
        object
    };
    (object(old), object(new))
}

fn who(entries: &Value, old: &Value, new: &Value) -> String {
    let (old, new) = states(entries, old, new);
    let texts = managers(Some(&old), Some(&new)).into_iter().map(|it| {
        let probably = if it.probable { "probably " } else { "" };
        format!("{probably}{}", it.manager)
    });
    texts.collect::<Vec<_>>().join(", ")
}

/// A second write within a second leaves no trace in the times.
#[test]
fn the_owner_of_all_that_changed_has_probably_written() {
    let entries = json!([
        {"manager": "edit", "operation": "Update", "time": "t", "fieldsV1": {"f:data": {"f:a": {}, "f:b": {}}}},
        {"manager": "scale", "operation": "Update", "time": "t", "fieldsV1": {"f:spec": {"f:replicas": {}}}},
        {"manager": "apply", "operation": "Apply", "time": "t", "fieldsV1": {
            "f:spec": {"f:list": {"k:{\"name\":\"x\"}": {".": {}, "f:v": {}}}}, "f:metadata": {"f:finalizers": {"v:\"f\"": {}}}}},
    ]);
    let old = json!({"data": {"a": "1", "b": "1", "c": "1"}, "metadata": {"finalizers": ["f", "g"]},
        "spec": {"replicas": 1, "list": [{"name": "x", "v": 1}, {"name": "y", "v": 1}]}});
    let with = |edit: fn(&mut Value)| edited(&old, edit);
    assert_eq!(who(&entries, &old, &with(|it| it["data"]["a"] = "2".into())), "probably edit");
    assert_eq!(who(&entries, &old, &with(|it| it["spec"]["replicas"] = 2.into())), "probably scale");
    assert_eq!(who(&entries, &old, &with(|it| it["spec"]["list"][0]["v"] = 2.into())), "probably apply");
    // Nobody owns it, or several own what changed.
    assert_eq!(who(&entries, &old, &with(|it| it["data"]["c"] = "2".into())), "");
    assert_eq!(who(&entries, &old, &with(|it| it["spec"]["list"][1]["v"] = 2.into())), "");
    let both = with(|it| {
        it["data"]["a"] = "2".into();
        it["spec"]["replicas"] = 2.into();
    });
    assert_eq!(who(&entries, &old, &both), "");

    let (old, new) = states(&entries, &old, &with(|it| it["data"]["a"] = "2".into()));
    let identity = json!({"apiVersion": "v1", "kind": "ConfigMap"});
    let [old, new] = [old, new].map(|mut object| {
        object["apiVersion"] = identity["apiVersion"].clone();
        object["kind"] = identity["kind"].clone();
        object["metadata"]["name"] = "c".into();
        object
    });
    expect![[r#"
        14:03:22  ~ configmaps c  (updated, probably by edit)
            ~ data.a: "1" → "2"
    "#]]
    .assert_eq(&rendered(Some(&old), Some(&new)));
    let json = serde_json::to_value(change(Some(&old), Some(&new)).unwrap()).unwrap();
    assert_eq!(json["managers"][0]["probable"], true);
}

/// Issue 19, attack 13: the removal of a field leaves no trace, and anybody may have removed it.
#[test]
fn k7_a_removal_is_nobodys_but_the_former_owner_is_named() {
    let with = |fields: Value, data: Value| {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "data": data, "metadata": {"name": "c", "managedFields": [
            {"manager": "helm", "operation": "Apply", "time": "2026-03-01T12:00:00Z", "fieldsV1": {"f:data": fields}}]}})
    };
    let old = with(json!({"f:a": {}, "f:b": {}}), json!({"a": "1", "b": "2"}));
    let new = with(json!({"f:a": {}}), json!({"a": "1"}));
    assert_eq!(managers(Some(&old), Some(&new)), []);
    expect![[r#"
        14:03:22  ~ configmaps c  (updated by unknown; what was removed was owned by helm)
            - data.b: "2"
    "#]]
    .assert_eq(&rendered(Some(&old), Some(&new)));
    let json = serde_json::to_value(change(Some(&old), Some(&new)).unwrap()).unwrap();
    assert_eq!((&json["managers"], &json["owners"][0]["manager"]), (&json!([]), &json!("helm")));
    // A write within the same second, and a removal: the owner of what changed has probably written.
    let changed = with(json!({"f:a": {}}), json!({"a": "2"}));
    let found = managers(Some(&old), Some(&changed));
    assert!(found[0].probable && found[0].manager == "helm", "{found:?}");
}

/// The second attack: an entry that is left with the node of a map or of a list owns nothing of what is below it. The entries are those
/// of the API server.
#[test]
fn k7_the_owner_of_a_node_has_not_removed_what_others_owned() {
    let object = |entries: Value, fields: Value| {
        let mut object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}});
        object["metadata"]["managedFields"] = entries
            .as_object()
            .unwrap()
            .iter()
            .map(|(manager, fields)| json!({"manager": manager, "operation": "Update", "time": "2026-03-01T12:00:00Z", "fieldsV1": fields}))
            .collect();
        fields.as_object().unwrap().iter().for_each(|(name, value)| object[name] = value.clone());
        object
    };
    let key = |name: &str| format!("k:{}", json!({"name": name}));
    let two = json!({"f:data": {"f:x": {}}});
    let elements = |names: &[&str]| json!({"list": names.iter().map(|name| json!({"name": name, "v": 1})).collect::<Vec<_>>()});
    let of_two = json!({"f:list": {key("x"): {".": {}, "f:name": {}, "f:v": {}}}});
    let cases = [
        // `three` removed y.
        (
            object(
                json!({"one": {"f:data": {".": {}, "f:y": {}}}, "two": two}),
                json!({"data": {"x": "2", "y": "1"}}),
            ),
            object(json!({"one": {"f:data": {}}, "two": two}), json!({"data": {"x": "2"}})),
            "one",
        ),
        // `one` never had y.
        (
            object(
                json!({"one": {"f:data": {}}, "two": {"f:data": {"f:x": {}, "f:y": {}}}}),
                json!({"data": {"x": "2", "y": "1"}}),
            ),
            object(json!({"one": {"f:data": {}}, "two": two}), json!({"data": {"x": "2"}})),
            "two",
        ),
        // An element of a list with keys.
        (
            object(
                json!({"one": {"f:list": {".": {}, key("y"): {".": {}, "f:name": {}, "f:v": {}}}}, "two": of_two}),
                elements(&["x", "y"]),
            ),
            object(json!({"one": {"f:list": {}}, "two": of_two}), elements(&["x"])),
            "one",
        ),
        // The order of one.
        (
            object(json!({"one": {"f:list": {}}, "two": of_two}), elements(&["x", "y"])),
            object(json!({"one": {"f:list": {}}, "two": of_two}), elements(&["y", "x"])),
            "",
        ),
    ];
    for (old, new, owner) in cases {
        assert_eq!(managers(Some(&old), Some(&new)), [], "{old} {new}");
        let json = serde_json::to_value(change(Some(&old), Some(&new)).unwrap()).unwrap();
        assert_eq!(json["managers"], json!([]));
        let owners: Vec<&str> =
            json["owners"].as_array().into_iter().flatten().filter_map(|it| it["manager"].as_str()).collect();
        assert_eq!(owners.join(","), owner, "{json}");
    }
    // A list or a map that nobody shares is owned as a whole, and a second write within a second adds to it.
    let whole = |args: Value| object(json!({"edit": {"f:args": {}}}), json!({"args": args}));
    for (old, new, manager) in [
        (json!(["a"]), json!(["b"]), "edit"),
        (json!({"a": 1}), json!({"a": 2}), "edit"),
        (json!(["a", "b"]), json!(["a"]), ""),
    ] {
        let found = managers(Some(&whole(old)), Some(&whole(new)));
        let names: Vec<&str> = found.iter().map(|it| it.manager.as_str()).collect();
        assert_eq!(names.join(","), manager);
        assert!(found.iter().all(|it| it.probable));
    }
}

fn merged(
    old: Option<&Value>,
    new: Option<&Value>,
    count: u32,
    profile: &Profile,
    tally: &mut Tally,
) -> Option<Change> {
    let (gvk, resource) = crate::support::gvk(new.or(old).unwrap());
    let sighting =
        Sighting { cluster: None, gvk: &gvk, resource: &resource, observed_at: now(), origin: Origin::Watch };
    Change::between(&sighting, both(old, new), count, profile, tally).change()
}

#[test]
fn what_was_merged_says_so() {
    let config = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "resourceVersion": "1"}, "data": {"k": "1"}});
    let changed = edited(&config, |it| it["data"]["k"] = "2".into());
    let back = edited(&config, |it| it["metadata"]["generation"] = 3.into());
    let mut tally = Tally::default();
    let mut texts = String::new();
    for (old, new) in [
        (Some(&config), Some(&changed)),
        (Some(&config), None),
        (None, Some(&config)),
        (Some(&config), Some(&back)),
    ] {
        let change = merged(old, new, 3, &profile(), &mut tally).unwrap();
        texts += &plain(&renderer().text(&change));
        texts += &plain(&renderer().line(&change, None));
        let json = json_line(&change).unwrap();
        assert!(json.ends_with(",\"merged\":3}\n"), "{json}");
    }
    expect![[r#"
        14:03:22  ~ configmaps c  (updated, 3 changes merged)
            ~ data.k: "1" → "2"
        14:03:22  ~ configmaps c  data.k "1" -> "2"  (updated, 3 changes merged)
        14:03:22  - configmaps c  (deleted, 3 changes merged)
            data  k (1 byte)
        14:03:22  - configmaps c  data k (1 byte)  (deleted, 3 changes merged)
        14:03:22  + configmaps c  (added, 3 changes merged)
            data  k (1 byte)
        14:03:22  + configmaps c  data k (1 byte)  (added, 3 changes merged)
        14:03:22  ~ configmaps c  (updated, 3 changes merged)
            changed, and changed back
        14:03:22  ~ configmaps c  changed, and changed back  (updated, 3 changes merged)
    "#]]
    .assert_eq(&texts);
    assert_eq!(tally.hidden(), 0);
    // Noise that explains the writes is noise, however many were merged.
    let lease = json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "l", "resourceVersion": "1"},
        "spec": {"renewTime": "1"}});
    let renewed = edited(&lease, |it| it["spec"]["renewTime"] = "2".into());
    assert_eq!(merged(Some(&lease), Some(&renewed), 5, &profile(), &mut tally), None);
    assert_eq!(tally.changes["lease-renewal"], 5);
}

#[test]
fn the_summary_says_what_is_missing_first_and_counts_last() {
    let mut session = Session::default();
    session.record(&change(None, Some(&deployment())).unwrap());
    for number in 0..50 {
        session.not_watched(&format!("kind-{number:02}"), "403 Forbidden");
    }
    session.not_watched("metrics.k8s.io/v1beta1", "the server does not describe it");
    session.merged = 7;
    session.gaps = vec![outage().until(at("2026-03-01T14:07:12Z")), outage()];
    expect![[r#"
        Not watched: kind-00, kind-01, kind-02, kind-03 and 46 more (403 Forbidden)
        Not watched: metrics.k8s.io/v1beta1 (the server does not describe it)
        Not watched for a time: 2 gaps, 2m11s together and 1 to the end
        7 changes were merged into others, because the reader of the output was slow
        1 change of 1 kind in 12m
          deployments.apps  +1
    "#]]
    .assert_eq(&session.text(std::time::Duration::from_secs(754)));
}
