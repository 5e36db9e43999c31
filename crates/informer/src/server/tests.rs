//! What is known of a server that changes.

use std::time::Duration;

use futures_util::future::{BoxFuture, ready};
use futures_util::{FutureExt, StreamExt, stream};
use http::header::{ETAG, IF_NONE_MATCH};
use tokio::time::advance;

use super::*;
use crate::transport::{Response, TransportError};

/// Says one thing to everybody; nothing if it knows that its entity tag is known.
#[derive(Clone, Default)]
struct Says(Arc<Mutex<(String, usize)>>);

impl Says {
    fn say(&self, body: impl Into<String>) {
        lock(&self.0).0 = body.into();
    }

    fn full_answers(&self) -> usize {
        lock(&self.0).1
    }
}

impl Transport for Says {
    fn send(&self, request: http::Request<Vec<u8>>) -> BoxFuture<'static, Result<Response, TransportError>> {
        let (body, full_answers) = &mut *lock(&self.0);
        let etag = format!("\"{}\"", body.len());
        let is_known = request.headers().get(IF_NONE_MATCH).is_some_and(|known| *known == etag);
        let answer = http::Response::builder().status(if is_known { 304 } else { 200 }).header(ETAG, etag);
        let (head, ()) = answer.body(()).unwrap().into_parts();
        let body = if is_known { String::new() } else { body.clone() };
        *full_answers += usize::from(!is_known);
        ready(Ok(Response { head, body: stream::iter([Ok(body.into())]).boxed() })).boxed()
    }

    fn refresh_credentials(&self) -> BoxFuture<'static, Result<(), TransportError>> {
        ready(Ok(())).boxed()
    }
}

fn server() -> (Says, Arc<Server>) {
    let says = Says::default();
    (says.clone(), Arc::new(Server::new(Arc::new(says), None)))
}

#[tokio::test(start_paused = true)]
async fn l14_a_changed_version_is_notified_once_and_at_most_once_a_minute() {
    let (says, server) = server();
    let mut changes = server.version_changes();
    let mut is_notified = async |build: &str| {
        says.say(format!(r#"{{"major":"1","minor":"36","gitVersion":"{build}"}}"#));
        advance(Duration::from_secs(11)).await;
        let _ = server.release(Duration::from_secs(10)).await;
        let is_notified = changes.has_changed().unwrap();
        changes.mark_unchanged();
        is_notified
    };
    assert!(!is_notified("v1.36.1").await, "the first answer is no change");
    for _ in 0..10 {
        assert!(!is_notified("v1.36.1").await);
    }
    assert!(is_notified("v1.36.2").await);
    // The old one and the new one answer in turns.
    let mut notified = 0;
    for turn in 0..100 {
        notified += usize::from(is_notified(if turn % 2 == 0 { "v1.36.1" } else { "v1.36.2" }).await);
    }
    assert!((1..=19).contains(&notified), "{notified} in 1100 s");
}

#[tokio::test(start_paused = true)]
async fn l14_a_changed_schema_is_found_out_by_its_hash_and_asked_for_at_most_once_a_minute() {
    let (says, server) = server();
    let index = |apps: &str, shop: &str| {
        let address =
            |path: &str, hash: &str| format!(r#"{{"serverRelativeURL":"/openapi/v3/{path}?hash={hash}"}}"#);
        let (apps, shop) = (address("apis/apps/v1", apps), address("apis/shop.example/v1", shop));
        format!(r#"{{"paths":{{"apis/apps/v1":{apps},"apis/shop.example/v1":{shop}}}}}"#)
    };
    let resource = |group: &str| ResourceType {
        group: group.to_owned(),
        version: "v1".to_owned(),
        plural: "things".to_owned(),
        kind: "Thing".to_owned(),
        namespaced: true,
    };
    let (carts, deployments) = (resource("shop.example"), resource("apps"));
    let changes = || [server.schema_changes(&carts), server.schema_changes(&deployments)];
    says.say(index("A", "B"));
    assert!(!server.ask_for_schemas().await, "the first answer is no change");
    says.say(index("A", "longer"));
    assert!(!server.ask_for_schemas().await, "not again within a minute");
    assert_eq!(says.full_answers(), 1);
    advance(Duration::from_secs(61)).await;
    assert!(server.ask_for_schemas().await);
    assert_eq!(changes(), [1, 0]);

    advance(Duration::from_secs(61)).await;
    assert!(!server.ask_for_schemas().await);
    assert_eq!(says.full_answers(), 2, "nothing was sent again");
    says.say("no JSON");
    advance(Duration::from_secs(61)).await;
    assert!(!server.ask_for_schemas().await);
    assert_eq!(changes(), [1, 0]);
}
