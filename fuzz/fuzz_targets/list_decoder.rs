//! See `fuzzing::lists`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| fuzzing::lists::run(input));
