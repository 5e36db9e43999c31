//! The memory of glibc's allocator.

/// Returns free memory to the system. Returns how many bytes are allocated.
#[allow(unsafe_code, reason = "two functions of glibc without arguments that could be wrong")]
pub fn collect() -> Option<usize> {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        // SAFETY: both only read and change the allocator's own state, under its own locks.
        let info = unsafe {
            libc::malloc_trim(0);
            libc::mallinfo2()
        };
        Some(info.uordblks + info.hblkhd)
    }
    #[cfg(not(all(target_os = "linux", target_env = "gnu")))]
    None
}
