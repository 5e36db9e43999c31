//! See `fuzzing::selectors`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| fuzzing::selectors::run(input));
