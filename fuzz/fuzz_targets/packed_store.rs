//! See `fuzzing::store`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| fuzzing::store::run_packed(input));
