//! What things take of the allocator, where it is ours to estimate.

/// The reference counts before what an `Arc` holds.
pub(crate) const COUNTS: usize = 2 * size_of::<usize>();

/// The size of an allocation: allocators round up to multiples of sixteen.
pub(crate) const fn allocated(bytes: usize) -> usize {
    bytes.next_multiple_of(16)
}
