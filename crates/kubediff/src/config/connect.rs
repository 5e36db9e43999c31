//! From the settings of a sink to the sink.

use std::io;
use std::path::{Path, PathBuf};

use kubediff_delivery as delivery;
use kubediff_delivery::{
    Answer, Form, Key, KeyError, Lines, Parcel, Policy, SinkError, Slack, Target, Webhook,
};
use kubediff_history::{Cluster, Ids};

use super::sink::{FileSettings, Format, JetStreamSettings, Method, Sink, SlackSettings, WebhookSettings};
use super::value::{Secret, SecretError};
use crate::show::body::{BodySecrets, BodyTemplate};
use crate::show::template::InvalidTemplate;

/// A sink that can be sent to.
#[derive(Debug)]
pub enum Connection {
    /// A channel of Slack.
    Slack(Box<Slack>),
    /// HTTP requests.
    Webhook(Box<Webhook>),
    /// HTTP requests whose bodies are made by a template.
    Templated(Box<Templated>),
    /// A stream of NATS JetStream.
    #[cfg(feature = "jetstream")]
    JetStream(Box<delivery::JetStream>),
    /// A file.
    File(delivery::File),
    /// Standard output.
    Stdout(Lines<io::Stdout>),
}

/// A webhook, and the template of its bodies.
#[derive(Debug)]
pub struct Templated {
    webhook: Webhook,
    body: BodyTemplate,
}

/// A sink that cannot be set up: a secret is not there, or is none. No message has one.
#[derive(Debug, thiserror::Error)]
#[error("sinks.{sink}.{field} in {}: {}", file.display(), informer::error_chain(reason))]
pub struct NotConnected {
    sink: String,
    field: &'static str,
    file: PathBuf,
    reason: Reason,
}

