//! Objects as servers send them: each as large and as varied as in a cluster.

use fastrand::Rng;

use super::message::{Message, envelope};

fn hex(random: &mut Rng, length: usize) -> String {
    (0..length).map(|_| char::from_digit(random.u32(..16), 16).unwrap()).collect()
}

fn time(random: &mut Rng) -> Message {
    Message::new().number(1, random.i64(1_700_000_000..1_800_000_000)).number(2, 0)
}

fn quantity(text: &str) -> Message {
    Message::new().bytes(1, text)
}

fn metadata(random: &mut Rng, name: &str) -> Message {
    let time = time(random);
    let labels = ["app", "app.kubernetes.io/instance", "app.kubernetes.io/name", "pod-template-hash", "tier"];
    let (hash, rv) = (hex(random, 10), random.u32(1000..).to_string());
    Message::new()
        .bytes(1, format!("{name}-{hash}"))
        .bytes(2, format!("{name}-"))
        .bytes(3, format!("team-{}", random.u8(..20)))
        .bytes(4, "")
        .bytes(5, format!("{}-4d1e-{}", hex(random, 8), hex(random, 12)))
        .bytes(6, rv)
        .number(7, random.u8(..4))
        .message(8, time)
        .each(labels, |message, label| message.entry(11, label, format!("{name}-{hash}")))
        .entry(12, "prometheus.io/scrape", "true")
        .entry(12, "example.com/checksum", hex(random, 64))
        .message(
            13,
            Message::new()
                .bytes(1, "ReplicaSet")
                .bytes(3, format!("{name}-{hash}"))
                .bytes(4, hex(random, 36))
                .bytes(5, "apps/v1")
                .number(6, 1)
                .number(7, 1),
        )
}

fn managed(random: &mut Rng, manager: &str, subresource: &str, fields: &str) -> Message {
    Message::new()
        .bytes(1, manager)
        .bytes(2, "Update")
        .bytes(3, "v1")
        .message(4, time(random))
        .bytes(6, "FieldsV1")
        .message(7, Message::new().bytes(1, fields))
        .bytes(8, subresource)
}

/// The fields of some containers that a manager owns.
fn fields_of_containers(names: &[String], variables: &[String]) -> String {
    let variables: String = variables
        .iter()
        .map(|it| {
            format!(",\"k:{{\\\"name\\\":\\\"{it}\\\"}}\":{{\".\":{{}},\"f:name\":{{}},\"f:value\":{{}}}}")
        })
        .collect();
    let containers: Vec<String> = names.iter().map(|name| format!("\"k:{{\\\"name\\\":\\\"{name}\\\"}}\":{{\".\":{{}},\"f:env\":{{\".\":{{}}{variables}}},\"f:image\":{{}},\"f:imagePullPolicy\":{{}},\"f:livenessProbe\":{{\".\":{{}},\"f:httpGet\":{{\".\":{{}},\"f:path\":{{}},\"f:port\":{{}}}}}},\"f:name\":{{}},\"f:resources\":{{}}}}")).collect();
    format!(
        "{{\"f:metadata\":{{\"f:labels\":{{\".\":{{}},\"f:app\":{{}}}}}},\"f:spec\":{{\"f:containers\":{{{}}}}}}}",
        containers.join(",")
    )
}

fn probe(path: &str) -> Message {
    let port = Message::new().number(1, 0).number(2, 8080).bytes(3, "");
    let get = Message::new().bytes(1, path).message(2, port).bytes(3, "").bytes(4, "HTTP");
    let handler = Message::new().message(2, get);
    Message::new().message(1, handler).number(2, 5).number(3, 1).number(4, 10).number(5, 1).number(6, 3)
}

