//! A cache of the entries used last, within a bound.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::Hash;

/// A map that forgets what was not used for long. It has two generations, and drops the old one as a whole: that costs
/// nothing per use, and keeps between half and all of the bound.
pub(crate) struct Recent<K, V> {
    young: HashMap<K, (V, usize)>,
    old: HashMap<K, (V, usize)>,
    weight: usize,
    half: usize,
}

impl<K: Eq + Hash + Clone, V> Recent<K, V> {
    pub(crate) fn new(bound: usize) -> Self {
        Self { young: HashMap::new(), old: HashMap::new(), weight: 0, half: bound / 2 }
    }

    pub(crate) fn get<Q: Eq + Hash + ?Sized>(&mut self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        if !self.young.contains_key(key) {
            let (key, (value, weight)) = self.old.remove_entry(key)?;
            self.insert(key, value, weight);
        }
        self.young.get(key).map(|(value, _)| value)
    }

    pub(crate) fn insert(&mut self, key: K, value: V, weight: usize) {
        if self.weight + weight > self.half {
            self.old = std::mem::take(&mut self.young);
            self.weight = 0;
        }
        self.old.remove(&key);
        self.weight += weight;
        if let Some((_, before)) = self.young.insert(key, (value, weight)) {
            self.weight -= before;
        }
    }

    /// Forgets all but these.
    #[cfg(feature = "postgres")]
    pub(crate) fn retain(&mut self, keeps: impl Fn(&V) -> bool) {
        self.old.retain(|_, (value, _)| keeps(value));
        self.young.retain(|_, (value, _)| keeps(value));
        self.weight = self.young.values().map(|(_, weight)| weight).sum();
    }

    pub(crate) fn remove<Q: Eq + Hash + ?Sized>(&mut self, key: &Q)
    where
        K: Borrow<Q>,
    {
        self.old.remove(key);
        if let Some((_, weight)) = self.young.remove(key) {
            self.weight -= weight;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_used_stays_and_the_bound_holds() {
        let mut recent = Recent::new(100);
        for number in 0..1_000 {
            recent.insert(number, number, 10);
            assert_eq!(recent.get(&0), Some(&0), "at {number}");
            assert!(recent.young.len() + recent.old.len() <= 10, "at {number}");
        }
        assert_eq!(recent.get(&1), None);
        recent.remove(&999);
        assert_eq!(recent.get(&999), None);
    }
}
