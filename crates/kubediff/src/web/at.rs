//! `kubediff at TIME -- COMMAND`: runs kubectl, k9s or any other client against the cluster as it was.

use std::io::{self, Write as _};
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::Arc;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use http::{Request, Response, StatusCode, header};
use http_body_util::BodyExt as _;
use jiff::Zoned;
use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;
use serde_json::{Value, json};
use serve::http::{ConnectionInfo, Server, ServerOptions};
use serve::{Body, Reason, Serve, Status};
use tempfile::TempDir;
use tokio::process::Command;

use super::args::AtArgs;
use super::behind::Behind;
use super::door::{hash, token};
use super::error::UiError;
use super::listener::provider;
use super::server::own_address;
use crate::ask::instant::instant;
use crate::ask::{AskError, UnknownName};
use crate::cluster;
use crate::exit::Exit;
use crate::query::QueryError;
use crate::signals::Signals;
use crate::text::clock::date_and_time;
use crate::text::terminal::say;

/// The command could not be run in the past.
#[derive(Debug, thiserror::Error)]
pub enum AtError {
    /// The history cannot be read, or there is no way to it.
    #[error(transparent)]
    History(#[from] UiError),
    /// The history has no such time.
    #[error("{0}")]
    NoSuchTime(String),
    /// The kubeconfig cannot be written.
    #[error("the kubeconfig of the past cannot be written to {}", .0.display())]
    Kubeconfig(PathBuf, #[source] io::Error),
    /// No certificate can be made.
    #[error("no certificate can be made for the server of the past")]
    Certificate(#[from] rcgen::Error),
    /// The certificate cannot be used.
    #[error("the server of the past cannot use its certificate")]
    Tls(#[from] rustls::Error),
    /// The program cannot be run.
    #[error("`{0}` cannot be run; the command after `--` is a program in your PATH, such as kubectl")]
    Command(String, #[source] io::Error),
}

impl AtError {
    /// How the program ends with this.
    pub fn exit(&self) -> Exit {
        match self {
            Self::History(error) => error.exit(),
            Self::NoSuchTime(_) | Self::Kubeconfig(..) | Self::Certificate(_) | Self::Tls(_) => Exit::Failure,
            // As shells do.
            Self::Command(_, source) if source.kind() == io::ErrorKind::NotFound => Exit::As(127),
            Self::Command(..) => Exit::As(126),
        }
    }
}

/// Runs the command, or serves until it is asked to end; how the program ends then.
///
/// # Errors
///
/// When the history cannot be read or has no such time, or the command cannot be run.
pub async fn run(args: &AtArgs) -> Result<Exit, AtError> {
    let mut signals = Signals::listen().map_err(UiError::Signals)?;
    let now = args.source.now.clone().unwrap_or_else(Zoned::now);
    let time = time(&args.time, &now)?;
    let certificate = Certificate::new(own_address())?;
    let server = Server::bind(certificate.options());
    let server = server.await.map_err(|source| UiError::Port { port: 0, source })?;
    let behind = tokio::select! {
        opened = Behind::open(&args.source) => opened?,
        () = signals.end() => return Ok(Exit::Success),
    };
    let words = describe(&behind, &time, &now).await?;
    let name = format!("{}@{time}", behind.name);
    let (address, token) = (format!("https://{}", server.address()), token().map_err(UiError::Random)?);
    let past = Arc::new(Past { behind, time, token: hash(&token) });
    let serving = server.serve(move |request: Request<Bytes>, _: ConnectionInfo| {
        let past = past.clone();
        async move { past.answer(request).await }
    });
    let namespace = cluster::current_namespace(&args.source.cluster);
    let content = kubeconfig(&name, &address, &certificate.pem, &token, namespace);
    let folder = Folder::new(&content)?;
    for line in words {
        say(&line);
    }
    let ended = match args.command.split_first() {
        Some((program, rest)) => {
            let mut command = Command::new(program);
            // kubectl remembers discovery by the address of the server: beside the kubeconfig, it goes with it.
            command.args(rest).env("KUBECONFIG", &folder.kubeconfig).env("KUBECACHEDIR", folder.path());
            wait(command, &program.to_string_lossy(), &mut signals).await
        }
        None => {
            let export = format!("export KUBECONFIG={}\n", folder.kubeconfig.display());
            // Whoever reads it may be gone; the past is served all the same.
            let _ = io::stdout().write_all(export.as_bytes());
            say("Ctrl-C ends it");
            signals.end().await;
            Ok(Exit::Success)
        }
    };
    serving.stop().await;
    ended
}

/// The time in the form of an address.
fn time(text: &str, now: &Zoned) -> Result<String, AtError> {
    let text = text.trim();
    if let Some(number) = text.strip_prefix('#') {
        let malformed = |_| UiError::History(AskError::from(UnknownName::Revision(text.to_owned())).into());
        return Ok(number.parse::<u64>().map_err(malformed)?.to_string());
    }
    if text == "now" {
        return Ok(text.to_owned());
    }
    let time = instant(text, now).map_err(AskError::from).map_err(QueryError::from).map_err(UiError::from)?;
    Ok(time.to_string())
}

/// What is served, in words: a line, and one for each doubt.
async fn describe(behind: &Behind, time: &str, now: &Zoned) -> Result<Vec<String>, AtError> {
    let request = Request::get(format!("/at/{time}/version")).body(Bytes::new()).unwrap_or_default();
    let response = behind.answer(&request).await;
    if response.status() != StatusCode::OK {
        let body = response.into_body().collect().await.map(http_body_util::Collected::to_bytes);
        let status: Value = serde_json::from_slice(&body.unwrap_or_default()).unwrap_or_default();
        let said =
            status["message"].as_str().unwrap_or("the history does not answer; its kubediff may be older");
        return Err(AtError::NoSuchTime(said.to_owned()));
    }
    let text = |value: &http::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    let record = response.headers().get(super::past::RECORD).map(text).unwrap_or_default();
    let when = match time.parse() {
        Ok(time) => date_and_time(time, now.time_zone()),
        Err(_) if time == "now" => "now, as it is recorded".to_owned(),
        Err(_) => format!("record {time}"),
    };
    let mut lines = vec![format!("{} as of {when} (record {record})", behind.name)];
    let doubts = response.headers().get_all(header::WARNING).iter().map(text);
    lines.extend(doubts.filter_map(|doubt| Some(doubt.split_once('"')?.1.trim_end_matches('"').to_owned())));
    Ok(lines)
}

/// The API server of one time, for whoever has its token.
struct Past {
    behind: Behind,
    time: String,
    token: [u8; 32],
}

impl Past {
    async fn answer(&self, request: Request<Bytes>) -> Response<Body> {
        let sent = request.uri().path_and_query().map_or("/", http::uri::PathAndQuery::as_str);
        let uri = format!("/at/{}{sent}", self.time).parse();
        // Hashes are compared, so that the time says nothing of the token.
        let sent_token = request.headers().get(header::AUTHORIZATION).and_then(|sent| sent.to_str().ok());
        let sent_token = sent_token.and_then(|sent| sent.strip_prefix("Bearer "));
        let is_known = sent_token.is_some_and(|token| hash(token) == self.token);
        let (true, Ok(uri)) = (is_known, uri) else {
            let why = "only the kubeconfig of this `kubediff at` has the token of this server";
            return Serve::refusal(&Status::new(Reason::Unauthorized, why));
        };
        let (mut parts, body) = request.into_parts();
        parts.uri = uri;
        self.behind.answer(&Request::from_parts(parts, body)).await
    }
}

/// A certificate for this run. Without TLS, clients would not send the token.
struct Certificate {
    address: Ipv4Addr,
    config: Arc<ServerConfig>,
    pem: String,
}

impl Certificate {
    fn new(address: Ipv4Addr) -> Result<Self, AtError> {
        let made = rcgen::generate_simple_self_signed([address.to_string()])?;
        let key = PrivateKeyDer::Pkcs8(made.signing_key.serialize_der().into());
        let builder =
            ServerConfig::builder_with_provider(provider()).with_safe_default_protocol_versions()?;
        let config = builder.with_no_client_auth().with_single_cert(vec![made.cert.der().clone()], key)?;
        Ok(Self { address, config: Arc::new(config), pem: made.cert.pem() })
    }

    fn options(&self) -> ServerOptions {
        let (address, tls) = ((self.address, 0).into(), Some(self.config.clone()));
        ServerOptions { address, tls, ..ServerOptions::default() }
    }
}

/// A folder of this user alone, which is gone at the end.
struct Folder {
    folder: TempDir,
    kubeconfig: PathBuf,
}

impl Folder {
    fn new(content: &Value) -> Result<Self, AtError> {
        let folder = tempfile::Builder::new().prefix("kubediff-at-").tempdir();
        let folder = folder.map_err(|source| AtError::Kubeconfig(std::env::temp_dir(), source))?;
        let kubeconfig = folder.path().join("kubeconfig");
        write_private(&kubeconfig, &content.to_string())
            .map_err(|source| AtError::Kubeconfig(kubeconfig.clone(), source))?;
        Ok(Self { folder, kubeconfig })
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }
}

fn kubeconfig(name: &str, server: &str, pem: &str, token: &str, namespace: Option<String>) -> Value {
    let mut context = json!({ "cluster": name, "user": name });
    if let Some(namespace) = namespace {
        context["namespace"] = namespace.into();
    }
    let cluster = json!({ "server": server, "certificate-authority-data": BASE64_STANDARD.encode(pem) });
    json!({
        "apiVersion": "v1", "kind": "Config", "current-context": name,
        "clusters": [{ "name": name, "cluster": cluster }],
        "users": [{ "name": name, "user": { "token": token } }],
        "contexts": [{ "name": name, "context": context }],
    })
}

/// Writes a file that other users cannot read.
fn write_private(path: &Path, content: &str) -> io::Result<()> {
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)?.write_all(content.as_bytes())
}

/// Runs a command to its end. Ctrl-C is the command's; another request to end is passed on.
async fn wait(mut command: Command, name: &str, signals: &mut Signals) -> Result<Exit, AtError> {
    let failed = |source| AtError::Command(name.to_owned(), source);
    let mut child = command.kill_on_drop(true).spawn().map_err(failed)?;
    loop {
        tokio::select! {
            ended = child.wait() => return Ok(exit(ended.map_err(failed)?)),
            () = signals.terminated() => child.start_kill().map_err(failed)?,
        }
    }
}

fn exit(status: ExitStatus) -> Exit {
    #[cfg(unix)]
    let signal = std::os::unix::process::ExitStatusExt::signal(&status);
    #[cfg(not(unix))]
    let signal: Option<i32> = None;
    let code = status.code().or(signal.map(|signal| 128 + signal)).unwrap_or(1);
    Exit::As(u8::try_from(code).unwrap_or(1))
}
