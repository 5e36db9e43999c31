//! The meaning of valid files.

use std::path::{Path, PathBuf};
use std::time::Duration;

use expect_test::expect;
use kubediff::config::{Config, Format, Secret, Sink};
use kubediff::{Change, Gvk, Tally};
use kubediff_history::Cluster;
use serde_json::json;

use crate::support;

const EVERYTHING: &str = r##"
cluster: prod
watch:
  resources: [deploy, cm, "apps/v1/statefulsets", deploy/cart, "*"]
  exclude: {resources: [secrets, "*.example.com"], namespaces: [kube-*]}
  namespaces: [shop, pay]
  labels: app=cart,tier in (web,db)
  fields: metadata.name!=x
history:
  path: /data/history.db
  retention: {age: 90d, size: 20GiB, changes: 1e+06, unsent: 5000}
noise:
  show: [events, order]
  hide: [status]
  ignore:
    - resource: deployments.apps
      namespaces: [shop]
      paths: [spec.replicas]
    - paths: ['metadata.annotations["example.com/*"]']
hide:
  - {resource: Widget.example.com, path: spec.token}
keyFile: /data/key
sinks:
  ops:
    slack: {token: {env: SLACK_TOKEN}, channel: "#ops", thread: 0s}
  alerts:
    slack: {webhook: {file: slack-url}}
  bus:
    webhook:
      url: {env: BUS_URL}
      method: PUT
      headers: {Authorization: {file: token}, X-Team: {env: TEAM}}
      signingKey: {env: SIGNING_KEY}
      format: cloudevents
      batch: 100
      timeout: 30s
      caFile: ca.pem
  audit:
    file: {path: /data/changes.log, maxSize: 1GiB, maxFiles: 30}
  log:
    stdout:
routes:
  - match: {namespaces: [sandbox-*]}
    sinks: []
  - match:
      resources: [deployments.apps, Secret]
      namespaces: [shop]
      names: [cart*]
      labels: app=cart
      paths: ["spec.template.spec.containers[*].image"]
      managers: [kubectl-*]
      changes: [updated, recreated]
      sources: [watch, list, restart]
    sinks: [ops, alerts]
    severity: critical
    template: "{{ severity | upper }} {{ text }}"
    continue: true
  - sinks: [bus, audit, log]
listen: 127.0.0.1:9090
"##;

fn read(text: &str) -> Config {
    let loaded = Config::of_text(text, "kubediff.yaml").unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(loaded.warnings, []);
    loaded.config
}

#[test]
fn every_field_is_read() {
    let config = read(EVERYTHING);
    assert_eq!(config.cluster.as_deref(), Some("prod"));
    assert_eq!(config.watch.labels.as_ref().unwrap().to_string(), "app=cart,tier in (db,web)");
    let limits = config.history.limits();
    assert_eq!(limits.age, Some(Duration::from_secs(90 * 86_400)));
    assert_eq!((limits.bytes, limits.count, limits.for_sinks), (Some(20 << 30), Some(1_000_000), 5_000));
    let Some(Sink::Webhook(bus)) = config.sinks.get("bus") else { panic!() };
    assert_eq!((bus.format, bus.batch, bus.timeout.0.0), (Format::CloudEvents, 100, Duration::from_secs(30)));
    assert_eq!(bus.headers["Authorization"], Secret::File(PathBuf::from("token")));
    assert_eq!(config.routes.as_ref().unwrap().len(), 3);
    assert_eq!(config.listen.as_ref().unwrap().to_string(), "127.0.0.1:9090");
    assert_eq!(config.key_file(), Path::new("/data/key"));
    let gvk = Gvk::new("example.com/v1", "Widget");
    assert!(config.hide[0].scopes().iter().all(|scope| scope.matches(&gvk)));
    assert!(config.watch.excludes_namespace("kube-system"));
    assert!(!config.watch.excludes_namespace("shop"));
}

#[test]
fn an_empty_file_watches_everything_and_keeps_a_history() {
    for text in ["", "# nothing\n", "watch:\nsinks:\nroutes: []\n"] {
        let config = read(text);
        assert_eq!(config.watch, kubediff::config::Watch::default());
        assert_eq!(config.key_file(), Path::new("/var/lib/kubediff/kubediff.key"));
        assert_eq!(config.listen.unwrap().to_string(), ":8080");
    }
    assert_eq!(read("listen: null\nhistory: {retention: {age: null}}").listen, None);
}

#[test]
fn a_configuration_that_is_written_reads_as_the_same() {
    let config = read(EVERYTHING);
    let text = serde_json::to_string(&config).unwrap();
    assert_eq!(read(&text), config);
}

