//! How the cache keeps its objects.

use std::borrow::Cow;
use std::sync::Arc;

use informer_core::{PackedStorage, PlainStorage, Storage};

use crate::plan::Setup;
use crate::protobuf;
use crate::render;
use crate::truth::{KEYS, Key, State};

/// As the plan says. Packed, it has seen so much already that it has a dictionary, which no cache of a few small objects would
/// get.
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

/// So many objects pay for a dictionary.
const SEEN: u8 = 48;

/// What hardly shrinks by itself, and would be nothing with a dictionary: the digits of a counter's squares.
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
