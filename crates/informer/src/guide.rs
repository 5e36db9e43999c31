//! The whole API on one page: what each part is for, and what it promises.
//!
//! The numbers in parentheses are clauses of the [`promises`]. Each clause has a test that is named after it; most of
//! these tests run against a real kube-apiserver.
//!
//! # From client-go or kube-rs
//!
//! | client-go | kube-rs | here |
//! |---|---|---|
//! | `informers.NewSharedInformerFactory` | - | [`SharedInformerFactory`], [`FactoryBuilder`] |
//! | `cache.SharedIndexInformer` | `reflector` and its `Store` | [`Informer`] |
//! | `dynamicinformer`, `metadatainformer` | `DynamicObject`, `metadata_watcher` | [`SharedInformerFactory::informer_of`] with these types |
//! | `lister.Pods(namespace).Get(name)` | `Store::get` | [`Lister`] |
//! | `cache.Indexers`, `ByIndex` | - | [`Informer::add_index`], [`Informer::add_controller_index`], [`Index`], [`Key`] |
//! | `metav1.GetControllerOf` | `OwnerReference` | [`Object::controller`], [`ControllerReference`] |
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
//! A [`SharedInformerFactory`] has one cache and one watch for each resource and selection, however many informers the
//! program asks for (F1, F6). Four methods narrow a factory: [`in_namespace`](SharedInformerFactory::in_namespace),
//! [`with_labels`](SharedInformerFactory::with_labels), [`with_fields`](SharedInformerFactory::with_fields) and
//! [`with_share`](SharedInformerFactory::with_share). Its [`Selection`] consists of namespaces, a [`Selector`] for labels
//! ([`Requirement`]s with an [`Operator`]), a [`FieldSelector`], and a [`Share`](share::Share) of the objects by their hashes,
//! for programs of several processes (module [`share`]). The server filters by selectors; the informer itself by the share,
//! before it stores. A malformed selector is an [`InvalidSelector`] error of the method that takes it, not a later error
//! of the server.
//!
//! A resource is a [`ResourceType`]. Types of k8s-openapi and of kube's derive macro name their own resource.
//! [`SharedInformerFactory::informer_named`] asks the server to resolve a name in kubectl's syntax; an unknown name is a
//! [`DiscoveryError`] with near matches. An informer from there follows its resource to another served version (F11).
//!
//! The type `T` of an [`Informer<T>`](Informer) is a [`View`]: any type that is `Deserialize`, or [`Object`], which is not
//! decoded at all. A struct with five fields costs the decoding of five fields. The module [`kube`] has kube's types that
//! are part of the API, the module [`crates`] the other crates.
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
//! - [`Informer::at_least`] returns when the cache reflects a version, for example that of your own write (C5).
//!   [`Informer::gone`] returns when a deletion has arrived, and [`Informer::wait_for_namespace`] when a namespace that was
//!   added later is synced (F10). Their error is [`NotReached`].
//!
//! All of these are cancel safe, and none of them polls.
//!
//! # Read
//!
//! | | cost | undecodable objects |
//! |---|---|---|
//! | [`Lister::get`], [`Snapshot::get`] | a lookup, and a decode unless the value is hot | an error |
//! | [`Lister::list`], [`Index::get`] | a lookup, and a decode of each result that is not hot | left out and reported (C11) |
//! | [`Lister::try_list`], [`Index::try_get`], [`Items::strict`] | the same | an error |
//! | [`Snapshot`] | O(1) to take; it never changes and agrees with its indexes (C4) | - |
//!
//! Every result is an [`Item`]: a value with its [`ObjectKey`], [`Uid`], [`ResourceVersion`] and [`Labels`] beside it,
//! shared and immutable (C6). Readers do not wait for the watch, and the watch does not wait for readers. [`ObjectRef`]
//! names an object of an informer. [`FromObject`] takes keys and versions from objects of your own. [`Informer::cast`],
//! [`Snapshot::cast`] and [`Index::cast`] are the same objects as another type.
//!
//! The cache never goes back in time: a re-list is never older than the state before it (L2, L12). Content that changed
//! without a write, because a definition or the server changed, arrives as an update (L14).
//!
//! # Be notified
//!
//! A subscription is a [`Handler`], a closure ([`Informer::on_change`]) or a stream ([`Changes`] of [`Change`]s). All three
//! have the same properties:
//!
//! - A subscription gets the existing objects first, then all later changes, without a gap or a duplicate, also if it joins
//!   late (H2).
//! - A handler gets one call at a time. Changes of one object come in the server's order; the `old` of an update is the
//!   [`Previous`] state that the subscription was notified of (H1).
//! - The cache is never behind a notification (C1).
//! - The memory of a subscription is bounded. [`Subscribe::latest`], the default, keeps one change for each object.
//!   [`Subscribe::every_change`] keeps a number of changes that you choose; [`WhenFull`] decides what happens beyond it
//!   (H8). A slow subscription delays no other one.
//! - A deletion has a reason ([`Deleted`], [`DeleteReason`]): a watch observed it; a list revealed it, once (H10); or the
//!   object was not deleted and only left the view (H14). Where a selector hides which, [`Deleted::confirm`] asks the
//!   server: [`Existence`], [`ConfirmError`].
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
//! A call that fails returns its own error: [`Error`], or one of the errors that this page names. All error types are
//! opaque and have predicates (`is_stopped`, `is_denied` ...). [`error_chain`] formats an error with its causes. No error
//! and no log line contains the content of an object.
//!
//! A failure while an informer runs is not the error of a call: the informer retries with a backoff (W14). Its [`Status`]
//! says where it stands; [`ApiStatus`] is the server's answer. Its [`Report`]s say what happened, each disconnect with a
//! [`Cause`]. The module [`metrics`] has numbers for all of it. An undecodable object does not affect other objects (W8).
//! `is_synced` stays true while an informer retries: [`Informer::status`] has the current state. Tests with faults set a
//! short [`ReflectorOptions::backoff`].
//!
//! | what is undecodable | the cache | what you see |
//! |---|---|---|
//! | the object's metadata, or the transform fails | keeps the last good version | [`Report::Quarantined`]; [`Informer::quarantined`] has a [`Quarantined`] entry for it until a good version arrives |
//! | the object as a `T`, while its metadata is good | keeps it | lists leave it out and report it ([`Report::Undecodable`]); [`Lister::get`] and the strict forms return a [`DecodeError`]; handlers get [`Change::Undecodable`] |
//! | the type or the key of an event (of a DELETED also its resourceVersion), or the framing of the stream | re-lists | [`Cause::Undecodable`], then a re-list |
//!
//! User code (handlers, filters, index functions, transforms, `Deserialize`) may be slow or panic: it delays its own informer
//! or subscription and nothing else (F9, H7).
//!
//! # How a change travels
//!
//! The transport reads the bytes of a response on the factory's own thread. The informer decodes the metadata of each
//! object (key, uid, version, labels); the rest stays encoded. A [`Transform`] may change or drop the object. Then the
//! cache and its indexes change in one step; every later snapshot shows both (C4). A version from a watch event is *hot*:
//! its bytes are not packed yet. The mailbox of each subscription gets the change ([`WhenFull`] applies to a full mailbox),
//! and the subscription is woken. The subscription's task takes the change, applies the filter, decodes the object unless
//! another consumer has decoded it already, and awaits the handler. Transforms and index functions run on threads for
//! blocking work; filters and handlers run in the subscription's task, on your runtime. One that blocks holds a thread of that
//! runtime ([`Subscribe::handler`](crate::Subscribe::handler)), and none of the factory's.
//!
//! # What takes memory
//!
//! | what | bound |
//! |---|---|
//! | objects at rest | as many as the server has, each compressed ([`Layout`]) and at most 16 MiB ([`FactoryBuilder::item_limit`]) |
//! | decoded values, and the bytes of recent events | 32 MiB for all informers of a factory ([`FactoryBuilder::hot_bytes`]); with [`Layout::Decoded`] none (C12) |
//! | changes that wait for a subscription | one per object, or the number that you choose and one per object (H8); each pins its object's version |
//! | what arrives while user code runs | 4 MiB per informer; beyond that the informer drops its response and resumes later ([`Status::Stalled`]) |
//! | a list while it arrives | its new and changed objects, and 4 MiB; with more than 200,000 new, changed or missing objects up to 26 bytes for each (L9) |
//! | undecodable objects, unread reports | 4096, 256 |
//!
//! [`Informer::held_bytes`] returns the memory that an informer takes (C10). Snapshots and items that you hold keep their
//! versions in memory beside that.
//!
//! # Restart
//!
//! [`FactoryBuilder::saved_in`], or [`Informer::save`] and [`Informer::load`], keep a cache in a file. A later process can
//! read the loaded objects at once. Its informer resumes the watch, and is notified of all changes since the save,
//! deletions included (P2). A deletion that a subscriber had not taken at the save is lost for it. A file of another
//! server, resource or selection is refused (P1). Secrets are left out unless the program asks for them (P3). The results
//! and errors are [`SavedCache`], [`LoadedCache`], [`SaveError`] and [`LoadError`].
//!
//! # Stop
//!
//! Dropping the last handle of an informer (informers, listers, snapshots, indexes, subscriptions) ends its watch and frees
//! its memory (F5). [`SharedInformerFactory::shutdown`] and [`Informer::stop`] also wait until nothing runs (F4).
//! [`SharedInformerFactory::shutdown_within`] waits no longer than its limit; its error [`NotEnded`] lists the [`Unfinished`] pieces of
//! [`Work`].
//!
//! # Extend
//!
//! - A [`Storage`] keeps the bytes of objects; the crate has [`PackedStorage`] (compressed) and [`PlainStorage`]. Its
//!   methods use [`ObjectBytes`], [`Stored`] and [`StoredBytes`] with an [`Encoding`], and return a [`StorageError`] when
//!   they fail. [`InvalidKey`] is the error of parsing a text that is not a key.
//! - [`Transport`](crate::transport::Transport) carries requests. [`KubeTransport`](crate::transport::KubeTransport) is the
//!   implementation over kube-client.

#[allow(unused_imports, reason = "the page links to all of them")]
use crate::*;

#[cfg(test)]
mod tests {
    #[test]
    fn the_page_has_every_public_name() {
        let page = include_str!("guide.rs");
        let texts: Vec<&str> = include_str!("lib.rs").split("pub use ").collect();
        // Items that are hidden in the documentation are for crates of this project.
        let exports = texts.windows(2).filter(|texts| !texts[0].ends_with("#[doc(hidden)]\n"));
        let names =
            exports.filter_map(|texts| texts[1].split(';').next()).filter(|path| !path.contains("bytes, "));
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
