//! Requests of a controller while its writes have no answers.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::FutureExt;
use http_body_util::BodyExt;
use informer::Informer;
use informer::kube::Client;
use informer::kube::client::client::Body;
use informer_controller::{Context, Controller, Failure, Outcome, with};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use tokio_util::task::AbortOnDropHandle;

use crate::support::{map, maps, secrets};
use crate::wireless::{Wireless, pass};

const KEYS: usize = 200;

/// Each config map wants one secret, whose name the server chooses.
async fn one_child(children: Arc<Informer<Secret>>, context: Context<ConfigMap>) -> Result<Outcome, Failure> {
    let Some(map) = context.object() else { return Ok(Outcome::Done) };
    if context.owned(&children).is_empty() {
        let owner = informer::kube::Resource::controller_owner_ref(&**map, &());
        let metadata = ObjectMeta {
            namespace: map.key().namespace().map(str::to_owned),
            generate_name: Some("child-".to_owned()),
            owner_references: owner.map(|owner| vec![owner]),
            ..ObjectMeta::default()
        };
        context.writer().create(&Secret { metadata, ..Secret::default() }).await?;
    }
    Ok(Outcome::Done)
}

/// Issue 20: each key asked once a second whether its write had been carried out, past the rate limiter.
#[tokio::test(start_paused = true)]
async fn q7_writes_of_unknown_fate_are_asked_for_at_the_pace_of_the_limiter() {
    let objects = (0..KEYS).map(|at| map("shop", &format!("a-{at}")));
    let world = Wireless::with(&maps(), objects);
    let (api, asked, is_away) =
        (world.0.clone(), Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(true)));
    let (counter, away) = (asked.clone(), is_away.clone());
    let service = tower::service_fn(move |request: http::Request<Body>| {
        let (api, counter, is_away) = (api.clone(), counter.clone(), away.load(Ordering::SeqCst));
        async move {
            let (head, body) = request.into_parts();
            let body = body.collect().await?.to_bytes();
            if head.uri.path().ends_with("/secrets") {
                counter.fetch_add(1, Ordering::SeqCst);
                if is_away {
                    return Ok(http::Response::builder().status(504).body(Body::from(Vec::new()))?);
                }
            }
            let answer = api.handle(http::Request::from_parts(head, body)).await;
            Ok::<_, tower::BoxError>(
                answer.map(|body| Body::from(body.collect().now_or_never().unwrap().unwrap().to_bytes())),
            )
        }
    });
    let factory = world.factory();
    let (parents, children) = (factory.informer::<ConfigMap>(), factory.informer::<Secret>());
    let controller = Controller::new("test", &parents).owns(&children);
    let running = controller.run(Client::new(service, "default"), with(children, one_child));
    let _running = AbortOnDropHandle::new(tokio::spawn(running));
    pass(Duration::from_secs(60)).await;
    // Each key once, and then what the default limiter lets pass: a burst of 100, and 10 a second.
    let (asked, most) = (asked.load(Ordering::SeqCst), KEYS + 100 + 600);
    assert!((KEYS..=most).contains(&asked), "{asked} requests in a minute");
    is_away.store(false, Ordering::SeqCst);
    pass(Duration::from_secs(200)).await;
    assert_eq!(world.0.list(&secrets(), Some("shop")).unwrap().len(), KEYS);
}
