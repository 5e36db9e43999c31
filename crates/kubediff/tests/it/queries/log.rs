//! `log` and `show`.

use expect_test::{Expect, expect};
use serde_json::{Value, json};

use super::run::run;
use super::shop::Shop;
use super::world::World;

fn assert_answers(questions: &[(&[&str], Expect)]) {
    let shop = Shop::open();
    for (arguments, expected) in questions {
        expected.assert_eq(&run(&shop.path, arguments));
    }
}

#[test]
fn the_log_has_changes_and_gaps_the_latest_first() {
    assert_answers(&[
        (
            &["log"],
            expect![[r#"
                2026-03-01 14:50:00  - secrets shop/db  (deleted) #18
                    age 10m, type Opaque, data password (14 bytes)
                2026-03-01 14:40:00  + secrets shop/db  (added by kubectl-create) #17
                    type Opaque, data password (14 bytes)
                2026-03-01 14:30:00  ± deployments.apps shop/cart  (recreated by helm) #16
                    replicas 3 -> 2, availableReplicas 1 -> 0, readyReplicas 1 -> 0, updatedReplicas 1 -> 0
                2026-03-01 14:20:00  + offers.example.com shop/sale  (added by operator) #15
                    price 5
                2026-03-01 14:15:00  - pods shop/cart-a  (deleted) #14
                    age 14m, image web: web:1, phase Running, node n1
                2026-03-01 14:13:00  ~ configmaps shop/app  (updated by kubectl-edit) #13
                    app.yaml#log.level debug -> info
                2026-03-01 14:12:00  ! not watched from 14:11:00 to 14:12:00 (1m0s): deployments.apps, pods
                    the server restarted
                2026-03-01 14:10:00  ~ deployments.apps shop/cart  (updated by hpa/scale) #10
                    replicas 1 -> 3
                2026-03-01 14:07:00  ~ configmaps shop/app  (updated by kubectl-edit) #9
                    app.yaml#log.level info -> debug
                2026-03-01 14:06:00  ~ pods shop/cart-a  (updated by kubelet/status) #8
                    Ready True -> False, containerStatuses[web].ready true -> false, containerStatuses[web].restartCount 0 -> 3,
                    -containerStatuses[web].state.running, 1 more
                2026-03-01 14:05:00  ~ deployments.apps shop/cart  (updated by kubectl-set) #7
                    image web 1 -> 2
                2026-03-01 14:01:00  + pods shop/cart-a  (added by kubelet/status) #6
                    image web: web:1, phase Running, node n1
                2026-03-01 14:00:00  + deployments.apps shop/cart  (added by helm) #5
                    image web: web:1, replicas 1
            "#]],
        ),
        (
            &["log", "--oneline", "--limit", "3"],
            expect![[r#"
                2026-03-01 14:50:00  - secrets shop/db  age 10m, type Opaque, data password (14 bytes)  (deleted) #18
                2026-03-01 14:40:00  + secrets shop/db  type Opaque, data password (14 bytes)  (added by kubectl-create) #17
                2026-03-01 14:30:00  ± deployments.apps shop/cart  replicas 3 -> 2, availableReplicas 1 -> 0, readyReplicas 1 -> 0, updatedReplicas 1 -> 0  (recreated by helm) #16
            "#]],
        ),
    ]);
}

#[test]
fn the_log_shows_differences() {
    assert_answers(&[(
        &["log", "-p", "-n", "shop", "--reverse"],
        expect![[r#"
            2026-03-01 14:00:00  + deployments.apps shop/cart  (added by helm) #5
                image     web: web:1
                replicas  1
                labels    app=cart
            2026-03-01 14:01:00  + pods shop/cart-a  (added by kubelet/status) #6
                image  web: web:1
                phase  Running
                node   n1
            2026-03-01 14:05:00  ~ deployments.apps shop/cart  (updated by kubectl-set) #7
                ~ spec.template.spec.containers[web].image: web:1 → web:2
            2026-03-01 14:06:00  ~ pods shop/cart-a  (updated by kubelet/status) #8
                ~ status.conditions[Ready].status:             True → False
                ~ status.containerStatuses[web].ready:         true → false
                ~ status.containerStatuses[web].restartCount:  0 → 3
                - status.containerStatuses[web].state.running: {}
                + status.containerStatuses[web].state.waiting: {reason: CrashLoopBackOff}
            2026-03-01 14:07:00  ~ configmaps shop/app  (updated by kubectl-edit) #9
                ~ data["app.yaml"]#log.level: info → debug
            2026-03-01 14:10:00  ~ deployments.apps shop/cart  (updated by hpa/scale) #10
                ~ spec.replicas:   1 → 3
                ~ status.replicas: 1 → 3
            2026-03-01 14:12:00  ! not watched from 14:11:00 to 14:12:00 (1m0s): deployments.apps, pods
                the server restarted
            2026-03-01 14:13:00  ~ configmaps shop/app  (updated by kubectl-edit) #13
                ~ data["app.yaml"]#log.level: debug → info
            2026-03-01 14:15:00  - pods shop/cart-a  (deleted) #14
                age    14m
                image  web: web:1
                phase  Running
                node   n1
            2026-03-01 14:20:00  + offers.example.com shop/sale  (added by operator) #15
                price   5
                labels  note=\e]0;owned\u{7}\u{202e}
            2026-03-01 14:30:00  ± deployments.apps shop/cart  (recreated by helm) #16
                ~ spec.replicas:            3 → 2
                ~ status.availableReplicas: 1 → 0
                ~ status.readyReplicas:     1 → 0
                ~ status.replicas:          3 → 2
                ~ status.updatedReplicas:   1 → 0
            2026-03-01 14:40:00  + secrets shop/db  (added by kubectl-create) #17
                type  Opaque
                data  password (14 bytes)
            2026-03-01 14:50:00  - secrets shop/db  (deleted) #18
                age   10m
                type  Opaque
                data  password (14 bytes)
        "#]],
    )]);
}

#[test]
fn the_log_is_filtered() {
    assert_answers(&[
        (
            &["log", "deploy/cart", "--path", ".spec.template.spec.containers[*].image"],
            expect![[r#"
            2026-03-01 14:05:00  ~ deployments.apps shop/cart  (updated by kubectl-set) #7
                image web 1 -> 2
        "#]],
        ),
        // Elements of lists may be left out, and parts of names.
        (
            &["log", "--path", "spec.template.spec.containers.im*", "--oneline"],
            expect![[r#"
            2026-03-01 14:05:00  ~ deployments.apps shop/cart  image web 1 -> 2  (updated by kubectl-set) #7
        "#]],
        ),
        (
            &["log", "deploy", "cart", "--manager", "hpa", "-o", "json"],
            expect![[r#"
                {"number":10,"cluster":"prod","gvk":{"group":"apps","version":"v1","kind":"Deployment"},"resource":"deployments","namespace":"shop","name":"cart","uid":"cart-1","change":"updated","rv_before":"1007","rv":"1010","observed_at":"2026-03-01T14:10:00Z","source":"watch","managers":[{"manager":"hpa","operation":"Update","subresource":"scale","time":"2026-03-01T14:10:00Z"}],"paths":["spec.replicas","status.replicas"],"diff":[{"kind":"changed","new":3,"old":1,"path":"spec.replicas"},{"kind":"changed","new":3,"old":1,"path":"status.replicas"}],"summary":"replicas 1 -> 3","dropped":{"managed-fields":1,"resource-version":1},"key":"9b35d16b"}
            "#]],
        ),
        (
            &["log", "--since", "2026-03-01 14:05", "--until", "2026-03-01 14:06:00", "-A"],
            expect![[r#"
                2026-03-01 14:05:00  ~ deployments.apps shop/cart  (updated by kubectl-set) #7
                    image web 1 -> 2
            "#]],
        ),
        (
            &["log", "--change", "deleted,recreated", "--oneline"],
            expect![[r#"
                2026-03-01 14:50:00  - secrets shop/db  age 10m, type Opaque, data password (14 bytes)  (deleted) #18
                2026-03-01 14:30:00  ± deployments.apps shop/cart  replicas 3 -> 2, availableReplicas 1 -> 0, readyReplicas 1 -> 0, updatedReplicas 1 -> 0  (recreated by helm) #16
                2026-03-01 14:15:00  - pods shop/cart-a  age 14m, image web: web:1, phase Running, node n1  (deleted) #14
            "#]],
        ),
        (
            &["log", "deploy,secrets,no", "-n", "shop", "--since", "2026-03-01 14:12", "--oneline"],
            expect![[r#"
                2026-03-01 14:50:00  - secrets shop/db  age 10m, type Opaque, data password (14 bytes)  (deleted) #18
                2026-03-01 14:40:00  + secrets shop/db  type Opaque, data password (14 bytes)  (added by kubectl-create) #17
                2026-03-01 14:30:00  ± deployments.apps shop/cart  replicas 3 -> 2, availableReplicas 1 -> 0, readyReplicas 1 -> 0, updatedReplicas 1 -> 0  (recreated by helm) #16
                2026-03-01 14:12:00  ! not watched from 14:11:00 to 14:12:00 (1m0s): deployments.apps  (the server restarted)
            "#]],
        ),
        (
            &["log", "no,ing", "-n", "shop"],
            expect![[r#"
            kubediff: no change of nodes,ingresses.networking.k8s.io in namespace shop; the history covers 2026-03-01 13:59:00 to 2026-03-01 14:50:00
        "#]],
        ),
        (
            &["log", "nodes", "--limit", "1"],
            expect![[r#"
            kubediff: no change of nodes; the history covers 2026-03-01 13:59:00 to 2026-03-01 14:50:00
        "#]],
        ),
        (
            &["log", "pods", "--since", "2026-03-01 14:11:30", "--oneline", "--reverse"],
            expect![[r#"
                2026-03-01 14:12:00  ! not watched from 14:11:00 to 14:12:00 (1m0s): pods  (the server restarted)
                2026-03-01 14:15:00  - pods shop/cart-a  age 14m, image web: web:1, phase Running, node n1  (deleted) #14
            "#]],
        ),
        (
            &["log", "ing", "-n", "shop", "--since", "2026-03-01"],
            expect![[r#"
            kubediff: no change of ingresses.networking.k8s.io in namespace shop since 2026-03-01 00:00:00; the history covers 2026-03-01 13:59:00 to 2026-03-01 14:50:00
        "#]],
        ),
        (
            &["log", "--manager", "nobody", "--path", "spec"],
            expect![[r#"
                kubediff: no change by manager nobody at path spec; the history covers 2026-03-01 13:59:00 to 2026-03-01 14:50:00
            "#]],
        ),
    ]);
}

/// A map that comes or goes as a whole is one difference, and its path is above the key.
#[test]
fn k2_a_path_finds_keys_that_came_or_went_with_their_map() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("history.db");
    let mut world = World::open(&path, [7; 32]);
    let annotated = |annotations: Option<&str>| {
        let mut object = json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "app", "namespace": "shop", "uid": "app-1"},
        });
        if let Some(name) = annotations {
            object["metadata"]["annotations"] = json!({name: "a"});
        }
        object
    };
    let states =
        [None, Some("example.com/team"), None, Some("example.com/tier"), None, Some("example.com/team")];
    for (minute, state) in states.into_iter().enumerate() {
        // A name that reads like the words of kubediff stands in quotes.
        let manager = if minute == 2 { "helm, seen in a list" } else { "helm" };
        world.wrote(&format!("14:{minute:02}:00"), manager, annotated(state));
    }
    drop(world);
    let log = |arguments: &[&str]| {
        let mut all = vec!["log", "--oneline", "--path", "metadata.annotations[\"example.com/team\"]"];
        all.extend(arguments);
        run(&path, &all)
    };
    expect![[r#"
        2026-03-01 14:05:00  ~ configmaps shop/app  +annotations  (updated by helm) #6
        2026-03-01 14:02:00  ~ configmaps shop/app  -annotations  (updated by "helm, seen in a list") #3
        2026-03-01 14:01:00  ~ configmaps shop/app  +annotations  (updated by helm) #2
    "#]]
    .assert_eq(&log(&[]));
    // The limit counts what is shown.
    expect![[r#"
        2026-03-01 14:05:00  ~ configmaps shop/app  +annotations  (updated by helm) #6
        2026-03-01 14:02:00  ~ configmaps shop/app  -annotations  (updated by "helm, seen in a list") #3
    "#]]
    .assert_eq(&log(&["--limit", "2"]));
}

/// A map with very many differences is one difference, in which a key may be the same.
#[test]
fn k2_a_path_finds_no_change_of_others_in_a_map_that_is_one_difference() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("history.db");
    let mut world = World::open(&path, [7; 32]);
    for (minute, value) in ["a", "b"].into_iter().enumerate() {
        let mut data: serde_json::Map<_, _> = (0..1_500).map(|n| (format!("k{n}"), value.into())).collect();
        data.insert("same".to_owned(), "s".into());
        let metadata = json!({"name": "app", "namespace": "shop", "uid": "app-1"});
        let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data});
        world.wrote(&format!("14:0{minute}:00"), "helm", map);
    }
    drop(world);
    let said = |at: &str| run(&path, &["log", "--oneline", "--path", at]);
    assert!(said("data.k7").contains("~ configmaps shop/app"), "{}", said("data.k7"));
    assert!(said("data.same").contains("no change"), "{}", said("data.same"));
}

/// The fifth attack: a key that a Secret has as a value is hidden, also from the question.
/// The eighth attack: the gaps of many resources used up the limit, and the gap that was shown named a part of them.
#[test]
fn k1_a_gap_of_several_resources_is_one_of_the_records_that_are_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("history.db");
    let mut world = World::open(&path, [7; 32]);
    let map = |data: &str| {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"f": data},
            "metadata": {"name": "c", "namespace": "shop", "uid": "c"}})
    };
    world.wrote("12:00:00", "ann", map("{a: 1}"));
    for resource in ["configmaps", "nodes", "secrets"] {
        world.gap("12:01:00", "12:02:00", Some(resource), "the server was down");
    }
    world.wrote("12:03:00", "bob", map("plain"));
    drop(world);
    for (limit, lines) in [("1", 1), ("2", 2), ("3", 3)] {
        let said = run(&path, &["log", "--oneline", "--limit", limit]);
        assert_eq!(said.lines().count(), lines, "{said}");
        assert!(lines == 1 || said.contains("configmaps, nodes, secrets"), "{said}");
    }
    // Of a kind without objects.
    let said = run(&path, &["get", "secrets", "--at", "2026-03-01T12:01:30Z"]);
    assert!(said.contains("secrets not watched from"), "{said}");
    // The text was a document.
    let found =
        |at: &str| run(&path, &["log", "--oneline", "--path", at]).matches(" configmaps shop/c").count();
    assert_eq!(["data.f#a", "data.f#x"].map(found), [1, 0]);
}

/// The eighth attack: an element with a key of two fields was found only while its list stayed.
#[test]
fn k2_a_path_finds_an_element_of_two_keys_that_came_or_went_with_its_list() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("history.db");
    let mut world = World::open(&path, [7; 32]);
    let gate = |spec: Value| {
        json!({"apiVersion": "example.com/v1", "kind": "Gate", "spec": spec,
            "metadata": {"name": "g", "namespace": "shop", "uid": "g"}})
    };
    world.known("12:00:00", gate(json!({})));
    world.wrote("12:01:00", "ann", gate(json!({"routes": [{"host": "a", "port": 1, "weight": 5}]})));
    world.wrote("12:02:00", "bob", gate(json!({})));
    drop(world);
    let found = |at: &str| run(&path, &["log", "--oneline", "--path", at]).lines().count();
    assert_eq!(["spec.routes[a/1].weight", "spec.routes[a/2]", "spec.routes[a]"].map(found), [2, 1, 1]);
}

#[test]
fn k4_a_path_that_finds_nothing_says_that_names_are_hidden() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("history.db");
    let mut world = World::open(&path, [7; 32]);
    let object = |kind: &str, uid: &str, data: Value| {
        let metadata = json!({"name": uid, "namespace": "shop", "uid": uid});
        json!({"apiVersion": "v1", "kind": kind, "metadata": metadata, "stringData": data})
    };
    world.wrote("14:00:00", "helm", object("Secret", "db", json!({"key": "Key-9aZ1xQ7"})));
    for (minute, value) in [(1, "a"), (2, "b")] {
        let mut map = object("ConfigMap", "app", Value::Null);
        map.as_object_mut().unwrap().remove("stringData");
        map["data"] = json!({"Key-9aZ1xQ7": value, "plain": value});
        world.wrote(&format!("14:0{minute}:00"), "helm", map);
    }
    drop(world);
    let hint = "names that Secrets have as values are hidden, and no path finds them";
    let said = run(&path, &["log", "--path", "data[Key-9aZ1xQ7]"]);
    assert!(said.contains("no change") && said.contains(hint), "{said}");
    let said = run(&path, &["log", "--path", "data.plain"]);
    assert!(said.contains("a -> b") && !said.contains(hint), "{said}");
}

#[test]
fn one_version_is_shown() {
    assert_answers(&[
        (
            &["show", "deploy/cart@#7"],
            expect![[r#"
            2026-03-01 14:05:00  ~ deployments.apps shop/cart  (updated by kubectl-set) #7
                ~ spec.template.spec.containers[web].image: web:1 → web:2

            apiVersion: apps/v1
            kind: Deployment
            metadata:
              creationTimestamp: "2026-03-01T13:00:00Z"
              labels:
                app: cart
              name: cart
              namespace: shop
              resourceVersion: "1007"
              uid: cart-1
            spec:
              replicas: 1
              selector:
                matchLabels:
                  app: cart
              template:
                spec:
                  containers:
                  - image: web:2
                    name: web
            status:
              availableReplicas: 1
              readyReplicas: 1
              replicas: 1
              updatedReplicas: 1
        "#]],
        ),
        (
            &["show", "deploy/cart@2026-03-01 14:06"],
            expect![[r#"
                2026-03-01 14:05:00  ~ deployments.apps shop/cart  (updated by kubectl-set) #7
                    ~ spec.template.spec.containers[web].image: web:1 → web:2

                apiVersion: apps/v1
                kind: Deployment
                metadata:
                  creationTimestamp: "2026-03-01T13:00:00Z"
                  labels:
                    app: cart
                  name: cart
                  namespace: shop
                  resourceVersion: "1007"
                  uid: cart-1
                spec:
                  replicas: 1
                  selector:
                    matchLabels:
                      app: cart
                  template:
                    spec:
                      containers:
                      - image: web:2
                        name: web
                status:
                  availableReplicas: 1
                  readyReplicas: 1
                  replicas: 1
                  updatedReplicas: 1
            "#]],
        ),
        (
            &["show", "7", "-o", "yaml"],
            expect![[r#"
            apiVersion: apps/v1
            kind: Deployment
            metadata:
              creationTimestamp: "2026-03-01T13:00:00Z"
              labels:
                app: cart
              name: cart
              namespace: shop
              resourceVersion: "1007"
              uid: cart-1
            spec:
              replicas: 1
              selector:
                matchLabels:
                  app: cart
              template:
                spec:
                  containers:
                  - image: web:2
                    name: web
            status:
              availableReplicas: 1
              readyReplicas: 1
              replicas: 1
              updatedReplicas: 1
        "#]],
        ),
        (
            &["show", "deploy/cart@1007", "-o", "json"],
            expect![[r#"
                {"change":{"change":"updated","cluster":"prod","diff":[{"kind":"changed","new":"web:2","old":"web:1","path":"spec.template.spec.containers[web].image"}],"dropped":{"managed-fields":1,"resource-version":1},"gvk":{"group":"apps","kind":"Deployment","version":"v1"},"key":"9b35d16b","managers":[{"manager":"kubectl-set","operation":"Update","time":"2026-03-01T14:05:00Z"}],"name":"cart","namespace":"shop","number":7,"observed_at":"2026-03-01T14:05:00Z","paths":["spec.template.spec.containers[web].image"],"resource":"deployments","rv":"1007","rv_before":"1005","source":"watch","summary":"image web 1 -> 2","uid":"cart-1"},"number":7,"object":{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"creationTimestamp":"2026-03-01T13:00:00Z","labels":{"app":"cart"},"name":"cart","namespace":"shop","resourceVersion":"1007","uid":"cart-1"},"spec":{"replicas":1,"selector":{"matchLabels":{"app":"cart"}},"template":{"spec":{"containers":[{"image":"web:2","name":"web"}]}}},"status":{"availableReplicas":1,"readyReplicas":1,"replicas":1,"updatedReplicas":1}},"observed_at":"2026-03-01T14:05:00Z","rv":"1007"}
            "#]],
        ),
        (
            &["show", "secret/db"],
            expect![[r#"
                2026-03-01 14:50:00  - secrets shop/db  (deleted) #18
                    age   10m
                    type  Opaque
                    data  password (14 bytes)

                apiVersion: v1
                data:
                  password: <hmac:399a3da86cc8f7c4 14 bytes>
                kind: Secret
                metadata:
                  creationTimestamp: "2026-03-01T14:40:00Z"
                  name: db
                  namespace: shop
                  resourceVersion: "1014"
                  uid: db-1
                type: Opaque
            "#]],
        ),
        (
            &["show", "secret/db", "-o", "yaml"],
            expect![[r#"
                apiVersion: v1
                data:
                  password: <hmac:399a3da86cc8f7c4 14 bytes>
                kind: Secret
                metadata:
                  creationTimestamp: "2026-03-01T14:40:00Z"
                  name: db
                  namespace: shop
                  resourceVersion: "1014"
                  uid: db-1
                type: Opaque
                kubediff: deleted at 2026-03-01 14:50:00; this was its last state
            "#]],
        ),
        (
            &["show", "cm/app", "-n", "blog"],
            expect![[r#"
                2026-03-01 13:59:00    configmaps blog/app  (there when the history began) #3

                apiVersion: v1
                data:
                  app.yaml: |
                    log:
                      level: warn
                kind: ConfigMap
                metadata:
                  creationTimestamp: "2026-03-01T12:00:00Z"
                  name: app
                  namespace: blog
                  resourceVersion: "1003"
                  uid: blog-app
            "#]],
        ),
        (
            &["show", "offer/sale", "--show-managed-fields"],
            expect![[r#"
            2026-03-01 14:20:00  + offers.example.com shop/sale  (added by operator) #15
                price   5
                labels  note=\e]0;owned\u{7}\u{202e}

            {
              "apiVersion": "example.com/v1",
              "kind": "Offer",
              "metadata": {
                "creationTimestamp": "2026-03-01T14:20:00Z",
                "labels": {
                  "note": "\u001b]0;owned\u0007\u202e"
                },
                "managedFields": [
                  {
                    "apiVersion": "v1",
                    "fieldsType": "FieldsV1",
                    "fieldsV1": {},
                    "manager": "operator",
                    "operation": "Update",
                    "time": "2026-03-01T14:20:00Z"
                  }
                ],
                "name": "sale",
                "namespace": "shop",
                "resourceVersion": "1012",
                "uid": "sale-1"
              },
              "spec": {
                "price": 5
              },
              "status": {
                "conditions": [
                  {
                    "status": "\u001b[31mTrue",
                    "type": "Ready"
                  }
                ]
              }
            }
        "#]],
        ),
    ]);
}

#[test]
fn what_cannot_be_shown_is_said() {
    assert_answers(&[
        (
            &["show", "deploy/cart@99"],
            expect![[r#"
            kubediff: the history has no version 99 of deployments.apps/cart; `kubediff log deploy/cart` shows what it has; the history covers 2026-03-01 13:59:00 to 2026-03-01 14:50:00
            exit 1
        "#]],
        ),
        (
            &["show", "deploy/cart@#99"],
            expect![[r#"
            kubediff: the history has no change #99 of deployments.apps/cart; `kubediff log deploy/cart` shows what it has; the history covers 2026-03-01 13:59:00 to 2026-03-01 14:50:00
            exit 1
        "#]],
        ),
        (
            &["show", "deploy/cart@2026-02-01"],
            expect![[r#"
            kubediff: the history has no state at 2026-02-01 00:00:00 of deployments.apps/cart; `kubediff log deploy/cart` shows what it has; the history covers 2026-03-01 13:59:00 to 2026-03-01 14:50:00
            exit 1
        "#]],
        ),
        (
            &["show", "deploy/cart@soon"],
            expect![[r#"
            kubediff: `soon` is no version; write KIND/NAME@#812 with a number that `kubediff log` shows, KIND/NAME@55213 with a resourceVersion, or KIND/NAME@TIME, such as deploy/cart@-2h
            exit 2
        "#]],
        ),
        (
            &["show", "99"],
            expect![[r#"
            kubediff: the history has no change #99; the history covers 2026-03-01 13:59:00 to 2026-03-01 14:50:00
            exit 1
        "#]],
        ),
        (
            &["show", "cm/app"],
            expect![[r#"
            kubediff: cm/app exists several times: as configmaps in blog, configmaps in shop; name one, with its group or with -n
            exit 2
        "#]],
        ),
        (
            &["show", "deploy/none"],
            expect![[r#"
            kubediff: the history has no deployments.apps/none; the history covers 2026-03-01 13:59:00 to 2026-03-01 14:50:00
            exit 1
        "#]],
        ),
        (
            &["log", "deploy,"],
            expect![[r#"
            kubediff: `deploy,` is neither a kind nor an object; write KIND or KIND/NAME, such as deploy or deploy/cart
            exit 2
        "#]],
        ),
        (
            &["log", "gadgets.example.com"],
            expect![[r#"
            kubediff: there is no resource `gadgets.example.com`: it is not built in, and the history has configmaps, customresourcedefinitions.apiextensions.k8s.io, deployments.apps, nodes, offers.example.com, pods, secrets
            exit 2
        "#]],
        ),
        (
            &["log", "--since", "soon"],
            expect![[r#"
            kubediff: `soon` is no time; write 2026-11-23T14:05:00Z, 2026-11-23 14:05, 2026-11-23, 14:05, yesterday 14:05, -2h, 1d12h ago, or now
            exit 2
        "#]],
        ),
        (
            &["log", "--since", "2026-03-02", "--until", "2026-03-01"],
            expect![[r#"
            kubediff: the time from 2026-03-02 00:00:00 to 2026-03-01 00:00:00 is empty: it ends before it begins
            exit 2
        "#]],
        ),
        (
            &["log", "--path", "spec..x"],
            expect![[r#"
            kubediff: `spec..x` is not a path: expected a name at character 6 (expected for example `spec.containers[*].image`)
            exit 2
        "#]],
        ),
    ]);
}

#[test]
fn a_missing_history_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let said = run(&folder.path().join("none.db"), &["log"]);
    assert!(said.starts_with("kubediff: there is no history "), "{said}");
    assert!(said.ends_with("none.db\nexit 1\n"), "{said}");
}

/// Without an audit log, that nobody is found says nothing of who changed what.
#[test]
fn a_user_of_a_history_without_users_is_a_doubt() {
    let shop = Shop::open();
    let said = run(&shop.path, &["log", "--by-user", "*"]);
    assert!(
        said.contains("no change by user *") && said.contains("the daemon has read no audit log"),
        "{said}"
    );
}
