//! The storage of a run's cache.

use std::borrow::Cow;
use std::sync::Arc;

use informer_core::{PackedStorage, PlainStorage, Storage};

use crate::plan::Setup;
use crate::protobuf;
use crate::render;
use crate::truth::{KEYS, Key, State};

/// The storage that the setup asks for. A packed one gets a dictionary beforehand, because a few small objects would
/// never produce one.
pub(crate) fn of(setup: &Setup) -> Arc<dyn Storage> {
    if !setup.packed {
        return Arc::new(PlainStorage);
    }
    let storage = PackedStorage::new();
    let costly = costly();
    for number in 0..SEEN {
        let mut bytes = object(number, setup.server.protobuf);
        bytes.extend_from_slice(&costly);
        storage.keep(Cow::Owned(bytes));
    }
    Arc::new(storage)
}

/// With this many objects a dictionary saves memory.
const SEEN: u8 = 48;

/// Bytes that compress badly alone, and to almost nothing with a dictionary that has them.
fn costly() -> Vec<u8> {
    (0..250_u64)
        .flat_map(|number| {
            format!("{:016x}", (number * number).wrapping_mul(0x9e37_79b9_7f4a_7c15)).into_bytes()
        })
        .collect()
}

fn object(number: u8, in_protobuf: bool) -> Vec<u8> {
    let key = Key(number % KEYS);
    let state = State { uid: number.into(), version: number.into(), value: number.into() };
    let said = render::object(key, state, true);
    protobuf::object(&said).filter(|_| in_protobuf).unwrap_or_else(|| said.into_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Plan;

    #[test]
    fn objects_of_a_packed_cache_are_packed_with_a_dictionary() {
        let mut setup = Plan::of_seed(0).setup;
        setup.packed = true;
        for in_protobuf in [false, true] {
            setup.server.protobuf = in_protobuf;
            let storage = of(&setup);
            let bytes = object(200, in_protobuf);
            let stored = storage.keep(Cow::Borrowed(&bytes));
            assert_eq!(*stored.read().unwrap(), *bytes);
            let (held, shared) = (stored.held_bytes(), storage.shared_bytes());
            assert!(
                held < bytes.len() * 2 / 3 && shared > 40_000,
                "{held} of {} bytes, and {shared}",
                bytes.len()
            );
        }
    }
}
