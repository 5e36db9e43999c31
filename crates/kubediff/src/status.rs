//! `kubediff status`: what a running daemon says of itself.

use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use http::header::{AUTHORIZATION, HOST};
use http_body_util::{BodyExt, Empty, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpStream;

use crate::args::{StatusArgs, StatusOutput};
use crate::config::{Secret, SecretError};
use crate::exit::Exit;
use crate::text::table::Table;
use crate::text::terminal::escape;

/// The daemon answers at once, or not at all.
const LIMIT: Duration = Duration::from_secs(10);
/// The most bytes of an answer.
const MOST: usize = 16 << 20;

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Why the state is not known.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StatusError {
    #[error("`{0}` is not an address: expected for example http://127.0.0.1:8080")]
    Address(String),
    #[error(
        "no daemon answers on {0}; name its address with --address, or see `listen` in its configuration"
    )]
    Silent(String, #[source] Option<Failure>),
    #[error("{0} is not a daemon of kubediff: its /status is not what it should be")]
    Other(String),
    #[error("the daemon on {0} wants another token; name a file with its `listenToken` with --token-file")]
    Token(String),
    #[error(transparent)]
    NoToken(#[from] SecretError),
    #[error("the daemon is not ready")]
    NotReady,
    #[error("the output cannot be written")]
    Output(#[from] io::Error),
}

impl StatusError {
    pub(crate) fn exit(&self) -> Exit {
        match self {
            Self::Address(_) => Exit::Usage,
            _ => Exit::Failure,
        }
    }
}

pub(crate) async fn run(args: &StatusArgs) -> Result<(), StatusError> {
    let token = match &args.token_file {
        Some(file) => Some(Secret::File(file.clone()).reveal(Path::new(""))?),
        None => None,
    };
    let status = ask(&args.address, token.as_deref()).await?;
    let text = match args.output {
        StatusOutput::Json => format!("{status}\n"),
        StatusOutput::Text => text(&status),
    };
    io::stdout().write_all(text.as_bytes())?;
    if status["ready"] == true { Ok(()) } else { Err(StatusError::NotReady) }
}

async fn ask(address: &str, token: Option<&str>) -> Result<Value, StatusError> {
    let invalid = || StatusError::Address(address.to_owned());
    let uri: http::Uri = address.parse().map_err(|_| invalid())?;
    let (Some("http"), Some(server)) = (uri.scheme_str(), uri.authority()) else { return Err(invalid()) };
    let host = server.host();
    // `Authority::port` is `None` for an invalid port, as if there were none.
    let port = match server.as_str().rsplit('@').next().and_then(|server| server.strip_prefix(host)) {
        Some("") => 80,
        port => port.and_then(|port| port.strip_prefix(':')?.parse().ok()).ok_or_else(invalid)?,
    };
    let path = format!("{}/status", uri.path().trim_end_matches('/'));
    let mut request = http::Request::get(path).header(HOST, format!("{host}:{port}"));
    if let Some(token) = token {
        request = request.header(AUTHORIZATION, format!("Bearer {token}"));
    }
    let request = request.body(Empty::new()).map_err(|_| invalid())?;
    let asked = tokio::time::timeout(LIMIT, answer(host, port, request));
    let silent = |source| StatusError::Silent(address.to_owned(), source);
    let (status, body) = asked.await.map_err(|_| silent(None))?.map_err(|error| silent(Some(error)))?;
    if status == StatusCode::UNAUTHORIZED {
        return Err(StatusError::Token(address.to_owned()));
    }
    let status = serde_json::from_slice::<Value>(&body).ok().filter(|status| status["ready"].is_boolean());
    status.ok_or_else(|| StatusError::Other(address.to_owned()))
}

/// The body of the answer to one request, on a connection of its own.
async fn answer(
    host: &str,
    port: u16,
    request: http::Request<Empty<Bytes>>,
) -> Result<(StatusCode, Bytes), Failure> {
    let stream = TcpStream::connect(format!("{host}:{port}")).await?;
    let (mut client, connection) = http1::handshake(TokioIo::new(stream)).await?;
    // The request gets each error that comes before its answer. An error after the answer does not matter.
    tokio::spawn(connection);
    let response = client.send_request(request).await?;
    let status = response.status();
    Limited::new(response.into_body(), MOST).collect().await.map(|body| (status, body.to_bytes()))
}

/// The state of the cluster, or of each of several by its name.
fn text(status: &Value) -> String {
    let Some(clusters) = status["clusters"].as_object() else { return text_of(status) };
    let texts = clusters.iter().map(|(name, status)| format!("{}: {}", escape(name), text_of(status)));
    texts.collect::<Vec<_>>().join("\n")
}

/// Tables, as kubectl has them.
fn text_of(status: &Value) -> String {
    let mut out = String::new();
    match status["reason"].as_str() {
        None => out.push_str("ready\n"),
        Some(reason) => {
            let _ = writeln!(out, "not ready: {}", escape(reason));
        }
    }
    if let Some(leader) = status["standby"]["of"].as_str() {
        let kept = &status["standby"]["kept"];
        let again = match status["standby"]["torn"].as_u64() {
            Some(torn) => format!("{torn} resources"),
            None => "everything".to_owned(),
        };
        let leader = escape(leader);
        let _ = writeln!(out, "standby of {leader}: keeps {kept} changes, would list {again} again");
    }
    if let Some(path) = status["history"]["path"].as_str() {
        let _ = writeln!(out, "history: {}, {} records", escape(path), status["history"]["records"]);
    }
    if let Some(trouble) = status["memory"]["trouble"].as_str() {
        let _ = writeln!(out, "{}", escape(trouble));
    }
    if let Some(over @ 1..) = status["secrets"]["over_bounds"].as_u64() {
        let _ = writeln!(
            out,
            "{over} values of Secrets are not searched for in other objects: there are too many"
        );
    }
    let rows = |of: &Value, row: &dyn Fn(&str, &Value) -> Vec<String>| -> Vec<Vec<String>> {
        let all = of.as_object().into_iter().flatten();
        all.map(|(name, state)| row(&escape(name), state)).collect()
    };
    let word = |value: &Value| escape(value.as_str().unwrap_or_default()).into_owned();
    let watches = rows(&status["watches"], &|name, watch| {
        vec![name.to_owned(), word(&watch["state"]), word(&watch["since"]), word(&watch["reason"])]
    });
    add(&mut out, ["WATCH", "STATE", "SINCE", "REASON"], &watches);
    let sinks = rows(&status["sinks"], &|name, sink| {
        let trouble = word(&sink["trouble"]);
        let [position, behind, dead] = ["position", "behind", "dead"].map(|field| sink[field].to_string());
        vec![name.to_owned(), position, behind, dead, trouble]
    });
    add(&mut out, ["SINK", "POSITION", "BEHIND", "DEAD", "TROUBLE"], &sinks);
    out
}

fn add<const COLUMNS: usize>(out: &mut String, heads: [&str; COLUMNS], rows: &[Vec<String>]) {
    if !rows.is_empty() {
        out.push('\n');
        let mut table = Table::default();
        table.row(heads);
        rows.iter().for_each(|row| table.row(row));
        out.push_str(&table.text());
    }
}
