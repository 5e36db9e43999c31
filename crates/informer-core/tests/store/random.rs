//! Random operations, compared with the model after each step. Model and operations are in the crate `fuzzing`.

use fuzzing::{Choices, seeds, store};
use informer_core::{Object, PackedStorage, PlainStorage, Storage};

use crate::file::FileStorage;

#[test]
fn c8_random_operations_agree_with_a_naive_model() {
    seeds::each(0..20, |seed| {
        let keys = [12, 20, 28, 36, 44][(seed % 5) as usize];
        store::run_on(Choices::new(&seeds::bytes(seed, 4_000)), keys, 1);
    });
}

#[test]
fn c8_random_operations_on_more_objects_agree_with_a_naive_model() {
    seeds::each(100..102, |seed| store::run_on(Choices::new(&seeds::bytes(seed, 60_000)), 1_500, 1_000));
}

#[test]
fn c9_the_answers_are_the_same_wherever_the_bytes_are() {
    seeds::each(200..204, |seed| {
        let packed = PackedStorage::new();
        let in_file = FileStorage::new(tempfile::tempfile().unwrap());
        let storages: [&dyn Storage; 3] = [&PlainStorage, &packed, &in_file];
        for storage in storages {
            store::run_kept_in(storage, Choices::new(&seeds::bytes(seed, 8_000)), 40, 20);
        }
    });
}

#[test]
fn c9_packed_objects_are_what_they_were_while_dictionaries_come_and_go() {
    seeds::each(300..302, |seed| {
        let packed = PackedStorage::new();
        store::run_kept_in(&packed, Choices::new(&seeds::bytes(seed, 60_000)), 500, 500);
        assert!(packed.shared_bytes() > 64 << 10, "{packed:?}");
    });
}

#[test]
fn bytes_that_cannot_be_read_any_more_are_a_typed_error_of_their_object() {
    let file = tempfile::tempfile().unwrap();
    let storage = FileStorage::new(file.try_clone().unwrap());
    let secret = br#"{"metadata":{"name":"a","resourceVersion":"7"},"data":"hidden"}"#;
    let object = Object::from_json(secret).unwrap().kept_in(&storage).unwrap();
    assert_eq!(*object.bytes().unwrap(), *secret);
    assert_eq!(object.size(), secret.len());
    file.set_len(10).unwrap();
    let error = object.decode::<serde_json::Value>().unwrap_err();
    assert_eq!(error.key().as_str(), "a");
    assert!(!format!("{error} {error:?}").contains("hidden"));
    assert!(object.bytes().is_err() && object.json().is_err());
}
