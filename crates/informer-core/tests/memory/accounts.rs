//! The bytes that a cache reports, against the allocator's.

use std::hint::black_box;
use std::sync::Arc;

use fuzzing::workloads::Pods;
use informer_core::{Object, PackedStorage, PlainStorage, Selector, Storage};

use super::{ALLOCATOR, Rig, alone, pods};

/// Short objects: what they take is mostly not their bytes.
fn leases(count: usize) -> impl Iterator<Item = String> {
    (0..count).map(|index| {
        format!(
            r#"{{"metadata":{{"name":"node-{index:05}","namespace":"kube-node-lease","uid":"2c3b9c1e-7d5a-4f0e-9b62-{index:012x}","resourceVersion":"{}"}},"spec":{{"holderIdentity":"node-{index:05}","leaseDurationSeconds":40}}}}"#,
            100_000 + index
        )
    })
}

fn agree(what: &str, storage: Arc<dyn Storage>, items: impl Iterator<Item = String>, indexes: bool) -> usize {
    // The contexts that all caches of the process share are not this one's.
    drop(PackedStorage::new().keep(b"".as_slice().into()));
    let before = ALLOCATOR.current_usage();
    let mut rig = Rig::new(storage);
    let mut index = None;
    if indexes {
        rig.store.cache().index_labels();
        index = Some(rig.store.cache().add_index(|object: &Arc<Object>| {
            let name = object.key().name();
            Ok(vec![name.split('-').next().unwrap_or_default().to_owned()])
        }));
    }
    rig.list(9_000_000, items);
    let (said, taken) = (rig.held_bytes(), ALLOCATOR.current_usage() - before);
    let (fifth, difference) = (taken / 5, said.abs_diff(taken));
    let count = rig.store.cache().len();
    assert!(
        difference <= fifth,
        "{what}: {} said and {} taken for each of {count}",
        said / count,
        taken / count
    );
    let selector: Selector = "app.kubernetes.io/managed-by=Helm".parse().unwrap();
    black_box(rig.store.cache().snapshot().select(&selector).count());
    drop(index);
    taken / count
}

#[test]
fn c10_bytes_held_agree_with_the_allocator() {
    let _turn = alone();
    let cluster = Pods::new(1);
    for indexes in [false, true] {
        let large = || pods(&cluster, 2_000, None);
        let plain = agree("plain", Arc::new(PlainStorage), large(), indexes);
        let packed = agree("packed", Arc::new(PackedStorage::new()), large(), indexes);
        assert!(packed * 6 < plain, "{packed} and {plain} bytes each, indexes: {indexes}");
        agree("short and plain", Arc::new(PlainStorage), leases(6_000), indexes);
        agree("short and packed", Arc::new(PackedStorage::new()), leases(6_000), indexes);
    }
}

#[test]
fn a_packed_pod_takes_less_than_a_tenth_of_what_a_decoded_one_does() {
    let _turn = alone();
    let each = agree("10,000 pods", Arc::new(PackedStorage::new()), pods(&Pods::new(2), 10_000, None), false);
    assert!(each < 950, "{each} bytes each");
}

/// Each field more is a megabyte for each 131,072 objects. Eight bytes are the hash of the content: four of them would take as
/// much, for the place of the others would stay empty.
#[test]
fn an_object_is_small() {
    assert!(size_of::<Object>() <= 144, "{} bytes", size_of::<Object>());
}

/// An `Arc` whose last holder is gone leaves memory behind where somebody could still ask for it. What is left for each
/// object is the place where its values are shared.
#[test]
fn decoded_values_that_nobody_holds_leave_64_bytes_per_object() {
    let _turn = alone();
    let mut rig = Rig::new(Arc::new(PackedStorage::new()));
    rig.list(9_000_000, leases(5_000));
    let cache = rig.store.cache();
    let before = ALLOCATOR.current_usage();
    for object in cache.snapshot().iter() {
        black_box(object.decode::<Large>().unwrap());
    }
    let left = ALLOCATOR.current_usage().saturating_sub(before);
    // And the few that were not asked yet.
    assert!(left < 5_000 * 64 + 10_000, "{} bytes each", left / 5_000);
}

#[test]
fn decoded_values_that_nobody_holds_take_no_more_than_those_that_somebody_does() {
    let _turn = alone();
    let mut rig = Rig::new(Arc::new(PackedStorage::new()));
    rig.list(9_000_000, leases(5_000));
    let objects = rig.store.cache().snapshot();
    let mut held = Vec::with_capacity(500);
    let before = ALLOCATOR.current_usage();
    for object in objects.iter() {
        let value = object.decode::<Large>().unwrap();
        if held.len() < 500 {
            held.push(value);
        }
    }
    let values = held.len() * (size_of::<Large>() + 100);
    let taken = ALLOCATOR.current_usage().saturating_sub(before);
    assert!(
        taken < 2 * values + 5_000 * 64 + 20_000,
        "{taken} bytes, of which {values} in values that are held"
    );
}

/// As large in itself as the types of Kubernetes' largest kinds.
#[derive(serde::Deserialize)]
struct Large {
    #[serde(skip)]
    _numbers: [[u64; 16]; 16],
}
