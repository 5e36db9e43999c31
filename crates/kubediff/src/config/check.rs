//! Checks that serde cannot make: bounds, names that refer to something, fields that need each other.

use std::slice::from_ref;
use std::time::Duration;

use serde::de::DeserializeOwned;

use super::decode::Fault;
use super::place::{FieldPath, Mark, Step};
use super::sink::{FileSettings, Format, JetStreamSettings, Method, Sink, SlackSettings, WebhookSettings};
use super::tree::Node;
use super::value::{Period, Secret};
use super::warning::Note;
use super::{Config, Route};
use crate::hide::noise::InvalidNoise;
use crate::model::targets::{Wanted, namespace};
use crate::show::body::BodyTemplate;
use crate::show::template::Template;
use crate::text::alike::instead;

/// Mistakes: field, place, message.
pub(super) type Mistakes = Vec<(FieldPath, Mark, String)>;

/// The configuration of a tree, or all mistakes in it.
pub(super) type Read = Result<(Config, Vec<(FieldPath, Note)>), Mistakes>;

/// Headers that identify, sign and delimit a request.
const OWN_HEADERS: &[&str] = &[
    "connection",
    "content-length",
    "transfer-encoding",
    "webhook-id",
    "webhook-signature",
    "webhook-timestamp",
];

/// The most mistakes that are told at once.
const MOST: usize = 30;

pub(super) fn read(tree: &Node) -> Read {
    let config: Config =
        decode(tree).map_err(|mistakes| mistakes.into_iter().map(belongs).collect::<Mistakes>())?;
    let mut checks = Checks { tree, mistakes: Vec::new(), notes: Vec::new() };
    checks.config(&config);
    checks.done(config)
}

/// A field of `watch` that stands beside it.
fn belongs((field, mark, message): (FieldPath, Mark, String)) -> (FieldPath, Mark, String) {
    const OF_WATCH: &[&str] = &["resources", "namespaces", "labels", "fields", "exclude"];
    match field.steps() {
        [Step::Field(name)] if OF_WATCH.contains(&name.as_str()) => {
            (field, mark, "there is no such field here: it belongs in `watch`".to_owned())
        }
        _ => (field, mark, message),
    }
}

/// Reads a tree. Takes each mistake out of a copy of it and tries again, to find all of them.
pub(super) fn decode<T: DeserializeOwned>(tree: &Node) -> Result<T, Mistakes> {
    let mut rest = tree.clone();
    let mut mistakes: Mistakes = Vec::new();
    loop {
        let Fault { field, mark, message } = match T::deserialize(&rest) {
            Ok(value) if mistakes.is_empty() => return Ok(value),
            Ok(_) => break,
            Err(fault) => fault,
        };
        // A field that was taken out is not missing.
        let is_consequence = mistakes.iter().any(|(earlier, ..)| earlier.is_in(&field));
        if !is_consequence {
            mistakes.push((field.clone(), mark.unwrap_or(tree.mark), message));
        }
        if !rest.remove(&field) || mistakes.len() == MOST {
            break;
        }
    }
    mistakes.sort_by_key(|(_, mark, _)| *mark);
    Err(mistakes)
}

pub(super) struct Checks<'a> {
    pub(super) tree: &'a Node,
    pub(super) mistakes: Mistakes,
    pub(super) notes: Vec<(FieldPath, Note)>,
}

