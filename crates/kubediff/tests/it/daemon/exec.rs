//! The exec subresource of a pod as kube-apiserver and kubelet have it, over WebSocket. The container is this machine: the
//! command is the built `kubediff`, in an environment of its own.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use base64::Engine as _;
use bytes::Bytes;
use futures_util::{SinkExt, StreamExt};
use http::{Request, Response, StatusCode, header};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use serve::{Body, full};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::Role;

/// The reaction of a container to a command.
#[derive(Debug, Clone, Default)]
pub(crate) enum Container {
    /// Runs it.
    #[default]
    Runs,
    /// Runs it; the connection breaks after so many bytes of its output.
    Breaks(usize),
    /// The same, with a proper end of the connection but no word of the command's.
    Closes(usize),
    /// Cannot run it, and says so in the last message.
    Says(Value),
    /// Has another program of that name, which writes this to standard error and ends with this code.
    Is(&'static str, i64),
}

/// A question as the server got it.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) path: String,
    pub(crate) container: String,
    pub(crate) command: Vec<String>,
    pub(crate) headers: http::HeaderMap,
    pub(crate) protocol: String,
    /// Whether the command has a standard input.
    pub(crate) has_input: bool,
}

/// Reads the request of an exec.
pub(crate) fn asked(request: &Request<Bytes>, protocols: &[&str]) -> Asked {
    let mut asked = Asked {
        path: request.uri().path().to_owned(),
        container: String::new(),
        command: Vec::new(),
        headers: request.headers().clone(),
        protocol: String::new(),
        has_input: false,
    };
    let mut streams = Vec::new();
    for (name, value) in form_urlencoded::parse(request.uri().query().unwrap().as_bytes()) {
        match &*name {
            "command" => asked.command.push(value.into_owned()),
            "container" => asked.container = value.into_owned(),
            name if value == "true" => streams.push(name.to_owned()),
            _ => {}
        }
    }
    streams.sort();
    asked.has_input = streams.contains(&"stdin".to_owned());
    streams.retain(|stream| stream != "stdin");
    assert_eq!(streams, ["stderr", "stdout"]);
    let offered = request.headers()[header::SEC_WEBSOCKET_PROTOCOL].to_str().unwrap();
    let chosen = offered.split(", ").find(|offer| protocols.contains(offer));
    asked.protocol = chosen.unwrap_or_default().to_owned();
    asked
}

/// Switches to WebSocket, and runs the command there.
pub(crate) fn upgrade(
    mut request: Request<Bytes>,
    asked: &Asked,
    container: Container,
    history: PathBuf,
) -> Response<Body> {
    let upgraded = hyper::upgrade::on(&mut request);
    let (command, has_input) = (asked.command.clone(), asked.has_input);
    tokio::spawn(async move {
        let stream = TokioIo::new(upgraded.await.unwrap());
        let mut socket = WebSocketStream::from_raw_socket(stream, Role::Server, None).await;
        if has_input && matches!(container, Container::Runs) {
            let _ = pipe(&mut socket, &command, &history).await;
            return;
        }
        // A client that has gone away is none of the container's business.
        let _ = serve_container(&mut socket, &container, command, &history).await;
    });
    let key = request.headers()[header::SEC_WEBSOCKET_KEY].as_bytes();
    Response::builder()
        .status(StatusCode::SWITCHING_PROTOCOLS)
        .header(header::CONNECTION, "Upgrade")
        .header(header::UPGRADE, "websocket")
        .header(header::SEC_WEBSOCKET_ACCEPT, derive_accept_key(key))
        .header(header::SEC_WEBSOCKET_PROTOCOL, &asked.protocol)
        .body(full(Bytes::new()))
        .unwrap()
}

type Socket = WebSocketStream<TokioIo<hyper::upgrade::Upgraded>>;
type Sent = Result<(), tokio_tungstenite::tungstenite::Error>;

