//! Q8: nothing that a client sends gets through a closed gate. The clock is the test's; the servers are real, and record
//! what reaches them.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test may stop at a surprise, its helpers too")]

mod server;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::future::BoxFuture;
use http::{HeaderName, HeaderValue, Request, Uri};
use hyper_util::client::legacy::connect::HttpConnector;
use informer::kube::client::{Error, client::Body};
use informer::kube::{Client, Config};
use informer_controller::Host;
use informer_controller::gate::{Loss, NotLeading, is_not_leading};
use informer_controller::internals::{GateKeeper, Time};
use testapi::TestApi;
use tokio::io::AsyncReadExt;
use tokio::sync::{Notify, Semaphore};
use tower::Service;

use server::{Relay, Server};

/// Longer than anything takes on a busy machine.
const DEADLINE: Duration = Duration::from_secs(60);

/// A clock that the test sets.
#[derive(Clone, Default)]
struct Clock(Arc<AtomicU64>);

impl Clock {
    /// A gate that is open for ten seconds.
    fn gate(&self) -> GateKeeper {
        let clock = self.clone();
        let host = Host::default().with_uptime(move || Duration::from_secs(clock.0.load(Ordering::SeqCst)));
        GateKeeper::open(&host, seconds(10))
    }

    fn set(&self, seconds: u64) {
        self.0.store(seconds, Ordering::SeqCst);
    }
}

fn seconds(seconds: u64) -> Time {
    Time::from_start(Duration::from_secs(seconds))
}

async fn within<F: Future>(what: &str, future: F) -> F::Output {
    match tokio::time::timeout(DEADLINE, future).await {
        Ok(output) => output,
        Err(_) => panic!("{what}: not within {DEADLINE:?}"),
    }
}

async fn get(client: &Client) -> Result<String, Error> {
    within("an answer", client.request_text(Request::get("/x").body(Vec::new()).unwrap())).await
}

fn assert_refused<T>(result: Result<T, Error>, loss: Loss) {
    match result {
        Err(error) if is_not_leading(&error) => {
            assert_eq!(NotLeading::find(&error).unwrap().loss(), loss, "{error}");
        }
        Err(error) => panic!("another error: {error:?}"),
        Ok(_) => panic!("the request succeeded"),
    }
}

/// A connector that waits for permission after it has connected.
#[derive(Clone)]
struct Slow {
    tcp: HttpConnector,
    connected: Arc<Notify>,
    go: Arc<Semaphore>,
}

impl Slow {
    fn new() -> Self {
        Self { tcp: HttpConnector::new(), connected: Arc::default(), go: Arc::new(Semaphore::new(0)) }
    }
}

impl Service<Uri> for Slow {
    type Response = <HttpConnector as Service<Uri>>::Response;
    type Error = <HttpConnector as Service<Uri>>::Error;
    type Future = BoxFuture<'static, Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.tcp.poll_ready(context)
    }

    fn call(&mut self, server: Uri) -> Self::Future {
        let (connecting, connected, go) = (self.tcp.call(server), self.connected.clone(), self.go.clone());
        Box::pin(async move {
            let connection = connecting.await;
            connected.notify_one();
            let _ = go.acquire().await;
            connection
        })
    }
}

#[tokio::test]
async fn q8_a_request_that_was_let_in_in_time_is_not_sent_after_a_slow_connect() {
    let (server, clock, slow) = (Server::start().await, Clock::default(), Slow::new());
    let keeper = clock.gate();
    let client = keeper.gate().client_over(server.config(), slow.clone()).await.unwrap();
    let asking = tokio::spawn(async move { get(&client).await });
    within("a connection", slow.connected.notified()).await;
    clock.set(10);
    slow.go.add_permits(1);
    assert_refused(asking.await.unwrap(), Loss::Expired);
    assert_eq!(server.bytes().await, 0);
}

