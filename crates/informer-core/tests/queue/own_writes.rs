//! Writes without an answer, as caches reflect them.

use std::sync::Arc;

use informer_core::control::{CacheStates, Found, OwnWrite};
use informer_core::{Object, ObjectKey, ResourceVersion};

/// A cache of at most one object.
struct One(Option<u64>, u64);

fn version(number: u64) -> ResourceVersion {
    ResourceVersion::new(&number.to_string())
}

fn key() -> ObjectKey {
    ObjectKey::new(Some("shop"), "cart").unwrap()
}

impl CacheStates for One {
    fn object(&self, _: usize, _: &ObjectKey) -> Option<Arc<Object>> {
        let json = |version| {
            format!(
                r#"{{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"cart","namespace":"shop","uid":"u{version}","resourceVersion":"{version}"}}}}"#
            )
        };
        self.0.map(|version| Arc::new(Object::from_json(json(version).as_bytes()).unwrap()))
    }

    fn version(&self, _: usize) -> ResourceVersion {
        version(self.1)
    }
}

fn uncertain() -> OwnWrite {
    OwnWrite::Uncertain { cache: 0, namespace: Some("shop".to_owned()), name: Some("cart".to_owned()) }
}

/// The controller wrote an incarnation that the cache has not seen, and somebody deleted it.
#[test]
fn q7_an_object_that_the_server_does_not_have_is_not_read_in_a_state_before_that() {
    let writes = uncertain().resolve(&[], &version(10));
    let [write] = writes.as_slice() else { panic!("{writes:?}") };
    assert!(!write.is_reflected(&One(Some(3), 3)));
    assert!(!write.is_reflected(&One(Some(8), 8)), "another incarnation, created before the write");
    assert!(write.is_reflected(&One(None, 9)), "as the server has it");
    assert!(write.is_reflected(&One(Some(12), 9)), "created after the answer");
    assert!(write.is_reflected(&One(Some(8), 10)), "the cache has all until the answer");
}

#[test]
fn q7_an_absent_object_that_the_cache_keeps_for_good_blocks_nothing() {
    let write = uncertain().resolve(&[], &version(10)).remove(0);
    let kept = One(Some(3), 9);
    assert!(!write.is_moot(&version(12), &[], &kept), "its deletion may arrive");
    let next = |number| [Found { key: key(), version: version(number) }];
    assert!(!write.is_moot(&version(12), &next(11), &kept));
    assert!(write.is_moot(&version(9), &next(2), &kept), "a restored server has it again");
}
