//! Where changes are sent.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::value::{Mode, Period, Secret, Size, Text};

/// Where changes are sent. Each sink follows the history at its own pace: one that is down for hours loses nothing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Sink {
    /// A channel of Slack.
    Slack(SlackSettings),
    /// HTTP requests.
    Webhook(WebhookSettings),
    /// A stream of NATS JetStream.
    JetStream(JetStreamSettings),
    /// A file of JSON lines.
    File(FileSettings),
    /// JSON lines on standard output.
    #[cfg_attr(test, schemars(with = "Option<StdoutSettings>"))]
    Stdout(StdoutSettings),
}

/// A channel of Slack: by a bot's `token` and a `channel`, or by an incoming `webhook`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct SlackSettings {
    /// The bot's token, `xoxb-...`. The bot needs the scope `chat:write`, and has to be in the channel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<Secret>,
    /// The channel: its id, or its name in quotes, `"#ops"`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub channel: Option<String>,
    /// The address of an incoming webhook, which is a secret. Without threads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub webhook: Option<Secret>,
    /// Changes of one object are replies to its last message for so long; `0s` for no threads.
    #[serde(default = "thread")]
    pub thread: Text<Period>,
    /// The limit of a request: from `1s` to `5m`.
    #[serde(default = "timeout")]
    pub timeout: Text<Period>,
}

/// HTTP requests. 2xx means taken, 429 and 5xx mean later, other answers end in a dead letter.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct WebhookSettings {
    /// The address, with https:// or http://.
    pub url: Secret,
    /// The method.
    #[serde(default)]
    pub method: Method,
    /// Further headers by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, Secret>,
    /// Signs requests after the Standard Webhooks specification: `whsec_` and 24 to 64 bytes in base64.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signing_key: Option<Secret>,
    /// The format of a request's body.
    #[serde(default)]
    pub format: Format,
    /// In place of a format: a template in the syntax of Jinja that makes JSON of a record. Each value in it is written as JSON, a text with
    /// its quotes: `{"title": {{ cluster ~ ": " ~ text }}}`. A request has one record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<String>,
    /// Secrets for the `body`, by a name of your choice: `{{ secrets.key }}`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub secrets: BTreeMap<String, Secret>,
    /// The most changes of a request, 1 to 1000. A request in the formats `arriqaaq-watch` and `arriqaaq-diff` has one.
    #[serde(default = "batch")]
    #[cfg_attr(test, schemars(range(min = 1, max = 1000)))]
    pub batch: u32,
    /// The limit of a request: from `1s` to `5m`.
    #[serde(default = "timeout")]
    pub timeout: Text<Period>,
    /// A file with certificates in PEM to trust besides those of the machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca_file: Option<PathBuf>,
}

/// The method of a request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub enum Method {
    /// `POST`.
    #[default]
    #[serde(rename = "POST")]
    Post,
    /// `PUT`.
    #[serde(rename = "PUT")]
    Put,
    /// `PATCH`.
    #[serde(rename = "PATCH")]
    Patch,
}

/// Former names of formats, which stay accepted and are not suggested.
pub(super) const FORMER_FORMATS: &[&str] = &["seed", "seed-diff"];

/// The format of a request's body.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    /// `{"changes": [...]}`.
    #[default]
    Plain,
    /// CloudEvents 1.0 in JSON, batched.
    #[serde(rename = "cloudevents")]
    CloudEvents,
    /// Log records of OpenTelemetry, for a receiver of OTLP/HTTP: the address ends with `/v1/logs`.
    Otlp,
    /// The envelope that arriqaaq/kubediff sends in its watch mode: `{"meta": {"Type", "Kind", "Obj", "Diff"},
    /// "timestamp"}`, with the object, and without differences.
    #[serde(alias = "seed")]
    ArriqaaqWatch,
    /// The same in its diff mode: with the differences as texts.
    #[serde(alias = "seed-diff")]
    ArriqaaqDiff,
}

/// A stream of NATS JetStream. Each change is a CloudEvent on the subject `kubediff.CLUSTER.GROUP.RESOURCE.NAMESPACE`, in the order of the
/// history.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct JetStreamSettings {
    /// The servers, `nats://HOST:PORT`, or `tls://HOST:PORT` for encrypted connections. One that answers is enough.
    pub servers: Vec<String>,
    /// The stream, which has the subjects `kubediff.CLUSTER.>` and no other writer; `KUBEDIFF_CLUSTER` by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stream: Option<String>,
    /// The credentials of an account: the text of a `.creds` file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credentials: Option<Secret>,
    /// A token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<Secret>,
    /// The name of a user with a `password`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// The password of the `user`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password: Option<Secret>,
    /// A file with certificates in PEM to trust besides those of the machine. The connection is encrypted then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca_file: Option<PathBuf>,
    /// Whether a stream that does not exist is created: in files, without limits.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub create: bool,
    /// The limit of an answer: from `1s` to `5m`.
    #[serde(default = "answer")]
    pub timeout: Text<Period>,
}

