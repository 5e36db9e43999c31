//! See `fuzzing::protobuf`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| fuzzing::protobuf::run(input));