#[test]
fn what_is_unwise_is_told_with_its_place() {
    let text = r##"
sinks:
  ops:
    slack:
      token: xoxb-not-for-logs
      channel: "#ops"
  bus:
    webhook:
      url: https://bus.example.com
      headers: {Authorization: Bearer not-for-logs, X-Team: shop}
  forgotten:
    stdout:
  old:
    webhook: {url: "https://user:not-for-logs@bus.example.com"}
  otel:
    webhook: {url: "http://otel:4318", format: otlp}
  loki:
    webhook: {url: "http://loki:3100/otlp/v1/logs", format: otlp}
routes:
  - sinks: [ops, bus, old, otel, loki]
  - match: {changes: [deleted]}
    sinks: [ops]
"##;
    let loaded = Config::of_text(text, "kubediff.yaml").unwrap();
    let said: String = loaded.warnings.iter().map(|warning| format!("{warning}\n")).collect();
    expect![[r#"
        kubediff.yaml:5:14: sinks.ops.slack.token: a secret stands in the file, for all who may read it: put it into an environment variable or a file of its own, and write `{env: NAME}` or `{file: PATH}` here
        kubediff.yaml:10:32: sinks.bus.webhook.headers.Authorization: a secret stands in the file, for all who may read it: put it into an environment variable or a file of its own, and write `{env: NAME}` or `{file: PATH}` here
        kubediff.yaml:12:5: sinks.forgotten: no route leads to this sink: name it in the `sinks` of a route, or take it out
        kubediff.yaml:14:20: sinks.old.webhook.url: a secret stands in the file, for all who may read it: put it into an environment variable or a file of its own, and write `{env: NAME}` or `{file: PATH}` here
        kubediff.yaml:16:20: sinks.otel.webhook.url: receivers of OpenTelemetry take logs at the path /v1/logs: another one is right only if the receiver is set up so
        kubediff.yaml:21:5: routes[1]: no change gets here: routes[0] takes all of them; move it to the end, or let it `continue: true`
    "#]].assert_eq(&said);
    assert!(!format!("{loaded:?}").contains("not-for-logs"));
    assert!(!serde_json::to_string(&loaded.config).unwrap().contains("not-for-logs"));
}

#[test]
fn a_folder_means_its_config_yaml() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("config.yaml"), "cluster: prod\n").unwrap();
    let loaded = Config::read(folder.path()).unwrap();
    assert_eq!(loaded.config.cluster.as_deref(), Some("prod"));
    assert_eq!(loaded.folder(), folder.path());
}

#[test]
fn secrets_are_read_from_files_and_the_environment() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("token"), "abc\n").unwrap();
    std::fs::write(folder.path().join("nothing"), "\n").unwrap();
    let reveal = |secret: Secret| secret.reveal(folder.path());
    assert_eq!(reveal(Secret::File("token".into())).unwrap(), "abc");
    assert_eq!(reveal(Secret::Env("PATH".to_owned())).unwrap(), std::env::var("PATH").unwrap());
    assert_eq!(reveal(Secret::Literal("abc".to_owned())).unwrap(), "abc");
    let said = [Secret::Env("KUBEDIFF_NOPE".to_owned()), Secret::File("/nope/token".into())]
        .map(|secret| reveal(secret).unwrap_err().to_string());
    expect![[r#"
        the environment variable KUBEDIFF_NOPE is not set
        the file /nope/token cannot be read"#]]
    .assert_eq(&said.join("\n"));
    assert!(reveal(Secret::File("nothing".into())).unwrap_err().to_string().ends_with("nothing is empty"));
}

#[test]
fn a_variable_that_is_empty_is_set() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("kubediff.yaml");
    std::fs::write(&file, "listenToken: {env: NOTHING}\n").unwrap();
    let mut serve = std::process::Command::new(env!("CARGO_BIN_EXE_kubediff"));
    let ended = serve.args(["serve", "--config"]).arg(&file).env("NOTHING", "").output().unwrap();
    let said = String::from_utf8(ended.stderr).unwrap();
    assert!(said.contains("the environment variable NOTHING is empty"), "{said}");
}

#[test]
fn paths_are_noise_in_the_namespaces_that_are_named() {
    let mut profile = support::profile();
    profile.noise = read(EVERYTHING).noise.rules().unwrap();
    let scaled = |namespace: &str| -> Option<Change> {
        let object = |replicas: u32| {
            json!({
                "apiVersion": "apps/v1", "kind": "Deployment",
                "metadata": {"name": "cart", "namespace": namespace, "uid": "1"},
                "spec": {"replicas": replicas},
            })
        };
        support::change_with(&profile, Some(&object(1)), Some(&object(2)), &mut Tally::default())
    };
    assert_eq!(scaled("shop"), None);
    assert!(scaled("pay").is_some());
}

