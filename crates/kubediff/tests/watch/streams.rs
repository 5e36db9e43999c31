//! Changes as log records of OpenTelemetry: the example of docs/streams.md, with the daemon and the collector's own receiver.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Instant;

use http::Method;
use kubediff_history::{Filter, Page, Reader, Record};
use serde_json::{Value, json};

use crate::daemon::get;
use crate::session::{PATIENCE, Session};
use crate::shop::Shop;

const PAGE: &str = include_str!("../../../../docs/streams.md");

/// The collector's receiver, and what it has passed on.
struct Collector {
    process: Child,
    commands: ChildStdin,
    lines: Receiver<String>,
    got: Vec<Value>,
}

impl Collector {
    fn start(program: &Path, config: &Path) -> Self {
        let mut command = Command::new(program);
        let mut process = command.arg(config).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let commands = process.stdin.take().unwrap();
        let output = BufReader::new(process.stdout.take().unwrap());
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            output.lines().map_while(Result::ok).try_for_each(|line| sender.send(line))
        });
        let mut collector = Self { process, commands, lines, got: Vec::new() };
        collector.read(|line| line == "listening");
        collector
    }

    /// Reads lines up to this one.
    fn read(&mut self, is_last: impl Fn(&str) -> bool) {
        loop {
            let line = self.lines.recv_timeout(PATIENCE);
            let line = line.unwrap_or_else(|error| panic!("{error}: {:#?}", self.got));
            if line.starts_with('{') {
                self.got.push(serde_json::from_str(&line).unwrap());
            }
            if is_last(&line) {
                return;
            }
        }
    }

    /// Says what its pipeline does from now on.
    fn tell(&mut self, command: &str) {
        writeln!(self.commands, "{command}").unwrap();
        self.read(|line| line == command);
    }

    /// Waits for a record with this text.
    fn until(&mut self, text: &str) {
        if !self.got.iter().any(|request| request.to_string().contains(text)) {
            self.read(|line| line.contains(text));
        }
    }

    /// Ends it; its log records.
    fn end(mut self) -> Vec<LogRecord> {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
        let rest = self.lines.iter().filter(|line| line.starts_with('{'));
        self.got.extend(rest.map(|line| serde_json::from_str(&line).unwrap()));
        self.got.iter().flat_map(LogRecord::of).collect()
    }
}

/// A log record, with its attributes and those of its resource and scope by name.
struct LogRecord {
    fields: Value,
    attributes: BTreeMap<String, Value>,
}

impl LogRecord {
    fn of(request: &Value) -> Vec<Self> {
        let mut records = Vec::new();
        for logs in request["resourceLogs"].as_array().unwrap() {
            for scope in logs["scopeLogs"].as_array().unwrap() {
                assert_eq!(scope["scope"], json!({"name": "kubediff", "version": env!("CARGO_PKG_VERSION")}));
                for fields in scope["logRecords"].as_array().unwrap() {
                    let of = |list: &Value| list["attributes"].as_array().unwrap().clone();
                    let attributes = of(&logs["resource"]).into_iter().chain(of(fields));
                    let named = |it: Value| (it["key"].as_str().unwrap().to_owned(), plain(&it["value"]));
                    records
                        .push(Self { fields: fields.clone(), attributes: attributes.map(named).collect() });
                }
            }
        }
        records
    }

    fn number(&self) -> u64 {
        self.attributes["kubediff.number"].as_u64().unwrap()
    }

    fn text(&self, name: &str) -> &str {
        self.attributes.get(name).and_then(Value::as_str).unwrap_or_default()
    }
}

/// An `AnyValue` as JSON.
fn plain(value: &Value) -> Value {
    let (kind, inner) = value.as_object().unwrap().iter().next().unwrap();
    match &**kind {
        "intValue" => inner.as_str().unwrap().parse::<u64>().unwrap().into(),
        "arrayValue" => inner["values"].as_array().into_iter().flatten().map(plain).collect(),
        _ => inner.clone(),
    }
}

