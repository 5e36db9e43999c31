//! An object's labels, small and shared.

use std::fmt;
use std::sync::Arc;

/// The labels of one object, sorted by key, in one allocation.
///
/// Kept beside the packed object because selectors ask for them; a clone is a reference count.
///
/// ```
/// use informer_core::Labels;
///
/// let labels = Labels::new([("tier", "db"), ("app", "shop")]);
/// assert_eq!(labels.value("app"), Some("shop"));
/// assert_eq!(labels.to_string(), "app=shop,tier=db");
/// ```
#[derive(Clone, PartialEq, Eq, Hash, Default)]
pub struct Labels(Option<Arc<str>>);

/// No label key or value may hold control characters (Kubernetes API conventions), so these can part them.
const PAIR_END: char = '\u{1e}';
const KEY_END: char = '\u{1f}';

impl Labels {
    /// Collects labels; of a key given twice the last value stays. A label with a control character in it,
    /// which no Kubernetes server accepts, is left out: no selector could name it.
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

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }
}

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
    fn sorted_last_value_wins() {
        let labels = Labels::new([("b", "1"), ("a", ""), ("b", "2")]);
        assert_eq!(labels.iter().collect::<Vec<_>>(), [("a", ""), ("b", "2")]);
        assert_eq!(labels.value("b"), Some("2"));
        assert_eq!(labels.value("c"), None);
        assert!(Labels::new([]).is_empty());
    }
}
