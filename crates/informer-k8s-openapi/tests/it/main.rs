//! Generated code decodes what serde decodes: the test data of Kubernetes' modules, whole and damaged, and random pods.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test may stop at a surprise, in its helpers too"
)]

#[path = "../../../informer-protobuf/tests/testdata/files.rs"]
#[allow(dead_code, reason = "the tests of `informer-protobuf` use more of it")]
mod files;

use fuzzing::protobuf::objects;
use fuzzing::{seeds, typed};
use informer_protobuf::Kind;

/// The objects of kinds with generated code.
fn objects_of_kinds(pairs: &[files::Pair]) -> Vec<(Kind, &[u8])> {
    let kinds = typed::kinds();
    let all = pairs.iter().filter_map(|pair| Some((pair.kind()?, pair.envelope().raw)));
    all.filter(|(kind, _)| kinds.contains(kind)).collect()
}

/// The disrupted pods of this kind have no time in the test data, which serde refuses.
fn has_times(kind: Kind) -> bool {
    kind.kind() != "PodDisruptionBudget"
}

#[test]
fn each_kind_is_decoded_as_serde_does() {
    let Some(pairs) = files::head_or_skip("each_kind_is_decoded_as_serde_does") else { return };
    let objects = objects_of_kinds(&pairs);
    assert_eq!(objects.len(), typed::kinds().len());
    for (kind, raw) in objects {
        assert_eq!(typed::check(kind, raw), has_times(kind), "{kind:?}: left to serde");
    }
}

#[test]
fn each_kind_of_earlier_servers_is_decoded_as_serde_does() {
    let test = "each_kind_of_earlier_servers_is_decoded_as_serde_does";
    let Some(pairs) = files::earlier_or_skip(test) else { return };
    let objects = objects_of_kinds(&pairs);
    assert!(objects.len() > typed::kinds().len(), "{} objects", objects.len());
    for (kind, raw) in objects {
        assert_eq!(typed::check(kind, raw), has_times(kind), "{kind:?}: left to serde");
    }
}

#[test]
fn pods_as_servers_write_them_are_decoded_as_serde_does() {
    let pod = Kind::of("v1", "Pod").unwrap();
    seeds::each(0..200, |seed| {
        let raw = objects::pod(&mut fastrand::Rng::with_seed(seed));
        assert!(typed::check(pod, &raw), "left to serde");
    });
}

#[test]
fn damaged_objects_are_decoded_as_serde_does_or_not_at_all() {
    let Some(pairs) = files::head_or_skip("damaged_objects_are_decoded_as_serde_does_or_not_at_all") else {
        return;
    };
    let objects = objects_of_kinds(&pairs);
    let mut decoded = 0;
    seeds::each(0..3_000, |seed| {
        let mut random = fastrand::Rng::with_seed(seed);
        let (kind, raw) = *random.choice(&objects).unwrap();
        let mut raw = raw.to_vec();
        for _ in 0..random.usize(1..4) {
            let at = random.usize(..raw.len());
            match random.u8(..5) {
                0 => raw[at] = random.u8(..),
                1 => raw[at] ^= 1 << random.u8(..8),
                2 if raw.len() > 1 => drop(raw.remove(at)),
                3 => {
                    let (from, length) = (random.usize(..raw.len()), random.usize(1..40));
                    let copied = raw[from..(from + length).min(raw.len())].to_vec();
                    drop(raw.splice(at..at, copied));
                }
                _ => raw.insert(at, random.u8(..)),
            }
        }
        decoded += usize::from(typed::check(kind, &raw));
    });
    println!("{decoded} of 3,000 were decoded");
    assert!(decoded > 100, "{decoded}");
}