/// The files of the page, for ports of this test.
fn files(folder: &Path) -> [PathBuf; 2] {
    let port = control_plane::free_port().to_string();
    let (_, part) = PAGE.split_once("\n## OpenTelemetry").unwrap();
    let mut blocks = part.split("```yaml\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    [("kubediff.yaml", "listen: 127.0.0.1:0\n"), ("collector.yaml", "")].map(|(name, more)| {
        let text = blocks.next().unwrap().replace("4318", &port);
        std::fs::write(folder.join(name), text + more).unwrap();
        folder.join(name)
    })
}

/// Starts the daemon; its address, when it watches.
fn serve(shop: &Shop, config: &Path) -> (Session, String) {
    let mut daemon = Session::serve(shop.kubeconfig(), config);
    let note = daemon.note("health and metrics are on ");
    daemon.note("watching");
    (daemon, note.split("are on ").nth(1).unwrap().to_owned())
}

/// Waits for a line of the metrics.
async fn until(address: &str, line: &str) {
    let begin = Instant::now();
    loop {
        let (_, metrics) = get(address, "/metrics").await;
        if metrics.contains(&format!("{line}\n")) {
            return;
        }
        assert!(begin.elapsed() < PATIENCE, "no {line} in {metrics}");
        tokio::task::yield_now().await;
    }
}

/// Each record of the history is there with what the history says of it, and first in the order of its object.
fn judge(history: &Path, got: &[LogRecord]) {
    let mut reader = Reader::open(history).unwrap();
    let ids = reader.ids().unwrap();
    let uid = reader.cluster().unwrap().uid;
    let filter = Filter { gaps: true, ..Filter::default() };
    let records = reader.records(&filter, &Page::oldest(1_000)).unwrap().records;
    for record in &records {
        let number = record.number();
        let sent = got.iter().find(|sent| sent.number() == number.0);
        let sent = sent.unwrap_or_else(|| panic!("{record:?} did not arrive"));
        let (cluster, service) = (sent.text("k8s.cluster.uid"), sent.text("service.name"));
        assert_eq!((cluster, sent.text("k8s.cluster.name"), service), (&*uid, "prod", "kubediff"));
        assert_eq!(sent.text("kubediff.id"), ids.of(number));
        let (event, severity, time) = match record {
            Record::Change(change) => {
                let (object, is) = (&change.object, &sent.attributes);
                // The only objects without one are namespaces.
                let namespace = object.namespace.as_ref().unwrap_or(&object.name);
                assert_eq!(sent.text("k8s.namespace.name"), namespace);
                assert_eq!(sent.text("kubediff.object.uid"), object.uid);
                assert_eq!(is["kubediff.paths"], json!(change.paths));
                assert_eq!(is.get("kubediff.object.resource_version"), Some(&json!(change.rv)));
                assert_eq!(is["kubediff.source"], json!(change.origin));
                let managers: Vec<&String> = change.managers.iter().map(|by| &by.manager).collect();
                assert_eq!(is["kubediff.managers"], json!(managers));
                let details = change.paths.first().map_or("", |path| path);
                assert!(sent.text("kubediff.details").contains(details), "{is:?}");
                let body = sent.fields["body"]["stringValue"].as_str().unwrap();
                assert!(body.ends_with(&change.summary), "{body}");
                (format!("change.{}", change.verb.as_str()), 9, change.observed_at)
            }
            Record::Gap(gap) => {
                assert_eq!(sent.text("kubediff.gap.cause"), gap.reason);
                ("gap".to_owned(), 13, gap.to)
            }
            Record::Scrubbed(scrubbed) => ("scrubbed".to_owned(), 13, scrubbed.at),
            Record::Event(_) => panic!("nobody asked for Events"),
        };
        assert_eq!(sent.fields["eventName"], format!("io.kubediff.{event}"));
        assert_eq!(sent.fields["severityNumber"], severity);
        assert_eq!(sent.fields["timeUnixNano"], time.as_nanosecond().to_string());
        for name in sent.attributes.keys().filter(|name| !name.starts_with("k8s.")) {
            assert!(PAGE.contains(&format!("`{name}`")), "{name} is not in the page");
        }
    }
    let mut last: BTreeMap<&str, u64> = BTreeMap::new();
    let mut seen = BTreeSet::new();
    for sent in got.iter().filter(|sent| seen.insert(sent.number())) {
        let before = last.insert(sent.text("kubediff.object.uid"), sent.number()).unwrap_or_default();
        assert!(before < sent.number(), "{} came after {before}", sent.number());
    }
    assert_eq!(seen.len(), records.len(), "nothing else arrives");
}

