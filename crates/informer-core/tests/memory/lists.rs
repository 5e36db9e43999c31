//! The memory of a list while it arrives.

use std::sync::Arc;

use fuzzing::workloads::Pods;
use informer_core::{Object, PackedStorage, PlainStorage, ResourceVersion};

use super::{ALLOCATOR, MIB, Rig, alone, pods};

const PODS: usize = 20_000;
/// The memory that a list may take beside its result.
const WINDOW: usize = 4 * MIB;

#[test]
fn l9_a_list_takes_its_packed_result_and_a_window() {
    let _turn = alone();
    let cluster = Pods::new(3);
    let mut rig = Rig::new(Arc::new(PackedStorage::new()));
    let before = ALLOCATOR.current_usage();
    let mut sizes = Vec::new();
    for (version, changed) in [(2_000_000, None), (2_000_001, None), (2_000_002, Some(10))] {
        let steady = ALLOCATOR.current_usage() - before;
        ALLOCATOR.reset_peak_usage();
        let staged = rig.list(version, pods(&cluster, PODS, changed));
        assert_eq!(staged, if sizes.is_empty() { PODS } else { PODS / 10 * usize::from(changed.is_some()) });
        let peak = ALLOCATOR.peak_usage() - before;
        let result = ALLOCATOR.current_usage() - before;
        // A changed object is there twice until the step in which it replaces the old one.
        let most = if sizes.is_empty() { result } else { steady + staged * 1_500 } + WINDOW;
        assert!(
            peak <= most,
            "{} KB at the peak, {} KB before and {} KB after",
            peak >> 10,
            steady >> 10,
            result >> 10
        );
        sizes.push(result);
    }
    assert!(sizes[1] < sizes[0] + MIB / 4 && sizes[2] < sizes[0] + MIB, "{sizes:?}");
}

#[test]
fn l7_items_of_a_list_are_freed_one_by_one() {
    let _turn = alone();
    for storage in [Arc::new(PlainStorage) as Arc<dyn informer_core::Storage>, Arc::new(PackedStorage::new())]
    {
        let cluster = Pods::new(4);
        let mut rig = Rig::new(storage);
        rig.list(2_000_000, pods(&cluster, 4_000, None));
        let all = ALLOCATOR.current_usage();
        let objects = rig.store.cache().snapshot().held_bytes();
        // Every second one is deleted, so that no two neighbours of the list go together.
        let cache = rig.store.cache();
        let gone: Vec<_> =
            cache.snapshot().page(None, usize::MAX).step_by(2).map(|it| it.key().clone()).collect();
        for key in gone {
            let last = cache.get(&key).unwrap();
            assert!(rig.store.delete(rig.source, last).is_some());
        }
        let freed = all - ALLOCATOR.current_usage();
        assert!(freed > objects / 2 * 8 / 10, "{} KB of {} KB", freed >> 10, objects >> 10);
    }
}

/// The tables of a list count where its objects are small and many. The test holds the objects throughout, so these do not count.
#[test]
fn l9_d7_a_list_of_200_000_leases_takes_a_window_beside_its_objects_and_its_result() {
    let _turn = alone();
    const LEASES: usize = 200_000;
    let lease = |number, version| {
        let json = format!(r#"{{"metadata":{{"name":"lease-{number}","resourceVersion":"{version}"}}}}"#);
        Arc::new(Object::from_json(json.as_bytes()).unwrap())
    };
    let leases = |from| -> Vec<_> { (0..LEASES).map(|number| lease(number, from + number)).collect() };
    let (first, again) = (leases(1), leases(1 + LEASES));
    let mut rig = Rig::new(Arc::new(PlainStorage));
    for (what, objects) in [("new", &*first), ("changed", &*again), ("gone", &[])] {
        let before = ALLOCATOR.current_usage();
        ALLOCATOR.reset_peak_usage();
        let mut list = rig.store.begin_replace(rig.source);
        objects.iter().for_each(|object| list.stage(object.clone()));
        let changes = rig.store.commit(list, ResourceVersion::new("1000000")).unwrap();
        assert_eq!(changes.len(), LEASES, "{what}");
        changes.for_each(drop);
        let beside = ALLOCATOR.peak_usage() - before.max(ALLOCATOR.current_usage());
        assert!(beside <= WINDOW, "{what}: {} KB, {} bytes each", beside >> 10, beside / LEASES);
    }
}
