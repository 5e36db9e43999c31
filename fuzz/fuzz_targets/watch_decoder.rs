//! See `fuzzing::watches`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| fuzzing::watches::run(input));
