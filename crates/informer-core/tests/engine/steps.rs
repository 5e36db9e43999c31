//! How much an engine does in one step. All informers of a factory share a thread, so a long step delays the others. The tests
//! count what a step changes in the cache; they measure no time.

use std::sync::Arc;

use informer_core::engine::{Command, Compute, Engine, Input, RequestId, Response, Start, Subscriber};
use informer_core::mailbox::{Delivery, Notice};
use informer_core::reader::Expected;
use informer_core::{PlainStorage, Scope, Shelf, Time};

/// The most objects that a step may add or remove.
const OBJECTS: usize = 4096;
/// The most operations that a step may apply.
const OPERATIONS: u64 = 256;

/// An engine whose steps are measured. It keeps computes until the test runs them.
struct Rig {
    engine: Engine,
    subscriber: Arc<Subscriber>,
    requests: Vec<(RequestId, Scope)>,
    compute: Option<Box<Compute>>,
    steps: usize,
}

impl Rig {
    fn new(scopes: &[Scope]) -> Self {
        let engine = Engine::new(Shelf::cold(Arc::new(PlainStorage)));
        let subscriber = engine.fanout().subscribe(Delivery::default()).unwrap();
        subscriber.with_mailbox(|mailbox| mailbox.join(Vec::new(), 0));
        let mut rig = Self { engine, subscriber, requests: Vec::new(), compute: None, steps: 0 };
        let expected = Expected { api_version: "v1".to_owned(), kind: "Pod".to_owned(), or_kind: None };
        rig.step(Input::Start(Box::new(Start::new(expected, scopes.iter().cloned()))));
        rig
    }

    /// One step: one input, after which other informers get their turn.
    fn step(&mut self, input: Input<'_>) {
        let before = self.engine.cache().snapshot();
        self.engine.handle(Time::ZERO, input);
        let after = self.engine.cache().snapshot();
        self.steps += 1;
        assert!(before.len().abs_diff(after.len()) <= OBJECTS, "{} -> {} objects", before.len(), after.len());
        let operations = after.revision() - before.revision();
        assert!(operations <= OPERATIONS, "{operations} operations");
        while let Some(command) = self.engine.poll_command() {
            match command {
                Command::Send { id, scope, .. } => {
                    self.requests.retain(|(_, other)| *other != scope);
                    self.requests.push((id, scope));
                }
                Command::Compute(compute) => assert!(self.compute.replace(compute).is_none()),
                _ => {}
            }
        }
    }

    /// Runs user code and continues until nothing is left to do.
    fn settle(&mut self) {
        while self.engine.has_work() || self.compute.is_some() {
            match self.compute.take() {
                Some(compute) => self.step(Input::Computed(Box::new(compute.run()))),
                None => self.step(Input::Tick),
            }
        }
    }

    fn response(&mut self, scope: &Scope, response: Response<'_>) {
        let request = self.requests.iter().find(|(_, of)| of == scope);
        let (id, _) = request.expect("a request").clone();
        self.step(Input::Response(id, response));
    }

    /// Answers the list with so many objects, and accepts the watch.
    fn list(&mut self, scope: &Scope, namespace: &str, version: u64, objects: usize) {
        self.response(scope, Response::Accepted { protobuf: false });
        let items: Vec<_> = (0..objects).map(|number| pod(namespace, &number.to_string(), 1)).collect();
        let head = r#"{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"#;
        let list = format!(r#"{head}"{version}"}},"items":[{}]}}"#, items.join(","));
        self.response(scope, Response::Bytes(list.as_bytes()));
        self.response(scope, Response::End);
        self.response(scope, Response::Accepted { protobuf: false });
    }

    fn len(&self) -> usize {
        self.engine.cache().len()
    }

    /// The notices that the subscriber has not taken yet.
    fn notices(&self) -> Vec<Notice> {
        std::iter::from_fn(|| self.subscriber.take()).collect()
    }
}

fn pod(namespace: &str, name: &str, version: u64) -> String {
    format!(
        r#"{{"kind":"Pod","apiVersion":"v1","metadata":{{"name":"{name}","namespace":"{namespace}","uid":"{name}","resourceVersion":"{version}"}}}}"#
    )
}

fn of(namespace: &str) -> Scope {
    Scope::Namespace(namespace.into())
}

/// All of them waited for the list. They were applied in one step, and each looked at all others that waited.
#[test]
fn operations_that_wait_behind_a_large_list_are_applied_in_bounded_steps() {
    let mut rig = Rig::new(&[Scope::All]);
    rig.list(&Scope::All, "shop", 2, 10_000);
    assert!(rig.compute.is_some(), "the list is applied on another thread");
    for version in 3..4_003 {
        let event = format!(r#"{{"type":"MODIFIED","object":{}}}"#, pod("shop", "7", version));
        rig.response(&Scope::All, Response::Bytes(format!("{event}\n").as_bytes()));
    }
    rig.settle();
    assert_eq!(rig.len(), 10_000);
    assert_eq!(rig.engine.cache().resource_version().to_string(), "4002");
}

/// The content of the cache changes as a whole (contract D7), on another thread.
#[test]
fn d7_a_large_namespace_leaves_the_cache_in_bounded_steps_and_as_a_whole() {
    let (shop, front) = (of("shop"), of("front"));
    let mut rig = Rig::new(&[shop.clone(), front.clone()]);
    rig.list(&shop, "shop", 2, 10_000);
    rig.settle();
    rig.list(&front, "front", 2, 10);
    rig.settle();
    assert_eq!(rig.len(), 10_010);
    rig.notices();
    rig.step(Input::RemoveScope(shop));
    assert_eq!(rig.len(), 10_010);
    assert!(rig.notices().is_empty());
    let computed = rig.compute.take().expect("the removal runs on another thread").run();
    assert_eq!(rig.len(), 10, "a reader sees all of it or nothing");
    let steps = rig.steps;
    rig.step(Input::Computed(Box::new(computed)));
    rig.settle();
    assert!(rig.steps - steps > 2, "the notices are handed out in slices");
    assert_eq!(rig.notices().len(), 10_000);
}

/// Such a list stages nothing. A few objects that it has make no difference.
#[test]
fn d7_a_list_that_lacks_many_objects_is_applied_in_bounded_steps_and_as_a_whole() {
    for left in [0, 10] {
        let mut rig = Rig::new(&[Scope::All]);
        rig.list(&Scope::All, "shop", 2, 10_000);
        rig.settle();
        rig.notices();
        let expired = r#"{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired"}}"#;
        rig.response(&Scope::All, Response::Bytes(format!("{expired}\n").as_bytes()));
        rig.list(&Scope::All, "shop", 3, left);
        assert_eq!(rig.len(), 10_000);
        let computed = rig.compute.take().expect("the list is applied on another thread").run();
        assert_eq!(rig.len(), left, "a reader sees the old state or the new one");
        rig.step(Input::Computed(Box::new(computed)));
        rig.settle();
        assert_eq!(rig.notices().len(), 10_000 - left);
    }
}
