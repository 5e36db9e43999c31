//! Heap bytes of decoded values, counted by the thread that decodes.

use std::cell::Cell;

thread_local! {
    /// Of the value that is being decoded, so far.
    static WEIGHED: Cell<usize> = const { Cell::new(0) };
}

/// Sets the count, and returns what it was.
pub(crate) fn swap(count: usize) -> usize {
    WEIGHED.try_with(|weighed| weighed.replace(count)).unwrap_or_default()
}

/// So far.
pub(crate) fn count() -> usize {
    WEIGHED.try_with(Cell::get).unwrap_or_default()
}

#[inline]
pub(crate) fn add(bytes: usize) {
    // A thread that ends counts nothing.
    let _ = WEIGHED.try_with(|weighed| weighed.set(weighed.get().saturating_add(bytes)));
}

#[inline]
pub(crate) fn add_text(length: usize) {
    if length > 0 {
        add(allocated(length));
    }
}

/// The `nth` entry of a map from strings to values.
#[inline]
pub(crate) fn add_entry<V>(nth: usize) {
    let entries = |count| of_map(count, size_of::<String>() + size_of::<V>());
    add(entries(nth) - entries(nth - 1));
}

/// The size of an allocation: allocators round up to multiples of sixteen.
#[inline]
pub const fn allocated(bytes: usize) -> usize {
    (bytes + 15) & !15
}

/// The bytes that the nodes of a `BTreeMap` take, entries of so many bytes included. A node has room for eleven entries; those that were filled in order
/// are about half full.
pub fn of_map(entries: usize, size: usize) -> usize {
    const ROOM: usize = 11;
    const LINKS: usize = 16;
    let nodes = match entries {
        0 => 0,
        1..=ROOM => 1,
        more => more / 6 + more / 36 + 1,
    };
    nodes * allocated(LINKS + ROOM * size)
}
