//! What only the allocator can say and do.

/// Gives back to the system what is not in use, and returns how many bytes are.
#[allow(unsafe_code, reason = "glibc offers both to C only; they take no pointer and are safe in any thread")]
pub(crate) fn give_back() -> usize {
    let info = unsafe {
        libc::malloc_trim(0);
        libc::mallinfo2()
    };
    info.uordblks + info.hblkhd
}