#[tokio::test]
async fn q8_a_request_that_was_let_in_in_time_is_not_sent_after_a_slow_tls_handshake() {
    let (api, clock) = (TestApi::builder().tls().start().await.unwrap(), Clock::default());
    let relay = Relay::to(api.port()).await;
    let mut config = api.config();
    config.cluster_url = format!("https://{}", relay.address()).parse().unwrap();
    let keeper = clock.gate();
    let client = keeper.gate().client(config.clone()).await.unwrap();
    let asking = tokio::spawn(async move { client.apiserver_version().await.map(drop) });
    // The server's part of the handshake is held back.
    let from_client = within("a hello", relay.hello()).await;
    clock.set(10);
    relay.go();
    assert_refused(asking.await.unwrap(), Loss::Expired);
    assert_eq!(relay.all_from_client().await, from_client, "bytes came after the deadline");
    assert_eq!(api.requests().all().len(), 0);

    // The same within the deadline, or this would say nothing.
    let (clock, relay) = (Clock::default(), Relay::to(api.port()).await);
    relay.go();
    config.cluster_url = format!("https://{}", relay.address()).parse().unwrap();
    let keeper = clock.gate();
    keeper.gate().client(config).await.unwrap().apiserver_version().await.unwrap();
    assert_eq!(api.requests().all().len(), 1);
}

#[tokio::test]
async fn q8_a_pooled_connection_is_checked_for_each_request() {
    let (server, clock) = (Server::start().await, Clock::default());
    let keeper = clock.gate();
    let client = keeper.gate().client(server.config()).await.unwrap();
    for _ in 0..3 {
        get(&client).await.unwrap();
    }
    // It was extended in time.
    clock.set(9);
    keeper.extend(seconds(19)).unwrap();
    clock.set(18);
    get(&client).await.unwrap();
    assert_eq!((server.requests().len(), server.connections()), (4, 1));
    clock.set(19);
    assert_refused(get(&client).await, Loss::Expired);
    // For good.
    assert_eq!(keeper.extend(seconds(29)).unwrap_err().loss(), Loss::Expired);
    clock.set(0);
    assert_refused(get(&client).await, Loss::Expired);
    assert_eq!(server.requests().len(), 4);
}

#[tokio::test]
async fn q8_requests_under_way_are_cancelled() {
    let (server, clock) = (Server::silent().await, Clock::default());
    let keeper = clock.gate();
    let client = keeper.gate().client(server.config()).await.unwrap();
    let asking = tokio::spawn(async move { get(&client).await });
    within("a request", server.has_requests(1)).await;
    keeper.close(Loss::Taken);
    assert_refused(asking.await.unwrap(), Loss::Taken);
    within("the end of the connection", server.has_no_connections()).await;
}

#[tokio::test]
async fn q8_the_rest_of_a_request_is_discarded() {
    let (server, clock) = (Server::that_does_not_read().await, Clock::default());
    let keeper = clock.gate();
    let client = keeper.gate().client(server.config()).await.unwrap();
    const LENGTH: usize = 64 << 20;
    let request = Request::post("/x").body(Body::from(vec![b'x'; LENGTH])).unwrap();
    let sending = tokio::spawn(async move { client.send(request).await.map(drop) });
    let mut connection = within("a connection", server.connection()).await;
    // Once some of it is there, and nobody reads, both sockets' buffers fill up.
    within("a first byte", connection.readable()).await.unwrap();
    clock.set(10);
    keeper.close(Loss::Expired);
    assert_refused(sending.await.unwrap(), Loss::Expired);
    // It does not end properly, so the server cannot take it for a whole request.
    let mut read = Vec::new();
    let end = within("the end", connection.read_to_end(&mut read)).await;
    assert_eq!(end.unwrap_err().kind(), std::io::ErrorKind::ConnectionReset);
    assert!(read.len() < LENGTH);
}

