//! The one state that readers see. No reader waits for a writer, even if the writer is preempted in the middle of a change.
//!
//! A writer changes a draft, which is a clone that shares all unchanged memory, and publishes it with one exchange of
//! pointers. Readers that still use the former state keep it alive.

use std::ops::{Deref, DerefMut};
use std::sync::{Arc, PoisonError};

use super::state::State;
use crate::sync::{Mutex, MutexGuard, Place, Reading};

pub(super) struct Published {
    state: Place<State>,
    /// Former states that a reader was still using when the next one was published. A later draft drops them instead of the
    /// reader, which would have to free everything that a list replaced. The owner of a draft holds the lock.
    former: Mutex<Vec<Arc<State>>>,
}

/// The next state. No reader sees it before [`Draft::publish`].
pub(super) struct Draft<'a> {
    published: &'a Published,
    former: MutexGuard<'a, Vec<Arc<State>>>,
    next: State,
}

impl Published {
    pub(super) fn new(state: State) -> Self {
        Self { state: Place::new(Arc::new(state)), former: Mutex::default() }
    }

    /// For short reads: the result keeps a former state and its objects in memory. A clone of it is an independent state.
    #[inline]
    pub(super) fn read(&self) -> Reading<State> {
        self.state.read()
    }

    /// Waits for other drafts. No user code may run while a draft is held. A poisoned lock guards a consistent state.
    pub(super) fn draft(&self) -> Draft<'_> {
        let former = self.former.lock().unwrap_or_else(PoisonError::into_inner);
        let next = self.read().clone();
        Draft { published: self, former, next }
    }
}

impl Draft<'_> {
    pub(super) fn publish(self) {
        let Self { published, mut former, next } = self;
        former.push(published.state.exchange(Arc::new(next)));
        let unseen: Vec<_> = former.extract_if(.., |state| Arc::strong_count(state) == 1).collect();
        drop(former);
        // Dropping these may run user code.
        drop(unseen);
    }
}

impl Deref for Draft<'_> {
    type Target = State;

    fn deref(&self) -> &State {
        &self.next
    }
}

impl DerefMut for Draft<'_> {
    fn deref_mut(&mut self) -> &mut State {
        &mut self.next
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Weak};

    use crate::{Object, Scope, SourceId, Store};

    fn write(store: &mut Store, source: SourceId, name: &str, version: u64) -> Weak<Object> {
        let json = format!(r#"{{"metadata":{{"name":"{name}","resourceVersion":"{version}"}}}}"#);
        let object = Arc::new(Object::from_json(json.as_bytes()).unwrap());
        store.upsert(source, object.clone());
        Arc::downgrade(&object)
    }

    #[test]
    fn a_former_state_is_freed_by_a_later_draft_and_not_by_who_looked_at_it() {
        let mut store = Store::new();
        let source = store.add_source(Scope::All);
        let first = write(&mut store, source, "a", 1);
        let look = store.shared.read();
        let second = write(&mut store, source, "a", 2);
        assert!(look.locate("a").is_some_and(|(_, object)| Weak::ptr_eq(&Arc::downgrade(object), &first)));
        drop(look);
        assert!(first.upgrade().is_some(), "the reader does not free it");
        write(&mut store, source, "b", 3);
        assert!(first.upgrade().is_none(), "the next draft does");
        write(&mut store, source, "a", 4);
        assert!(second.upgrade().is_none(), "what nobody looks at goes at once");
    }

    #[test]
    fn who_reads_beside_a_draft_sees_the_state_before_it() {
        let mut store = Store::new();
        let source = store.add_source(Scope::All);
        write(&mut store, source, "a", 1);
        let mut draft = store.shared.draft();
        draft.revision += 1;
        let revision = store.cache().snapshot().revision();
        assert!(store.cache().get_str("a").is_some());
        draft.publish();
        assert_eq!(store.cache().snapshot().revision(), revision + 1);
        drop(store.shared.draft());
        assert_eq!(
            store.cache().snapshot().revision(),
            revision + 1,
            "a draft that is given up changes nothing"
        );
    }
}
