//! See `fuzzing::protobuf::lists`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| fuzzing::protobuf::lists::run(input));
