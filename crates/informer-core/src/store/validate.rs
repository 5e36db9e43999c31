//! Checks, for tests, that the parts of a store agree with each other.

use std::collections::{HashMap, HashSet};

use super::Store;
use super::state::State;

impl Store {
    /// Checks that the parts agree. O(objects × indexes).
    ///
    /// # Panics
    ///
    /// When two parts do not agree.
    #[doc(hidden)]
    pub fn validate(&self) {
        assert_eq!(self.agreements(), Ok(()), "the store is not sound");
    }

    fn agreements(&self) -> Result<(), String> {
        let state = self.shared.read().clone();
        check(&state)?;
        let free: HashSet<_> = self.free_slots.iter().chain(&self.vacated_slots).collect();
        if free.len() != self.free_slots.len() + self.vacated_slots.len() {
            return Err("a slot is free twice".to_owned());
        }
        match (0..state.slots.len()).find(|slot| free.contains(slot) == state.object(*slot).is_some()) {
            Some(slot) => Err(format!("slot {slot} is free and used, or neither")),
            None => Ok(()),
        }
    }
}

fn check(state: &State) -> Result<(), String> {
    let objects: Vec<_> = state
        .slots
        .iter()
        .filter_map(|(slot, object)| object.as_ref().map(|object| (slot, object)))
        .collect();
    if objects.len() != state.len() || state.keys.iter().count() != state.len() {
        return Err(format!("{} objects under {} keys", objects.len(), state.len()));
    }
    if state.held_bytes != objects.iter().map(|(_, object)| object.held_bytes()).sum::<usize>() {
        return Err("the bytes held are counted wrong".to_owned());
    }
    for (slot, object) in &objects {
        if state.locate(object.key().as_str()).map(|(slot, _)| slot) != Some(*slot) {
            return Err(format!("{} is not found by its key", object.key()));
        }
    }
    for (position, index) in state.indexes.iter().enumerate() {
        let Some(index) = index else { continue };
        let mut expected = HashSet::new();
        for (slot, object) in &objects {
            expected.extend(index.numbers_of(*slot, object).into_iter().map(|number| (number, *slot)));
        }
        let mut filed = HashMap::new();
        for number in 0..index.values.numbers_end() {
            let Some(value) = index.values.filed(number) else { continue };
            if value.posting.is_empty() {
                return Err(format!("index {position} has a value without objects"));
            }
            filed.extend(value.posting.iter().map(|slot| ((number, slot), ())));
        }
        if expected.len() != filed.len() || expected.iter().any(|pair| !filed.contains_key(pair)) {
            return Err(format!("index {position} files {} and should file {}", filed.len(), expected.len()));
        }
    }
    Ok(())
}
