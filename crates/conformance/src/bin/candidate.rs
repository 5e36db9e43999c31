//! A candidate of an election in its own process, for tests that freeze and kill it. While it leads, it writes two config
//! maps in turn through its term's client: `guarded` with the resourceVersion as precondition, `unguarded` without one.
//!
//! Arguments: a kubeconfig, a namespace, an identity. It says on stdout what it does:
//!
//!     leading GENERATION NANOS            the term begins; nanoseconds of the clock that all processes share
//!     sent-late GENERATION                a write that it was told to stop before has been handed to the socket
//!     lost GENERATION NANOS LOSS          the term is over; the time of its last write that passed the gate
//!
//! A line `stop-before guarded` (or `unguarded`) on stdin makes it stop itself before that write, exactly between the gate's
//! check and the call that sends. It releases the lease and ends with its input.

#![allow(clippy::print_stdout, clippy::expect_used, reason = "only tests use this")]

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::future::BoxFuture;
use http::Uri;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::client::legacy::connect::{Connected, Connection, HttpConnector};
use hyper_util::rt::TokioIo;
use informer_controller::Host;
use informer_controller::election::{Election, Term};
use informer_controller::gate::is_not_leading;
use k8s_openapi::api::core::v1::ConfigMap;
use kube_client::api::{Patch, PatchParams, PostParams};
use kube_client::config::{KubeConfigOptions, Kubeconfig};
use kube_client::{Api, Config, Error};
use rustix::process::{Signal, getpid, kill_process};
use serde_json::json;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::net::TcpStream;
use tower::Service;

/// The lease of the tests: two seconds.
const LEASE: Duration = Duration::from_secs(2);
const RENEW_DEADLINE: Duration = Duration::from_millis(1_700);
const RETRY_PERIOD: Duration = Duration::from_millis(300);
const BETWEEN_WRITES: Duration = Duration::from_millis(20);

/// The transport below the gate of a term.
struct Below {
    generation: u32,
    /// Whether the process stops itself before the next write.
    stops: AtomicBool,
    /// When the last write passed the gate.
    last_write: AtomicU64,
}

#[tokio::main]
async fn main() {
    let [kubeconfig, namespace, identity] =
        [1, 2, 3].map(|at| std::env::args().nth(at).expect("an argument"));
    let kubeconfig = Kubeconfig::read_from(kubeconfig).expect("a kubeconfig");
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
    let config = config.expect("a configuration");
    let election = Election::builder(config.clone(), &namespace, "story")
        .identity(&identity)
        .lease_duration(LEASE)
        .renew_deadline(RENEW_DEADLINE)
        .retry_period(RETRY_PERIOD)
        .build()
        .expect("an election");

    let orders = Orders::default();
    let mut stop = std::pin::pin!(orders.listen());
    loop {
        let term = tokio::select! {
            () = &mut stop => return,
            term = election.acquire() => term.expect("a term"),
        };
        println!("leading {} {}", term.generation(), nanos());
        let below = Arc::new(Below {
            generation: term.generation(),
            stops: AtomicBool::new(false),
            last_write: AtomicU64::new(0),
        });
        tokio::select! {
            () = &mut stop => return term.release().await,
            ended = lead(&term, config.clone(), &namespace, &identity, &orders, &below) => {
                ended.expect("only the end of the term ends the writes");
            }
        }
        let last = below.last_write.load(Ordering::SeqCst);
        println!("lost {} {last} {:?}", term.generation(), term.lost().await);
    }
}

/// The order that was not carried out yet.
#[derive(Default)]
struct Orders(Mutex<Option<String>>);

impl Orders {
    /// Returns with the end of the input.
    async fn listen(&self) {
        let mut lines = BufReader::new(tokio::io::stdin()).lines();
        while let Some(line) = lines.next_line().await.expect("stdin") {
            *self.0.lock().expect("no panic") = Some(line);
        }
    }

    fn take(&self, order: &str) -> bool {
        self.0.lock().expect("no panic").take_if(|given| given == order).is_some()
    }
}

/// Writes until the term is over.
async fn lead(
    term: &Term,
    config: Config,
    namespace: &str,
    identity: &str,
    orders: &Orders,
    below: &Arc<Below>,
) -> Result<(), Error> {
    let client = term.gate().client_over(config, Below::connector(below)).await?;
    let maps: Api<ConfigMap> = Api::namespaced(client, namespace);
    let written = async {
        let mut turns = tokio::time::interval(BETWEEN_WRITES);
        for number in 1.. {
            turns.tick().await;
            let data = json!({
                "writer": identity,
                "generation": term.generation().to_string(),
                "number": number.to_string(),
            });
            let mut map = maps.get("guarded").await?;
            map.data = serde_json::from_value(data.clone()).map_err(Error::SerdeError)?;
            below.stops.store(orders.take("stop-before guarded"), Ordering::SeqCst);
            let stored = maps.replace("guarded", &PostParams::default(), &map).await;
            if !matches!(&stored, Err(Error::Api(refusal)) if refusal.code == 409) {
                stored?;
            }
            below.stops.store(orders.take("stop-before unguarded"), Ordering::SeqCst);
            let patch = Patch::Merge(json!({ "data": data }));
            let stored = maps.patch("unguarded", &PatchParams::default(), &patch).await;
            stored?;
        }
        Ok(())
    };
    match written.await {
        Err(error) if is_not_leading(&error) => Ok(()),
        other => other,
    }
}

fn nanos() -> u128 {
    Host::default().uptime().as_nanos()
}

impl Below {
    fn connector(self: &Arc<Self>) -> Watched {
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        Watched { tcp, below: self.clone() }
    }

    /// The gate has let a write through; it is done next.
    fn passed(&self) -> bool {
        self.last_write.store(u64::try_from(nanos()).unwrap_or(u64::MAX), Ordering::SeqCst);
        let stops = self.stops.swap(false, Ordering::SeqCst);
        if stops {
            kill_process(getpid(), Signal::STOP).expect("a signal to itself");
        }
        stops
    }
}

/// Connections below the gate.
#[derive(Clone)]
struct Watched {
    tcp: HttpConnector,
    below: Arc<Below>,
}

impl Service<Uri> for Watched {
    type Response = Tcp;
    type Error = <HttpConnector as Service<Uri>>::Error;
    type Future = BoxFuture<'static, Result<Tcp, Self::Error>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.tcp.poll_ready(context)
    }

    fn call(&mut self, server: Uri) -> Self::Future {
        let (connecting, below) = (self.tcp.call(server), self.below.clone());
        Box::pin(async move { Ok(Tcp { io: connecting.await?, below }) })
    }
}

struct Tcp {
    io: TokioIo<TcpStream>,
    below: Arc<Below>,
}

impl Tcp {
    fn write(
        &mut self,
        write: impl FnOnce(Pin<&mut TokioIo<TcpStream>>) -> Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        let stopped = self.below.passed();
        let written = write(Pin::new(&mut self.io));
        if stopped && matches!(written, Poll::Ready(Ok(1..))) {
            println!("sent-late {}", self.below.generation);
        }
        written
    }
}

impl Write for Tcp {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.write(|io| io.poll_write(context, bytes))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.write(|io| io.poll_write_vectored(context, bytes))
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(context)
    }
}

impl Read for Tcp {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_read(context, buffer)
    }
}

impl Connection for Tcp {
    fn connected(&self) -> Connected {
        self.io.connected()
    }
}
