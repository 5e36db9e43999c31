//! The text for people.

use expect_test::expect;
use jiff::tz::TimeZone;
use kubediff::Origin;
use kubediff::render::{Color, Renderer, json_line};
use serde_json::{Value, json};

use crate::random;
use crate::support::{self, change, deployment, edited, plain, rendered, renderer};

fn container(object: &mut Value) -> &mut Value {
    &mut object["spec"]["template"]["spec"]["containers"][0]
}

fn wrote(object: &mut Value, manager: &str, subresource: Option<&str>) {
    let mut entry = json!({"manager": manager, "operation": "Update", "apiVersion": "apps/v1",
        "time": "2026-03-01T14:03:21Z", "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {}}});
    if let Some(subresource) = subresource {
        entry["subresource"] = subresource.into();
    }
    object["metadata"]["managedFields"].as_array_mut().unwrap().push(entry);
}

#[test]
fn an_edit() {
    let old = deployment();
    let new = edited(&old, |it| {
        wrote(it, "kubectl-edit", None);
        it["spec"]["replicas"] = 3.into();
        it["metadata"]["labels"]["tier"].take();
        it["metadata"]["labels"].as_object_mut().unwrap().remove("tier");
        it["metadata"]["annotations"]["example.com/team"] = "shop".into();
        let web = container(it);
        web["image"] = "nginx:1.28".into();
        web["env"][1]["value"] = "9090".into();
        web["env"].as_array_mut().unwrap().push(json!({"name": "DEBUG", "value": "true"}));
        web["resources"]["limits"]["memory"] = "128Mi".into();
    });
    expect![[r#"
        14:03:22  ~ deployments.apps shop/cart  (updated by kubectl-edit)
            + metadata.annotations["example.com/team"]:                   shop
            - metadata.labels.tier:                                       web
            ~ spec.replicas:                                              2 → 3
            ~ spec.template.spec.containers[web].env[PORT].value:         "8080" → "9090"
            + spec.template.spec.containers[web].env[DEBUG]:              {name: DEBUG, value: "true"}
            ~ spec.template.spec.containers[web].image:                   nginx:1.27 → nginx:1.28
            ~ spec.template.spec.containers[web].resources.limits.memory: 64Mi → 128Mi
    "#]]
    .assert_eq(&rendered(Some(&old), Some(&new)));
    expect![[r#"image web 1.27 -> 1.28, replicas 2 -> 3, PORT of web: "8080" -> "9090", +env[DEBUG], memory limit web 64Mi -> 128Mi, +annotation example.com/team: shop, 1 more"#]].assert_eq(&change(Some(&old), Some(&new)).unwrap().summary);
}

#[test]
fn a_status() {
    let old = deployment();
    let new = edited(&old, |it| {
        wrote(it, "kube-controller-manager", Some("status"));
        it["status"]["replicas"] = 1.into();
        it["status"]["conditions"][0] = json!({"type": "Available", "status": "False", "reason": "MinimumReplicasUnavailable",
            "message": "Deployment does not have minimum availability.", "lastTransitionTime": "2026-03-01T14:03:21Z"});
    });
    expect![[r#"
        14:03:22  ~ deployments.apps shop/cart  (updated by kube-controller-manager/status)
            + status.conditions[Available].message: Deployment does not have minimum availability.
            + status.conditions[Available].reason:  MinimumReplicasUnavailable
            ~ status.conditions[Available].status:  True → False
            ~ status.replicas:                      2 → 1
    "#]]
    .assert_eq(&rendered(Some(&old), Some(&new)));
    expect!["Available True -> False, replicas 2 -> 1, +Available message: Deployment does not have minimum availability., +Available reason: MinimumReplicasUnavailable"].assert_eq(&change(Some(&old), Some(&new)).unwrap().summary);
}

#[test]
fn values_that_do_not_fit() {
    let old = edited(&deployment(), |it| {
        container(it)["image"] =
            format!("registry.example.com/team/shop/cart@sha256:{}", "1f".repeat(32)).into();
        it["metadata"]["annotations"]["example.com/long"] = "lorem ipsum ".repeat(100).into();
    });
    let new = edited(&old, |it| {
        container(it)["image"] =
            format!("registry.example.com/team/shop/cart@sha256:{}", "2e".repeat(32)).into();
        it["metadata"]["annotations"]["example.com/long"] =
            ("lorem ipsum ".repeat(60) + &"dolor ".repeat(1000)).into();
        it["metadata"]["annotations"]["example.com/new"] = "x".repeat(12_345).into();
        it["spec"]["template"]["spec"]["containers"].as_array_mut().unwrap().push(json!({
            "name": "log", "image": "fluent/fluent-bit:3.2", "args": ["--config", "/etc/fluent-bit/fluent-bit.conf"],
            "resources": {"limits": {"memory": "64Mi", "cpu": "100m"}, "requests": {"memory": "64Mi"}},
            "volumeMounts": [{"name": "logs", "mountPath": "/var/log/app"}],
        }));
    });
    expect![[r#"
        14:03:22  ~ deployments.apps shop/cart  (updated)
            ~ metadata.annotations["example.com/long"]:
                - …lorem ipsum lorem ipsum lorem ipsum lorem ipsum lorem ipsum lorem ipsum lo… (1,202 bytes)
                + …lorem ipsum dolor dolor dolor dolor dolor dolor dolor dolor dolor dolor do… (6,722 bytes)
            + metadata.annotations["example.com/new"]: xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx… (12,345 bytes)
            ~ spec.template.spec.containers[web].image:
                - …cart@sha256:1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f
                + …cart@sha256:2e2e2e2e2e2e2e2e2e2e2e2e2e2e2e2e2e2e2e2e2e2e2e2e2e2e2e2e2e2e2e2e
            + spec.template.spec.containers[log]:
                args: [--config, /etc/fluent-bit/fluent-bit.conf]
                image: fluent/fluent-bit:3.2
                name: log
                resources: {limits: {cpu: 100m, memory: 64Mi}, requests: {memory: 64Mi}}
                volumeMounts: [{mountPath: /var/log/app, name: logs}]
    "#]]
    .assert_eq(&rendered(Some(&old), Some(&new)));
    expect!["image web sha256:1f1f1f1f1f1f -> sha256:2e2e2e2e2e2e, +containers[log], 2 more"]
        .assert_eq(&change(Some(&old), Some(&new)).unwrap().summary);
}

#[test]
fn a_config_map() {
    let old = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "cart", "namespace": "shop", "uid": "u"}, "data": {
        "app.yaml": "server:\n  port: 8080\n  hosts: [a, b]\nlog: info\n",
        "nginx.conf": "worker_processes auto;\nevents {\n  worker_connections 1024;\n}\nhttp {\n\tserver {}\n}\n",
        "motd": "hello",
    }});
    let new = edited(&old, |it| {
        it["data"]["app.yaml"] = "server:\n  port: 9090\n  hosts: [a, b, c]\n".into();
        it["data"]["nginx.conf"] =
            "worker_processes 4;\nevents {\n  worker_connections 4096;\n}\nhttp {\n\tserver {}\n}".into();
        it["data"]["extra"] = "a\nb\n".into();
    });
    expect![[r#"
        14:03:22  ~ configmaps shop/cart  (updated)
            - data["app.yaml"]#log:             info
            + data["app.yaml"]#server.hosts[2]: c
            ~ data["app.yaml"]#server.port:     8080 → 9090
            + data.extra: 2 lines
                +a
                +b
            ~ data["nginx.conf"]: +3 -3 lines
                @@ -1,7 +1,7 @@
                -worker_processes auto;
                +worker_processes 4;
                 events {
                -  worker_connections 1024;
                +  worker_connections 4096;
                 }
                 http {
                 \tserver {}
                -}
                +} (no line end)
    "#]]
    .assert_eq(&rendered(Some(&old), Some(&new)));
    expect![[r#"-app.yaml#log, +app.yaml#server.hosts[2] c, app.yaml#server.port 8080 -> 9090, +data.extra "a\nb\n", data["nginx.conf"] +3 -3 lines"#]].assert_eq(&change(Some(&old), Some(&new)).unwrap().summary);
    expect![[r#"
        14:03:22  + configmaps shop/cart  (added)
            data  app.yaml (47 bytes), motd (5 bytes), nginx.conf (81 bytes)
    "#]]
    .assert_eq(&rendered(None, Some(&old)));
}

#[test]
fn objects_that_come_and_go() {
    let mut texts = String::new();
    let deployment = deployment();
    let pod = json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "cart-7d9f-abc12", "namespace": "shop", "uid": "p", "creationTimestamp": "2026-03-01T08:43:00Z",
            "labels": {"app": "cart", "pod-template-hash": "7d9f"},
            "ownerReferences": [{"kind": "ReplicaSet", "name": "cart-7d9f", "uid": "r"}]},
        "spec": {"nodeName": "node-3", "containers": [{"name": "web", "image": "nginx:1.27"}, {"name": "log", "image": "fluent:3"}]},
        "status": {"phase": "Running"}});
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "cart", "namespace": "shop"},
        "spec": {"type": "ClusterIP", "ports": [{"port": 80, "targetPort": 8080}, {"port": 9090, "targetPort": "metrics", "protocol": "TCP"}]}});
    let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "view"}, "rules": [{}, {}]});
    let widget = json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"},
        "spec": {"size": "L", "color": "red", "parts": [1, 2], "paused": false}});
    for object in [&deployment, &pod, &service, &role, &widget] {
        texts += &rendered(None, Some(object));
        texts += &format!("= {}\n", change(None, Some(object)).unwrap().summary);
    }
    for object in [&deployment, &pod] {
        texts += &rendered(Some(object), None);
        texts += &format!("= {}\n", change(Some(object), None).unwrap().summary);
    }
    let mut again = edited(&deployment, |it| it["spec"]["replicas"] = 1.into());
    again["metadata"]["uid"] = "9a3b9c1e-7d5a-4f0e-9b62-0d7c1f6a8e11".into();
    texts += &rendered(Some(&deployment), Some(&again));
    again["spec"]["replicas"] = 2.into();
    texts += &rendered(Some(&deployment), Some(&again));
    expect![[r#"
        14:03:22  + deployments.apps shop/cart  (added by helm)
            image     web: nginx:1.27
            replicas  2
            labels    app=cart, tier=web
        = image web: nginx:1.27, replicas 2
        14:03:22  + pods shop/cart-7d9f-abc12  (added)
            image   web: nginx:1.27
            image   log: fluent:3
            phase   Running
            node    node-3
            owner   ReplicaSet/cart-7d9f
            labels  app=cart, pod-template-hash=7d9f
        = image web: nginx:1.27, image log: fluent:3, phase Running, node node-3
        14:03:22  + services shop/cart  (added)
            type   ClusterIP
            ports  80/TCP to 8080, 9090/TCP to metrics
        = type ClusterIP, ports 80/TCP to 8080, 9090/TCP to metrics
        14:03:22  + clusterroles.rbac.authorization.k8s.io view  (added)
            rules  2
        = rules 2
        14:03:22  + widgets.example.com w  (added)
            color   red
            paused  false
            size    L
        = color red, paused false, size L
        14:03:22  - deployments.apps shop/cart  (deleted)
            age       3d4h
            image     web: nginx:1.27
            replicas  2
            labels    app=cart, tier=web
        = age 3d4h, image web: nginx:1.27, replicas 2
        14:03:22  - pods shop/cart-7d9f-abc12  (deleted)
            age     5h20m
            image   web: nginx:1.27
            image   log: fluent:3
            phase   Running
            node    node-3
            owner   ReplicaSet/cart-7d9f
            labels  app=cart, pod-template-hash=7d9f
        = age 5h20m, image web: nginx:1.27, image log: fluent:3, phase Running, node node-3
        14:03:22  ± deployments.apps shop/cart  (recreated by helm)
            ~ spec.replicas: 2 → 1
        14:03:22  ± deployments.apps shop/cart  (recreated by helm)
            same content
    "#]]
    .assert_eq(&texts);
}

#[test]
fn lists() {
    let old = json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w", "finalizers": ["a", "b"]},
        "spec": {"steps": [{"name": "one"}, {"name": "two"}, {"name": "three"}], "args": ["a", "b", "c"], "on": true}});
    let new = edited(&old, |it| {
        it["metadata"]["finalizers"] = json!(["b"]);
        it["spec"]["steps"] = json!([{"name": "two"}, {"name": "three"}, {"name": "one"}]);
        it["spec"]["args"] = json!(["a", "x", "b", "c"]);
        it["spec"]["on"] = "true".into();
    });
    expect![[r#"
        14:03:22  ~ widgets.example.com w  (updated)
            - metadata.finalizers[]: a
            + spec.args[1]:          x
            ~ spec.on:               true → "true"
            ~ spec.steps:            one, two, three → two, three, one
    "#]]
    .assert_eq(&rendered(Some(&old), Some(&new)));
    expect![[r#"+args[1] x, on true -> "true", steps reordered, -finalizers[]"#]]
        .assert_eq(&change(Some(&old), Some(&new)).unwrap().summary);
}

#[test]
fn nothing_from_the_cluster_reaches_the_terminal_raw() {
    let evil = "\u{1b}]0;owned\u{7}\u{9b}2J\r\u{202e}x\u{200b}\u{8}";
    let old = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": evil, "namespace": evil, "uid": "1"},
        "data": {evil: format!("a\n{evil}\n"), "k": 1}});
    let new = json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": evil, "namespace": evil, "uid": "1", "labels": {evil: evil},
            "managedFields": [{"manager": evil, "operation": evil, "subresource": evil}],
            "ownerReferences": [{"kind": evil, "name": evil, "uid": evil}]},
        "data": {evil: format!("a\n{evil}{evil}\n"), "k": {evil: evil}}, evil: [{"name": evil}]});
    let mut texts = String::new();
    for (old, new) in [(None, Some(&new)), (Some(&old), Some(&new)), (Some(&new), None)] {
        let change = change(old, new).unwrap();
        texts += &renderer().text(&change);
        texts += &format!("{}\n", change.summary);
    }
    let ours = plain(&texts);
    let raw: Vec<char> = ours
        .chars()
        .filter(|c| c.is_control() && *c != '\n' || matches!(c, '\u{202e}' | '\u{200b}'))
        .collect();
    assert!(raw.is_empty(), "{raw:?} in {ours:?}");
    // Only our own sequences, which do nothing but colour.
    for sequence in texts.split('\u{1b}').skip(1) {
        let parameters = sequence
            .strip_prefix('[')
            .and_then(|rest| rest.split_once('m'))
            .map(|(parameters, _)| parameters);
        assert!(
            parameters.is_some_and(|it| it.bytes().all(|b| b.is_ascii_digit() || b == b';')),
            "{sequence:?}"
        );
    }
    assert!(!texts.contains('\u{9b}') && !texts.contains('\u{7}') && !texts.contains('\r'));
}

