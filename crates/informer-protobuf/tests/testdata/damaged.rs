//! Damaged objects: no panic, and every way of decoding agrees on what is decodable.

use fuzzing::protobuf::check;
use fuzzing::seeds;
use informer_protobuf::{Kind, from_slice, open, scan, to_json, without_managed_fields};

use crate::files;

#[test]
fn objects_are_damaged_at_random() {
    let Some(pairs) = files::head_or_skip("objects_are_damaged_at_random") else { return };
    seeds::each(0..4_000, |seed| {
        let mut random = fastrand::Rng::with_seed(seed);
        let pair = random.choice(&pairs).unwrap();
        let mut raw = pair.envelope().raw.to_vec();
        for _ in 0..random.usize(1..4) {
            let at = random.usize(..raw.len().max(1));
            match random.u8(..4) {
                _ if raw.is_empty() => raw.push(random.u8(..)),
                0 => raw[at] = random.u8(..),
                1 => raw[at] ^= 1 << random.u8(..8),
                2 => drop(raw.remove(at)),
                _ => raw.insert(at, random.u8(..)),
            }
        }
        check(pair.kind().unwrap(), &raw);
    });
}

#[test]
fn objects_are_taken_for_another_kind() {
    let Some(pairs) = files::head_or_skip("objects_are_taken_for_another_kind") else { return };
    let kinds: Vec<Kind> = Kind::all().collect();
    seeds::each(0..1_000, |seed| {
        let mut random = fastrand::Rng::with_seed(seed);
        let pair = random.choice(&pairs).unwrap();
        check(*random.choice(&kinds).unwrap(), pair.envelope().raw);
    });
}

#[test]
fn objects_end_anywhere() {
    let Some(pairs) = files::head_or_skip("objects_end_anywhere") else { return };
    for name in ["core.v1.Secret", "core.v1.Service", "apiextensions.k8s.io.v1.CustomResourceDefinition"] {
        let pair = files::one(&pairs, name);
        let (kind, raw) = (pair.kind().unwrap(), pair.envelope().raw);
        for length in 0..raw.len() {
            let cut = &raw[..length];
            let _ = (scan(cut), without_managed_fields(cut));
            let value = from_slice::<serde_json::Value>(kind, cut);
            let json =
                to_json(kind, cut).map(|json| serde_json::from_slice::<serde_json::Value>(&json).unwrap());
            assert_eq!(value.is_ok(), json.is_ok(), "{name}, {length} bytes");
            assert!(value.is_err() || value == json, "{name}, {length} bytes");
        }
        for length in 0..pair.protobuf.len() {
            let _ = open(&pair.protobuf[..length]);
        }
    }
}
