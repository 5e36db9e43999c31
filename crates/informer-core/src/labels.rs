//! An object's labels, compact and shared.

use std::fmt;
use std::hash::BuildHasher;
use std::sync::{Arc, LazyLock};

use kube_selector::LabelSet;

use crate::memory::{COUNTS, allocated};

/// The labels of one object, sorted by key, in one allocation.
///
/// They are stored beside the packed object because selectors need them. A clone is a reference count.
///
/// ```
/// # use informer_core as informer;
/// use informer::Labels;
///
/// let labels = Labels::new([("tier", "db"), ("app", "shop")]);
/// assert_eq!(labels.value("app"), Some("shop"));
/// assert_eq!(labels.to_string(), "app=shop,tier=db");
/// ```
#[derive(Clone, PartialEq, Eq, Hash, Default)]
pub struct Labels(Option<Arc<str>>);

/// Neither label keys nor values contain control characters (Kubernetes API conventions), so these characters can separate
/// them.
const PAIR_END: char = '\u{1e}';
const KEY_END: char = '\u{1f}';

impl Labels {
    /// Collects labels. Of a duplicate key the last value counts. A label with a control character, which no Kubernetes
    /// server accepts, is left out: no selector could name it.
    pub fn new<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let clean = |text: &str| !text.contains([PAIR_END, KEY_END]);
        let mut pairs: Vec<_> = pairs.into_iter().filter(|(key, value)| clean(key) && clean(value)).collect();
        pairs.sort_by_key(|(key, _)| *key);
        pairs.reverse();
        pairs.dedup_by_key(|(key, _)| *key);
        pairs.reverse();
        let mut text =
            String::with_capacity(pairs.iter().map(|(key, value)| key.len() + value.len() + 2).sum());
        for (key, value) in pairs {
            text.extend([key, "\u{1f}", value, "\u{1e}"]);
        }
        Self((!text.is_empty()).then(|| text.into()))
    }

    /// The value of a label.
    #[doc(alias = "get")]
    pub fn value(&self, key: &str) -> Option<&str> {
        self.iter().find_map(|(candidate, value)| (candidate == key).then_some(value))
    }

    /// All labels, sorted by key.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0
            .as_deref()
            .unwrap_or_default()
            .split_terminator(PAIR_END)
            .filter_map(|pair| pair.split_once(KEY_END))
    }

    /// The bytes of memory that they take, besides the reference.
    pub(crate) fn held_bytes(&self) -> usize {
        self.0.as_ref().map_or(0, |text| allocated(COUNTS + text.len()))
    }

    /// Whether there are no labels.
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }
}

impl LabelSet for Labels {
    fn value(&self, key: &str) -> Option<&str> {
        Self::value(self, key)
    }
}

/// The labels of recently scanned objects, so that objects with equal labels share them, for example the pods of one
/// ReplicaSet.
///
/// It is bounded, so that it keeps the labels of only a few deleted objects in memory.
#[derive(Default)]
pub(crate) struct RecentLabels(Vec<Labels>);

const RECENT: usize = 64;

impl RecentLabels {
    /// Returns the same labels, and whether they are shared with an object that had them before.
    pub(crate) fn share(&mut self, labels: Labels) -> (Labels, bool) {
        if labels.is_empty() {
            return (labels, true);
        }
        let at = usize::try_from(HASHER.hash_one(&labels) % RECENT as u64).unwrap_or_default();
        if self.0.len() <= at {
            self.0.resize(at + 1, Labels::default());
        }
        match self.0.get_mut(at) {
            Some(known) if *known == labels => (known.clone(), true),
            Some(known) => {
                known.clone_from(&labels);
                (labels, false)
            }
            None => (labels, false),
        }
    }
}

/// Collisions do not matter.
static HASHER: LazyLock<hashbrown::DefaultHashBuilder> = LazyLock::new(Default::default);

impl fmt::Display for Labels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (key, value)) in self.iter().enumerate() {
            write!(f, "{}{key}={value}", if index == 0 { "" } else { "," })?;
        }
        Ok(())
    }
}

impl fmt::Debug for Labels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_labels_are_shared() {
        let mut recent = RecentLabels::default();
        let of = |app: &str| Labels::new([("app", app)]);
        let (first, is_shared) = recent.share(of("cart"));
        assert!(!is_shared);
        for at in 0..1_000 {
            recent.share(of(&at.to_string()));
            let (again, _) = recent.share(of("cart"));
            assert_eq!(again, first);
        }
        let (first, _) = recent.share(of("cart"));
        let (again, is_shared) = recent.share(of("cart"));
        assert!(is_shared && Arc::ptr_eq(&again.0.unwrap(), &first.0.unwrap()));
        assert!(recent.0.len() <= RECENT);
    }

    #[test]
    fn sorted_last_value_wins() {
        let labels = Labels::new([("b", "1"), ("a", ""), ("b", "2")]);
        assert_eq!(labels.iter().collect::<Vec<_>>(), [("a", ""), ("b", "2")]);
        assert_eq!(labels.value("b"), Some("2"));
        assert_eq!(labels.value("c"), None);
        assert!(Labels::new([]).is_empty());
    }
}
