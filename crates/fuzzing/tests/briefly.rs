//! Each target of the fuzzer, briefly: on examples, damaged ones, and any bytes.

#![allow(clippy::expect_used, reason = "a test may stop at a surprise, in its helpers too")]

use fuzzing::{TARGETS, Target, seeds};

/// A fuzzer runs millions.
fn briefly(name: &str, inputs: u64) {
    let target = TARGETS.iter().find(|target| target.name == name).expect("a target of that name");
    seeds::each(0..inputs, |seed| (target.run)(&target.input(seed)));
    seeds::each(0..inputs, |seed| (target.run)(&seeds::bytes(seed, 60)));
    (target.run)(&[]);
}

#[test]
fn w16_l9_any_list_in_any_chunks() {
    briefly("list_decoder", 1_500);
}

#[test]
fn w16_w8_any_watch_in_any_chunks() {
    briefly("watch_decoder", 1_500);
}

#[test]
fn w16_l9_any_list_in_protobuf_in_any_chunks() {
    briefly("protobuf_list_decoder", 1_500);
}

#[test]
fn w16_w8_any_watch_in_protobuf_in_any_chunks() {
    briefly("protobuf_watch_decoder", 1_500);
}

#[test]
fn c7_any_selector() {
    briefly("selectors", 3_000);
}

#[test]
fn c8_any_operations_of_a_store() {
    briefly("store", 300);
}

#[test]
fn c9_any_operations_of_a_store_whose_objects_are_packed() {
    briefly("packed_store", 50);
}

#[test]
fn any_object_in_protobuf() {
    briefly("protobuf", 500);
}

/// Issue 12, item 1.
#[test]
fn any_object_with_a_planted_secret() {
    briefly("secrets", 300);
}

#[test]
fn h1_any_story_of_a_mailbox() {
    briefly("mailbox", 1_500);
}

#[test]
fn any_bytes_as_a_type_of_k8s_openapi() {
    briefly("typed", 1_500);
}

#[test]
fn k3_any_value_in_any_encoding_at_any_place() {
    briefly("matrix", 1_500);
}

#[test]
fn each_target_is_one_of_the_fuzzers() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/fuzz_targets");
    let files = std::fs::read_dir(folder).expect("the fuzzer's targets");
    let mut files: Vec<_> = files.map(|file| file.expect("a target").file_name()).collect();
    files.sort();
    let name = |target: &Target| std::ffi::OsString::from(format!("{}.rs", target.name));
    let mut targets: Vec<_> = TARGETS.iter().map(name).collect();
    targets.sort();
    assert_eq!(files, targets);
}