fn container(random: &mut Rng, name: &str, variables: &[String]) -> Message {
    let port = Message::new().bytes(1, "http").number(2, 0).number(3, 8080).bytes(4, "TCP").bytes(5, "");
    let resources = Message::new()
        .entry(1, "cpu", quantity("500m"))
        .entry(1, "memory", quantity("512Mi"))
        .entry(2, "cpu", quantity("100m"))
        .entry(2, "memory", quantity("128Mi"));
    let variable = |message: Message, name: &String| {
        let value = format!("value of {name} with some <text> & more");
        message.message(7, Message::new().bytes(1, name).bytes(2, value))
    };
    let key = Message::new().message(1, Message::new().bytes(1, "credentials")).bytes(2, "password");
    let secret = Message::new().bytes(1, "PASSWORD").bytes(2, "").message(3, Message::new().message(4, key));
    let mount = |name, path| Message::new().bytes(1, name).number(2, 1).bytes(3, path).bytes(4, "");
    let access = "/var/run/secrets/kubernetes.io/serviceaccount";
    Message::new()
        .bytes(1, name)
        .bytes(2, format!("registry.example.com/shop/{name}@sha256:{}", hex(random, 64)))
        .bytes(4, "--listen=0.0.0.0:8080")
        .bytes(4, "--log-format=json")
        .bytes(5, "")
        .message(6, port)
        .each(variables, variable)
        .message(7, secret)
        .message(8, resources)
        .message(9, mount("config", "/etc/config"))
        .message(9, mount("kube-api-access", access))
        .message(10, probe("/healthz"))
        .message(11, probe("/readyz"))
        .bytes(13, "/dev/termination-log")
        .bytes(14, "IfNotPresent")
        .message(
            15,
            Message::new().message(1, Message::new().bytes(2, "ALL")).number(5, 1).number(6, 1).number(7, 0),
        )
        .number(16, 0)
        .number(17, 0)
        .number(18, 0)
        .bytes(20, "File")
}

/// A pod with two containers, of about 9 KB in JSON, a third of it `managedFields`.
pub fn pod(random: &mut Rng) -> Vec<u8> {
    let names = ["web", "sidecar"].map(str::to_owned);
    let variables: Vec<String> = (0..6).map(|index| format!("SETTING_{index}")).collect();
    let metadata = metadata(random, "web-shop")
        .message(17, managed(random, "kube-controller-manager", "", &fields_of_containers(&names, &variables)))
        .message(17, managed(random, "kubelet", "status", "{\"f:status\":{\"f:conditions\":{\"k:{\\\"type\\\":\\\"Ready\\\"}\":{\".\":{},\"f:status\":{}}},\"f:phase\":{},\"f:podIP\":{}}}"));
    let token = Message::new().bytes(1, "").number(2, 3607).bytes(3, "token");
    let projected = Message::new().message(1, Message::new().message(4, token)).number(2, 420);
    let config = Message::new().message(1, Message::new().bytes(1, "web-config")).number(3, 420);
    let volume = |name, number, source| {
        Message::new().bytes(1, name).message(2, Message::new().message(number, source))
    };
    let toleration = |key| {
        Message::new().bytes(1, key).bytes(2, "Exists").bytes(3, "").bytes(4, "NoExecute").number(5, 300)
    };
    let spec = Message::new()
        .message(1, volume("config", 19, config))
        .message(1, volume("kube-api-access", 26, projected))
        .message(2, container(random, &names[0], &variables))
        .message(2, container(random, &names[1], &variables))
        .bytes(3, "Always")
        .number(4, 30)
        .bytes(6, "ClusterFirst")
        .entry(7, "kubernetes.io/os", "linux")
        .bytes(8, "web")
        .bytes(9, "web")
        .bytes(10, format!("node-{}", random.u8(..)))
        .number(11, 0)
        .number(12, 0)
        .number(13, 0)
        .message(14, Message::new().number(3, 1).number(5, 2000))
        .bytes(16, "")
        .bytes(17, "")
        .bytes(19, "default-scheduler")
        .message(22, toleration("node.kubernetes.io/not-ready"))
        .message(22, toleration("node.kubernetes.io/unreachable"))
        .bytes(24, "")
        .number(25, 0)
        .number(30, 1)
        .bytes(31, "PreemptLowerPriority");
    let message = Message::new().message(1, metadata).message(2, spec);
    message.message(3, pod_status(random, &names)).into_bytes()
}

