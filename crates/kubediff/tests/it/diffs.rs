//! The differences of two objects.

use expect_test::{Expect, expect};
use kubediff::{Edit, diff};
use serde_json::{Value, json};

#[track_caller]
fn check(old: &Value, new: &Value, expected: &Expect) {
    let mut text = String::new();
    for difference in diff(old, new) {
        let path = difference.path;
        text += &match difference.edit {
            Edit::Added { new } => format!("+ {path} = {new}\n"),
            Edit::Removed { old } => format!("- {path} = {old}\n"),
            Edit::Changed { old, new } => format!("~ {path}: {old} -> {new}\n"),
            Edit::Text { lines } => format!("~ {path}:\n{lines}"),
            Edit::Reordered { old, new, matters } => {
                format!("~ {path}: order {old:?} -> {new:?}{}\n", if matters { "" } else { " (meaningless)" })
            }
        };
    }
    expected.assert_eq(&text);
}

/// The fields in an object of a kind that Kubernetes has.
fn pod(mut fields: Value) -> Value {
    fields["apiVersion"] = "v1".into();
    fields["kind"] = "Pod".into();
    fields
}

#[test]
fn containers_and_what_is_in_them() {
    let old = json!({"spec": {"containers": [
        {"name": "web", "image": "nginx:1.27", "args": ["-a", "-b", "-c"],
         "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}],
         "volumeMounts": [{"mountPath": "/tmp", "name": "tmp"}, {"mountPath": "/etc/app", "name": "cfg"}]},
        {"name": "log", "image": "fluent"},
    ]}});
    let new = json!({"spec": {"containers": [
        {"name": "proxy", "image": "envoy"},
        {"name": "web", "image": "nginx:1.28", "args": ["-a", "-x", "-b", "-c"],
         "env": [{"name": "B", "value": "3"}, {"name": "A", "value": "1"}],
         "volumeMounts": [{"mountPath": "/etc/app", "name": "cfg2"}, {"mountPath": "/tmp", "name": "tmp"}]},
    ]}});
    check(
        &pod(old),
        &pod(new),
        &expect![[r#"
        + spec.containers[proxy] = {"image":"envoy","name":"proxy"}
        + spec.containers[web].args[1] = "-x"
        ~ spec.containers[web].env[B].value: "2" -> "3"
        ~ spec.containers[web].env: order ["A", "B"] -> ["B", "A"]
        ~ spec.containers[web].image: "nginx:1.27" -> "nginx:1.28"
        ~ spec.containers[web].volumeMounts[/etc/app].name: "cfg" -> "cfg2"
        ~ spec.containers[web].volumeMounts: order ["/tmp", "/etc/app"] -> ["/etc/app", "/tmp"] (meaningless)
        - spec.containers[log] = {"image":"fluent","name":"log"}
    "#]],
    );
}

#[test]
fn ports_by_number_and_protocol_or_else_by_name() {
    let old = json!({"ports": [{"port": 53, "protocol": "UDP"}, {"port": 53}, {"name": "http", "port": 80}]});
    let new = json!({"ports": [{"port": 53, "protocol": "TCP", "targetPort": 5353}, {"port": 53, "protocol": "UDP"},
        {"name": "http", "port": 8080}]});
    check(
        &pod(old),
        &pod(new),
        &expect![[r#"
        + ports[53/TCP].protocol = "TCP"
        + ports[53/TCP].targetPort = 5353
        ~ ports[80/TCP].port: 80 -> 8080
        ~ ports: order ["53/UDP", "53/TCP", "80/TCP"] -> ["53/TCP", "53/UDP", "80/TCP"] (meaningless)
    "#]],
    );
}

#[test]
fn conditions_owners_taints_subjects() {
    let old = json!({
        "conditions": [{"type": "Ready", "status": "True"}, {"type": "Stalled", "status": "False"}],
        "ownerReferences": [{"uid": "u1", "name": "a"}, {"uid": "u2", "name": "b"}],
        "subjects": [{"kind": "ServiceAccount", "name": "ci", "namespace": "shop"}, {"kind": "User", "name": "ann"}],
        "taints": [{"key": "gpu", "effect": "NoSchedule", "value": "a"}, {"key": "gpu", "effect": "NoExecute"}],
    });
    let new = json!({
        "conditions": [{"type": "Stalled", "status": "False"}, {"type": "Ready", "status": "False", "reason": "Down"}],
        "ownerReferences": [{"uid": "u1", "name": "a", "controller": true}],
        "subjects": [{"kind": "ServiceAccount", "name": "ci", "namespace": "shop"}, {"kind": "Group", "name": "dev"}],
        "taints": [{"key": "gpu", "effect": "NoSchedule", "value": "b"}, {"key": "gpu", "effect": "NoExecute"}],
    });
    check(
        &pod(old),
        &pod(new),
        &expect![[r#"
        + conditions[Ready].reason = "Down"
        ~ conditions[Ready].status: "True" -> "False"
        ~ conditions: order ["Ready", "Stalled"] -> ["Stalled", "Ready"] (meaningless)
        + ownerReferences[u1].controller = true
        - ownerReferences[u2] = {"name":"b","uid":"u2"}
        + subjects[Group/dev] = {"kind":"Group","name":"dev"}
        - subjects[User/ann] = {"kind":"User","name":"ann"}
        ~ taints[gpu/NoSchedule].value: "a" -> "b"
    "#]],
    );
}

#[test]
fn sets_have_no_places() {
    let old = json!({"finalizers": ["a", "b"], "tolerations": [{"key": "x"}, {"key": "y"}, {"operator": "Exists"}],
        "rules": [{"verbs": ["get", "list"], "resources": ["pods"]}]});
    let new = json!({"finalizers": ["b", "a"], "tolerations": [{"operator": "Exists"}, {"key": "y", "value": "1"}],
        "rules": [{"verbs": ["list", "delete", "get"], "resources": ["pods"]}]});
    check(
        &pod(old),
        &pod(new),
        &expect![[r#"
        ~ finalizers: order ["a", "b"] -> ["b", "a"] (meaningless)
        + rules[0].verbs[] = "delete"
        ~ rules[0].verbs: order ["get", "list"] -> ["list", "get"] (meaningless)
        - tolerations[] = {"key":"x"}
        - tolerations[] = {"key":"y"}
        + tolerations[] = {"key":"y","value":"1"}
    "#]],
    );
}

/// Issue 19, attack 5: nobody but the schema and Kubernetes itself can say that an order has no meaning.
#[test]
fn k2_the_order_of_a_list_is_a_change_unless_it_is_known_to_have_no_meaning() {
    let lists = |reversed: bool| {
        let list = |mut of: Vec<Value>| {
            if reversed {
                of.reverse();
            }
            Value::from(of)
        };
        let texts = || list(vec!["first".into(), "fallback".into()]);
        json!({"images": texts(), "verbs": texts(), "resources": texts(), "finalizers": texts(),
            "endpoints": list(vec![json!({"addresses": ["10.0.0.1"]}), json!({"addresses": ["10.0.0.2"]})]),
            "conditions": list(vec![json!({"type": "A"}), json!({"type": "B"})]),
            "tolerations": list(vec![json!({"key": "a"}), json!({"operator": "Exists"})])})
    };
    let found = |make: &dyn Fn(Value) -> Value| -> Vec<(String, bool)> {
        diff(&make(lists(false)), &make(lists(true)))
            .into_iter()
            .map(|it| match it.edit {
                Edit::Reordered { matters, .. } => (it.path.to_string(), matters),
                other => panic!("{}: {other:?}", it.path),
            })
            .collect()
    };
    let all = |matters: bool, found: Vec<(String, bool)>| {
        assert_eq!(found.len(), 7, "{found:?}");
        assert!(found.iter().all(|(_, it)| *it == matters), "{found:?}");
    };
    let of =
        |version: &str, kind: &str, spec: Value| json!({"apiVersion": version, "kind": kind, "spec": spec});
    all(false, found(&|lists| of("v1", "Pod", lists)));
    all(true, found(&|lists| of("example.com/v1", "Gate", lists)));
    // A custom resource of a built-in kind's name, or of a built-in group.
    all(true, found(&|lists| of("example.com/v1", "Pod", lists)));
    all(true, found(&|lists| of("snapshot.storage.k8s.io/v1", "VolumeSnapshot", lists)));
    all(true, found(&|lists| lists));
    // Kubernetes defines the metadata of every object.
    all(false, found(&|lists| json!({"apiVersion": "example.com/v1", "kind": "Gate", "metadata": lists})));
    // Anything may be in a document, in a default value of a custom resource's schema, and in a device's parameters.
    let document =
        |lists: Value| json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": lists.to_string()}});
    all(true, found(&document));
    let definition = |lists| {
        of(
            "apiextensions.k8s.io/v1",
            "CustomResourceDefinition",
            json!({"versions": [{
        "name": "v1", "schema": {"openAPIV3Schema": {"properties": {"spec": {"default": lists}}}}}]}),
        )
    };
    all(true, found(&definition));
    let claim = |lists| {
        of(
            "resource.k8s.io/v1",
            "ResourceClaim",
            json!({"devices": {"config": [
        {"opaque": {"driver": "a", "parameters": lists}}]}}),
        )
    };
    all(true, found(&claim));
}

#[test]
fn lists_without_keys_by_common_subsequence() {
    let old = json!({"args": ["a", "b", "c", "d", "e"], "hosts": [{"h": 1}, {"h": 2}, {"h": 3}]});
    let new =
        json!({"args": ["a", "c", "x", "d", "e", "f"], "hosts": [{"h": 1}, {"h": 2, "tls": true}, {"h": 3}]});
    check(
        &old,
        &new,
        &expect![[r#"
            - args[was 1] = "b"
            + args[2] = "x"
            + args[5] = "f"
            + hosts[1].tls = true
        "#]],
    );
}

#[test]
fn keys_that_repeat_or_are_absent_are_none() {
    let old = json!({"env": [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}], "volumes": [{"x": 1}, {"name": "b"}]});
    let new = json!({"env": [{"name": "A", "value": "2"}], "volumes": [{"x": 2}, {"name": "b"}]});
    check(
        &old,
        &new,
        &expect![[r#"
            - env[was 0] = {"name":"A","value":"1"}
            ~ volumes[0].x: 1 -> 2
        "#]],
    );
}

#[test]
fn documents_are_compared_inside() {
    let old = json!({
        "data": {
            "app.yaml": "# the shop\nserver:\n  port: 8080\n  hosts:\n  - name: a\n    weight: 1\n  - name: b\n",
            "app.json": r#"{"level": "info", "n": [1, 2]}"#,
            "db.properties": "pool.size = 10\nurl=jdbc:pg\n",
            "comment.yaml": "# old\na: 1\n",
            "nginx.conf": "worker_processes auto;\nevents {\n  worker_connections 1024;\n}\n",
            "several.yaml": "a: 1\n---\na: 2\n",
            "word": "one",
        },
        "annotations": {"example.com/config": r#"{"spec":{"replicas":2,"extra":"{\"deep\":1}"}}"#},
    });
    let new = json!({
        "data": {
            "app.yaml": "server:\n  port: 9090\n  hosts:\n  - name: b\n    weight: 5\n  - name: a\n    weight: 1\n",
            "app.json": r#"{"level": "debug", "n": [1, 2]}"#,
            "db.properties": "# more\npool.size = 20\nurl=jdbc:pg\n",
            "comment.yaml": "# new\na: 1\n",
            "nginx.conf": "worker_processes auto;\nevents {\n  worker_connections 4096;\n}\n",
            "several.yaml": "a: 1\n---\na: 3",
            "word": "two",
        },
        "annotations": {"example.com/config": r#"{"spec":{"replicas":3,"extra":"{\"deep\":2}"}}"#},
    });
    check(
        &old,
        &new,
        &expect![[r#"
            ~ annotations["example.com/config"]#spec.extra#deep: 1 -> 2
            ~ annotations["example.com/config"]#spec.replicas: 2 -> 3
            ~ data["app.json"]#level: "info" -> "debug"
            + data["app.yaml"]#server.hosts[b].weight = 5
            ~ data["app.yaml"]#server.hosts: order ["a", "b"] -> ["b", "a"]
            ~ data["app.yaml"]#server.port: 8080 -> 9090
            ~ data["comment.yaml"]:
            @@ -1,2 +1,2 @@
            -# old
            +# new
             a: 1
            ~ data["db.properties"]#["pool.size"]: "10" -> "20"
            ~ data["nginx.conf"]:
            @@ -1,4 +1,4 @@
             worker_processes auto;
             events {
            -  worker_connections 1024;
            +  worker_connections 4096;
             }
            ~ data["several.yaml"]#[1].a: 2 -> 3
            ~ data.word: "one" -> "two"
        "#]],
    );
}

#[test]
fn paths_print_readably() {
    let old = json!({"a": {"b.c/d": {"e-f": 1, "": 2, "quote\"": 3, "0": 4}}, "list": [{"name": "x[0]"}, {"name": "7"}]});
    let new = json!({"list": [{"name": "x[0]", "v": 1}, {"name": "7", "v": 1}],
        "a": {"b.c/d": {"e-f": 0, "": 0, "quote\"": 0, "0": 0}}});
    check(
        &old,
        &new,
        &expect![[r#"
        ~ a["b.c/d"][""]: 2 -> 0
        ~ a["b.c/d"].0: 4 -> 0
        ~ a["b.c/d"].e-f: 1 -> 0
        ~ a["b.c/d"]["quote\""]: 3 -> 0
        + list["x[0]"].v = 1
        + list["7"].v = 1
    "#]],
    );
}

#[test]
fn long_texts_take_no_time() {
    let text = |of: &str| (0..60_000).map(|n| format!("{of} {}\n", n % 977)).collect::<String>();
    let started = std::time::Instant::now();
    let found = diff(&json!({"data": {"a": text("x")}}), &json!({"data": {"a": text("y")}}));
    assert_eq!(found.len(), 1);
    let shuffled = |seed| {
        let mut numbers: Vec<u32> = (0..20_000).collect();
        fastrand::Rng::with_seed(seed).shuffle(&mut numbers);
        json!({ "args": numbers })
    };
    assert!(!diff(&shuffled(1), &shuffled(2)).is_empty());
    assert!(started.elapsed().as_secs() < 20, "{:?}", started.elapsed());
}

#[test]
fn documents_of_every_format() {
    let data = |level: &str, port: u32| {
        json!({"data": {
            "all.yaml": format!("kind: Service\nmetadata:\n  name: cart\nspec:\n  port: {port}\n---\nkind: ConfigMap\nmetadata:\n  name: cart\ndata:\n  a.toml: |\n    level = \"{level}\"\n"),
            "app.toml": format!("# x\nname = \"cart\"\nborn = 2026-03-01\n[log]\nlevel = \"{level}\"\n[[servers]]\nname = \"a\"\nport = {port}\n"),
            "my.cnf": format!("[mysqld]\nport = {port}\nskip-networking\n[client]\n# x\nuser = me\n"),
            "config": format!("[core]\n\tlevel = {level}\n"),
            "setup.cfg": format!("; x\n[a b]\nlevel = {level}\n"),
            "app.properties": format!("port={port}\n"),
            "app.json": format!("{{\"port\": {port}}}"),
            "broken.toml": format!("level = {level}\n"),
            "list.yaml": format!("- a\n- {level}\n"),
        }})
    };
    check(
        &data("info", 80),
        &data("debug", 90),
        &expect![[r#"
        ~ data["all.yaml"]#[Service/cart].spec.port: 80 -> 90
        ~ data["all.yaml"]#[ConfigMap/cart].data["a.toml"]#level: "info" -> "debug"
        ~ data["app.json"]#port: 80 -> 90
        ~ data["app.properties"]#port: "80" -> "90"
        ~ data["app.toml"]#log.level: "info" -> "debug"
        ~ data["app.toml"]#servers[a].port: 80 -> 90
        ~ data["broken.toml"]: "level = info\n" -> "level = debug\n"
        ~ data.config:
        @@ -1,2 +1,2 @@
         [core]
        -	level = info
        +	level = debug
        ~ data["list.yaml"]#[1]: "info" -> "debug"
        ~ data["my.cnf"]#mysqld.port: "80" -> "90"
        ~ data["setup.cfg"]#["a b"].level: "info" -> "debug"
    "#]],
    );
    let several = |names: &[&str]| {
        let documents: Vec<String> =
            names.iter().map(|name| format!("kind: A\nmetadata:\n  name: {name}\nv: 1\n")).collect();
        json!({"x": documents.join("---\n")})
    };
    check(
        &several(&["a", "b", "c"]),
        &several(&["a", "c"]),
        &expect![[r#"
        - x#[A/b] = {"kind":"A","metadata":{"name":"b"},"v":1}
    "#]],
    );
    check(
        &several(&["a"]),
        &several(&["a", "b"]),
        &expect![[r#"
        + x#[A/b] = {"kind":"A","metadata":{"name":"b"},"v":1}
    "#]],
    );
}

/// A fifth attack: one update of an object of 400 KB took 27 s and 600 MB.
#[test]
fn k5_a_map_list_or_text_with_very_many_differences_is_one_difference() {
    let mut random = fastrand::Rng::with_seed(7);
    let mut object = || {
        let numbers: Vec<u8> = (0..30_000).map(|_| random.u8(0..10)).collect();
        let keys: serde_json::Map<_, _> =
            (0..5_000).map(|n| (format!("k{n}"), random.bool().into())).collect();
        let lines: String = (0..30_000).map(|_| if random.bool() { "a\n" } else { "b\n" }).collect();
        json!({ "few": random.u8(..), "keys": keys, "lines": lines, "numbers": numbers })
    };
    let (old, new) = (object(), object());
    let paths: Vec<String> = diff(&old, &new).iter().map(|difference| difference.path.to_string()).collect();
    assert_eq!(paths, ["few", "keys", "lines", "numbers"]);
}

/// The same number of elements with few differences shows these.
#[test]
fn k5_few_differences_of_very_long_lists_and_texts_are_shown_one_by_one() {
    let old: Vec<u32> = (0..100_000).collect();
    let mut new = old.clone();
    new.insert(90_000, 7);
    new.remove(5);
    let text = |numbers: &[u32]| numbers.iter().map(|number| format!("{number}\n")).collect::<String>();
    let (old, new) = (json!({ "list": old, "text": text(&old) }), json!({ "list": new, "text": text(&new) }));
    check(
        &old,
        &new,
        &expect![[r#"
            - list[was 5] = 5
            + list[89999] = 7
            ~ text:
            @@ -4,5 +4,4 @@
             3
             4
            -5
             6
             7
            @@ -13,4 +12,4 @@
             12
             13
             14
             15
            @@ -89965,4 +89964,4 @@
             89964
             89965
             89966
             89967
            @@ -89999,4 +89998,5 @@
             89998
             89999
            +7
             90000
             90001
        "#]],
    );
}