#[test]
fn colours_come_and_go() {
    let old = deployment();
    let new = edited(&old, |it| it["spec"]["replicas"] = 3.into());
    let text = renderer().text(&change(Some(&old), Some(&new)).unwrap());
    expect![[r#"
        ESC[2m14:03:22ESC[0m  ESC[1mESC[33m~ESC[0m ESC[33mdeploymentsESC[0mESC[2m.appsESC[0m ESC[1mshop/cartESC[0m  ESC[2m(updated, probably by helm)ESC[0m
            ESC[33m~ESC[0m ESC[36mspec.replicasESC[0mESC[2m:ESC[0m ESC[31m2ESC[0mESC[2m → ESC[0mESC[32m3ESC[0m
    "#]].assert_eq(&text.replace('\u{1b}', "ESC"));
    let through = |color: Color| {
        let mut stream = color.stream(Vec::new());
        std::io::Write::write_all(&mut stream, text.as_bytes()).unwrap();
        String::from_utf8(stream.into_inner()).unwrap()
    };
    assert_eq!(through(Color::Always), text);
    assert!(!through(Color::Never).contains('\u{1b}'));
    assert!(!through(Color::Auto).contains('\u{1b}'));
    assert_eq!(
        "sometimes".parse::<Color>().unwrap_err().to_string(),
        "`sometimes` is not one of auto, always, never"
    );
}

#[test]
fn a_change_without_end_is_cut() {
    let data = |prefix: &str| {
        (0..500)
            .map(|n| (format!("key-{n:03}"), Value::from(format!("{prefix}{n}"))))
            .collect::<serde_json::Map<_, _>>()
    };
    let object = |prefix| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": data(prefix)});
    let change = change(Some(&object("a")), Some(&object("b"))).unwrap();
    let text = plain(&renderer().text(&change));
    let last: Vec<&str> = text.lines().rev().take(2).collect();
    expect![[r#"
        62 lines
            ~ data.key-059: a59 → b59
            … 440 more differences
    "#]]
    .assert_eq(&format!("{} lines\n{}\n{}\n", text.lines().count(), last[1], last[0]));
    expect!["data.key-000 a0 -> b0, data.key-001 a1 -> b1, data.key-002 a2 -> b2, data.key-003 a3 -> b3, data.key-004 a4 -> b4, data.key-005 a5 -> b5, data.key-006 a6 -> b6, 493 more"].assert_eq(&change.summary);
}

#[test]
fn circumstances() {
    let old = deployment();
    let new = edited(&old, |it| {
        for (manager, subresource) in
            [("argocd", None), ("kubelet", Some("status")), ("hpa", Some("scale")), ("vpa", None)]
        {
            wrote(it, manager, subresource);
        }
        it["metadata"]["generation"] = 4.into();
        it["spec"]["replicas"] = 3.into();
    });
    let mut change = change(Some(&old), Some(&new)).unwrap();
    let renderer =
        Renderer { show_dropped: true, time_zone: TimeZone::fixed(jiff::tz::offset(5)), ..renderer() };
    let mut texts = String::new();
    for origin in [Origin::List, Origin::Restart] {
        change.origin = origin;
        change.cluster = Some("prod".to_owned());
        texts += &plain(&renderer.text(&change));
    }
    expect![[r#"
        19:03:22  ~ prod deployments.apps shop/cart
            (updated by argocd, kubelet/status, hpa/scale and 1 more, seen in a list)
            ~ spec.replicas: 2 → 3
            left out: generation 1, managed-fields 4, resource-version 1
        19:03:22  ~ prod deployments.apps shop/cart
            (updated by argocd, kubelet/status, hpa/scale and 1 more, while kubediff did not run)
            ~ spec.replicas: 2 → 3
            left out: generation 1, managed-fields 4, resource-version 1
    "#]]
    .assert_eq(&texts);
}

#[test]
fn a_narrow_terminal() {
    let old = deployment();
    let new = edited(&old, |it| {
        it["metadata"]["annotations"]["example.com/note"] =
            "a note that is longer than the terminal is wide".into();
        it["spec"]["replicas"] = 3.into();
        container(it)["image"] = "nginx:1.28".into();
        container(it)["env"] = json!(["東京".repeat(30)]);
    });
    let change = change(Some(&old), Some(&new)).unwrap();
    expect![[r#"
        14:03:22  ~ deployments.apps shop/cart
            (updated, probably by helm)
            + metadata.annotations["example.com/note"]:
                a note that is lon… (47 bytes)
            ~ spec.replicas: 2 → 3
            ~ spec.template.spec.containers[web].env[0]:
                - {name: LOG, value: info}
                + 東京東京東京東京… (180 bytes)
            - spec.template.spec.containers[web].env[was 1]:
                name: PORT
                value: "8080"
            ~ spec.template.spec.containers[web].image:
                - nginx:1.27
                + nginx:1.28
    "#]]
    .assert_eq(&plain(&Renderer { width: 40, ..renderer() }.text(&change)));
}

#[test]
fn whatever_an_object_is_it_can_be_shown() {
    let mut rng = support::seeded("rendering");
    for _ in 0..3_000 {
        let (old, new) = random::pair(&mut rng);
        let object = |content: &Value| {
            let mut object = json!({"apiVersion": "v1", "kind": "Pod"});
            for (name, value) in content.as_object().into_iter().flatten() {
                let places = ["metadata", "spec", "status", "data", name];
                object[*rng.choice(places.iter()).unwrap()] = value.clone();
            }
            object
        };
        let (old, new) = [&old, &new].map(object).into();
        let renderer = Renderer { width: rng.usize(0..130), show_dropped: true, ..renderer() };
        for (old, new) in [(Some(&old), Some(&new)), (None, Some(&new)), (Some(&old), None)] {
            let Some(change) = change(old, new) else { continue };
            let text = plain(&renderer.text(&change));
            assert!(
                text.ends_with('\n') && !text.contains(|c: char| c.is_control() && c != '\n'),
                "{text:?}"
            );
            let headline = &change.summary;
            assert!(headline.chars().count() <= 210 && !headline.contains(char::is_control), "{headline:?}");
            let line = json_line(&change.with_objects()).unwrap();
            let back: Value = serde_json::from_str(&line).unwrap();
            assert_eq!(
                (&back["old"], &back["new"]),
                (old.unwrap_or(&Value::Null), new.unwrap_or(&Value::Null))
            );
        }
    }
}
