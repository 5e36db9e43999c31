//! Objects in protobuf: any bytes as any kind.

mod fields;
pub mod lists;
mod message;
pub mod objects;
pub mod watches;

use fastrand::Rng;
use informer_core::PlainStorage;
use informer_core::internals::scan_protobuf;
use informer_protobuf::wire::{Fields, Value as Wire};
use informer_protobuf::{Kind, from_slice, open, scan, to_json, without_managed_fields};
use serde::de::IgnoredAny;
use serde_json::Value;

pub use message::Message;

/// Bytes of an input before the object: which kind it is taken for.
const HEAD: usize = 2;

/// A message that cannot be written as JSON cannot be decoded. Written JSON is valid, decodes to the same, and is the same without
/// `managedFields` except for these; and metadata is that of the object.
pub fn run(input: &[u8]) {
    let Some((head, raw)) = input.split_first_chunk::<HEAD>() else { return };
    let kinds: Vec<Kind> = Kind::all().collect();
    let kind = kinds[usize::from(u16::from_le_bytes(*head)) % kinds.len()];
    check(kind, raw);
}

/// The same of that kind.
pub fn check(kind: Kind, raw: &[u8]) {
    if let Ok(envelope) = open(raw) {
        assert!(raw.ends_with(envelope.raw) || raw.len() > envelope.raw.len());
    }
    let scanned = scan(raw);
    let without = without_managed_fields(raw);
    assert!(without.len() <= raw.len());
    let read = from_slice::<Value>(kind, raw);
    let Ok(json) = to_json(kind, raw) else {
        assert!(read.is_err(), "{kind:?}: read, not written");
        return;
    };
    serde_json::from_slice::<IgnoredAny>(&json).expect("it is JSON");
    let Ok(written) = serde_json::from_slice::<Value>(&json) else {
        // A number past all bounds, or half of a surrogate pair, in JSON that the object carries.
        assert!(read.is_err(), "{kind:?}");
        return;
    };
    let read = read.unwrap_or_else(|error| panic!("{kind:?}: written, not read: {error}"));
    assert!(is_same(&read, &written), "{kind:?}: {read} is read, {written} written");
    if !kind.has_object_metadata() {
        return;
    }

    let mut expected = read;
    let metadata = expected.get_mut("metadata").and_then(Value::as_object_mut).expect("it is always there");
    metadata.remove("managedFields");
    assert_eq!(from_slice::<Value>(kind, &without), Ok(expected), "{kind:?}");

    if is_in_order(raw) {
        let metadata = &written["metadata"];
        let text = |name: &str| metadata.get(name).and_then(Value::as_str).unwrap_or_default();
        let Ok(scanned) = scanned else {
            let texts = ["name", "namespace", "uid", "resourceVersion"].map(text);
            return assert!(texts.iter().any(|text| text.contains('\u{fffd}')), "its metadata comes first");
        };
        assert_eq!(scanned.name, text("name"));
        assert_eq!(scanned.namespace, text("namespace"));
        assert_eq!(scanned.uid, text("uid"));
        assert_eq!(scanned.resource_version, text("resourceVersion"));
        let map = |name| metadata.get(name).cloned().unwrap_or_else(|| Value::Object(Default::default()));
        let labels = scanned.labels().map(|it| it.map(|(name, value)| (name.into_owned(), value.into())));
        assert_eq!(labels.collect::<Result<_, _>>().map(Value::Object), Ok(map("labels")));
        let annotations =
            scanned.annotations().map(|it| it.map(|(name, value)| (name.into_owned(), value.into())));
        assert_eq!(annotations.collect::<Result<_, _>>().map(Value::Object), Ok(map("annotations")));
    }
}

/// Whether scanned metadata equals the message's. Never panics, whatever the input.
fn check_message(message: &[u8]) {
    let Ok(scanned) = scan_protobuf(message) else { return };
    let metadata = scan(message).expect("it was read");
    assert_eq!(scanned.key().name(), metadata.name);
    assert_eq!(scanned.key().namespace().unwrap_or_default(), metadata.namespace);
    assert_eq!(scanned.resource_version().to_string(), metadata.resource_version);
    let uid = metadata.uid;
    let object = scanned.into_object(Kind::PARTIAL_OBJECT_METADATA, message, &PlainStorage);
    assert_eq!(object.is_ok(), metadata.labels().all(|label| label.is_ok()));
    if let Ok(object) = object {
        assert_eq!((object.uid().to_string().as_str(), &*object.bytes().unwrap()), (uid, message));
    }
}

/// serde_json reads long fractions a little wrong (its feature `float_roundtrip`).
fn is_same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) if one.is_f64() && other.is_f64() => {
            let (one, other) = (one.as_f64().unwrap(), other.as_f64().unwrap());
            one == other || (one / other - 1.0).abs() < 4.0 * f64::EPSILON
        }
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| is_same(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len()
                && one.iter().all(|(name, one)| other.get(name).is_some_and(|other| is_same(one, other)))
        }
        _ => one == other,
    }
}

/// Whether metadata comes first, and the numbers of its fields never fall, those of texts always rise.
fn is_in_order(raw: &[u8]) -> bool {
    let Some(Ok(first)) = Fields::new(raw).next() else { return false };
    let Wire::Bytes(metadata) = first.value else { return false };
    let mut numbers = Fields::new(metadata).map_while(Result::ok).map(|field| field.number);
    let rise = |last: &mut u32, number: u32| {
        let rises = *last < number || *last == number && number > 10;
        *last = number;
        Some(rises)
    };
    first.number == 1 && numbers.by_ref().scan(0, rise).all(|rises| rises)
}

/// An object as a server sends it.
pub fn example(seed: u64) -> Vec<u8> {
    let mut random = Rng::with_seed(seed);
    type Example = (&'static str, &'static str, fn(&mut Rng) -> Vec<u8>);
    let examples: [Example; 6] = [
        ("v1", "Pod", objects::pod),
        ("v1", "Secret", objects::secret),
        ("v1", "WatchEvent", objects::watch_event),
        ("coordination.k8s.io/v1", "Lease", objects::lease),
        ("apiextensions.k8s.io/v1", "CustomResourceDefinition", objects::definition),
        ("meta.k8s.io/v1", "PartialObjectMetadata", objects::secret),
    ];
    let (api_version, kind, object) = examples[random.usize(..examples.len())];
    let index = Kind::all().position(|it| (it.api_version(), it.kind()) == (api_version, kind)).unwrap();
    [&u16::try_from(index).unwrap().to_le_bytes()[..], &object(&mut random)].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn examples_are_whole_objects() {
        for seed in 0..60 {
            let input = example(seed);
            let (head, raw) = input.split_first_chunk::<HEAD>().unwrap();
            let kind = Kind::all().nth(u16::from_le_bytes(*head).into()).unwrap();
            let value = from_slice::<Value>(kind, raw)
                .unwrap_or_else(|error| panic!("{kind:?}, seed {seed}: {error}"));
            assert!(kind.kind() == "WatchEvent" || value["metadata"]["labels"]["tier"].is_string());
        }
    }
}
