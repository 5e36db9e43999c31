//! See `fuzzing::secrets`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| fuzzing::secrets::run(input));
