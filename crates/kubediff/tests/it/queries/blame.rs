//! `blame` of lists and of removals (issue 19, attacks 12 and 13), and where other values were known or hidden before.

use expect_test::{Expect, expect};
use kubediff::Secrets;
use serde_json::{Value, json};

use super::run::run;
use super::world::World;
use crate::support;

/// Secrets that hide these paths of widgets, with the first key of the tests.
pub(super) fn hiding(paths: &[&str]) -> Secrets {
    let mut secrets = Secrets::with_key([7; 32]);
    for path in paths {
        secrets.hide("Widget.example.com".parse().unwrap(), path.parse().unwrap());
    }
    secrets
}

pub(super) fn widget(spec: &Value) -> Value {
    json!({"apiVersion": "example.com/v1", "kind": "Widget", "spec": spec,
        "metadata": {"name": "w", "namespace": "shop", "uid": "w"}})
}

/// The object with these managers, and their times and fields.
fn owned(mut object: Value, managers: &[(&str, &str, Value)]) -> Value {
    let entry = |(manager, time, fields): &(&str, &str, Value)| json!({"manager": manager, "operation": "Update", "time": format!("2026-03-01T{time}:00Z"), "fieldsV1": fields});
    object["metadata"]["managedFields"] = managers.iter().map(entry).collect();
    object
}

/// The answer to `kubediff blame` after what was seen.
fn check(question: &[&str], seen: impl FnOnce(&mut World), expected: &Expect) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("history.db");
    let mut world = World::open(&path, [7; 32]);
    seen(&mut world);
    drop(world);
    expected.assert_eq(&run(&path, &[&["blame"], question].concat()));
}

fn definition() -> Value {
    let routes = json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["host", "path"],
        "items": {"type": "object"}});
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "gates.example.com", "uid": "crd"},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": {"plural": "gates", "kind": "Gate"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                "properties": {"spec": {"properties": {"routes": routes}}}}}}]}})
}

fn gate(routes: &[(&str, u32)]) -> Value {
    let routes: Vec<Value> =
        routes.iter().map(|(host, weight)| json!({"host": host, "path": "/", "weight": weight})).collect();
    json!({"apiVersion": "example.com/v1", "kind": "Gate",
        "metadata": {"name": "g", "namespace": "shop", "uid": "g"}, "spec": {"routes": routes}})
}

#[test]
fn k7_elements_are_found_again_by_the_keys_of_the_definition() {
    check(
        &["gate/g", "-n", "shop", "--path", "spec"],
        |world| {
            world.known("12:00:00", definition());
            world.wrote("12:01:00", "ann", gate(&[("a", 1), ("b", 1)]));
            world.wrote("12:02:00", "bob", gate(&[("b", 1), ("a", 2)]));
        },
        &expect![[r#"
            FIELD                     VALUE   SINCE                 MANAGER   CHANGE   BEFORE
            spec.routes[a,/].host     a       2026-03-01 12:01:00   ann       #2
            spec.routes[a,/].path     /       2026-03-01 12:01:00   ann       #2
            spec.routes[a,/].weight   2       2026-03-01 12:02:00   bob       #3       1
            spec.routes[b,/].host     b       2026-03-01 12:01:00   ann       #2
            spec.routes[b,/].path     /       2026-03-01 12:01:00   ann       #2
            spec.routes[b,/].weight   1       2026-03-01 12:01:00   ann       #2
        "#]],
    );
}

fn role(rules: &[&str]) -> Value {
    let rules: Vec<Value> =
        rules.iter().map(|group| json!({"apiGroups": [group], "verbs": ["get"]})).collect();
    json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role",
        "metadata": {"name": "r", "namespace": "shop", "uid": "r"}, "rules": rules})
}