async fn serve_container(
    socket: &mut Socket,
    container: &Container,
    command: Vec<String>,
    history: &Path,
) -> Sent {
    /// Small, so that an answer has many.
    const CHUNK: usize = 500;
    // kube-apiserver begins each channel with an empty message.
    for channel in 1..=3 {
        send(socket, channel, &[]).await?;
    }
    let (out, err, status) = match container {
        Container::Says(status) => (Vec::new(), Vec::new(), status.clone()),
        Container::Is(says, code) => (Vec::new(), says.as_bytes().to_vec(), ended(*code)),
        Container::Runs | Container::Breaks(_) | Container::Closes(_) => {
            let history = history.to_owned();
            let ran = tokio::task::spawn_blocking(move || run(&command, &history)).await.unwrap();
            let code = i64::from(ran.status.code().unwrap());
            (ran.stdout, ran.stderr, ended(code))
        }
    };
    if let Container::Breaks(most) | Container::Closes(most) = container {
        for chunk in out[..*most].chunks(CHUNK) {
            send(socket, 1, chunk).await?;
        }
        if matches!(container, Container::Closes(_)) {
            socket.close(None).await?;
        }
        return Ok(());
    }
    for chunk in out.chunks(CHUNK) {
        send(socket, 1, chunk).await?;
    }
    for chunk in err.chunks(CHUNK) {
        send(socket, 2, chunk).await?;
    }
    send(socket, 3, status.to_string().as_bytes()).await?;
    socket.close(None).await?;
    // The client's half of the goodbye.
    while let Some(Ok(_)) = socket.next().await {}
    Ok(())
}

async fn send(socket: &mut Socket, channel: u8, bytes: &[u8]) -> Sent {
    socket.send(Message::binary([&[channel], bytes].concat())).await
}

/// Runs the command with an input, until one side ends it.
async fn pipe(socket: &mut Socket, command: &[String], history: &Path) -> Sent {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    for channel in 1..=3 {
        send(socket, channel, &[]).await?;
    }
    let mut child = tokio::process::Command::from(prepared(command, history))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let (mut stdin, mut stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let mut stderr = child.stderr.take().unwrap();
    let (mut out, mut err) = (vec![0; 3_000], vec![0; 3_000]);
    loop {
        tokio::select! {
            read = stdout.read(&mut out) => match read.unwrap() {
                0 => break,
                length => send(socket, 1, &out[..length]).await?,
            },
            read = stderr.read(&mut err) => match read.unwrap() {
                0 => break,
                length => send(socket, 2, &err[..length]).await?,
            },
            message = socket.next() => match message {
                Some(Ok(Message::Binary(bytes))) if bytes.first() == Some(&0) => stdin.write_all(&bytes[1..]).await.unwrap(),
                Some(Ok(_)) => {}
                _ => return Ok(()),
            },
        }
    }
    drop(stdin);
    let code = child.wait().await.unwrap().code().unwrap();
    send(socket, 3, ended(code.into()).to_string().as_bytes()).await?;
    socket.close(None).await
}

/// The status that a kubelet sends at a command's end.
fn ended(code: i64) -> Value {
    if code == 0 {
        return json!({"metadata": {}, "status": "Success"});
    }
    json!({
        "metadata": {}, "status": "Failure", "reason": "NonZeroExitCode",
        "message": format!("command terminated with non-zero exit code: exit status {code}"),
        "details": {"causes": [{"reason": "ExitCode", "message": code.to_string()}]},
    })
}

/// Runs the command to its end.
fn run(command: &[String], history: &Path) -> Output {
    prepared(command, history).output().unwrap()
}

/// The command as in the daemon's container: without a terminal, a time zone, or files of time zones.
fn prepared(command: &[String], history: &Path) -> Command {
    let (program, arguments) = command.split_first().unwrap();
    assert_eq!(program, "kubediff");
    let mut prepared = Command::new(env!("CARGO_BIN_EXE_kubediff"));
    prepared.args(arguments).env_clear().env("KUBEDIFF_HISTORY", history).env("TZDIR", "/nowhere");
    prepared
}

/// How a value of a Secret might stand in an answer.
pub(crate) fn forms(secret: &str) -> [String; 2] {
    [secret.to_owned(), base64::engine::general_purpose::STANDARD.encode(secret)]
}
