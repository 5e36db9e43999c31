//! See `fuzzing::protobuf::watches`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| fuzzing::protobuf::watches::run(input));