/// After an insertion in front, no other rule is blamed on who inserted one.
#[test]
fn k7_a_list_without_keys_is_one_field() {
    check(
        &["role/r", "-n", "shop", "--path", "rules"],
        |world| {
            world.wrote("12:01:00", "ann", role(&["apps", "batch"]));
            world.wrote("12:02:00", "bob", role(&["policy", "apps", "batch"]));
        },
        &expect![[r#"
            FIELD   VALUE                                                                              SINCE                 MANAGER   CHANGE   BEFORE
            rules   [{apiGroups: [policy], verbs: [get]}, {apiGroups: [apps], verbs: [get]}, {apiGr…   2026-03-01 12:02:00   bob       #2       [{apiGroups: [apps], verbs: [get]}, {apiGroups: [batch], verbs: [get]}]
        "#]],
    );
}

#[test]
fn k7_a_removal_is_nobodys_but_the_former_owner_is_named() {
    let map = |fields: Value, data: Value| {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "data": data, "metadata": {"name": "c", "namespace": "shop",
            "uid": "c", "managedFields": [{"manager": "helm", "operation": "Apply", "time": "2026-03-01T12:00:00Z",
            "fieldsV1": {"f:data": fields}}]}})
    };
    check(
        &["cm/c", "-n", "shop", "--path", "data"],
        |world| {
            world.known("12:01:00", map(json!({"f:a": {}, "f:b": {}}), json!({"a": "1", "b": "2"})));
            world.became("12:02:00", map(json!({"f:a": {}}), json!({"a": "1"})));
        },
        &expect![[r#"
            The history of configmaps shop/c begins at 2026-03-01 12:01:00, in the middle of its life: of earlier writes it knows only the managers that own fields.
            FIELD    VALUE       SINCE                           MANAGER                                CHANGE   BEFORE
            data.a   "1"         2026-03-01 12:01:00 or before   probably helm                          #1
            data.b   (removed)   2026-03-01 12:02:00             unknown; the field was owned by helm   #2       "2"
        "#]],
    );
}

/// The eighth attack: the removal was that of the only manager with a trace.
#[test]
fn k7_a_removal_among_writes_that_nobody_watched_is_nobodys() {
    let map = |data: Value, managers: &[(&str, &str, Value)]| {
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": data,
            "metadata": {"name": "c", "namespace": "shop", "uid": "c"}});
        owned(object, managers)
    };
    check(
        &["cm/c", "-n", "shop", "--path", "data"],
        |world| {
            let all = json!({"f:data": {"f:a": {}, "f:b": {}}});
            world.became("12:00:00", map(json!({"a": "1", "b": "1"}), &[("al", "12:00", all)]));
            world.restarts(Secrets::with_key([7; 32]));
            let m1 = ("m1", "12:01", json!({"f:data": {"f:a": {}}}));
            world.became("12:03:00", map(json!({"a": "2"}), &[("al", "12:00", json!({"f:data": {}})), m1]));
        },
        &expect![[r#"
            FIELD    VALUE       SINCE                 MANAGER                              CHANGE   BEFORE
            data.a   "2"         2026-03-01 12:03:00   m1                                   #2       "1"
            data.b   (removed)   2026-03-01 12:03:00   unknown; the field was owned by al   #2       "1"
        "#]],
    );
}

/// The eighth attack: a map that had lost all had no value before, when its element had had another index.
#[test]
fn k7_a_map_in_an_element_that_moved_has_what_it_lost() {
    check(
        OF_SPEC,
        |world| {
            let side = json!({"name": "side", "limits": {"cpu": "1"}});
            world.wrote("12:00:00", "ann", widget(&json!({"steps": [{"name": "web"}, side]})));
            world.wrote("12:01:00", "bob", widget(&json!({"steps": [{"name": "side", "limits": {}}]})));
        },
        &expect![[r#"
            FIELD                         VALUE       SINCE                 MANAGER   CHANGE   BEFORE
            spec.steps[side].limits       {}          2026-03-01 12:01:00   bob       #2       {cpu: "1"}
            spec.steps[side].limits.cpu   (removed)   2026-03-01 12:01:00   bob       #2       "1"
            spec.steps[side].name         side        2026-03-01 12:00:00   ann       #1
            spec.steps[web].name          (removed)   2026-03-01 12:01:00   bob       #2       web
        "#]],
    );
}

/// The eighth attack: the value before was that of another element, and of a field in a document the whole text.
#[test]
fn k7_a_map_that_lost_all_has_no_other_elements_value_and_no_text_of_a_document() {
    let steps = |steps: Value| widget(&json!({"steps": steps}));
    check(
        &["widget/w", "-n", "shop", "--path", "spec.steps[side].limits"],
        |world| {
            let limits = |cpu: &str| json!({"cpu": cpu});
            let (web, side) = (json!({"name": "web"}), json!({"name": "side", "limits": limits("1")}));
            world.wrote("12:00:00", "ann", steps(json!([web, side])));
            world.wrote("12:01:00", "bob", steps(json!([web, {"name": "log", "limits": limits("9")}])));
            world.wrote("12:02:00", "cat", steps(json!([web, {"name": "side", "limits": {}}])));
        },
        &expect![[r#"
            FIELD                         VALUE       SINCE                 MANAGER   CHANGE   BEFORE
            spec.steps[side].limits       {}          2026-03-01 12:02:00   cat       #3
            spec.steps[side].limits.cpu   (removed)   2026-03-01 12:01:00   bob       #2       "1"
        "#]],
    );
    let map = |text: &str| {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"app.yaml": text},
            "metadata": {"name": "c", "namespace": "shop", "uid": "c"}})
    };
    check(
        &["cm/c", "-n", "shop", "--path", "data"],
        |world| {
            world.wrote("12:00:00", "ann", map("v: {q: 1}\nw: 2\n"));
            world.wrote("12:01:00", "bob", map("v: ''\nw: 2\n"));
        },
        &expect![[r#"
            FIELD                VALUE   SINCE                 MANAGER   CHANGE   BEFORE
            data["app.yaml"]#v   ""      2026-03-01 12:01:00   bob       #2
            data["app.yaml"]#w   2       2026-03-01 12:00:00   ann       #1
        "#]],
    );
}

const OF_SPEC: &[&str] = &["widget/w", "-n", "shop", "--path", "spec"];

/// The eighth attack: after the definition had another scope, no way to write it named one of the two objects.
#[test]
fn an_object_with_and_one_without_a_namespace_have_one_name_each() {
    let seen = |world: &mut World| {
        world.wrote("12:00:00", "ann", widget(&json!({"size": 1})));
        world.deleted("12:01:00", "Widget", "w");
        let mut of_cluster = widget(&json!({"size": 2}));
        of_cluster["metadata"] = json!({"name": "w", "uid": "w2"});
        world.wrote("12:02:00", "bob", of_cluster);
    };
    check(
        OF_SPEC,
        seen,
        &expect![[r#"
        widgets.example.com shop/w was deleted at 2026-03-01 12:01:00; this is its last state.
        FIELD       VALUE   SINCE                 MANAGER   CHANGE   BEFORE
        spec.size   1       2026-03-01 12:00:00   ann       #1
    "#]],
    );
    check(
        &["widget/w", "--path", "spec"],
        seen,
        &expect![[r#"
        FIELD       VALUE   SINCE                 MANAGER   CHANGE   BEFORE
        spec.size   2       2026-03-01 12:02:00   bob       #3
    "#]],
    );
}

fn tokens(size: u32, deep: u32) -> Value {
    widget(&json!({"size": size, "token": "tokenwordsofcarol", "deep": {"a": 1, "b": deep},
        "list": [{"name": "a", "tok": "firsttoken"}, {"name": "b", "tok": "secondtoken"}]}))
}

const TOKENS: &[&str] = &["spec.token", "spec.deep", "spec.list[*].tok"];

#[test]
fn k7_a_path_that_is_hidden_no_more_has_the_manager_of_before() {
    check(
        OF_SPEC,
        |world| {
            world.hides(hiding(TOKENS));
            world.wrote("12:00:00", "carol", tokens(1, 1));
            world.wrote("12:01:00", "dan", tokens(1, 2));
            world.hides(hiding(&[]));
            world.wrote("12:02:00", "eve", tokens(2, 2));
            world.wrote("12:03:00", "fay", tokens(2, 3));
        },
        &expect![[r#"
            FIELD               VALUE               SINCE                           MANAGER        CHANGE   BEFORE
            spec.deep.a         1                   2026-03-01 12:01:00 or before   probably dan   #2
            spec.deep.b         3                   2026-03-01 12:03:00             fay            #4       2
            spec.list[a].name   a                   2026-03-01 12:00:00             carol          #1
            spec.list[a].tok    firsttoken          2026-03-01 12:00:00             carol          #1
            spec.list[b].name   b                   2026-03-01 12:00:00             carol          #1
            spec.list[b].tok    secondtoken         2026-03-01 12:00:00             carol          #1
            spec.size           2                   2026-03-01 12:02:00             eve            #3       1
            spec.token          tokenwordsofcarol   2026-03-01 12:00:00             carol          #1
        "#]],
    );
}

#[test]
fn k7_a_path_that_is_hidden_from_now_on_has_the_manager_of_before() {
    check(
        OF_SPEC,
        |world| {
            world.wrote("12:00:00", "carol", tokens(1, 1));
            world.wrote("12:01:00", "dan", tokens(1, 2));
            world.hides(hiding(TOKENS));
            world.wrote("12:02:00", "eve", tokens(2, 2));
        },
        &expect![[r#"
            FIELD               VALUE                              SINCE                 MANAGER   CHANGE   BEFORE
            spec.deep           <hmac:bb41b9345321dda6 13 bytes>   2026-03-01 12:01:00   dan       #2
            spec.list[a].name   a                                  2026-03-01 12:00:00   carol     #1
            spec.list[a].tok    <hmac:f94120061e7161d9 10 bytes>   2026-03-01 12:00:00   carol     #1
            spec.list[b].name   b                                  2026-03-01 12:00:00   carol     #1
            spec.list[b].tok    <hmac:7aa89a7f1d712b12 11 bytes>   2026-03-01 12:00:00   carol     #1
            spec.size           2                                  2026-03-01 12:02:00   eve       #3       1
            spec.token          <hmac:4408a3d1e7a9b4af 17 bytes>   2026-03-01 12:00:00   carol     #1
        "#]],
    );
}

/// The first key marks a value, the second one another way, and then it is no secret any more.
#[test]
fn k7_k4_neither_another_key_nor_a_word_that_became_known_is_a_change() {
    let value = "k3yofshop9zz7";
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "data": {"p": "azN5b2ZzaG9wOXp6Nw=="},
        "metadata": {"name": "s", "namespace": "shop", "uid": "s"}});
    let state = |size: u32, url: &str| widget(&json!({"size": size, "token": value, "url": url}));
    check(
        OF_SPEC,
        |world| {
            world.wrote("12:00:00", "ann", secret.clone());
            world.wrote("12:01:00", "carol", state(1, &format!("pg://app:{value}@db/")));
            world.hides(Secrets::with_key([8; 32]));
            world.wrote("12:02:00", "ann", secret);
            world.wrote("12:03:00", "eve", state(2, &format!("pg://app:{value}@db/")));
            world.wrote(
                "12:04:00",
                "mallory",
                json!({"apiVersion": "v1", "kind": "ConfigMap",
                "metadata": {"name": value, "namespace": "evil", "uid": "c"}}),
            );
            world.wrote("12:05:00", "fay", state(3, &format!("pg://app:{value}@db/")));
            // This is a change, although something else is known at the same time.
            world.hides(hiding(&["spec.url"]));
            world.wrote("12:06:00", "gus", state(3, "pg://db/"));
        },
        &expect![[r#"
            FIELD        VALUE                             SINCE                 MANAGER   CHANGE   BEFORE
            spec.size    3                                 2026-03-01 12:05:00   fay       #5       2
            spec.token   k3yofshop9zz7                     2026-03-01 12:01:00   carol     #2
            spec.url     <hmac:0d789cac5ff3d461 8 bytes>   2026-03-01 12:06:00   gus       #6       pg://app:k3yofshop9zz7@db/
        "#]],
    );
}

/// The keys of elements were hidden: they have other names then, and no element came or went.
#[test]
fn k7_names_that_are_hidden_no_more_are_no_removals() {
    let state = |size: u32, x: u32| {
        let list = json!([{"name": "a", "x": 1}, {"name": "b", "x": x}]);
        let carol = ("carol", "12:00", json!({"f:spec": {"f:list": {}}}));
        let eve = ("eve", if size == 1 { "11:00" } else { "12:01" }, json!({"f:spec": {"f:size": {}}}));
        owned(widget(&json!({"size": size, "list": list})), &[carol, eve])
    };
    check(
        OF_SPEC,
        |world| {
            world.hides(hiding(&["spec.list[*].name"]));
            world.became("12:00:00", state(1, 1));
            world.hides(hiding(&[]));
            world.became("12:01:00", state(2, 2));
        },
        &expect![[r#"
            FIELD               VALUE   SINCE                           MANAGER          CHANGE   BEFORE
            spec.list[a].name   a       2026-03-01 12:01:00 or before   probably carol   #2
            spec.list[a].x      1       2026-03-01 12:01:00 or before   probably carol   #2
            spec.list[b].name   b       2026-03-01 12:01:00 or before   probably carol   #2
            spec.list[b].x      2       2026-03-01 12:01:00             eve              #2
            spec.size           2       2026-03-01 12:01:00             eve              #2       1
        "#]],
    );
}

/// A restart compares what was hidden with what is shown now. It cannot know whether somebody has written it meanwhile.
#[test]
fn k7_what_a_restart_cannot_compare_is_of_its_owner_at_most() {
    let state = |size: u32, mode: &str| {
        let carol = ("carol", "12:00", json!({"f:spec": {"f:token": {}, "f:mode": {}}}));
        let eve = ("eve", if size == 1 { "11:00" } else { "12:01" }, json!({"f:spec": {"f:size": {}}}));
        owned(widget(&json!({"size": size, "token": "tokenwordsofcarol", "mode": mode})), &[carol, eve])
    };
    check(
        OF_SPEC,
        |world| {
            world.hides(hiding(&["spec.token", "spec.mode"]));
            world.became("12:00:00", state(1, "a"));
            world.restarts(Secrets::with_key([8; 32]));
            world.became("12:02:00", state(2, "b"));
        },
        &expect![[r#"
            FIELD        VALUE               SINCE                           MANAGER          CHANGE   BEFORE
            spec.mode    b                   2026-03-01 12:02:00 or before   probably carol   #2
            spec.size    2                   2026-03-01 12:02:00             eve              #2       1
            spec.token   tokenwordsofcarol   2026-03-01 12:02:00 or before   probably carol   #2
        "#]],
    );
}

/// Noise is written by others, and has no record: the next record is not of it.
#[test]
fn k7_noise_before_a_change_is_not_of_the_manager_of_the_change() {
    let lease = |holder: &str, renewed: &str| {
        let lease = json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "spec": {"holderIdentity": holder, "renewTime": renewed},
            "metadata": {"name": "l", "namespace": "shop", "uid": "l"}});
        let fields = |name: &str| json!({"f:spec": {(name): {}}});
        let leader = ("leader", renewed, fields("f:renewTime"));
        let eve = ("eve", if holder == "a" { "11:00" } else { "12:02" }, fields("f:holderIdentity"));
        owned(lease, &[leader, eve])
    };
    check(
        &["lease/l", "-n", "shop", "--path", "spec"],
        |world| {
            world.became("12:00:00", lease("a", "12:00"));
            world.became("12:01:00", lease("a", "12:01"));
            world.became("12:02:00", lease("b", "12:01"));
        },
        &expect![[r#"
            FIELD                 VALUE   SINCE                           MANAGER           CHANGE   BEFORE
            spec.holderIdentity   b       2026-03-01 12:02:00             eve               #2       a
            spec.renewTime        12:01   2026-03-01 12:02:00 or before   probably leader   #2       12:00
        "#]],
    );
}

#[test]
fn k7_noise_in_an_element_is_not_of_the_manager_that_adds_another_one() {
    let state = |probed: &str, types: &[&str]| {
        let condition = |of: &&str| json!({"type": of, "status": "True", "lastProbeTime": probed});
        let mut state = widget(&json!({}));
        state["status"]["conditions"] = types.iter().map(condition).collect();
        let of = |key: &str| json!({"f:status": {"f:conditions": {(key): {".": {}, "f:status": {}, "f:lastProbeTime": {}}}}});
        let ready = ("ann", probed, of(r#"k:{"type":"Ready"}"#));
        let stalled = ("eve", "12:02", of(r#"k:{"type":"Stalled"}"#));
        owned(state, [ready, stalled].get(..types.len()).unwrap())
    };
    check(
        &["widget/w", "-n", "shop", "--path", "status"],
        |world| {
            world.became("12:00:00", state("12:00", &["Ready"]));
            world.became("12:01:00", state("12:01", &["Ready"]));
            world.became("12:02:00", state("12:01", &["Ready", "Stalled"]));
        },
        &expect![[r#"
            FIELD                                      VALUE     SINCE                           MANAGER        CHANGE   BEFORE
            status.conditions[Ready].lastProbeTime     12:01     2026-03-01 12:02:00 or before   probably ann   #2       12:00
            status.conditions[Ready].status            True      2026-03-01 12:00:00             ann            #1
            status.conditions[Ready].type              Ready     2026-03-01 12:00:00             ann            #1
            status.conditions[Stalled].lastProbeTime   12:01     2026-03-01 12:02:00             eve            #2
            status.conditions[Stalled].status          True      2026-03-01 12:02:00             eve            #2
            status.conditions[Stalled].type            Stalled   2026-03-01 12:02:00             eve            #2
        "#]],
    );
}

/// The record names the element as it was called before.
#[test]
fn k7_an_element_that_was_recorded_by_another_name_is_no_less_changed() {
    let service = |port: u32| {
        json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s", "namespace": "shop", "uid": "s"},
            "spec": {"ports": [{"name": "http", "port": port}]}})
    };
    check(
        &["svc/s", "-n", "shop", "--path", "spec"],
        |world| {
            world.wrote("12:00:00", "ann", service(80));
            world.wrote("12:01:00", "bob", service(81));
        },
        &expect![[r#"
            FIELD                     VALUE       SINCE                 MANAGER   CHANGE   BEFORE
            spec.ports[80/TCP].port   (removed)   2026-03-01 12:01:00   bob       #2       80
            spec.ports[81/TCP].name   http        2026-03-01 12:01:00   bob       #2
            spec.ports[81/TCP].port   81          2026-03-01 12:01:00   bob       #2
        "#]],
    );
}

/// Managers write one leaf after the other, while other paths are hidden each time.
#[test]
fn k7_k4_whatever_is_hidden_when_the_last_writer_of_a_field_is_named_or_none() {
    let leaves = ["/a", "/b", "/m/x", "/m/y", "/list/0/tok", "/list/1/tok"];
    let named = ["spec.a", "spec.b", "spec.m.x", "spec.m.y", "spec.list[n0].tok", "spec.list[n1].tok"];
    let paths = ["spec.a", "spec.m", "spec.m.x", "spec.list", "spec.list[*]", "spec.list[*].tok"];
    let mut rng = support::seeded("blame");
    for round in 0..20 {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("history.db");
        let mut world = World::open(&path, [7; 32]);
        let mut spec = json!({"a": "first", "b": "first", "m": {"x": "first", "y": "first"},
            "list": [{"name": "n0", "tok": "first"}, {"name": "n1", "tok": "first"}]});
        let mut written = [0; 6];
        let time = |step: usize| format!("12:00:{step:02}");
        for step in 0..20 {
            let hidden: Vec<&str> = paths.into_iter().filter(|_| rng.u32(0..4) == 0).collect();
            world.hides(hiding(&hidden));
            if step > 0 {
                let leaf = rng.usize(0..leaves.len());
                *spec.pointer_mut(leaves[leaf]).unwrap() = format!("value {step}").into();
                written[leaf] = step;
            }
            world.wrote(&time(step), &format!("writer-{step}"), widget(&spec));
        }
        drop(world);
        let answer = run(&path, &[&["blame", "-o", "json"], OF_SPEC].concat());
        let answer: Value = serde_json::from_str(&answer).unwrap();
        for field in answer["fields"].as_array().unwrap() {
            let place = field["path"].as_str().unwrap();
            let within = |at: &usize| named[*at].starts_with(place);
            let step = (0..leaves.len()).filter(within).map(|at| written[at]).max().unwrap_or(0);
            let truth = format!("2026-03-01T{}Z", time(step));
            let since = field["since"].as_str().unwrap();
            assert!(!field["value"].is_null(), "round {round}: {field}");
            if field["exact"] == true {
                let manager = &field["managers"][0]["manager"];
                assert_eq!(
                    (since, manager),
                    (&*truth, &json!(format!("writer-{step}"))),
                    "round {round}: {field}"
                );
            } else {
                assert!(since >= &*truth && !["spec.a", "spec.b"].contains(&place), "round {round}: {field}");
            }
        }
    }
}

#[test]
fn k7_a_place_that_got_content_was_not_removed_and_one_that_lost_it_had_some() {
    check(
        OF_SPEC,
        |world| {
            let steps = json!([{"name": "a"}, {"name": "b"}]);
            world.wrote(
                "12:00:00",
                "ann",
                widget(&json!({"balancer": {}, "mode": "plain", "steps": steps, "gone": "x"})),
            );
            world.wrote("12:01:00", "bob", widget(&json!({"balancer": {"ingress": [{"ip": "1.2.3.4"}]}, "mode": {"strict": true}, "steps": []})));
            world.wrote(
                "12:02:00",
                "cat",
                widget(&json!({"balancer": {}, "mode": "none", "steps": [], "gone": {"again": 1}})),
            );
        },
        &expect![[r#"
            FIELD                               VALUE       SINCE                 MANAGER   CHANGE   BEFORE
            spec.balancer                       {}          2026-03-01 12:02:00   cat       #3       {ingress: [{ip: 1.2.3.4}]}
            spec.balancer.ingress[1.2.3.4].ip   (removed)   2026-03-01 12:02:00   cat       #3       1.2.3.4
            spec.gone.again                     1           2026-03-01 12:02:00   cat       #3
            spec.mode                           none        2026-03-01 12:02:00   cat       #3       {strict: true}
            spec.steps                          []          2026-03-01 12:01:00   bob       #2       [{name: a}, {name: b}]
            spec.steps[a].name                  (removed)   2026-03-01 12:01:00   bob       #2       a
            spec.steps[b].name                  (removed)   2026-03-01 12:01:00   bob       #2       b
        "#]],
    );
    let map = |text: &str| {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"app.yaml": text},
            "metadata": {"name": "c", "namespace": "shop", "uid": "c"}})
    };
    check(
        &["cm/c", "-n", "shop", "--path", "data"],
        |world| {
            world.wrote("12:00:00", "ann", map("3"));
            world.wrote("12:01:00", "bob", map("log: {level: info}\nport: 1\n"));
        },
        &expect![[r#"
            FIELD                        VALUE   SINCE                 MANAGER   CHANGE   BEFORE
            data["app.yaml"]#log.level   info    2026-03-01 12:01:00   bob       #2       "3"
            data["app.yaml"]#port        1       2026-03-01 12:01:00   bob       #2       "3"
        "#]],
    );
    check(
        &["cm/c", "-n", "shop", "--path", "data"],
        |world| {
            world.wrote("12:00:00", "ann", map("log: {level: info}\nport: 1\n"));
            world.wrote("12:01:00", "bob", map("3"));
        },
        &expect![[r#"
            FIELD              VALUE   SINCE                 MANAGER   CHANGE   BEFORE
            data["app.yaml"]   "3"     2026-03-01 12:01:00   bob       #2       "log: {level: info}\nport: 1\n"
        "#]],
    );
}
