//! A request reaches its object and no other one, for every valid name.

use std::sync::Arc;

use informer::{ObjectKey, ObjectRef, ResourceType};
use informer_controller::recorder::{Event, Recorder};
use informer_controller::{Context, Controller, Outcome};
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::json;
use tokio::sync::mpsc;

use crate::scripted::{self, Asked, status};
use crate::support::{LONG, Stop, World, map};

/// Each answer but the one about permissions is a refusal.
fn answer(asked: &Asked) -> Option<(u16, serde_json::Value)> {
    if asked.path.ends_with("selfsubjectaccessreviews") {
        return Some((201, json!({ "status": { "allowed": true } })));
    }
    Some((404, status(404, "NotFound")))
}

#[tokio::test]
async fn a_name_is_one_segment_of_the_path_of_a_write() {
    let world = World::new([map("shop", "a")]).await;
    let (client, log) = scripted::client(answer);
    let (done, mut refused) = mpsc::unbounded_channel();
    let (stop, stopped) = Stop::pair();
    let names = Arc::new(["system:node", "a?b", "a#b", "a%2Fb", "a b", ".", ".."]);
    let reconcile = {
        let names = names.clone();
        move |context: Context<ConfigMap>| {
            let (names, done) = (names.clone(), done.clone());
            async move {
                for name in *names {
                    let key = ObjectKey::new(Some("shop"), name)?;
                    let target = ObjectRef::<ConfigMap>::new(ResourceType::of::<ConfigMap>(), key);
                    let patched = context.writer().patch(&target, json!({})).await.unwrap_err();
                    let deleted = context.writer().delete(&target).await.unwrap_err();
                    let _ = done.send((name, patched.to_string(), deleted.is_not_found()));
                }
                Ok(Outcome::Done)
            }
        }
    };
    let controller = Controller::new("test", &world.factory.informer::<ConfigMap>()).until(stopped);
    let running = tokio::spawn(controller.run(client, reconcile));
    for name in *names {
        let (of, error, was_sent) = tokio::time::timeout(LONG, refused.recv()).await.unwrap().unwrap();
        assert_eq!((of, was_sent), (name, !matches!(name, "." | "..")), "{error}");
        assert_eq!(error.contains("metadata.name is not a name"), !was_sent, "{error}");
    }
    stop.and_wait(running).await.unwrap();
    let paths: Vec<_> = log
        .lock()
        .unwrap()
        .iter()
        .filter(|asked| asked.method == "DELETE")
        .map(|asked| asked.path.clone())
        .collect();
    let expected = ["system%3Anode", "a%3Fb", "a%23b", "a%252Fb", "a%20b"];
    assert_eq!(paths, expected.map(|name| format!("/api/v1/namespaces/shop/configmaps/{name}")));
}

#[tokio::test]
async fn a_name_is_one_segment_of_the_path_of_an_event() {
    let (client, log) = scripted::client(|asked| Some((201, asked.body.clone())));
    let recorder = Recorder::start(client, "test");
    let key = ObjectKey::new(Some("a?b"), "c?d").unwrap();
    let about = ObjectRef::<ConfigMap>::new(ResourceType::of::<ConfigMap>(), key);
    for _ in 0..2 {
        recorder.record(&about, Event::normal("Copied", "Copy", "copied"));
    }
    assert!(recorder.flush(LONG).await);
    let log = log.lock().unwrap();
    assert_eq!(log[0].path, "/apis/events.k8s.io/v1/namespaces/a%3Fb/events");
    assert_eq!(log[1].method, "PATCH");
    assert!(
        log[1].path.starts_with("/apis/events.k8s.io/v1/namespaces/a%3Fb/events/c-d."),
        "{}",
        log[1].path
    );
}
