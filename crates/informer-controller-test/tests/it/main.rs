//! The bench: what it promises about runs, and faulty controllers with their corrected twins. `forgotten_numbers` and
//! `grown_disks` were written by somebody who had not seen the bench.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test may stop at a surprise, and says what it found"
)]

mod double_creation;
mod everyday;
mod failed_read;
mod flapping_status;
mod forgotten_numbers;
mod grown_disks;
mod hot_loop;
mod leaked_child;
mod missing_finalizer;
mod pages;
mod runs;
mod second_machine;
mod stale_owner;
mod support;
mod swept_children;
mod wall_clock;
mod whole_object;