fn pod_status(random: &mut Rng, names: &[String]) -> Message {
    let condition = |random: &mut Rng, kind| {
        let (probed, changed) = (Message::new(), time(random));
        Message::new()
            .bytes(1, kind)
            .bytes(2, "True")
            .message(3, probed)
            .message(4, changed)
            .bytes(5, "")
            .bytes(6, "")
            .number(7, 1)
    };
    let container = |random: &mut Rng, name: &String| {
        let running = Message::new().message(2, Message::new().message(1, time(random)));
        Message::new()
            .bytes(1, name)
            .message(2, running)
            .message(3, Message::new())
            .number(4, 1)
            .number(5, 0)
            .bytes(6, format!("registry.example.com/shop/{name}"))
            .bytes(7, format!("registry.example.com/shop/{name}@sha256:{}", hex(random, 64)))
            .bytes(8, format!("containerd://{}", hex(random, 64)))
            .number(9, 1)
    };
    let kinds = ["PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled"];
    let mut status = Message::new().bytes(1, "Running");
    for kind in kinds {
        status = status.message(2, condition(random, kind));
    }
    status = status
        .bytes(3, "")
        .bytes(4, "")
        .bytes(5, "10.0.0.7")
        .bytes(6, "10.244.1.17")
        .message(7, time(random));
    for name in names {
        status = status.message(8, container(random, name));
    }
    let address = |text| Message::new().bytes(1, text);
    status
        .bytes(9, "Burstable")
        .bytes(11, "")
        .message(12, address("10.244.1.17"))
        .bytes(14, "")
        .message(16, address("10.0.0.7"))
        .number(17, 1)
}

/// A Secret.
pub fn secret(random: &mut Rng) -> Vec<u8> {
    let value: Vec<u8> = (0..random.usize(..200)).map(|_| random.u8(..)).collect();
    let message = Message::new().message(1, metadata(random, "credentials"));
    message.entry(2, "empty", "").entry(2, "key", value).bytes(3, "Opaque").into_bytes()
}

/// A Lease, with times of six digits.
pub fn lease(random: &mut Rng) -> Vec<u8> {
    let micro =
        |random: &mut Rng| Message::new().number(1, random.u32(..)).number(2, random.u32(..1_000_000) * 1000);
    let spec =
        Message::new().bytes(1, "node").number(2, 40).message(3, micro(random)).message(4, micro(random));
    Message::new().message(1, metadata(random, "lease")).message(2, spec.number(5, -3)).into_bytes()
}

/// An object of any of these shapes, or one with hardly more than a name.
pub(super) fn any(random: &mut Rng) -> Vec<u8> {
    match random.u8(..6) {
        0 => secret(random),
        1 => lease(random),
        _ => {
            let metadata = Message::new()
                .bytes(1, crate::json::name(random))
                .bytes(3, if random.bool() { "shop" } else { "" })
                .bytes(6, random.u32(1..).to_string())
                .entry(11, "tier", crate::json::text(random));
            let data = vec![b'x'; random.usize(..300)];
            Message::new().message(1, metadata).bytes(2, data).into_bytes()
        }
    }
}

/// A definition of custom resources, whose schema has another in it, and so on.
pub fn definition(random: &mut Rng) -> Vec<u8> {
    let validation = Message::new().message(1, schema(random, 4));
    let version = Message::new().bytes(1, "v1").number(2, 1).number(3, 1).message(4, validation);
    let names =
        Message::new().bytes(1, "widgets").bytes(2, "widget").bytes(4, "Widget").bytes(5, "WidgetList");
    let spec =
        Message::new().bytes(1, "example.com").message(3, names).bytes(4, "Namespaced").message(7, version);
    Message::new()
        .message(1, metadata(random, "widgets"))
        .message(2, spec)
        .message(3, Message::new())
        .into_bytes()
}

fn schema(random: &mut Rng, depth: u32) -> Message {
    let json = |text: &str| Message::new().bytes(1, text);
    let message = Message::new()
        .bytes(4, crate::json::text(random))
        .bytes(5, "object")
        .message(8, json(&crate::json::value(random, 3).to_string()))
        .double(9, f64::from(random.i16(..)) / 4.0)
        .message(20, json("\"a\""))
        .message(20, json(" [ 1, 2 ] "));
    if depth == 0 {
        return message;
    }
    let below = || schema(&mut Rng::with_seed(depth.into()), depth - 1);
    message
        .bytes(23, "a")
        .message(24, Message::new().message(1, below()))
        .message(25, below())
        .entry(29, "a", below())
        .message(30, Message::new().number(1, 1))
        .entry(32, "b", Message::new().bytes(2, "c").bytes(2, "d"))
        .message(33, Message::new().number(1, 1).message(2, below()))
}

/// A watch event with a pod in an envelope.
pub fn watch_event(random: &mut Rng) -> Vec<u8> {
    let object = envelope("v1", "Pod", pod(random));
    Message::new().bytes(1, "ADDED").message(2, Message::new().bytes(1, object)).into_bytes()
}