#[derive(Debug, thiserror::Error)]
enum Reason {
    #[error(transparent)]
    Secret(#[from] SecretError),
    #[error(transparent)]
    Sink(#[from] SinkError),
    #[error(transparent)]
    Key(#[from] KeyError),
    #[error("the file {} cannot be read", .0.display())]
    File(PathBuf, #[source] io::Error),
    #[error(transparent)]
    Body(#[from] InvalidTemplate),
    #[error("a token or a webhook is missing")]
    Incomplete,
    #[cfg(not(feature = "jetstream"))]
    #[error("this kubediff was built without JetStream: build it with the feature `jetstream`")]
    NoJetStream,
}

type Failed = (&'static str, Reason);

impl super::Loaded {
    /// Sets the sink of this name up: reads its secrets, and sends nothing. The cluster is where changes come from.
    ///
    /// # Errors
    ///
    /// When a secret is not where the configuration says, or is none.
    pub fn connect(&self, name: &str, sink: &Sink, cluster: &Cluster) -> Result<Connection, NotConnected> {
        let folder = self.folder();
        let connected = match sink {
            Sink::Slack(settings) => slack(settings, folder).map(|slack| Connection::Slack(Box::new(slack))),
            Sink::Webhook(settings) => webhook(settings, folder, cluster)
                .and_then(|webhook| with_body(settings, folder, cluster, webhook)),
            Sink::JetStream(settings) => {
                jetstream(settings, folder, cluster.name.as_deref().unwrap_or(&cluster.uid))
            }
            Sink::File(settings) => Ok(Connection::File(delivery::File::new(file(settings, folder)))),
            Sink::Stdout(_) => Ok(Connection::Stdout(Lines::stdout())),
        };
        connected.map_err(|(field, reason)| {
            let (sink, file) = (name.to_owned(), self.file.as_ref().clone());
            NotConnected { sink, field, file, reason }
        })
    }
}

impl Sink {
    /// How it is delivered to.
    pub fn policy(&self) -> Policy {
        match self {
            Self::Slack(_) => Policy::chat(),
            Self::Webhook(webhook) => {
                let batch = match webhook.format {
                    _ if webhook.body.is_some() => 1,
                    Format::Plain | Format::CloudEvents | Format::Otlp => webhook.batch as usize,
                    Format::ArriqaaqWatch | Format::ArriqaaqDiff => 1,
                };
                Policy { batch, ..Policy::default() }
            }
            Self::JetStream(_) => Policy::stream(),
            // Each batch waits for the disk.
            Self::File(_) | Self::Stdout(_) => Policy { batch: 500, ..Policy::default() },
        }
    }
}

impl Connection {
    /// Continues where the tail of the sink says, in the log with these ids.
    #[cfg_attr(not(feature = "jetstream"), expect(unused_variables, reason = "other sinks have no tails"))]
    pub(crate) fn continues(self, tail: Option<&str>, ids: Ids) -> Self {
        match self {
            #[cfg(feature = "jetstream")]
            Self::JetStream(sink) => {
                let sink = sink.continues(tail, move |number| ids.of(kubediff_history::Number(number)));
                Self::JetStream(Box::new(sink))
            }
            other => other,
        }
    }
}

impl delivery::Sink for Connection {
    async fn send(&mut self, parcel: Parcel<'_>) -> Answer {
        match self {
            Self::Slack(sink) => sink.send(parcel).await,
            Self::Webhook(sink) => sink.send(parcel).await,
            Self::Templated(sink) => sink.send(parcel).await,
            #[cfg(feature = "jetstream")]
            Self::JetStream(sink) => sink.send(parcel).await,
            Self::File(sink) => sink.send(parcel).await,
            Self::Stdout(sink) => sink.send(parcel).await,
        }
    }

    async fn lost(&mut self) -> u64 {
        match self {
            #[cfg(feature = "jetstream")]
            Self::JetStream(sink) => sink.lost().await,
            _ => std::future::pending().await,
        }
    }

    fn tail(&self) -> Option<Box<str>> {
        match self {
            #[cfg(feature = "jetstream")]
            Self::JetStream(sink) => sink.tail(),
            _ => None,
        }
    }
}

impl Templated {
    async fn send(&mut self, parcel: Parcel<'_>) -> Answer {
        let mut made = Vec::new();
        for record in &parcel.records {
            match self.body.render(record) {
                Ok(body) => made.push(delivery::Record { body, ..(*record).clone() }),
                Err(reason) => {
                    let reason = format!("the template of `body` fails: {reason}").into();
                    return Answer::Refused { reason };
                }
            }
        }
        delivery::Sink::send(&mut self.webhook, Parcel { records: made.iter().collect(), ..parcel }).await
    }
}

fn reveal(secret: &Secret, folder: &Path, field: &'static str) -> Result<Box<str>, Failed> {
    secret.reveal(folder).map(Into::into).map_err(|error| (field, error.into()))
}

fn slack(settings: &SlackSettings, folder: &Path) -> Result<Slack, Failed> {
    let target = match (&settings.token, &settings.channel, &settings.webhook) {
        (_, _, Some(url)) => Target::Webhook { url: reveal(url, folder, "slack.webhook")? },
        (Some(token), Some(channel), None) => {
            Target::Bot { token: reveal(token, folder, "slack.token")?, channel: channel.as_str().into() }
        }
        _ => return Err(("slack", Reason::Incomplete)),
    };
    let (thread, timeout) = (settings.thread.0.0, settings.timeout.0.0);
    let options = delivery::SlackOptions { thread, timeout, ..delivery::SlackOptions::default() };
    Slack::new(target, &options).map_err(|error| ("slack.webhook", error.into()))
}

fn webhook(settings: &WebhookSettings, folder: &Path, cluster: &Cluster) -> Result<Webhook, Failed> {
    let key = match &settings.signing_key {
        Some(secret) => {
            let secret = reveal(secret, folder, "webhook.signingKey")?;
            Some(Key::read(&secret).map_err(|error| ("webhook.signingKey", error.into()))?)
        }
        None => None,
    };
    let mut headers = Vec::new();
    for (name, value) in &settings.headers {
        headers.push((name.clone(), reveal(value, folder, "webhook.headers")?.into()));
    }
    let ca = certificates(settings.ca_file.as_deref(), folder, "webhook.caFile")?;
    let options = delivery::WebhookOptions {
        method: match settings.method {
            Method::Post => http::Method::POST,
            Method::Put => http::Method::PUT,
            Method::Patch => http::Method::PATCH,
        },
        headers,
        form: match settings.format {
            _ if settings.body.is_some() => Form::Bare,
            Format::Plain => Form::Plain,
            Format::CloudEvents => {
                let source = cluster.name.as_deref().unwrap_or("kubediff").into();
                Form::CloudEvents { source, single: false }
            }
            Format::Otlp => Form::Otlp { resource: resource(cluster) },
            Format::ArriqaaqWatch | Format::ArriqaaqDiff => Form::Bare,
        },
        key,
        timeout: settings.timeout.0.0,
        ca,
    };
    let url = reveal(&settings.url, folder, "webhook.url")?;
    Webhook::new(&url, options).map_err(|error| {
        let field = match error {
            SinkError::Url => "webhook.url",
            SinkError::Header { .. } => "webhook.headers",
            SinkError::Certificates => "webhook.caFile",
            SinkError::Tls(_) | SinkError::Server | SinkError::Credentials => "webhook",
        };
        (field, error.into())
    })
}

/// The webhook, and the template of its bodies if there is one.
fn with_body(
    settings: &WebhookSettings,
    folder: &Path,
    cluster: &Cluster,
    webhook: Webhook,
) -> Result<Connection, Failed> {
    let Some(body) = &settings.body else { return Ok(Connection::Webhook(Box::new(webhook))) };
    let secret =
        |(name, secret): (&String, _)| Ok((name.clone(), reveal(secret, folder, "webhook.secrets")?));
    let secrets = settings.secrets.iter().map(secret).collect::<Result<BodySecrets, Failed>>()?;
    let body = BodyTemplate::new(body, cluster.name.clone(), secrets)
        .map_err(|error| ("webhook.body", error.into()))?;
    Ok(Connection::Templated(Box::new(Templated { webhook, body })))
}

/// The attributes of the resource that all records of a cluster are about.
fn resource(cluster: &Cluster) -> Vec<(Box<str>, Box<str>)> {
    let service = ("service.name", "kubediff");
    let name = cluster.name.as_deref().map(|name| ("k8s.cluster.name", name));
    let attributes = [service, ("k8s.cluster.uid", &cluster.uid)].into_iter().chain(name);
    attributes.map(|(name, text)| (name.into(), text.into())).collect()
}

fn certificates(file: Option<&Path>, folder: &Path, field: &'static str) -> Result<Option<Vec<u8>>, Failed> {
    let Some(file) = file else { return Ok(None) };
    let path = folder.join(file);
    std::fs::read(&path).map(Some).map_err(|error| (field, Reason::File(path, error)))
}

#[cfg(not(feature = "jetstream"))]
fn jetstream(_: &JetStreamSettings, _: &Path, _: &str) -> Result<Connection, Failed> {
    Err(("jetstream", Reason::NoJetStream))
}

#[cfg(feature = "jetstream")]
fn jetstream(settings: &JetStreamSettings, folder: &Path, cluster: &str) -> Result<Connection, Failed> {
    let secret = |secret: &Option<Secret>, field| {
        secret.as_ref().map(|secret| reveal(secret, folder, field)).transpose()
    };
    let credentials = secret(&settings.credentials, "jetstream.credentials")?;
    let token = secret(&settings.token, "jetstream.token")?;
    let password = secret(&settings.password, "jetstream.password")?;
    let login = match (credentials, token, settings.user.as_deref().zip(password)) {
        (Some(text), ..) => delivery::Login::Credentials(text),
        (None, Some(token), _) => delivery::Login::Token(token),
        (None, None, Some((user, password))) => delivery::Login::Password { user: user.into(), password },
        (None, None, None) => delivery::Login::Open,
    };
    let options = delivery::JetStreamOptions {
        servers: settings.servers.clone(),
        stream: settings.stream.clone(),
        cluster: cluster.into(),
        login,
        ca: certificates(settings.ca_file.as_deref(), folder, "jetstream.caFile")?,
        create: settings.create,
        timeout: settings.timeout.0.0,
    };
    let sink = delivery::JetStream::new(options).map_err(|error| {
        let field = match error {
            SinkError::Server => "jetstream.servers",
            SinkError::Credentials => "jetstream.credentials",
            SinkError::Certificates => "jetstream.caFile",
            _ => "jetstream",
        };
        (field, error.into())
    })?;
    Ok(Connection::JetStream(Box::new(sink)))
}

fn file(settings: &FileSettings, folder: &Path) -> delivery::FileOptions {
    delivery::FileOptions {
        path: folder.join(&settings.path),
        most_bytes: settings.max_size.0.0,
        most_files: settings.max_files,
        mode: settings.mode.0.0,
    }
}
