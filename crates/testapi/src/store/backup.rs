//! A backup of the whole state.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use serve::Object;

use super::{GroupResource, Store, Writer};

/// All objects of a server at one revision. Cheap: it shares the objects.
#[derive(Clone)]
pub struct Backup {
    pub(crate) revision: u64,
    pub(crate) collections: Vec<(GroupResource, Vec<Arc<Object>>)>,
}

impl Backup {
    /// The revision that it shows.
    pub fn revision(&self) -> u64 {
        self.revision
    }
}

/// Without the objects, which may be Secrets.
impl std::fmt::Debug for Backup {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let objects: usize = self.collections.iter().map(|(_, objects)| objects.len()).sum();
        write!(f, "Backup({objects} objects at revision {})", self.revision)
    }
}

impl Store {
    pub(crate) fn backup(&self) -> Backup {
        let _writing = self.writer();
        let all = self.all().into_iter();
        let collections = all.map(|(resource, objects)| (resource, objects.all(None))).collect();
        Backup { revision: self.revision(), collections }
    }
}

impl Writer<'_> {
    /// Restores a backup: the revision goes back, history is discarded, and all watches end.
    pub(crate) fn restore(&self, backup: &Backup) {
        self.store.revision.store(backup.revision, Ordering::Release);
        for (resource, objects) in self.store.all() {
            let then = backup.collections.iter().find(|(candidate, _)| *candidate == resource);
            objects.replace(then.map(|(_, then)| then.clone()).unwrap_or_default(), backup.revision);
        }
        for (resource, then) in &backup.collections {
            if self.store.objects(resource).is_none() {
                self.store.open(resource.clone()).replace(then.clone(), backup.revision);
            }
        }
    }
}
