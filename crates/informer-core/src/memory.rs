//! What things take of the allocator, where it is ours to estimate.

/// The reference counts before what an `Arc` holds.
pub(crate) const COUNTS: usize = 2 * size_of::<usize>();

/// What an allocation of so many bytes takes: allocators give multiples of sixteen.
pub(crate) const fn allocated(bytes: usize) -> usize {
    bytes.next_multiple_of(16)
}
