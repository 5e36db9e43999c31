//! An informer as what kube's `Controller` is fed with.

use std::fmt::Debug;

use futures::{Stream, StreamExt};
use informer::{Change, Changes, Informer, Item, Object, View};
use kube::Resource;
use kube::api::{ObjectMeta, PartialObjectMeta};
use kube::runtime::reflector;
use kube::runtime::{Controller, WatchStreamExt, watcher};

/// A controller of kube whose objects come from this informer: no watch of its own, and no copy of whole objects. Its store has the
/// names of the objects only; its reconciler reads them from a lister of the informer, which is never older than what woke it.
///
/// Any number of controllers may be made of one informer, at any time.
pub fn controller<K>(informer: &Informer<K>) -> Result<Controller<PartialObjectMeta<K>>, informer::Error>
where
    K: View + Resource<DynamicType = ()> + Clone + Debug,
{
    let (reader, writer) = reflector::store();
    let events = events(informer.cast::<Object>().changes()?);
    Ok(Controller::for_stream(events.reflect(writer).applied_objects(), reader))
}

/// The changes of a subscription as events of a watcher. They are never errors: the informer itself retries.
fn events<K>(
    changes: Changes<Object>,
) -> impl Stream<Item = watcher::Result<watcher::Event<PartialObjectMeta<K>>>> {
    let later = changes.filter_map(|change| std::future::ready(event(change).map(Ok)));
    futures::stream::iter([Ok(watcher::Event::Init)]).chain(later)
}

/// No object is decoded for this.
fn event<K>(change: Change<Object>) -> Option<watcher::Event<PartialObjectMeta<K>>> {
    match change {
        Change::Added { new, initial: true, .. } => Some(watcher::Event::InitApply(named(&new))),
        Change::Added { new, .. } | Change::Updated { new, .. } | Change::Resynced(new) => {
            Some(watcher::Event::Apply(named(&new)))
        }
        Change::Deleted(deleted) => Some(watcher::Event::Delete(named(deleted.last()))),
        Change::Synced => Some(watcher::Event::InitDone),
        _ => None,
    }
}

fn named<K>(item: &Item<Object>) -> PartialObjectMeta<K> {
    let metadata = ObjectMeta {
        name: Some(item.key().name().to_owned()),
        namespace: item.key().namespace().map(str::to_owned),
        uid: Some(item.uid().to_string()),
        resource_version: Some(item.resource_version().to_string()),
        ..ObjectMeta::default()
    };
    PartialObjectMeta { types: None, metadata, _phantom: std::marker::PhantomData }
}
