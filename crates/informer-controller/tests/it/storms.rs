//! Requests of a controller while its writes have no answers.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::{FutureExt, StreamExt};
use http_body_util::BodyExt;
use informer::kube::Client;
use informer::kube::client::client::Body;
use informer::transport::{Response, Transport, TransportError};
use informer::{Informer, SharedInformerFactory};
use informer_controller::{Context, Controller, Failure, Outcome, with};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use crate::support::{child, map, maps, secrets};
use crate::wireless::{Wireless, pass};

const KEYS: usize = 200;

/// A server that answers 504 to what is about secrets, while it is away, and counts these requests.
#[derive(Clone)]
struct Away {
    world: Wireless,
    is_away: Arc<AtomicBool>,
    asked: Arc<AtomicUsize>,
    /// Ends what informers watch. From then on nothing reaches the server while it is away.
    cut: CancellationToken,
}

impl Away {
    fn new() -> Self {
        let objects = (0..KEYS).map(|at| map("shop", &format!("a-{at}")));
        Self {
            world: Wireless::with(&maps(), objects),
            is_away: Arc::new(AtomicBool::new(true)),
            asked: Arc::default(),
            cut: CancellationToken::new(),
        }
    }

    /// The controller's client. Its first request about secrets cuts the informers off, if `cuts`.
    fn client(&self, cuts: bool) -> Client {
        let this = self.clone();
        let service = tower::service_fn(move |request: http::Request<Body>| {
            let this = this.clone();
            async move {
                let (head, body) = request.into_parts();
                let body = body.collect().await?.to_bytes();
                if head.uri.path().ends_with("/secrets") {
                    this.asked.fetch_add(1, Ordering::SeqCst);
                    if this.is_away.load(Ordering::SeqCst) {
                        if cuts {
                            this.cut.cancel();
                        }
                        return Ok(http::Response::builder().status(504).body(Body::from(Vec::new()))?);
                    }
                }
                let answer = this.world.0.handle(http::Request::from_parts(head, body)).await;
                Ok::<_, tower::BoxError>(
                    answer.map(|body| Body::from(body.collect().now_or_never().unwrap().unwrap().to_bytes())),
                )
            }
        });
        Client::new(service, "default")
    }

    /// The requests about secrets in a minute in which the server is away. It is back then, and each map gets its secret.
    async fn asked_in_a_minute(self, cuts: bool) -> usize {
        let factory = SharedInformerFactory::builder_with_transport(self.clone()).deterministic(7);
        let factory = factory.build().unwrap();
        let (parents, children) = (factory.informer::<ConfigMap>(), factory.informer::<Secret>());
        let controller = Controller::new("test", &parents).owns(&children);
        let running = controller.run(self.client(cuts), with(children, one_child));
        let _running = AbortOnDropHandle::new(tokio::spawn(running));
        pass(Duration::from_secs(60)).await;
        let asked = self.asked.load(Ordering::SeqCst);
        self.is_away.store(false, Ordering::SeqCst);
        pass(Duration::from_secs(200)).await;
        assert_eq!(self.world.0.list(&secrets(), Some("shop")).unwrap().len(), KEYS);
        asked
    }
}

impl Transport for Away {
    fn send(&self, request: http::Request<Vec<u8>>) -> BoxFuture<'static, Result<Response, TransportError>> {
        let (this, answer) = (self.clone(), self.world.send(request));
        Box::pin(async move {
            let cut = this.cut.clone().cancelled_owned();
            if this.cut.is_cancelled() {
                return match this.is_away.load(Ordering::SeqCst) {
                    true => Err(TransportError::new("refused", None)),
                    false => answer.await,
                };
            }
            let Response { head, body } = answer.await?;
            Ok(Response { head, body: body.take_until(cut).boxed() })
        })
    }

    fn refresh_credentials(&self) -> BoxFuture<'static, Result<(), TransportError>> {
        self.world.refresh_credentials()
    }
}

/// Each config map wants one secret, whose name the server chooses.
async fn one_child(children: Arc<Informer<Secret>>, context: Context<ConfigMap>) -> Result<Outcome, Failure> {
    let Some(map) = context.object() else { return Ok(Outcome::Done) };
    if context.owned(&children).is_empty() {
        context.writer().create(&child(map)).await?;
    }
    Ok(Outcome::Done)
}

/// Issue 20: each key asked once a second whether its write had been carried out, past the rate limiter.
#[tokio::test(start_paused = true)]
async fn q7_writes_of_unknown_fate_are_asked_for_at_the_pace_of_the_limiter() {
    let asked = Away::new().asked_in_a_minute(false).await;
    // Each key once, and then what the default limiter lets pass: a burst of 100, and 10 a second.
    assert!((KEYS..=KEYS + 100 + 600).contains(&asked), "{asked} requests in a minute");
}

/// The informers notice that the server is away, and notice when it is back.
#[tokio::test(start_paused = true)]
async fn q7_no_write_is_asked_for_while_the_informer_finds_the_server_away() {
    let asked = Away::new().asked_in_a_minute(true).await;
    assert!((KEYS..=KEYS + 10).contains(&asked), "{asked} requests in a minute");
}
