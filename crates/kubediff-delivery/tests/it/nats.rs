//! A real NATS server with file storage, and a relay before it that cuts connections.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use async_nats::jetstream::consumer::pull::OrderedConfig;
use async_nats::jetstream::{Context, Message, stream::Stream};
use futures_util::StreamExt;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, copy};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) struct Nats {
    program: PathBuf,
    folder: TempDir,
    address: SocketAddr,
    options: Vec<String>,
    child: Option<Child>,
}

impl Nats {
    /// A server with these options; `None` where tests do without.
    pub(crate) async fn start(test: &str, options: &[&str]) -> Option<Self> {
        let named = test.to_owned();
        let built = tokio::task::spawn_blocking(move || control_plane::nats_server_or_skip(&named));
        let program = built.await.expect("no panic")?;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, control_plane::free_port()));
        let options = options.iter().map(|option| (*option).to_owned()).collect();
        let folder = tempfile::tempdir().expect("a folder");
        let mut nats = Self { program, folder, address, options, child: None };
        nats.begin().await;
        Some(nats)
    }

    /// Starts it with what it has stored, and waits until it answers.
    pub(crate) async fn begin(&mut self) {
        let mut command = Command::new(&self.program);
        command.args(["-a", "127.0.0.1", "-p", &self.address.port().to_string(), "-js", "-sd"]);
        command.arg(self.storage()).args(&self.options).stdout(Stdio::null()).stderr(Stdio::null());
        self.child = Some(command.spawn().expect("a process"));
        let begun = Instant::now();
        while !self.answers().await {
            assert!(begun.elapsed() < PATIENCE, "the server does not answer");
            tokio::task::yield_now().await;
        }
    }

    async fn answers(&self) -> bool {
        let Ok(mut stream) = TcpStream::connect(self.address).await else { return false };
        // The first thing that a server says is `INFO`.
        stream.read_u8().await.is_ok_and(|byte| byte == b'I')
    }

    /// SIGKILL.
    pub(crate) fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().expect("a process");
            child.wait().expect("a process");
        }
    }

    pub(crate) fn storage(&self) -> PathBuf {
        self.folder.path().join("storage")
    }

    pub(crate) fn url(&self) -> String {
        format!("nats://{}", self.address)
    }

    pub(crate) async fn client(&self) -> Context {
        async_nats::jetstream::new(async_nats::connect(self.url()).await.expect("a connection"))
    }

    pub(crate) async fn stream(&self) -> Stream {
        self.client().await.get_stream("KUBEDIFF_prod").await.expect("a stream")
    }

    /// What a consumer gets of the stream.
    pub(crate) async fn messages(&self) -> Vec<Message> {
        let mut stream = self.stream().await;
        let messages = stream.info().await.expect("an answer").state.messages;
        let consumer = stream.create_consumer(OrderedConfig::default()).await.expect("a consumer");
        let got = consumer.messages().await.expect("messages").take(messages as usize);
        got.map(|message| message.expect("a message")).collect().await
    }

    /// The numbers of the records that a consumer gets.
    pub(crate) async fn view(&self) -> Vec<u64> {
        let messages = self.messages().await;
        messages.iter().map(|message| header(message, "ce-sequence").parse().expect("a number")).collect()
    }
}

pub(crate) fn header<'a>(message: &'a Message, name: &str) -> &'a str {
    message.headers.as_ref().and_then(|headers| headers.get(name)).expect("a header").as_str()
}

impl Drop for Nats {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Copies a folder with all that is in it.
pub(crate) fn copy_folder(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("a folder");
    for entry in std::fs::read_dir(from).expect("a folder") {
        let path = entry.expect("an entry").path();
        let to = to.join(path.file_name().expect("a name"));
        if path.is_dir() {
            copy_folder(&path, &to);
        } else {
            std::fs::copy(&path, to).expect("a file");
        }
    }
}

/// The state of a relay.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Line {
    Open,
    /// What is sent does not arrive, and connections break.
    CutBefore,
    /// It arrives, and its answers do not.
    CutAfter,
}

pub(crate) struct Relay {
    address: SocketAddr,
    line: watch::Sender<Line>,
    /// How many connections there are.
    open: watch::Sender<usize>,
    task: JoinHandle<()>,
}

impl Relay {
    pub(crate) async fn before(nats: &Nats) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let (address, server) = (listener.local_addr().expect("an address"), nats.address);
        let (line, open) = (watch::Sender::new(Line::Open), watch::Sender::new(0));
        let (told, counted) = (line.clone(), open.clone());
        let task = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let (told, counted) = (told.subscribe(), counted.clone());
                counted.send_modify(|open| *open += 1);
                tokio::spawn(async move {
                    relay(client, server, told).await;
                    counted.send_modify(|open| *open -= 1);
                });
            }
        });
        Self { address, line, open, task }
    }

    pub(crate) fn url(&self) -> String {
        format!("nats://{}", self.address)
    }

    /// Cuts all connections. New ones are let through.
    pub(crate) async fn cut(&self, line: Line) {
        self.line.send_replace(line);
        self.open.subscribe().wait_for(|open| *open == 0).await.expect("a relay");
        self.line.send_replace(Line::Open);
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn relay(client: TcpStream, server: SocketAddr, mut line: watch::Receiver<Line>) {
    if *line.borrow_and_update() != Line::Open {
        return;
    }
    let Ok(server) = TcpStream::connect(server).await else { return };
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    let asked = async { copy(&mut from_client, &mut to_server).await.is_ok() };
    let mut asked = std::pin::pin!(asked);
    let answered = async { copy(&mut from_server, &mut to_client).await.is_ok() };
    let is_cut_after = tokio::select! {
        _ = answered => false,
        _ = &mut asked => false,
        _ = line.changed() => *line.borrow() == Line::CutAfter,
    };
    drop(to_client);
    if is_cut_after {
        // The server gets what the client sends until it is told that the connection is closed.
        asked.await;
    }
}
