//! A packed storage that has a dictionary, which a few objects would not get.

use std::borrow::Cow;

use informer_core::{ObjectKey, PackedStorage, Storage};

use super::filler;
use super::pods::Pod;

/// This many objects pay for a dictionary.
const SEEN: u64 = 100;

/// A storage that has seen objects of the shapes that a run begins with. It is the same for each run, so that runs are
/// reproducible.
pub(super) fn storage() -> PackedStorage {
    let storage = PackedStorage::new();
    (0..SEEN).for_each(|number| drop(storage.keep(Cow::Owned(object(number)))));
    storage
}

fn object(number: u64) -> Vec<u8> {
    let key: ObjectKey = format!("n0/o{number}").parse().unwrap();
    let filler = filler(&key, 0, number);
    Pod { key: key.as_str(), filler: &filler, ..Pod::default() }.json().into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_are_packed_with_a_dictionary_from_the_first_on() {
        let storage = storage();
        let shrinks = (1_000..1_007).filter(|&number| {
            let bytes = object(number);
            let stored = storage.keep(Cow::Borrowed(&bytes));
            assert_eq!(*stored.read().unwrap(), *bytes);
            // By itself, it packs to half.
            stored.held_bytes() < bytes.len() / 3
        });
        assert!(shrinks.count() >= 5, "{storage:?}");
    }
}
