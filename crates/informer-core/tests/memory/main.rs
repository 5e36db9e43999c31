//! The memory of a cache and a work queue, by the allocator: contract clauses C10, L7, L9, Q5.
//!
//! The allocator counts for the whole process, so the tests take turns.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may stop at a surprise, in its helpers too"
)]

mod accounts;
mod lists;
mod queue;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fuzzing::workloads::Pods;
use informer_core::reader::{Body, BodyOf, Expected, ResponseReader};
use informer_core::reflector::{Input, Trust};
use informer_core::wire::Limits;
use informer_core::{ResourceVersion, Scope, Shelf, SourceId, Storage, Store};
use peak_alloc::PeakAlloc;

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

const MIB: usize = 1 << 20;

/// One test at a time.
fn alone() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A cache that is fed with lists as they come from a server.
struct Rig {
    store: Store,
    source: SourceId,
    shelf: Arc<Shelf>,
    reader: ResponseReader,
}

impl Rig {
    fn new(storage: Arc<dyn Storage>) -> Self {
        let mut store = Store::new();
        let source = store.add_source(Scope::All);
        let expected = Expected { api_version: "v1".to_owned(), kind: "Pod".to_owned(), or_kind: None };
        let shelf = Shelf::cold(storage);
        let reader = ResponseReader::new(store.cache(), shelf.clone(), expected);
        Self { store, source, shelf, reader }
    }

    /// Lists items that are made as they are sent, in chunks. Returns how many of them were new.
    fn list(&mut self, version: u64, items: impl Iterator<Item = String>) -> usize {
        let mut list = self.store.begin_replace(self.source);
        let mut answer = Body::new(BodyOf::List, false, Limits::default());
        let head = format!(
            r#"{{"kind":"PodList","apiVersion":"v1","metadata":{{"resourceVersion":"{version}"}},"items":["#
        );
        let items = items.enumerate().map(|(at, item)| if at == 0 { item } else { format!(",{item}") });
        let mut staged = 0;
        for text in [head].into_iter().chain(items).chain(["]}".to_owned()]) {
            for chunk in text.as_bytes().chunks(4_096) {
                answer.push(chunk);
                while let Some(reading) = self.reader.next(&mut answer, Trust::Content) {
                    match reading.input {
                        Input::ListStart(_) => {}
                        Input::Item(object) => {
                            staged += 1;
                            list.stage(object);
                        }
                        Input::Unchanged(key) => list.keep_cached(&key),
                        other => panic!("{other:?}"),
                    }
                }
            }
        }
        assert!(matches!(self.reader.finish(&mut answer, Trust::Content), (None, Input::ListEnd(_))));
        self.store.commit(list, ResourceVersion::new(&version.to_string())).unwrap();
        staged
    }

    /// The bytes that the cache reports.
    fn held_bytes(&self) -> usize {
        self.store.cache().held_bytes() + self.shelf.shared_bytes()
    }
}

/// Pods of which every `changed`-th is of a newer version.
fn pods(cluster: &Pods, count: usize, changed: Option<usize>) -> impl Iterator<Item = String> {
    (0..count).map(move |index| {
        let is_newer = changed.is_some_and(|changed| index % changed == 0);
        cluster.json(index, count, if is_newer { 1_000_000 } else { 100_000 } + index as u64)
    })
}
