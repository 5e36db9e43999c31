//! A real NATS server with file storage, and a relay before it that cuts connections.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use async_nats::jetstream::{Context, stream::Stream};
use futures_util::StreamExt;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

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
        let free = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = free.local_addr().expect("an address");
        drop(free);
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
        for _ in 0..1_000 {
            // The first thing that a server says.
            if let Ok(mut stream) = TcpStream::connect(self.address).await
                && stream.read_u8().await.is_ok_and(|byte| byte == b'I')
            {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("the server does not answer");
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

    /// What a consumer gets of the stream: the sequence of each message, and the number of its record.
    pub(crate) async fn view(&self) -> Vec<u64> {
        let mut stream = self.stream().await;
        let messages = stream.info().await.expect("an answer").state.messages;
        let config = async_nats::jetstream::consumer::pull::OrderedConfig::default();
        let consumer = stream.create_consumer(config).await.expect("a consumer");
        let view = consumer.messages().await.expect("messages").take(messages as usize);
        view.map(|message| {
            let message = message.expect("a message");
            let headers = message.headers.as_ref().expect("headers");
            headers.get("ce-sequence").expect("a number").as_str().parse::<u64>().expect("a number")
        })
        .collect()
        .await
    }
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
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Line {
    Open,
    /// What is sent does not arrive, and connections break.
    CutBefore,
    /// It arrives, and its answers do not.
    CutAfter,
}

pub(crate) struct Relay {
    pub(crate) line: watch::Sender<Line>,
    address: SocketAddr,
    task: JoinHandle<()>,
}

impl Relay {
    pub(crate) async fn before(nats: &Nats) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let (address, server) = (listener.local_addr().expect("an address"), nats.address);
        let line = watch::Sender::new(Line::Open);
        let told = line.subscribe();
        let task = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(relay(client, server, told.clone()));
            }
        });
        Self { line, address, task }
    }

    pub(crate) fn url(&self) -> String {
        format!("nats://{}", self.address)
    }

    /// Cuts all connections, and lets new ones through after a while.
    pub(crate) async fn cut(&self, line: Line, wait: Duration) {
        self.line.send_replace(line);
        tokio::time::sleep(wait).await;
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
    let mut asked = tokio::spawn(async move {
        let _ = copy(&mut from_client, &mut to_server).await;
        to_server
    });
    let answered = async {
        let mut bytes = vec![0; 4_096];
        while let Ok(read @ 1..) = from_server.read(&mut bytes).await {
            if to_client.write_all(&bytes[..read]).await.is_err() {
                return;
            }
        }
    };
    tokio::select! {
        () = answered => {}
        _ = &mut asked => {}
        _ = line.changed() => {
            if *line.borrow() == Line::CutAfter {
                // The server gets what was sent, until the client is told that the connection is broken.
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        }
    }
    asked.abort();
}