#[tokio::test(flavor = "multi_thread")]
async fn k6_the_collectors_receiver_gets_every_record_whatever_happens_to_it() {
    let test = "k6_the_collectors_receiver_gets_every_record_whatever_happens_to_it";
    let build = move || control_plane::program_or_skip(test, "foreign/collector");
    let Some(program) = tokio::task::spawn_blocking(build).await.unwrap() else { return };
    let (shop, folder) = (Shop::open().await, tempfile::tempdir().unwrap());
    let [config, receivers] = files(folder.path());
    let mut collector = Collector::start(&program, &receivers);
    shop.create("before", "1").await;
    let (daemon, address) = serve(&shop, &config);

    for name in ["shop", "other"] {
        shop.post("/api/v1/namespaces", json!({"metadata": {"name": name}})).await;
    }
    let deployments = "/apis/apps/v1/namespaces/shop/deployments";
    let spec = |image: &str| {
        let template = json!({"metadata": {"labels": {"app": "cart"}}, "spec": {"containers": [{"name": "web", "image": image}]}});
        json!({"selector": {"matchLabels": {"app": "cart"}}, "template": template})
    };
    shop.post(deployments, json!({"metadata": {"name": "cart"}, "spec": spec("nginx:1.27")})).await;
    let patch = json!({"spec": spec("nginx:1.28")});
    shop.send(Method::PATCH, &format!("{deployments}/cart"), patch).await;
    let secret = json!({"metadata": {"name": "db"}, "stringData": {"password": "correct horse battery"}});
    shop.post("/api/v1/namespaces/shop/secrets", secret).await;
    collector.until("added Secret shop/db");
    shop.patch("before", "correct horse battery").await;
    shop.create("gone", "1").await;
    shop.delete("gone").await;
    collector.until("deleted ConfigMap default/gone");

    // Its exporter does not reach its server, and then its memory is full.
    for command in ["fail", "limit"] {
        collector.tell(command);
        shop.patch("before", command).await;
        collector.read(|line| line == "refused");
        collector.tell("take");
        collector.until(&format!("-> {command}"));
    }
    // It fails with one namespace for good, until it is mended. The others go on.
    collector.tell("refuse poison");
    let poison = json!({"metadata": {"name": "poison"}});
    shop.post("/api/v1/namespaces/other/configmaps", poison).await;
    collector.read(|line| line == "refused");
    shop.patch("before", "others go on").await;
    collector.until("others go on");
    collector.tell("take");
    collector.until("poison");

    // It is gone, and so is the daemon for a while.
    let mut got = collector.end();
    shop.patch("before", "nobody listens").await;
    until(&address, r#"kubediff_sink_failing{sink="otel"} 1"#).await;
    daemon.kill();
    shop.patch("before", "nobody watches").await;
    let (daemon, address) = serve(&shop, &config);
    shop.patch("before", "the end").await;
    let mut collector = Collector::start(&program, &receivers);
    collector.until("the end");
    until(&address, r#"kubediff_sink_behind{sink="otel"} 0"#).await;
    daemon.end_with("-TERM");
    got.extend(collector.end());

    judge(&folder.path().join("history.db"), &got);
    let of = |name: &str| got.iter().find(|sent| sent.text("kubediff.object.name") == name).unwrap();
    assert_eq!(of("cart").text("k8s.deployment.name"), "cart");
    assert!(got.iter().any(|sent| sent.text("kubediff.gap.cause").contains("did not run")), "no gap");
    let all: String = got.iter().map(|sent| format!("{}{:?}", sent.fields, sent.attributes)).collect();
    assert!(!all.contains("correct horse") && all.contains("-> <hmac:"), "a secret was sent");
}