#[tokio::test]
async fn q8_a_guarded_client_checks_when_it_is_asked() {
    let (server, clock, slow) = (Server::start().await, Clock::default(), Slow::new());
    // A ready-made client, whose connections know no gate.
    let open = Clock::default().gate();
    let ready_made = open.gate().client_over(server.config(), slow.clone()).await.unwrap();
    let keeper = clock.gate();
    let client = keeper.gate().guard(ready_made);
    assert_eq!(client.default_namespace(), "default");
    let asking = {
        let client = client.clone();
        tokio::spawn(async move { get(&client).await })
    };
    within("a connection", slow.connected.notified()).await;
    // This is why it is weaker.
    clock.set(10);
    slow.go.add_permits(1);
    asking.await.unwrap().unwrap();
    assert_eq!(server.requests().len(), 1);

    assert_refused(get(&client).await, Loss::Expired);
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn q8_a_guarded_client_drops_what_is_under_way() {
    let (server, clock) = (Server::silent().await, Clock::default());
    let keeper = clock.gate();
    let client = keeper.gate().guard(Client::try_from(server.config()).unwrap());
    let asking = tokio::spawn(async move { get(&client).await });
    within("a request", server.has_requests(1)).await;
    drop(keeper);
    assert_refused(asking.await.unwrap(), Loss::Released);
    within("the end of the connection", server.has_no_connections()).await;
}

#[tokio::test]
async fn q8_a_terms_client_is_otherwise_kubes() {
    let (server, keeper) = (Server::start().await, Clock::default().gate());
    let mut config = server.config();
    config.auth_info.token = Some("secret".to_owned().into());
    config.auth_info.impersonate = Some("jane".to_owned());
    config.headers.push((HeaderName::from_static("user-agent"), HeaderValue::from_static("cart/1")));
    config.cluster_url = format!("{}prefix", config.cluster_url).parse().unwrap();
    config.default_namespace = "shop".to_owned();
    server.fail_next();
    let client = keeper.gate().client(config).await.unwrap();
    assert_eq!(client.default_namespace(), "shop");
    // 503, and again.
    get(&client).await.unwrap();
    let requests = server.requests();
    assert_eq!(requests.len(), 2);
    for line in [
        "GET /prefix/x HTTP/1.1",
        "authorization: Bearer secret",
        "impersonate-user: jane",
        "user-agent: cart/1",
    ] {
        assert!(requests[1].contains(line), "{line}: {}", requests[1]);
    }
}

#[tokio::test]
async fn q8_a_terms_client_uses_the_proxy() {
    let (proxy, keeper) = (Server::start().await, Clock::default().gate());
    let mut config = Config::new("http://server.test:8080".parse().unwrap());
    config.proxy_url = Some(format!("http://jane:p%40ss@127.0.0.1:{}", proxy.port()).parse().unwrap());
    let client = keeper.gate().client(config.clone()).await.unwrap();
    get(&client).await.unwrap();
    let requests = proxy.requests();
    assert!(requests[0].starts_with("CONNECT server.test:8080 HTTP/1.1\r\n"), "{requests:?}");
    // `jane:p@ss`
    assert!(requests[0].to_lowercase().contains("proxy-authorization: basic amfuztpwqhnz"), "{requests:?}");
    assert!(requests[1].starts_with("GET /x HTTP/1.1\r\n"), "{requests:?}");

    config.proxy_url = Some("ftp://127.0.0.1:1".parse().unwrap());
    let refused = keeper.gate().client(config).await;
    assert!(matches!(refused, Err(Error::ProxyProtocolUnsupported { .. })));
}

#[tokio::test(start_paused = true)]
async fn q8_the_close_of_a_gate_is_noticed_without_traffic() {
    let start = tokio::time::Instant::now();
    let host = Host::default().with_uptime(move || start.elapsed());
    let keeper = GateKeeper::open(&host, seconds(10));
    let gate = keeper.gate();
    let closed = tokio::spawn(gate.closed());
    tokio::time::advance(Duration::from_millis(9_500)).await;
    assert!(gate.is_open() && !closed.is_finished());
    keeper.extend(seconds(15)).unwrap();
    assert_eq!(closed.await.unwrap().loss(), Loss::Expired);
    assert_eq!(start.elapsed(), Duration::from_secs(15));
    // An earlier time does not shorten it.
    let keeper = GateKeeper::open(&host, seconds(30));
    keeper.extend(seconds(20)).unwrap();
    tokio::time::advance(Duration::from_secs(10)).await;
    assert!(keeper.gate().is_open());
}

#[tokio::test]
async fn q8_a_sleep_of_the_machine_is_noticed_within_a_second() {
    // The clock jumps, tokio's does not.
    let clock = Clock::default();
    let keeper = clock.gate();
    let closed = tokio::spawn(keeper.gate().closed());
    tokio::task::yield_now().await;
    clock.set(3_600);
    assert!(!keeper.gate().is_open());
    let loss = within("the close", closed).await.unwrap().loss();
    assert_eq!(loss, Loss::Expired);
}
