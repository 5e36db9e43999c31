//! Objects and changes in short, and a reader that holds a mailbox to its promises.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use informer_core::mailbox::{Delivery, Mailbox, Mode, Notice, WhenFull};
use informer_core::{Change, Delta, Object, Origin};

/// One pending change per key.
pub const LATEST: Delivery = Delivery { mode: Mode::Latest, split_recreated: false, keep_cancelled: false };

/// Every change, up to a capacity.
pub fn every(capacity: usize, when_full: WhenFull) -> Delivery {
    Delivery { mode: Mode::Every { capacity, when_full }, split_recreated: false, keep_cancelled: false }
}

/// The same, with re-creations in two.
pub fn split(delivery: Delivery) -> Delivery {
    Delivery { split_recreated: true, ..delivery }
}

/// The same, with changes that cancel each other out.
pub fn keeping(delivery: Delivery) -> Delivery {
    Delivery { keep_cancelled: true, ..delivery }
}

/// An object of one incarnation, at one version.
pub fn object(name: &str, uid: u64, version: u64) -> Arc<Object> {
    let json =
        format!(r#"{{"metadata":{{"name":"{name}","uid":"uid-{uid}","resourceVersion":"{version}"}}}}"#);
    Arc::new(Object::from_json(json.as_bytes()).unwrap())
}

/// The change of a watch event.
pub fn added(object: &Arc<Object>) -> Change {
    Change { delta: Delta::Added(object.clone()), origin: Origin::Watch }
}

/// The change of a watch event.
pub fn updated(old: &Arc<Object>, new: &Arc<Object>) -> Change {
    Change { delta: Delta::Updated { old: old.clone(), new: new.clone() }, origin: Origin::Watch }
}

/// The change of a watch event.
pub fn deleted(old: &Arc<Object>, last: &Arc<Object>) -> Change {
    Change { delta: Delta::Deleted { old: old.clone(), last: last.clone() }, origin: Origin::Watch }
}

/// The same change, from a list.
pub fn listed(change: Change) -> Change {
    Change { origin: Origin::List, ..change }
}

/// A mailbox of an empty, synced cache.
pub fn joined(delivery: Delivery) -> Mailbox {
    let mut mailbox = Mailbox::new(delivery, true);
    mailbox.join(Vec::new(), 0);
    assert!(matches!(mailbox.take(), Some(Notice::Synced)));
    mailbox
}

/// Everything that is pending, as in `add a@1 initial`.
pub fn drain(mailbox: &mut Mailbox) -> Vec<String> {
    std::iter::from_fn(|| mailbox.take()).map(|notice| short(&notice)).collect()
}

/// One of them.
pub fn short(notice: &Notice) -> String {
    let (change, initial) = match notice {
        Notice::Synced => return "synced".to_owned(),
        Notice::Lagged(dropped) => return format!("lagged {dropped}"),
        Notice::Change { change, initial } => (change, initial),
    };
    let what = match &change.delta {
        Delta::Added(new) => format!("add {new:?}"),
        Delta::Updated { old, new } => format!("update {old:?} -> {new:?}"),
        Delta::Deleted { old, last } => format!("delete {old:?} last {last:?}"),
    };
    let origin = match change.origin {
        Origin::Watch => "",
        Origin::List => " listed",
        Origin::Scope => " left",
    };
    let initial = if *initial { " initial" } else { "" };
    format!("{what}{origin}{initial}")
}

/// Believes a mailbox as long as its notices form a legal chain.
#[derive(Debug, Default)]
pub struct Reader {
    /// The objects, according to the notices.
    pub believed: BTreeMap<String, Arc<Object>>,
    /// Whether the initial list was reported as complete.
    pub synced: bool,
    /// Changes outside the initial list.
    pub later: u64,
    /// Changes that the mailbox reported as dropped.
    pub lagged: u64,
    /// Keys with a notice since changes were last dropped.
    heard_since: BTreeSet<String>,
    split: bool,
}

impl Reader {
    /// A reader without any notice yet.
    pub fn new(delivery: Delivery) -> Self {
        Self { split: delivery.split_recreated, ..Self::default() }
    }

    /// Whether its belief about a key must be true: nothing was dropped, or a notice came since.
    pub fn is_sure_of(&self, key: &str) -> bool {
        self.lagged == 0 || self.heard_since.contains(key)
    }

    /// Takes a notice.
    ///
    /// # Errors
    ///
    /// When a notice contradicts earlier ones; the text says how.
    pub fn hear(&mut self, notice: Notice) -> Result<(), String> {
        let told = short(&notice);
        let (change, initial) = match notice {
            Notice::Synced if self.synced => return Err("synced twice".to_owned()),
            Notice::Synced => {
                self.synced = true;
                return Ok(());
            }
            Notice::Lagged(0) => return Err("lagged by nothing".to_owned()),
            Notice::Lagged(dropped) => {
                self.lagged += dropped;
                self.heard_since.clear();
                return Ok(());
            }
            Notice::Change { change, initial } => (change, initial),
        };
        self.later += u64::from(!initial);
        if initial == self.synced {
            return Err(format!("synced: {}, but told: {told}", self.synced));
        }
        let key = change.key().as_str().to_owned();
        let before = self.believed.get(&key);
        let follows = |old: &Arc<Object>| before.is_some_and(|before| Arc::ptr_eq(before, old));
        let (legal, after) = match change.delta {
            Delta::Added(new) => (before.is_none(), Some(new)),
            Delta::Updated { old, new } => {
                let newer = old.resource_version().is_older_than(new.resource_version());
                (follows(&old) && newer && !(self.split && old.uid() != new.uid()), Some(new))
            }
            Delta::Deleted { old, last } => {
                let backwards = last.resource_version().is_older_than(old.resource_version());
                (follows(&old) && !backwards, None)
            }
        };
        // After a gap a key's story may begin anywhere.
        if !legal && self.is_sure_of(&key) {
            return Err(format!("{told}, after {before:?}"));
        }
        self.heard_since.insert(key.clone());
        match after {
            Some(object) => self.believed.insert(key, object),
            None => self.believed.remove(&key),
        };
        Ok(())
    }
}