/// A file of JSON lines, which is rotated: `changes.log`, `changes.log.1`, and so on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct FileSettings {
    /// The file.
    pub path: PathBuf,
    /// Another file begins when this one is so large: at least `1MiB`.
    #[serde(default = "max_size")]
    pub max_size: Text<Size>,
    /// How many older files are kept, up to 1000.
    #[serde(default = "max_files")]
    #[cfg_attr(test, schemars(range(max = 1000)))]
    pub max_files: u32,
    /// The permissions of a file that is made, in quotes: `"0640"` lets a group read it, such as that of a log shipper.
    #[serde(default = "mode")]
    pub mode: Text<Mode>,
}

/// JSON lines on standard output.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct StdoutSettings {}

fn timeout() -> Text<Period> {
    Text(Period(Duration::from_secs(10)))
}

fn answer() -> Text<Period> {
    Text(Period(Duration::from_secs(5)))
}

fn thread() -> Text<Period> {
    Text(Period(Duration::from_secs(600)))
}

fn batch() -> u32 {
    50
}

fn mode() -> Text<Mode> {
    Text(Mode(0o600))
}

fn max_size() -> Text<Size> {
    Text(Size(100 << 20))
}

fn max_files() -> u32 {
    5
}

impl Default for SlackSettings {
    fn default() -> Self {
        Self { token: None, channel: None, webhook: None, thread: thread(), timeout: timeout() }
    }
}

impl WebhookSettings {
    /// For this address, with the defaults.
    pub fn to(url: Secret) -> Self {
        Self {
            url,
            method: Method::default(),
            headers: BTreeMap::new(),
            signing_key: None,
            format: Format::default(),
            body: None,
            secrets: BTreeMap::new(),
            batch: batch(),
            timeout: timeout(),
            ca_file: None,
        }
    }
}

impl Sink {
    /// The secrets in its settings: the way to each from the sink, and whether it may stand there with no warning.
    pub(super) fn secrets(&self) -> Vec<(Vec<&str>, &Secret, bool)> {
        match self {
            Self::Slack(slack) => {
                let token = slack.token.iter().map(|token| (vec!["slack", "token"], token, false));
                let webhook = slack.webhook.iter().map(|url| (vec!["slack", "webhook"], url, false));
                token.chain(webhook).collect()
            }
            Self::Webhook(webhook) => {
                let url = (vec!["webhook", "url"], &webhook.url, !has_credentials(&webhook.url));
                let key = webhook.signing_key.iter().map(|key| (vec!["webhook", "signingKey"], key, false));
                let headers = webhook.headers.iter().map(|(name, value)| {
                    (vec!["webhook", "headers", name.as_str()], value, !is_sensitive(name))
                });
                let secrets = webhook.secrets.iter();
                let secrets =
                    secrets.map(|(name, value)| (vec!["webhook", "secrets", name.as_str()], value, false));
                [url].into_iter().chain(key).chain(headers).chain(secrets).collect()
            }
            Self::JetStream(stream) => {
                let JetStreamSettings { credentials, token, password, .. } = stream;
                let secrets = [("credentials", credentials), ("token", token), ("password", password)];
                let given = secrets.into_iter().filter_map(|(name, secret)| Some((name, secret.as_ref()?)));
                given.map(|(name, secret)| (vec!["jetstream", name], secret, false)).collect()
            }
            Self::File(_) | Self::Stdout(_) => Vec::new(),
        }
    }

    /// Whether its format is the envelope of arriqaaq/kubediff, which has objects alone.
    pub(super) fn has_envelopes(&self) -> bool {
        let is_envelope = |format| matches!(format, Format::ArriqaaqWatch | Format::ArriqaaqDiff);
        matches!(self, Self::Webhook(webhook) if is_envelope(webhook.format))
    }

    /// The files that its settings name, with secrets and certificates.
    pub(super) fn files(&self) -> Vec<&Path> {
        let secrets = self.secrets().into_iter().filter_map(|(_, secret, _)| match secret {
            Secret::File(file) => Some(file.as_path()),
            Secret::Literal(_) | Secret::Env(_) => None,
        });
        let authorities = match self {
            Self::Webhook(webhook) => webhook.ca_file.as_deref(),
            Self::JetStream(stream) => stream.ca_file.as_deref(),
            _ => None,
        };
        secrets.chain(authorities).collect()
    }
}

/// Whether an address that stands in the configuration has a name or a password before its host.
fn has_credentials(url: &Secret) -> bool {
    matches!(url, Secret::Literal(url) if url.split('/').nth(2).is_some_and(|authority| authority.contains('@')))
}

/// Whether a header of this name usually has a secret.
fn is_sensitive(header: &str) -> bool {
    let header = header.to_ascii_lowercase();
    ["authorization", "token", "key", "secret", "cookie", "password"].iter().any(|word| header.contains(word))
}
