//! See `fuzzing::mailbox`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| fuzzing::mailbox::run(input));
