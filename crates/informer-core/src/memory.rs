//! Estimates of allocated memory.

/// The size of the two reference counts that precede the content of an `Arc`.
pub(crate) const COUNTS: usize = 2 * size_of::<usize>();

/// The size of an allocation: allocators round up to multiples of sixteen.
pub(crate) const fn allocated(bytes: usize) -> usize {
    bytes.next_multiple_of(16)
}
