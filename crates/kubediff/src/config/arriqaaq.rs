//! The file of arriqaaq/kubediff, as its version 0.0.5 reads it.
//!
//! `mode` (`watch` or `diff`), `resources[].kind`, `namespaces` (`all` stands alone) and `notifier` with `slack`, `webhook`
//! and `noop`.

use serde::Deserialize;

use super::check::{Checks, Read, decode};
use super::place::FieldPath;
use super::sink::{Format, Sink, SlackSettings, StdoutSettings, WebhookSettings};
use super::tree::{Content, Node};
use super::value::Secret;
use super::warning::Note;
use super::{Config, Route};

#[derive(Debug, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "lowercase")]
#[derive(Default)]
struct ArriqaaqFile {
    mode: Mode,
    resources: Vec<Resource>,
    namespaces: Vec<String>,
    notifier: Notifier,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Mode {
    #[default]
    Watch,
    Diff,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Resource {
    kind: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Notifier {
    slack: Slack,
    webhook: Webhook,
    noop: NoOp,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Slack {
    enabled: bool,
    token: Option<Secret>,
    channel: Option<String>,
    title: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Webhook {
    enabled: bool,
    url: Option<Secret>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct NoOp {
    enabled: bool,
}

/// The top-level fields of that file alone.
const OWN: &[&str] = &["mode", "notifier"];
/// The top-level fields of both files, or of ours alone.
const OURS: &[&str] = &[
    "cluster",
    "watch",
    "history",
    "noise",
    "hide",
    "secrets",
    "keyFile",
    "sinks",
    "routes",
    "listen",
    "listenToken",
    "web",
];

/// Whether a file is one of arriqaaq/kubediff, by the fields at its top.
pub(super) fn is_arriqaaq(tree: &Node) -> bool {
    let Content::Map(fields) = &tree.content else { return false };
    let has = |names: &[&str]| fields.iter().any(|(key, _)| names.contains(&key.name.as_str()));
    !has(OURS) && (has(OWN) || has(&["resources", "namespaces"]))
}

/// The same in our words.
pub(super) fn read(tree: &Node) -> Read {
    let file: ArriqaaqFile = decode(tree)?;
    let mut checks = Checks { tree, mistakes: Vec::new(), notes: Vec::new() };
    let root = FieldPath::default();
    let mut config = Config::default();
    config.watch.resources = file.resources.into_iter().map(|resource| resource.kind).collect();
    let resources = root.field("resources");
    checks.resources(&resources, &config.watch.resources, |field| field.field("kind"));
    if config.watch.resources.is_empty() {
        checks.wrong(&resources, "expected at least one resource, as in `- kind: apps/v1/deployments`");
    }
    let namespaces = root.field("namespaces");
    match file.namespaces.iter().position(|name| name == "all") {
        Some(_) if file.namespaces.len() == 1 => {}
        Some(at) => checks.wrong(&namespaces.element(at), "`all` stands alone: take it or the others out"),
        None => checks.namespaces(&namespaces, &file.namespaces),
    }
    if !file.namespaces.iter().any(|name| name == "all") {
        config.watch.namespaces = file.namespaces;
    }
    // arriqaaq/kubediff writes all changes to its log, whatever the notifiers.
    config.sinks.insert("log".to_owned(), Sink::Stdout(StdoutSettings::default()));
    notify(&mut checks, &mut config, file.notifier, file.mode);
    if file.mode == Mode::Diff {
        checks.notes.push((root.field("mode"), Note::ArriqaaqDiffMode));
    }
    checks.done(config)
}

fn notify(checks: &mut Checks<'_>, config: &mut Config, notifier: Notifier, mode: Mode) {
    let field = FieldPath::default().field("notifier");
    let mut routes = vec![Route { sinks: vec!["log".to_owned()], goes_on: true, ..Route::default() }];
    if let Slack { enabled: true, token, channel, title } = notifier.slack {
        let field = field.field("slack");
        if token.is_none() || channel.as_deref().is_none_or(str::is_empty) {
            checks.wrong(&field, "expected `token` and `channel`, because it is enabled");
        }
        if token.as_ref().is_some_and(Secret::is_literal) {
            checks.notes.push((field.field("token"), Note::SecretInFile));
        }
        let slack = SlackSettings { token, channel, ..SlackSettings::default() };
        config.sinks.insert("slack".to_owned(), Sink::Slack(slack));
        routes.push(Route {
            sinks: vec!["slack".to_owned()],
            template: title.filter(|title| !title.is_empty()).map(|title| titled(&title)),
            goes_on: true,
            ..Route::default()
        });
    }
    if let Webhook { enabled: true, url } = notifier.webhook {
        let field = field.field("webhook");
        checks.is_url(&field.field("url"), url.as_ref());
        match url {
            None => checks.wrong(&field, "`url` is missing, although it is enabled"),
            Some(url) => {
                let format = if mode == Mode::Diff { Format::ArriqaaqDiff } else { Format::ArriqaaqWatch };
                let webhook = WebhookSettings { format, batch: 1, ..WebhookSettings::to(url) };
                config.sinks.insert("webhook".to_owned(), Sink::Webhook(webhook));
                routes.push(Route { sinks: vec!["webhook".to_owned()], goes_on: true, ..Route::default() });
            }
        }
    }
    if notifier.noop.enabled {
        checks.notes.push((field.field("noop"), Note::ArriqaaqNoOp));
    }
    // Without a title, all sinks get the same: nothing has to be said.
    config.routes = routes.iter().any(|route| route.template.is_some()).then_some(routes);
}

/// A template that puts the title before the text.
fn titled(title: &str) -> String {
    format!("{{{{ {} }}}}: {{{{ text }}}}", serde_json::Value::from(title))
}
