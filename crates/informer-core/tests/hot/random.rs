//! Random operations, against what must hold after each of them.

use std::sync::Arc;

use informer_core::{Object, PackedStorage, Retention, Room};
use serde_json::Value;

use crate::rig::{Rig, event, pod};

#[test]
fn c10_c12_whatever_happens_the_bound_holds_and_the_account_is_that_of_what_lives() {
    for seed in 0..60 {
        eprintln!("seed {seed}");
        run(seed);
    }
}

fn run(seed: u64) {
    let mut random = fastrand::Rng::with_seed(seed);
    let bound = [2 << 10, 20 << 10, 200 << 10][random.usize(..3)];
    let keeping = if random.u8(..4) == 0 { Retention::Always } else { Retention::WhileHot };
    let mut rig = Rig::new(bound, keeping, Arc::new(PackedStorage::new()));
    let names: Vec<String> = (0..random.usize(1..40)).map(|number| format!("pod-{number}")).collect();
    let items: Vec<String> = names.iter().zip(1..).map(|(name, version)| pod(name, version)).collect();
    rig.list(1_000, &items);
    let mut held: Vec<(Arc<Object>, Option<Arc<Value>>)> = Vec::new();
    for version in 1_001..1_400_u64 {
        let name = &names[random.usize(..names.len())];
        match random.u8(..10) {
            0..3 => rig.line(&event("MODIFIED", &pod(name, version))),
            3 => rig.line(&event("DELETED", &pod(name, version))),
            4 => rig.sweep(),
            5 => drop(held.pop()),
            6 => {
                rig.take_changes();
            }
            _ => {
                let Some(object) = rig.cache().get_str(name) else { continue };
                let room = [Room::Evict, Room::IfFree, Room::EvictIfHot][random.usize(..3)];
                let value = rig.shelf().decode::<Value>(&object, room).unwrap();
                assert_eq!(value["metadata"]["resourceVersion"], object.resource_version().to_string());
                if random.bool() {
                    held.push((object, random.bool().then_some(value)));
                }
            }
        }
        assert!(rig.set().bytes() <= bound, "{} of {bound} bytes", rig.set().bytes());
        for (object, value) in &held {
            let json: Value = serde_json::from_slice(&object.json().unwrap()).unwrap();
            assert!(value.as_ref().is_none_or(|value| **value == json));
        }
    }
    drop(held);
    for name in &names {
        rig.line(&event("DELETED", &pod(name, 9_000)));
    }
    rig.take_changes();
    // Without a look: the account ends with the versions.
    assert_eq!((rig.set().bytes(), rig.shelf().hot_bytes()), (0, 0));
}
