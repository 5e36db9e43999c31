//! Random JSON, written as oddly as JSON allows, and random damage to it: the input of the decoders' tests and corpora.

use fastrand::Rng;
use serde_json::{Map, Value, json};

/// Cuts bytes into chunks: one, single bytes, or of random lengths (some of them empty).
pub fn cut<'b>(random: &mut Rng, bytes: &'b [u8]) -> Vec<&'b [u8]> {
    let most = match random.u8(..4) {
        0 => return vec![bytes],
        1 => return bytes.chunks(1).collect(),
        2 => 8,
        _ => 200,
    };
    let mut chunks = Vec::new();
    let mut rest = bytes;
    while !rest.is_empty() {
        let (chunk, after) = rest.split_at(random.usize(0..=most).min(rest.len()));
        chunks.push(chunk);
        rest = after;
    }
    chunks
}

/// A text with everything in it that a careless reader trips over.
pub fn text(random: &mut Rng) -> String {
    let parts = [
        "a", "pod-", "7", "\"", "\\", "\\\\\"", "/", "\n", "\u{1}", "é", "→", "😀", "{", "}}", "[", "]", ",",
        ":", "\u{2028}",
    ];
    (0..random.usize(..12)).map(|_| *random.choice(&parts).unwrap()).collect()
}

/// A text as the names of Kubernetes objects are, mostly.
pub fn name(random: &mut Rng) -> String {
    if random.u8(..8) == 0 {
        return format!("ü{}", text(random).replace('/', "-"));
    }
    (0..random.usize(1..20)).map(|_| random.lowercase()).collect()
}

/// Any value.
pub fn value(random: &mut Rng, depth: u32) -> Value {
    match random.u8(..if depth == 0 { 5 } else { 8 }) {
        0 => Value::Null,
        1 => random.bool().into(),
        2 => random.i64(..).into(),
        3 => json!(f64::from(random.i16(..)) / 8.0),
        4 => text(random).into(),
        5 | 6 => (0..random.usize(..5))
            .map(|_| (text(random), value(random, depth - 1)))
            .collect::<Map<_, _>>()
            .into(),
        _ => (0..random.usize(..5)).map(|_| value(random, depth - 1)).collect(),
    }
}

/// An object with metadata.
pub fn object(random: &mut Rng) -> Value {
    let mut metadata = Map::new();
    metadata.insert("name".into(), name(random).into());
    let texts = ["namespace", "uid", "resourceVersion", "generateName", "creationTimestamp"];
    for field in texts {
        match random.u8(..5) {
            0 => {}
            1 if random.bool() => drop(metadata.insert(field.into(), Value::Null)),
            _ => drop(metadata.insert(field.into(), name(random).into())),
        }
    }
    for field in ["labels", "annotations"] {
        if random.u8(..4) > 0 {
            let pairs: Map<_, _> =
                (0..random.usize(..4)).map(|_| (name(random), text(random).into())).collect();
            metadata.insert(field.into(), pairs.into());
        }
    }
    if random.bool() {
        metadata.insert("managedFields".into(), (0..random.usize(..3)).map(|_| value(random, 4)).collect());
    }
    if random.bool() {
        metadata.insert("ownerReferences".into(), json!([{"kind": "ReplicaSet", "name": "x", "uid": "y"}]));
    }
    let mut object = Map::new();
    object.insert("metadata".into(), metadata.into());
    for field in ["spec", "status", "data"] {
        if random.bool() {
            object.insert(field.into(), value(random, 5));
        }
    }
    for (field, text) in [("kind", "Pod"), ("apiVersion", "v1")] {
        if random.bool() {
            object.insert(field.into(), text.into());
        }
    }
    object.into()
}

/// Writes a value with members in random order, needless escapes and, if asked for, white space.
pub fn write(random: &mut Rng, value: &Value, spaced: bool) -> Vec<u8> {
    let mut out = Vec::new();
    write_to(random, value, spaced, &mut out);
    out
}

fn write_to(random: &mut Rng, value: &Value, spaced: bool, out: &mut Vec<u8>) {
    space(random, spaced, out);
    match value {
        Value::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            random.shuffle(&mut members);
            out.push(b'{');
            space(random, spaced, out);
            for (index, (name, value)) in members.into_iter().enumerate() {
                if index > 0 {
                    out.push(b',');
                    space(random, spaced, out);
                }
                write_text(random, name, out);
                space(random, spaced, out);
                out.push(b':');
                write_to(random, value, spaced, out);
            }
            out.push(b'}');
        }
        Value::Array(values) => {
            out.push(b'[');
            space(random, spaced, out);
            for (index, value) in values.iter().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                write_to(random, value, spaced, out);
            }
            out.push(b']');
        }
        Value::String(text) => write_text(random, text, out),
        other => out.extend_from_slice(other.to_string().as_bytes()),
    }
    space(random, spaced, out);
}

fn space(random: &mut Rng, spaced: bool, out: &mut Vec<u8>) {
    if spaced && random.u8(..4) == 0 {
        out.extend((0..random.usize(..4)).map(|_| *random.choice(b" \t\r\n").unwrap()));
    }
}

fn write_text(random: &mut Rng, text: &str, out: &mut Vec<u8>) {
    let needless = random.u8(..8) == 0;
    if !needless {
        out.extend_from_slice(Value::from(text).to_string().as_bytes());
        return;
    }
    out.push(b'"');
    for unit in text.encode_utf16() {
        // Surrogate pairs included: `😀` becomes `\uD83D\uDE00`.
        out.extend_from_slice(format!("\\u{unit:04X}").as_bytes());
    }
    out.push(b'"');
}

/// Flips, deletes, doubles or cuts off a few bytes.
pub fn garble(random: &mut Rng, bytes: &mut Vec<u8>) {
    for _ in 0..random.usize(1..4) {
        if bytes.is_empty() {
            return;
        }
        let at = random.usize(..bytes.len());
        match random.u8(..6) {
            0 => bytes[at] ^= 1 << random.u8(..8),
            1 => bytes[at] = *random.choice(b"{}[]\",:\\ nu0\x00\xff\n").unwrap(),
            2 => drop(bytes.remove(at)),
            3 => bytes.insert(at, *random.choice(b"{}[]\",:\\ nu0\x00\xff\n").unwrap()),
            4 => bytes.truncate(at),
            _ => {
                let piece = bytes[at..(at + random.usize(..30)).min(bytes.len())].to_vec();
                bytes.splice(at..at, piece);
            }
        }
    }
}
