//! The memory of the allocator.

/// Returns free memory to the system. Returns how many bytes are allocated.
#[allow(unsafe_code, reason = "glibc offers both to C only; they take no pointer and are safe in any thread")]
pub(crate) fn give_back() -> usize {
    let info = unsafe {
        libc::malloc_trim(0);
        libc::mallinfo2()
    };
    info.uordblks + info.hblkhd
}