impl Checks<'_> {
    pub(super) fn done(mut self, config: Config) -> Read {
        if self.mistakes.is_empty() {
            self.notes.sort_by_key(|(field, _)| self.tree.mark_of(field));
            return Ok((config, self.notes));
        }
        self.mistakes.sort_by_key(|(_, mark, _)| *mark);
        self.mistakes.truncate(MOST);
        Err(self.mistakes)
    }

    pub(super) fn wrong(&mut self, field: &FieldPath, message: impl Into<String>) {
        self.mistakes.push((field.clone(), self.tree.mark_of(field), message.into()));
    }

    fn config(&mut self, config: &Config) {
        let root = FieldPath::default();
        self.clusters(config);
        let is_odd = |name: &String| name.contains(',') || name.trim() != *name || name.is_empty();
        if config.cluster.as_ref().is_some_and(is_odd) {
            let message =
                "expected a name without commas, and without spaces around it: `--cluster A,B` names two";
            self.wrong(&root.field("cluster"), message);
        }
        let watch = root.field("watch");
        self.resources(&watch.field("resources"), &config.watch.resources, |field| field);
        self.namespaces(&watch.field("namespaces"), &config.watch.namespaces);
        self.history(&root.field("history"), config);
        self.noise(&root.field("noise"), config);
        for (at, hide) in config.hide.iter().enumerate() {
            if let Err(error) = hide.path.0.may_hide() {
                self.wrong(&root.field("hide").element(at).field("path"), error.to_string());
            }
        }
        for (name, sink) in &config.sinks {
            self.sink(&root.field("sinks").field(name), name, sink);
        }
        self.routes(config);
        if config.listen_token.as_ref().is_some_and(Secret::is_literal) {
            self.notes.push((root.field("listenToken"), Note::SecretInFile));
        }
        if let Some(web) = &config.web
            && web.tls.is_none()
            && !web.listen.0.is_loopback()
        {
            self.wrong(
                &root.field("web").field("listen"),
                "others reach this address, and tokens would pass in plain text: give `tls`, or listen on 127.0.0.1",
            );
        }
        self.audit(config);
        if config.secrets.wait.0.0 > Duration::from_secs(60) {
            self.wrong(
                &root.field("secrets").field("wait"),
                "expected at most 60s: all changes after it wait, too",
            );
        }
    }

    fn audit(&mut self, config: &Config) {
        let Some(audit) = &config.audit else { return };
        let field = FieldPath::default().field("audit");
        if audit.log.is_none() && audit.webhook.is_none() {
            self.wrong(&field, "expected `log` or `webhook`: the way on which audit events come");
        }
        if config.clusters.is_some() {
            self.wrong(&field, "an audit log is of one cluster, and this process has several: leave it out, or give this cluster a daemon of its own");
        }
        let Some(webhook) = &audit.webhook else { return };
        if webhook.token.is_literal() {
            self.notes.push((field.field("webhook").field("token"), Note::SecretInFile));
        }
    }

    /// `inside` leads from an element to its name.
    pub(super) fn resources(
        &mut self,
        field: &FieldPath,
        names: &[String],
        inside: impl Fn(FieldPath) -> FieldPath,
    ) {
        for (at, name) in names.iter().enumerate().filter(|(_, name)| *name != "*") {
            if let Err(error) = Wanted::parse(from_ref(name)) {
                self.wrong(&inside(field.element(at)), error.to_string());
            } else if name.contains(' ') || name.contains(',') {
                self.wrong(&inside(field.element(at)), "expected one resource in each element");
            }
        }
    }

    pub(super) fn namespaces(&mut self, field: &FieldPath, names: &[String]) {
        for (at, name) in names.iter().enumerate() {
            if name.contains('*') {
                let message = "namespaces to watch are named one by one: to leave some out, use watch.exclude.namespaces, \
                               which takes `*`";
                self.wrong(&field.element(at), message);
            } else if let Err(message) = namespace(name) {
                self.wrong(&field.element(at), message);
            }
        }
    }

    fn history(&mut self, field: &FieldPath, config: &Config) {
        if config.history.path.file_name().is_none() {
            self.wrong(&field.field("path"), "expected the path of a file");
        }
        let events = &config.history.events;
        if events.age.0.0 < Duration::from_secs(3600) {
            self.wrong(&field.field("events").field("age"), "expected at least 1h");
        }
        if !(0.0..=1.0).contains(&events.share) {
            self.wrong(&field.field("events").field("share"), "expected a part of the size: 0 to 1");
        }
        let (retention, field) = (&config.history.retention, field.field("retention"));
        if retention.age.as_ref().is_some_and(|age| age.0.0 < Duration::from_secs(3600)) {
            self.wrong(&field.field("age"), "expected at least 1h, or null for no limit");
        }
        if retention.size.as_ref().is_some_and(|size| size.0.0 < 64 << 20) {
            self.wrong(&field.field("size"), "expected at least 64MiB, or null for no limit");
        }
        if retention.changes == Some(0) {
            self.wrong(&field.field("changes"), "expected at least 1; leave it out for no limit");
        }
    }

    fn noise(&mut self, field: &FieldPath, config: &Config) {
        let known = crate::Noise::default();
        let known: Vec<&str> = known.rules().map(|rule| rule.name()).chain(["all"]).collect();
        for (list, names) in [("show", &config.noise.show), ("hide", &config.noise.hide)] {
            for (at, name) in names.iter().enumerate() {
                if !known.contains(&name.as_str()) {
                    let path = name.contains(['.', '[']);
                    let paths =
                        if path { "; a path belongs in `noise.ignore`" } else { &instead(name, &known) };
                    let message = format!("there is no noise rule `{name}`{paths}");
                    self.wrong(&field.field(list).element(at), message);
                }
            }
        }
        if let Err(error @ InvalidNoise::Path(_)) = config.noise.rules() {
            self.wrong(field, error.to_string());
        }
        for (at, ignore) in config.noise.ignore.iter().enumerate() {
            if ignore.paths.is_empty() {
                self.wrong(&field.field("ignore").element(at).field("paths"), "expected at least one path");
            }
        }
    }

    fn sink(&mut self, field: &FieldPath, name: &str, sink: &Sink) {
        let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        if name.is_empty() || !name.chars().all(is_allowed) {
            self.wrong(field, "the name of a sink has letters, digits, `-` and `_`");
        }
        match sink {
            Sink::Slack(slack) => self.slack(&field.field("slack"), slack),
            Sink::Webhook(webhook) => self.webhook(&field.field("webhook"), webhook),
            Sink::JetStream(stream) => self.jetstream(&field.field("jetstream"), stream),
            Sink::File(file) => self.file(&field.field("file"), file),
            Sink::Stdout(_) => {}
        }
        for (way, secret, may_be_here) in sink.secrets() {
            if secret.is_literal() && !may_be_here {
                let field = way.iter().fold(field.clone(), |field, step| field.field(step));
                self.notes.push((field, Note::SecretInFile));
            }
        }
    }

    fn slack(&mut self, field: &FieldPath, slack: &SlackSettings) {
        match (&slack.token, &slack.channel, &slack.webhook) {
            (Some(_), Some(_), None) | (None, None, Some(_)) => {}
            (Some(_), None, None) => {
                let message =
                    "`channel` is missing: the id of a channel, or its name in quotes, as in \"#ops\"";
                self.wrong(field, message);
            }
            (None, Some(_), None) => {
                self.wrong(field, "`token` is missing: {env: NAME}, a variable with the bot's token");
            }
            (None, None, None) => self.wrong(field, "expected `token` and `channel`, or `webhook`"),
            (_, _, Some(_)) => {
                self.wrong(
                    &field.field("webhook"),
                    "an incoming webhook has its channel, and takes no `token`",
                );
            }
        }
        if slack.channel.as_ref().is_some_and(String::is_empty) {
            self.wrong(&field.field("channel"), "expected the id of a channel, or its name in quotes");
        }
        self.is_url(&field.field("webhook"), slack.webhook.as_ref());
        self.timeout(field, slack.timeout.0);
    }

    fn webhook(&mut self, field: &FieldPath, webhook: &WebhookSettings) {
        self.is_url(&field.field("url"), Some(&webhook.url));
        for (name, value) in &webhook.headers {
            let message = match http::HeaderName::try_from(name.as_str()) {
                Err(_) => "HTTP does not allow this name of a header",
                Ok(name) if OWN_HEADERS.contains(&name.as_str()) => {
                    "kubediff sets this header itself: a receiver relies on it"
                }
                Ok(_) if matches!(value, Secret::Literal(value) if http::HeaderValue::from_str(value).is_err()) => {
                    "HTTP does not allow this value of a header"
                }
                Ok(_) => continue,
            };
            self.wrong(&field.field("headers").field(name), message);
        }
        if let Some(Secret::Literal(key)) = &webhook.signing_key
            && let Err(error) = kubediff_delivery::Key::read(key)
        {
            self.wrong(&field.field("signingKey"), error.to_string());
        }
        if webhook.format == Format::Otlp {
            self.otlp(field, webhook);
        }
        match &webhook.body {
            Some(_) if webhook.format != Format::Plain => {
                self.wrong(&field.field("format"), "a `body` has a form of its own: leave this out");
            }
            Some(body) => {
                let secrets = webhook.secrets.keys().map(|name| (name.clone(), "secret".into())).collect();
                if let Err(error) = BodyTemplate::new(body, None, secrets) {
                    self.wrong(&field.field("body"), error.to_string());
                }
            }
            None if !webhook.secrets.is_empty() => {
                self.wrong(&field.field("secrets"), "they are for a `body`, and there is none");
            }
            None => {}
        }
        if !(1..=1000).contains(&webhook.batch) {
            self.wrong(&field.field("batch"), "expected a whole number from 1 to 1000");
        }
        self.timeout(field, webhook.timeout.0);
    }

    fn otlp(&mut self, field: &FieldPath, webhook: &WebhookSettings) {
        if webhook.method != Method::Post {
            self.wrong(&field.field("method"), "receivers of OpenTelemetry take `POST` alone");
        }
        if let Secret::Literal(url) = &webhook.url
            && url.parse::<http::Uri>().is_ok_and(|url| !url.path().ends_with("/v1/logs"))
        {
            self.notes.push((field.field("url"), Note::OtlpPath));
        }
    }

    fn jetstream(&mut self, field: &FieldPath, stream: &JetStreamSettings) {
        let servers = field.field("servers");
        if stream.servers.is_empty() {
            self.wrong(&servers, "expected at least one server, as in nats://nats.example.com:4222");
        }
        for (at, server) in stream.servers.iter().enumerate() {
            if server.contains('@') {
                let message =
                    "an address has no credentials: give `credentials`, `token`, or `user` and `password`";
                self.wrong(&servers.element(at), message);
            } else if !server.parse::<http::Uri>().is_ok_and(|url| {
                matches!(url.scheme_str(), Some("nats" | "tls"))
                    && url.host().is_some_and(|host| !host.is_empty())
            }) {
                self.wrong(&servers.element(at), "expected an address that begins with nats:// or tls://");
            }
        }
        let is_none = |c: char| c.is_whitespace() || matches!(c, '.' | '*' | '>' | '/' | '\\');
        if stream.stream.as_ref().is_some_and(|name| name.is_empty() || name.contains(is_none)) {
            self.wrong(&field.field("stream"), "the name of a stream has letters, digits, `-` and `_`");
        }
        let JetStreamSettings { credentials, token, user, password, .. } = stream;
        if user.is_some() != password.is_some() {
            self.wrong(field, "`user` and `password` belong together");
        }
        if [credentials.is_some(), token.is_some(), user.is_some()].into_iter().filter(|given| *given).count()
            > 1
        {
            self.wrong(field, "expected one of `credentials`, `token`, and `user` with `password`");
        }
        self.timeout(field, stream.timeout.0);
    }

    fn file(&mut self, field: &FieldPath, file: &FileSettings) {
        if file.max_size.0.0 < 1 << 20 {
            self.wrong(&field.field("maxSize"), "expected at least 1MiB");
        }
        if file.max_files > 1000 {
            self.wrong(&field.field("maxFiles"), "expected a whole number up to 1000");
        }
        if file.path.file_name().is_none() {
            self.wrong(&field.field("path"), "expected the path of a file");
        }
    }

    pub(super) fn is_url(&mut self, field: &FieldPath, url: Option<&Secret>) {
        if let Some(Secret::Literal(url)) = url
            && url.parse::<http::Uri>().map_or(true, |url| {
                !matches!(url.scheme_str(), Some("http" | "https")) || url.host().is_none_or(str::is_empty)
            })
        {
            self.wrong(field, "expected an address that begins with https:// or http://");
        } else if let Some(Secret::Literal(url)) = url
            && !kubediff_delivery::is_url(url)
        {
            self.wrong(field, "expected an address: its host or its port is none");
        }
    }

    fn timeout(&mut self, field: &FieldPath, timeout: Period) {
        if !(Duration::from_secs(1)..=Duration::from_secs(300)).contains(&timeout.0) {
            self.wrong(&field.field("timeout"), "expected a time from 1s to 5m");
        }
    }

    fn routes(&mut self, config: &Config) {
        let Some(routes) = &config.routes else { return };
        let field = FieldPath::default().field("routes");
        let known: Vec<&str> = config.sinks.keys().map(String::as_str).collect();
        for (at, route) in routes.iter().enumerate() {
            let field = field.element(at);
            for (place, sink) in route.sinks.iter().enumerate() {
                if !known.contains(&sink.as_str()) {
                    let message = if known.is_empty() {
                        format!("there is no sink `{sink}`: describe it in `sinks`")
                    } else {
                        format!("there is no sink `{sink}`{}", instead(sink, &known))
                    };
                    self.wrong(&field.field("sinks").element(place), message);
                }
            }
            if let Some(Err(error)) = route.template.as_deref().map(Template::new) {
                self.wrong(&field.field("template"), error.to_string());
            }
            if route.fold.is_empty() {
                continue;
            }
            if route.template.is_some() {
                let message = "stories have texts of their own: a route with `fold` has no template";
                self.wrong(&field.field("template"), message);
            }
            for (place, sink) in route.sinks.iter().enumerate() {
                if config.sinks.get(sink).is_some_and(Sink::has_envelopes) {
                    let message =
                        format!("the format of the sink `{sink}` has no stories: `fold` cannot lead to it");
                    self.wrong(&field.field("sinks").element(place), message);
                }
            }
        }
        let takes_all = |route: &Route| route.matches == super::Match::default() && !route.goes_on;
        if let Some(all) = routes.iter().position(takes_all)
            && all + 1 < routes.len()
        {
            self.notes.push((field.element(all + 1), Note::NeverReached(all)));
        }
        for name in known
            .iter()
            .filter(|name| !routes.iter().any(|route| route.sinks.iter().any(|sink| sink == *name)))
        {
            self.notes.push((FieldPath::default().field("sinks").field(name), Note::NoRoute));
        }
    }
}
