//! `get`, `diff`, `blame` and `history`.

use expect_test::{Expect, expect};
use serde_json::json;

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
fn objects_are_listed_as_kubectl_does() {
    assert_answers(&[
        (
            &["get", "deploy", "--at", "2026-03-01 14:10"],
            expect![[r#"
                NAMESPACE   NAME   READY   UP-TO-DATE   AVAILABLE   AGE
                shop        cart   1/3     1            1           70m
            "#]],
        ),
        (
            &["get", "deploy", "-n", "shop", "--at", "2026-03-01 14:00", "-o", "wide"],
            expect![[r#"
                NAME   READY   UP-TO-DATE   AVAILABLE   AGE   CONTAINERS   IMAGES   SELECTOR
                cart   1/1     1            1           60m   web          web:1    app=cart
            "#]],
        ),
        (
            &["get", "po", "--at", "2026-03-01 14:06:30"],
            expect![[r#"
                NAMESPACE   NAME     READY   STATUS             RESTARTS   AGE
                shop        cart-a   0/1     CrashLoopBackOff   3          5m30s
            "#]],
        ),
        (
            &["get", "no", "--at", "2026-03-01 14:00"],
            expect![[r#"
                NAME   STATUS   ROLES    AGE   VERSION
                n1     Ready    <none>   28d   v1.36.3
            "#]],
        ),
        // One kind after the other; nodes have no namespace.
        (
            &["get", "no,deploy.apps,po", "-n", "shop", "--at", "2026-03-01 14:06:30"],
            expect![[r#"
            NAME      STATUS   ROLES    AGE   VERSION
            node/n1   Ready    <none>   28d   v1.36.3

            NAME                   READY   UP-TO-DATE   AVAILABLE   AGE
            deployment.apps/cart   1/1     1            1           66m

            NAME         READY   STATUS             RESTARTS   AGE
            pod/cart-a   0/1     CrashLoopBackOff   3          5m30s
        "#]],
        ),
        (
            &["get", "cm,deploy", "-o", "name", "--at", "2026-03-01 14:10"],
            expect![[r#"
            configmap/app
            configmap/app
            deployment.apps/cart
        "#]],
        ),
        (
            &["get", "deploy,sts/cart", "-n", "shop", "-o", "name"],
            expect![[r#"
            deployment.apps/cart
            kubediff: the history ends at 2026-03-01 14:50:00: what happened later is not known
        "#]],
        ),
        (
            &["get", "po,sts/none"],
            expect![[r#"
            kubediff: the history has no pods,statefulsets.apps/none; the history covers 2026-03-01 13:59:00 to 2026-03-01 14:50:00
            exit 1
        "#]],
        ),
        (
            &["blame", "po,deploy/cart"],
            expect![[r#"
            kubediff: `po,deploy/cart` is not one object; write KIND/NAME, such as deploy/cart
            exit 2
        "#]],
        ),
        (
            &["get", "of", "--at", "2026-03-01 14:25"],
            expect![[r#"
            NAMESPACE   NAME   PRICE   READY
            shop        sale   5       \e[31mTrue
        "#]],
        ),
        (
            &["get", "cm", "--at", "2026-03-01 14:00", "--no-headers"],
            expect![[r#"
                blog   app   1   120m
                shop   app   1   120m
            "#]],
        ),
        (
            &["get", "cm", "-o", "name"],
            expect![[r#"
                configmap/app
                configmap/app
                kubediff: the history ends at 2026-03-01 14:50:00: what happened later is not known
            "#]],
        ),
        (
            &["get", "cm", "--at", "2026-03-01 14:00", "-o", "yaml"],
            expect![[r#"
            apiVersion: v1
            items:
            - apiVersion: v1
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
            - apiVersion: v1
              data:
                app.yaml: |
                  log:
                    level: info
              kind: ConfigMap
              metadata:
                creationTimestamp: "2026-03-01T12:00:00Z"
                name: app
                namespace: shop
                resourceVersion: "1002"
                uid: shop-app
            kind: List
            metadata:
              resourceVersion: ""
        "#]],
        ),
        (
            &["get", "cm", "--at", "2026-03-01 14:00", "-o", "json"],
            expect![[r#"
            {
              "apiVersion": "v1",
              "items": [
                {
                  "apiVersion": "v1",
                  "data": {
                    "app.yaml": "log:\n  level: warn\n"
                  },
                  "kind": "ConfigMap",
                  "metadata": {
                    "creationTimestamp": "2026-03-01T12:00:00Z",
                    "name": "app",
                    "namespace": "blog",
                    "resourceVersion": "1003",
                    "uid": "blog-app"
                  }
                },
                {
                  "apiVersion": "v1",
                  "data": {
                    "app.yaml": "log:\n  level: info\n"
                  },
                  "kind": "ConfigMap",
                  "metadata": {
                    "creationTimestamp": "2026-03-01T12:00:00Z",
                    "name": "app",
                    "namespace": "shop",
                    "resourceVersion": "1002",
                    "uid": "shop-app"
                  }
                }
              ],
              "kind": "List",
              "metadata": {
                "resourceVersion": ""
              }
            }
        "#]],
        ),
        (
            &["get", "cm", "-n", "nowhere", "-o", "yaml"],
            expect![[r#"
            apiVersion: v1
            items: []
            kind: List
            metadata:
              resourceVersion: ""
            kubediff: no configmaps in namespace nowhere found; the history covers 2026-03-01 13:59:00 to 2026-03-01 14:50:00
            kubediff: the history ends at 2026-03-01 14:50:00: what happened later is not known
        "#]],
        ),
        (
            &["get", "cm", "-n", "nowhere", "-o", "json"],
            expect![[r#"
            {
              "apiVersion": "v1",
              "items": [],
              "kind": "List",
              "metadata": {
                "resourceVersion": ""
              }
            }
            kubediff: no configmaps in namespace nowhere found; the history covers 2026-03-01 13:59:00 to 2026-03-01 14:50:00
            kubediff: the history ends at 2026-03-01 14:50:00: what happened later is not known
        "#]],
        ),
        (
            &["get", "secret", "db", "--at", "2026-03-01 14:45", "-o", "yaml"],
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
            "#]],
        ),
        (
            &["get", "offers", "-o", "json"],
            expect![[r#"
                {
                  "apiVersion": "v1",
                  "items": [
                    {
                      "apiVersion": "example.com/v1",
                      "kind": "Offer",
                      "metadata": {
                        "creationTimestamp": "2026-03-01T14:20:00Z",
                        "labels": {
                          "note": "\u001b]0;owned\u0007\u202e"
                        },
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
                  ],
                  "kind": "List",
                  "metadata": {
                    "resourceVersion": ""
                  }
                }
                kubediff: the history ends at 2026-03-01 14:50:00: what happened later is not known
            "#]],
        ),
    ]);
}

#[test]
fn what_is_doubtful_or_missing_is_said() {
    assert_answers(&[
        (
            &["get", "po", "-n", "shop", "--at", "2026-03-01 14:11:30"],
            expect![[r#"
                NAME     READY   STATUS             RESTARTS   AGE
                cart-a   0/1     CrashLoopBackOff   3          10m
                kubediff: pods not watched from 2026-03-01 14:11:00 to 2026-03-01 14:12:00 (the server restarted): the state at 2026-03-01 14:11:30 is the last one known before
            "#]],
        ),
        (
            &["get", "no", "--at", "2026-03-01 12:00"],
            expect![[r#"
                kubediff: no nodes found at 2026-03-01 12:00:00; the history covers 2026-03-01 13:59:00 to 2026-03-01 14:50:00
                kubediff: the history is complete since 2026-03-01 13:59:00 only: objects deleted before are missing, and states may be older
            "#]],
        ),
        (
            &["get", "svc", "-n", "shop"],
            expect![[r#"
                kubediff: no services in namespace shop found; the history covers 2026-03-01 13:59:00 to 2026-03-01 14:50:00
                kubediff: the history ends at 2026-03-01 14:50:00: what happened later is not known
            "#]],
        ),
        (
            &["get", "po/cart-a"],
            expect![[r#"
                kubediff: there is no pods/cart-a: it was deleted at 2026-03-01 14:15:00; the history covers 2026-03-01 13:59:00 to 2026-03-01 14:50:00
                exit 1
            "#]],
        ),
        (
            &["get", "po", "--at", "2126-03-01"],
            expect![[r#"
            kubediff: --at is in the future: nothing is known of it
            exit 2
        "#]],
        ),
    ]);
}

#[test]
fn the_net_difference_is_shown() {
    assert_answers(&[
        (
            &["diff", "--from", "2026-03-01 14:03", "--to", "2026-03-01 14:35"],
            expect![[r#"
                2026-03-01 14:15:00  - pods shop/cart-a  (deleted) #14
                    age    14m
                    image  web: web:1
                    phase  Running
                    node   n1
                2026-03-01 14:30:00  ± deployments.apps shop/cart  (recreated by helm) #16
                    ~ spec.replicas:                            1 → 2
                    ~ spec.template.spec.containers[web].image: web:1 → web:2
                    ~ status.availableReplicas:                 1 → 0
                    ~ status.readyReplicas:                     1 → 0
                    ~ status.replicas:                          1 → 2
                    ~ status.updatedReplicas:                   1 → 0
                2026-03-01 14:20:00  + offers.example.com shop/sale  (added by operator) #15
                    price   5
                    labels  note=\e]0;owned\u{7}\u{202e}
            "#]],
        ),
        (
            &["diff", "-n", "blog", "--from", "2026-03-01 14:03", "--to", "2026-03-01 14:35"],
            expect![[r#"
            kubediff: nothing in namespace blog differs between 2026-03-01 14:03:00 and 2026-03-01 14:35:00; the history covers 2026-03-01 13:59:00 to 2026-03-01 14:50:00
        "#]],
        ),
        // The map was changed, and changed back.
        (
            &["diff", "cm", "--from", "2026-03-01 14:00", "--to", "2026-03-01 14:35"],
            expect![[r#"
                kubediff: nothing of configmaps differs between 2026-03-01 14:00:00 and 2026-03-01 14:35:00; the history covers 2026-03-01 13:59:00 to 2026-03-01 14:50:00
            "#]],
        ),
        (
            &["diff", "cm/app", "-n", "shop", "--from", "2026-03-01 12:00", "--to", "2026-03-01 14:08"],
            expect![[r#"
                2026-03-01 14:07:00  ~ configmaps shop/app  (updated by kubectl-edit) #9
                    ~ data["app.yaml"]#log.level: info → debug
                kubediff: the history of 1 object begins after the earlier time: compared with the first known state
                kubediff: the history is complete since 2026-03-01 13:59:00 only: objects deleted before are missing, and states may be older
            "#]],
        ),
        (
            &["diff", "pods", "--from", "2026-03-01 14:11:30", "--to", "2026-03-01 14:35", "-o", "oneline"],
            expect![[r#"
                2026-03-01 14:15:00  - pods shop/cart-a  age 14m, image web: web:1, phase Running, node n1  (deleted) #14
                kubediff: pods not watched from 2026-03-01 14:11:00 to 2026-03-01 14:12:00 (the server restarted): the state at 2026-03-01 14:11:30 is the last one known before
            "#]],
        ),
        (
            &["diff", "deploy", "--from", "2026-03-01 14:05", "--to", "2026-03-01 14:11", "-o", "json"],
            expect![[r#"
                {"number":10,"cluster":"prod","gvk":{"group":"apps","version":"v1","kind":"Deployment"},"resource":"deployments","namespace":"shop","name":"cart","uid":"cart-1","change":"updated","rv_before":"1007","rv":"1010","observed_at":"2026-03-01T14:10:00Z","source":"watch","managers":[{"manager":"hpa","operation":"Update","subresource":"scale","time":"2026-03-01T14:10:00Z"}],"paths":["spec.replicas","status.replicas"],"diff":[{"path":"spec.replicas","kind":"changed","old":1,"new":3},{"path":"status.replicas","kind":"changed","old":1,"new":3}],"summary":"replicas 1 -> 3","dropped":{"managed-fields":1,"resource-version":1},"key":"9b35d16b","old":{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"creationTimestamp":"2026-03-01T13:00:00Z","labels":{"app":"cart"},"managedFields":[{"apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{},"manager":"helm","operation":"Update","time":"2026-03-01T14:00:00Z"},{"apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{},"manager":"kubectl-set","operation":"Update","time":"2026-03-01T14:05:00Z"}],"name":"cart","namespace":"shop","resourceVersion":"1007","uid":"cart-1"},"spec":{"replicas":1,"selector":{"matchLabels":{"app":"cart"}},"template":{"spec":{"containers":[{"image":"web:2","name":"web"}]}}},"status":{"availableReplicas":1,"readyReplicas":1,"replicas":1,"updatedReplicas":1}},"new":{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"creationTimestamp":"2026-03-01T13:00:00Z","labels":{"app":"cart"},"managedFields":[{"apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{},"manager":"helm","operation":"Update","time":"2026-03-01T14:00:00Z"},{"apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{},"manager":"kubectl-set","operation":"Update","time":"2026-03-01T14:05:00Z"},{"apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{},"manager":"hpa","operation":"Update","subresource":"scale","time":"2026-03-01T14:10:00Z"}],"name":"cart","namespace":"shop","resourceVersion":"1010","uid":"cart-1"},"spec":{"replicas":3,"selector":{"matchLabels":{"app":"cart"}},"template":{"spec":{"containers":[{"image":"web:2","name":"web"}]}}},"status":{"availableReplicas":1,"readyReplicas":1,"replicas":3,"updatedReplicas":1}},"patch":[{"op":"add","path":"/metadata/managedFields/2","value":{"apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{},"manager":"hpa","operation":"Update","subresource":"scale","time":"2026-03-01T14:10:00Z"}},{"op":"replace","path":"/metadata/resourceVersion","value":"1010"},{"op":"replace","path":"/spec/replicas","value":3},{"op":"replace","path":"/status/replicas","value":3}]}
            "#]],
        ),
        (
            &["diff", "deploy", "--from", "2026-03-01 14:05", "--to", "2026-03-01 14:05"],
            expect![[r#"
                kubediff: nothing of deployments.apps differs between 2026-03-01 14:05:00 and 2026-03-01 14:05:00; the history covers 2026-03-01 13:59:00 to 2026-03-01 14:50:00
            "#]],
        ),
        (
            &["diff", "deploy", "--from", "2026-03-02", "--to", "2026-03-01 14:05"],
            expect![[r#"
                kubediff: the time from 2026-03-02 00:00:00 to 2026-03-01 14:05:00 is empty: it ends before it begins
                exit 2
            "#]],
        ),
        (
            &["diff", "--hide", "colour", "--from", "-2h"],
            expect![[r#"
            kubediff: there is no noise rule `colour` (there are: status, events, event-counts, lease-renewal, leader-election, node-heartbeat, node-images, endpoints, endpoints-trigger, last-applied, condition-times, order, identity, generation, managed-fields, resource-version)
            exit 2
        "#]],
        ),
    ]);
}

#[test]
fn hashes_of_another_key_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("history.db");
    let secret = |note: &str| {
        json!({
            "apiVersion": "v1", "kind": "Secret",
            "metadata": {"name": "db", "namespace": "shop", "uid": "1", "labels": {"note": note}},
            "data": {"password": "aHVudGVyMmh1bnRlcjI="},
        })
    };
    let mut world = World::open(&path, [7; 32]);
    world.wrote("14:00:00", "kubectl-create", secret("a"));
    world.hides(kubediff::Secrets::with_key([8; 32]));
    world.wrote("14:10:00", "kubectl-label", secret("b"));
    let arguments = ["diff", "secrets", "--from", "2026-03-01 14:05", "--to", "2026-03-01 14:10"];
    expect![[r#"
        2026-03-01 14:10:00  ~ secrets shop/db  (updated by kubectl-label) #2
            ~ metadata.labels.note: <hmac:ba6f3300411faf6a 1 bytes> → <hmac:9a65025387960070 1 bytes>
        kubediff: the hashes of 1 object were made with different keys: hidden values cannot be compared, and those are shown that a record has as changed
    "#]].assert_eq(&run(&path, &arguments));
}

#[test]
fn each_field_has_its_manager() {
    assert_answers(&[
        (
            &["blame", "deploy/cart", "--path", "spec"],
            expect![[r#"
                deployments.apps shop/cart was deleted and created again: this is the last incarnation, and the history has one before it.
                FIELD                                      VALUE   SINCE                 MANAGER   CHANGE   BEFORE
                spec.replicas                              2       2026-03-01 14:30:00   helm      #16
                spec.selector.matchLabels.app              cart    2026-03-01 14:30:00   helm      #16
                spec.template.spec.containers[web].image   web:2   2026-03-01 14:30:00   helm      #16
                spec.template.spec.containers[web].name    web     2026-03-01 14:30:00   helm      #16
            "#]],
        ),
        (
            &["blame", "pod", "cart-a", "--path", "status"],
            expect![[r#"
            pods shop/cart-a was deleted at 2026-03-01 14:15:00; this is its last state.
            FIELD                                                VALUE              SINCE                 MANAGER          CHANGE   BEFORE
            status.conditions[Ready].status                      False              2026-03-01 14:06:00   kubelet/status   #8       True
            status.conditions[Ready].type                        Ready              2026-03-01 14:01:00   kubelet/status   #6
            status.containerStatuses[web].image                  web:1              2026-03-01 14:01:00   kubelet/status   #6
            status.containerStatuses[web].lastState              {}                 2026-03-01 14:01:00   kubelet/status   #6
            status.containerStatuses[web].name                   web                2026-03-01 14:01:00   kubelet/status   #6
            status.containerStatuses[web].ready                  false              2026-03-01 14:06:00   kubelet/status   #8       true
            status.containerStatuses[web].restartCount           3                  2026-03-01 14:06:00   kubelet/status   #8       0
            status.containerStatuses[web].state.running          (removed)          2026-03-01 14:06:00   kubelet/status   #8       {}
            status.containerStatuses[web].state.waiting.reason   CrashLoopBackOff   2026-03-01 14:06:00   kubelet/status   #8
            status.phase                                         Running            2026-03-01 14:01:00   kubelet/status   #6
        "#]],
        ),
        (
            &["blame", "cm/app", "-n", "shop", "--path", ".data"],
            expect![[r#"
                The history of configmaps shop/app begins at 2026-03-01 13:59:00, in the middle of its life: of earlier writes it knows only the managers that own fields.
                FIELD                        VALUE   SINCE                 MANAGER        CHANGE   BEFORE
                data["app.yaml"]#log.level   info    2026-03-01 14:13:00   kubectl-edit   #13      debug
            "#]],
        ),
        (
            &["blame", "cm/app", "-n", "blog", "--path", "data"],
            expect![[r#"
            The history of configmaps blog/app begins at 2026-03-01 13:59:00, in the middle of its life: of earlier writes it knows only the managers that own fields.
            FIELD                        VALUE   SINCE                           MANAGER         CHANGE   BEFORE
            data["app.yaml"]#log.level   warn    2026-03-01 13:59:00 or before   probably helm   #3
        "#]],
        ),
        (
            &["blame", "cm/app", "-n", "blog", "-o", "json"],
            expect![[r#"
                {"ended_at":null,"fields":[{"before":null,"exact":false,"managers":[],"number":3,"path":"apiVersion","since":"2026-03-01T13:59:00Z","value":"v1"},{"before":null,"exact":false,"managers":[{"manager":"helm","operation":"Apply","probable":true,"time":"2026-03-01T12:00:00Z"}],"number":3,"path":"data[\"app.yaml\"]#log.level","since":"2026-03-01T13:59:00Z","value":"warn"},{"before":null,"exact":false,"managers":[],"number":3,"path":"kind","since":"2026-03-01T13:59:00Z","value":"ConfigMap"},{"before":null,"exact":false,"managers":[],"number":3,"path":"metadata.creationTimestamp","since":"2026-03-01T13:59:00Z","value":"2026-03-01T12:00:00Z"},{"before":null,"exact":false,"managers":[],"number":3,"path":"metadata.name","since":"2026-03-01T13:59:00Z","value":"app"},{"before":null,"exact":false,"managers":[],"number":3,"path":"metadata.namespace","since":"2026-03-01T13:59:00Z","value":"blog"},{"before":null,"exact":false,"managers":[],"number":3,"path":"metadata.uid","since":"2026-03-01T13:59:00Z","value":"blog-app"}],"object":{"gvk":{"group":"","kind":"ConfigMap","version":"v1"},"name":"app","namespace":"blog","uid":"blog-app"},"starts_in_the_middle":"2026-03-01T13:59:00Z"}
            "#]],
        ),
        (
            &["blame", "offer/sale", "--path", "metadata.labels"],
            expect![[r#"
            FIELD                  VALUE                     SINCE                 MANAGER    CHANGE   BEFORE
            metadata.labels.note   \e]0;owned\u{7}\u{202e}   2026-03-01 14:20:00   operator   #15
        "#]],
        ),
        (
            &["blame", "deploy/cart", "--path", "spec.paused"],
            expect![[r#"
            deployments.apps shop/cart was deleted and created again: this is the last incarnation, and the history has one before it.
            kubediff: deployments.apps/cart has and had nothing at spec.paused
        "#]],
        ),
        (
            &["blame", "deploy"],
            expect![[r#"
            kubediff: `deploy` is not one object; write KIND/NAME, such as deploy/cart
            exit 2
        "#]],
        ),
        (
            &["blame", "svc/cart"],
            expect![[r#"
            kubediff: the history has no services/cart; the history covers 2026-03-01 13:59:00 to 2026-03-01 14:50:00
            exit 1
        "#]],
        ),
    ]);
}

#[test]
fn a_history_is_checked_copied_and_measured() {
    let shop = Shop::open();
    expect![[r#"
        16 versions of 9 objects, 2 gaps
        The history is sound.
    "#]]
    .assert_eq(&run(&shop.path, &["history", "check"]));
    let copy = shop.path.with_file_name("copy.db");
    let copied = run(&shop.path, &["history", "backup", copy.to_str().unwrap()]);
    assert!(copied.contains("copy.db is a copy of "), "{copied}");
    let checked = run(&copy, &["history", "check"]);
    assert!(checked.ends_with("The history is sound.\n"), "{checked}");
    let again = run(&shop.path, &["history", "backup", copy.to_str().unwrap()]);
    assert!(again.contains("the file exists already") && again.ends_with("exit 1\n"), "{again}");
    let stats = run(&shop.path, &["history", "stats"]);
    let stable: Vec<&str> = stats.lines().filter(|line| !line.starts_with("size")).collect();
    expect![[r#"
        cluster         prod (1f3a)
        changes         12
        events          0
        gaps            2
        objects         9, of which 6 exist
        oldest          2026-03-01 13:59:00
        newest          2026-03-01 14:50:00
        watched until   2026-03-01 14:50:00

        SINK    POSITION   BEHIND   LOST   DEAD
        slack   #10        8        0      0"#]]
    .assert_eq(&stable.join("\n"));
    let json = run(&shop.path, &["history", "stats", "-o", "json"]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert!(json["bytes"].as_u64().unwrap() >= 4_096, "{json}");
    assert_eq!(json["sinks"][0]["behind"], 8);
}
