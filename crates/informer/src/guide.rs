//! The whole API on one page: what each part is for, and what it promises.
//!
//! The numbers in parentheses are clauses of `docs/CONTRACT.md`. Each clause has a test that is named after it; most of these tests run
//! against a real kube-apiserver.
//!
//! # From client-go or kube-rs
//!
//! | client-go | kube-rs | here |
//! |---|---|---|
//! | `informers.NewSharedInformerFactory` | - | [`SharedInformerFactory`], [`FactoryBuilder`] |
//! | `cache.SharedIndexInformer` | `reflector` and its `Store` | [`Informer`] |
//! | `dynamicinformer`, `metadatainformer` | `DynamicObject`, `metadata_watcher` | [`SharedInformerFactory::dynamic`], [`SharedInformerFactory::metadata`] |
//! | `lister.Pods(namespace).Get(name)` | `Store::get` | [`Lister`] |
//! | `cache.Indexers`, `ByIndex` | - | [`Informer::add_index`], [`Index`], [`Key`] |
//! | `cache.ResourceEventHandler` | `watcher::Event` | [`Handler`], [`Change`] |
//! | `AddEventHandlerWithResyncPeriod` | - | [`Informer::subscribe`], [`Subscribe`] |
//! | `HasSynced`, `WaitForCacheSync` | `wait_until_ready` | [`Informer::wait_for_sync`], [`Registration::synced`] |
//! | `DeletedFinalStateUnknown` | - | [`DeleteReason::Missed`] |
//! | `SetTransform` | `modify` | [`Transform`], [`Keep`] |
//! | `SetWatchErrorHandler` | the stream's errors | [`Informer::reports`], [`Reports`], [`Report`], [`Cause`] |
//! | `meta.RESTMapper` | `discovery` | [`Catalog`], [`SharedInformerFactory::resource`] |
//!
//! # Make informers
//!
//! A [`SharedInformerFactory`] has one cache and one watch for each resource and selection, however many informers are asked for
//! (F1, F6). Its methods narrow it: [`in_namespace`](SharedInformerFactory::in_namespace),
//! [`with_labels`](SharedInformerFactory::with_labels), [`with_fields`](SharedInformerFactory::with_fields). The result is a
//! [`Selection`] of a [`Selector`] (of [`Requirement`]s with an [`Operator`]) and a [`FieldSelector`]; one that is malformed is an
//! [`InvalidSelector`] where it is given, not an error of the server later.
//!
//! A resource is a [`ResourceType`]. A type of k8s-openapi or of kube's derive macro names its own; a name as kubectl takes it is
//! resolved by the server, or is a [`DiscoveryError`] with near matches. Such an informer follows its resource to another version (F11).
//!
//! The type `T` of an [`Informer<T>`](Informer) is a [`View`]: anything that is `Deserialize`, or [`Object`], which decodes nothing. A struct of five
//! fields costs only these. [`kube`] has the types of kube that are part of the API, [`crates`] the other
//! crates.
//!
//! ```no_run
//! use std::time::Duration;
//! use informer::SharedInformerFactory;
//! use k8s_openapi::api::core::v1::{ConfigMap, Node};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let config = informer::kube::Config::infer().await?;
//! let factory = SharedInformerFactory::builder(config).resync(Duration::from_secs(600)).build()?;
//! let nodes = factory.informer::<Node>();
//! let ours = factory.in_namespace("shop").with_labels("app=cart")?.informer::<ConfigMap>();
//! factory.start();
//! factory.wait_for_sync(Duration::from_secs(30)).await?;
//! println!("{} nodes, {} config maps", nodes.len(), ours.len());
//! factory.shutdown().await;
//! # Ok(())
//! # }
//! ```
//!
//! The options of a factory are choices with a default that suits most programs: [`FirstListChoice`], [`StreamingListChoice`],
//! [`EncodingChoice`], [`HttpVersion`] (with [`Http2`]), [`Layout`], [`BackoffConfig`].
//!
//! # Wait
//!
//! - [`Informer::wait_for_sync`] returns when the initial list is in the cache (F3). [`NotSynced`] has an entry for each
//!   [`Missing`] informer with its [`Status`]. An informer that was not started is an error at once.
//! - [`Informer::at_least`] returns when the cache reflects a version, for example that of your own write (C5); [`Informer::gone`] when a
//!   deletion has arrived; [`Informer::wait_for_namespace`] when a namespace that was added later is synced (F10). Their
//!   error is [`NotReached`].
//!
//! All of them are cancel safe, none of them polls.
//!
//! # Read
//!
//! | | cost | undecodable objects |
//! |---|---|---|
//! | [`Lister::get`], [`Snapshot::get`] | a lookup, and a decode unless the value is shared | an error |
//! | [`Lister::list`], [`Index::get`] | a decode of each result | left out and reported (C11) |
//! | [`Lister::try_list`], [`Index::try_get`], [`Items::strict`] | the same | an error |
//! | [`Snapshot`] | O(1) to take; it never changes and agrees with its indexes (C4) | - |
//!
//! Every result is an [`Item`]: a value with its [`ObjectKey`], [`Uid`], [`ResourceVersion`] and [`Labels`] beside it, shared and immutable (C6).
//! Readers do not wait for the watch, and the watch does not wait for readers. [`ObjectRef`] names an object of an informer, and
//! [`FromObject`] reads keys and versions from objects of your own.
//!
//! Time does not go back: a re-list is never older than what was seen (L2, L12). Content that changed without a write, because a
//! definition or the server changed, arrives as an update (L14).
//!
//! # Be notified
//!
//! A subscription is a [`Handler`], a closure ([`Informer::on_change`]) or a stream ([`Changes`] of [`Change`]s). Whatever its form:
//!
//! - It gets the existing objects first, then all later changes: no gap and no duplicate, also if it joins late (H2).
//! - One call at a time; per object in the server's order; the `old` of an update is the [`Previous`] state that was notified (H1).
//! - The cache is never behind a notification (C1).
//! - It is bounded. [`Subscribe::latest`], the default, keeps one change for each object; [`Subscribe::every_change`] keeps a number that
//!   you choose, and [`WhenFull`] says what follows (H8). A slow subscription delays no other one.
//! - A deletion says why ([`Deleted`], [`DeleteReason`]): observed, missed while disconnected (once) (H10), or no deletion at all, because the object left the view
//!   (H14). Where a selector hides which, [`Deleted::confirm`] asks the server: [`Existence`], [`ConfirmError`].
//! - [`Origin`] says whether a watch or a list brought a change.
//!
//! A [`Registration`] is the handle of a handler: dropping it removes the handler.
//!
//! ```no_run
//! use informer::{Change, Informer, WhenFull};
//! use k8s_openapi::api::core::v1::Pod;
//!
//! # async fn example(pods: Informer<Pod>) -> Result<(), informer::Error> {
//! let mut changes = pods.subscribe().every_change(1_000, WhenFull::Coalesce).changes()?;
//! while let Some(change) = changes.recv().await {
//!     match change {
//!         Change::Added { new, .. } | Change::Updated { new, .. } => println!("{}", new.key()),
//!         Change::Deleted(deleted) => println!("{} is gone: {:?}", deleted.key(), deleted.reason()),
//!         _ => {}
//!     }
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # When something fails
//!
//! A call that fails returns its own error: [`Error`], or one of the errors that this page names. They are opaque and have predicates
//! (`is_stopped`, `is_denied` ...); [`error_chain`] writes one with its causes. No error and no log line has the content of an object.
//!
//! A failure while an informer runs is not the error of a call. The informer retries with a backoff (W14) and says so by its
//! [`Status`] (where it stands; [`ApiStatus`] is the server's answer) and its [`Report`]s (what happened, with a [`Cause`]). Other objects
//! go on when one cannot be decoded (W8). [`metrics`] has numbers for all of it. `is_synced` stays true while an informer retries:
//! [`Informer::status`] says how things stand now. Tests with faults set a short [`FactoryBuilder::backoff`].
//!
//! | what cannot be decoded | the cache | you see |
//! |---|---|---|
//! | the object's metadata, or the transform fails | keeps the last good version | [`Report::Quarantined`]; [`Informer::quarantined`] has a [`Quarantined`] of it until a good version comes |
//! | the object as a `T`, while its metadata is good | has it, and counts it | lists leave it out with [`Report::Undecodable`]; [`Lister::get`] and strict forms return a [`DecodeError`]; handlers get [`Change::Undecodable`] |
//! | an event whose key or end is lost, or the stream | lists again | [`Cause::Undecodable`], and a re-list |
//!
//! User code (handlers, filters, index functions, transforms, `Deserialize`) may be slow or panic: it delays its own informer
//! or subscription and nothing else (F9, H7).
//!
//! # How a change travels
//!
//! The transport brings bytes, on the factory's own thread. The informer reads the metadata of the object (key, uid, version, labels) and leaves the rest for
//! later. A [`Transform`] may change or drop the object. Then the cache and its indexes change in one step, which every later snapshot shows (C4). The version
//! is *hot*: its bytes are unpacked. Each subscription notes the change (see [`WhenFull`] for when it has too many) and is woken. Its own task takes the change,
//! applies the filter, decodes the object unless another consumer has done so, and awaits the handler. Transforms and index functions
//! run on threads for blocking work, filters and handlers in the subscription's task.
//!
//! # What takes memory
//!
//! | what | bound |
//! |---|---|
//! | objects at rest | as many as the server has, each compressed ([`Layout`]) and at most 16 MiB ([`FactoryBuilder::item_limit`]) |
//! | decoded values, and bytes that events brought a moment ago | 16 MiB for all informers of a factory ([`FactoryBuilder::hot_bytes`]); with [`Layout::Decoded`] none (C12) |
//! | changes that wait for a subscription | one per object, or the number that you choose and one per object (H8); each pins its object's version |
//! | what arrives while user code runs | 4 MiB per informer, then the connection is given up until there is room ([`Status::Stalled`]) |
//! | a list that arrives | the objects that are new, a window of bytes, and about 50 bytes for each object (L9) |
//! | undecodable objects, reports that nobody reads | 4096, 256 |
//!
//! [`Informer::held_bytes`] says what an informer takes (C10). Snapshots and items that you hold keep their versions in memory beside that.
//!
//! # Restart
//!
//! [`FactoryBuilder::saved_in`], or [`Informer::save`] and [`Informer::load`], keep a cache in a file: a later process reads it at once, resumes the watch, and
//! is notified of what changed since, deletions included (P2). A file that does not fit is refused (P1). Secrets are left out
//! unless asked for (P3). The results and errors are [`SavedCache`], [`LoadedCache`], [`SaveError`] and [`LoadError`].
//!
//! # Stop
//!
//! Dropping the last handle of an informer (informers, listers, snapshots, indexes, subscriptions) ends its watch and frees its memory (F5).
//! [`SharedInformerFactory::shutdown`] and [`Informer::stop`] also wait until nothing runs (F4).
//!
//! # Extend
//!
//! - [`Storage`] keeps the bytes of objects: [`PackedStorage`] (compressed) and [`PlainStorage`] exist. It deals in [`ObjectBytes`], [`Stored`] and
//!   [`StoredBytes`] of an [`Encoding`], and fails with a [`StorageError`]. [`InvalidKey`] is the error of a text that is no key.
//! - [`Transport`](crate::transport::Transport) carries requests; [`KubeTransport`](crate::transport::KubeTransport) is the one over
//!   kube-client.

#[allow(unused_imports, reason = "the page links to all of them")]
use crate::*;

#[cfg(test)]
mod tests {
    #[test]
    fn the_page_has_every_public_name() {
        let page = include_str!("guide.rs");
        let exports = include_str!("lib.rs").split("pub use ").skip(1);
        let names =
            exports.filter_map(|rest| rest.split(';').next()).filter(|path| !path.contains("bytes, "));
        let mut missing = Vec::new();
        for path in names {
            let names =
                path.split_once('{').map_or(path.rsplit("::").next().unwrap_or(path), |(_, names)| names);
            for name in names.split([',', '}']).map(str::trim).filter(|name| !name.is_empty()) {
                let is_linked = [format!("[`{name}`]"), format!("({name})"), format!("[`{name}::")];
                if !is_linked.iter().any(|link| page.contains(link.as_str())) {
                    missing.push(name.to_owned());
                }
            }
        }
        assert!(missing.is_empty(), "not on the page: {missing:?}");
    }
}
