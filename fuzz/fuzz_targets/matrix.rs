//! See `fuzzing::matrix`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| fuzzing::matrix::run(input));
