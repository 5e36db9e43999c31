//! See `fuzzing::typed`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| fuzzing::typed::run(input));