#[test]
fn sinks_are_set_up_and_what_is_missing_is_named() {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in
        [("slack-url", "https://hooks.example.com/x"), ("key", "abc"), ("ca.pem", "x"), ("header", "a\u{7}b")]
    {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    let cluster = Cluster { uid: "1".to_owned(), name: None };
    let mut said = String::new();
    for sink in [
        "slack: {webhook: {file: slack-url}}",
        "slack: {token: {env: KUBEDIFF_NOPE}, channel: C1}",
        "webhook: {url: 'https://example.com'}",
        "webhook: {url: 'https://example.com/v1/logs', format: otlp, batch: 7}",
        "webhook: {url: {file: key}}",
        "webhook: {url: 'https://example.com', signingKey: {file: key}}",
        "webhook: {url: 'https://example.com', caFile: ca.pem}",
        "webhook: {url: 'https://example.com', caFile: nope.pem}",
        "webhook: {url: 'https://example.com', headers: {X-Token: {file: header}}}",
        "file: {path: changes.log}",
        "stdout: {}",
        "jetstream: {servers: ['nats://nats.example.com:4222'], create: true}",
        "jetstream: {servers: ['tls://nats.example.com'], user: kubediff, password: {file: header}, timeout: 20s}",
        "jetstream: {servers: ['nats://n'], token: {env: KUBEDIFF_NOPE}}",
        "jetstream: {servers: ['nats://n'], credentials: {file: key}}",
        "jetstream: {servers: ['nats://n'], caFile: ca.pem}",
    ] {
        let file = folder.path().join("kubediff.yaml");
        let loaded = Config::of_text(&format!("sinks: {{ops: {{{sink}}}}}"), file).unwrap();
        let (name, settings) = loaded.config.sinks.first_key_value().unwrap();
        match loaded.connect(name, settings, &cluster) {
            Ok(_) => said += &format!("ok, in batches of {}\n", settings.policy().batch),
            Err(error) => {
                // Systems have words of their own.
                let said_here = error.to_string();
                let end = said_here.find("cannot be read").map_or(said_here.len(), |at| at + 14);
                said += &format!("{}\n", &said_here[..end]);
            }
        }
    }
    let folder = folder.path().display().to_string();
    expect![[r#"
        ok, in batches of 1
        sinks.ops.slack.token in FOLDER/kubediff.yaml: the environment variable KUBEDIFF_NOPE is not set
        ok, in batches of 50
        ok, in batches of 7
        sinks.ops.webhook.url in FOLDER/kubediff.yaml: the address of the sink is no URL that begins with https:// or http://
        sinks.ops.webhook.signingKey in FOLDER/kubediff.yaml: a webhook's signing secret is whsec_ and 24 to 64 bytes in base64, for example whsec_ and the output of `openssl rand -base64 32`
        sinks.ops.webhook.caFile in FOLDER/kubediff.yaml: the sink's certificates are not PEM
        sinks.ops.webhook.caFile in FOLDER/kubediff.yaml: the file FOLDER/nope.pem cannot be read
        sinks.ops.webhook.headers in FOLDER/kubediff.yaml: the sink's header "X-Token" is not allowed in HTTP
        ok, in batches of 500
        ok, in batches of 500
        ok, in batches of 500
        ok, in batches of 500
        sinks.ops.jetstream.token in FOLDER/kubediff.yaml: the environment variable KUBEDIFF_NOPE is not set
        sinks.ops.jetstream.credentials in FOLDER/kubediff.yaml: these are no credentials of NATS, as `nsc generate creds` writes them
        sinks.ops.jetstream.caFile in FOLDER/kubediff.yaml: the sink's certificates are not PEM
    "#]].assert_eq(&said.replace(&folder, "FOLDER").replace('\\', "/"));
}

/// Files with some bytes changed, taken out, or copied elsewhere: a mistake has a place in the file, and nothing stops.
#[test]
fn whatever_happens_to_a_file_mistakes_are_in_it() {
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let marks: Vec<char> = "{}[]:#-'\"&*!|>% \n\taZ0é".chars().collect();
    let mut valid = 0;
    for _ in 0..400 {
        let mut text: Vec<char> = EVERYTHING.chars().collect();
        for _ in 0..random.usize(1..4) {
            let (at, length) = (random.usize(..text.len() - 40), random.usize(1..40));
            match random.u8(..3) {
                0 => drop(text.drain(at..at + length)),
                1 => text[at] = marks[random.usize(..marks.len())],
                _ => {
                    let part = text[at..at + length].to_vec();
                    let to = random.usize(..text.len());
                    text.splice(to..to, part);
                }
            }
        }
        let text: String = text.into_iter().collect();
        match Config::of_text(&text, "kubediff.yaml") {
            Ok(_) => valid += 1,
            Err(error) => {
                assert!(!error.problems().is_empty());
                for problem in error.problems() {
                    let line = usize::try_from(problem.place.line).unwrap();
                    assert!((1..=text.lines().count() + 1).contains(&line), "{problem}\n{text}");
                }
            }
        }
    }
    // Most changes are mistakes, and some are not.
    assert!((1..300).contains(&valid), "{valid}");
}
