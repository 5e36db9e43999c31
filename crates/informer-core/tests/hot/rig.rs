//! An engine whose cache has a place in a hot set.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use informer_core::engine::{Command, Engine, Input, RequestId, Response, Start, Subscriber};
use informer_core::mailbox::{Delivery, Mode, WhenFull};
use informer_core::reader::Expected;
use informer_core::reflector::StreamingList;
use informer_core::{Cache, HotSet, Object, PackedStorage, Retention, Scope, Shelf, Storage, Stored, Time};

pub(crate) struct Rig {
    engine: Engine,
    set: HotSet,
    shelf: Arc<Shelf>,
    subscriber: Arc<Subscriber>,
    request: Option<RequestId>,
}

impl Rig {
    /// A cache that is empty and about to list.
    pub(crate) fn new(bound: usize, keeping: Retention, storage: Arc<dyn Storage>) -> Self {
        Self::with(bound, keeping, storage, false)
    }

    /// A cache that is empty and gets a streaming list.
    pub(crate) fn streaming(bound: usize, storage: Arc<dyn Storage>) -> Self {
        let mut rig = Self::with(bound, Retention::WhileHot, storage, true);
        rig.response(Response::Accepted { protobuf: false });
        rig
    }

    fn with(bound: usize, keeping: Retention, storage: Arc<dyn Storage>, streams: bool) -> Self {
        let set = HotSet::new(bound);
        let shelf = Shelf::new(&set, storage, keeping);
        let engine = Engine::new(shelf.clone());
        let mode = Mode::Every { capacity: 10, when_full: WhenFull::Coalesce };
        let subscriber = engine.fanout().subscribe(Delivery { mode, ..Delivery::default() }).unwrap();
        subscriber.with_mailbox(|mailbox| mailbox.join(Vec::new(), 0));
        let mut rig = Self { engine, set, shelf, subscriber, request: None };
        let expected = Expected { api_version: "v1".to_owned(), kind: "Pod".to_owned(), or_kind: None };
        let mut start = Start::new(expected, [Scope::All]);
        if streams {
            start.reflector.streaming_list = StreamingList::Preferred;
        }
        rig.input(Input::Start(Box::new(start)));
        rig
    }

    pub(crate) fn cache(&self) -> &Cache {
        self.engine.cache()
    }

    pub(crate) fn set(&self) -> &HotSet {
        &self.set
    }

    pub(crate) fn shelf(&self) -> &Arc<Shelf> {
        &self.shelf
    }

    pub(crate) fn get(&self, name: &str) -> Arc<Object> {
        self.cache().get_str(name).unwrap()
    }

    /// One look at all that is hot.
    pub(crate) fn sweep(&self) {
        self.set.sweep(self.set.len());
    }

    /// Everything that a consumer was told and has not looked at.
    pub(crate) fn take_changes(&self) -> usize {
        std::iter::from_fn(|| self.subscriber.take()).count()
    }

    /// Answers the list, and begins the watch.
    pub(crate) fn list(&mut self, version: u64, items: &[String]) {
        let head = r#"{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"#;
        self.response(Response::Accepted { protobuf: false });
        let list = format!(r#"{head}"{version}"}},"items":[{}]}}"#, items.join(","));
        self.response(Response::Bytes(list.as_bytes()));
        self.response(Response::End);
        self.response(Response::Accepted { protobuf: false });
    }

    /// Brings one line of a watch.
    pub(crate) fn line(&mut self, line: &str) {
        self.response(Response::Bytes(format!("{line}\n").as_bytes()));
    }

    fn response(&mut self, response: Response<'_>) {
        let id = self.request.expect("a request");
        self.input(Input::Response(id, response));
    }

    fn input(&mut self, input: Input<'_>) {
        self.engine.handle(Time::ZERO, input);
        while let Some(command) = self.engine.poll_command() {
            match command {
                Command::Send { id, .. } => self.request = Some(id),
                Command::Compute(compute) => self.input(Input::Computed(Box::new(compute.run()))),
                _ => {}
            }
        }
    }
}

/// Packs, and counts how often.
#[derive(Default)]
pub(crate) struct Counting {
    packed: PackedStorage,
    kept: AtomicUsize,
}

impl Counting {
    pub(crate) fn kept(&self) -> usize {
        self.kept.load(Ordering::SeqCst)
    }
}

impl Storage for Counting {
    fn keep(&self, bytes: Cow<'_, [u8]>) -> Stored {
        self.kept.fetch_add(1, Ordering::SeqCst);
        self.packed.keep(bytes)
    }
}

/// A pod of 600 bytes.
pub(crate) fn pod(name: &str, version: u64) -> String {
    let filler = format!("{name}-{version} ").repeat(30);
    format!(
        r#"{{"kind":"Pod","apiVersion":"v1","metadata":{{"name":"{name}","uid":"{name}","resourceVersion":"{version}"}},"spec":{{"filler":"{filler}"}}}}"#
    )
}

pub(crate) fn event(kind: &str, object: &str) -> String {
    format!(r#"{{"type":"{kind}","object":{object}}}"#)
}
