//! Checksums of the caches.

use informer::Informer;
use serde_json::{Value, json};

use crate::Failure;
use crate::view::Measured;

pub fn of<T: Measured>(informers: &[Informer<T>]) -> Result<Value, Failure> {
    let (mut objects, mut checksum, mut content) = (0, 0_u64, Some(0_u64));
    let mut bytes = Vec::new();
    for informer in informers {
        let snapshot = informer.snapshot();
        objects += snapshot.len();
        for object in snapshot.objects() {
            bytes.clear();
            push_key(&mut bytes, object.key().as_str());
            push(&mut bytes, &["\n", object.uid().to_string().as_str()]);
            push(&mut bytes, &["\n", object.resource_version().to_string().as_str()]);
            checksum = checksum.wrapping_add(fnv1a(&bytes));
        }
        if informer.resource().kind != "Pod" {
            continue;
        }
        for object in snapshot.iter().strict() {
            let object = object?;
            let (Some(sum), Some(images)) = (content, object.images()) else {
                content = None;
                break;
            };
            let metadata = object.metadata();
            bytes.clear();
            push(&mut bytes, &[metadata.namespace.as_deref().unwrap_or_default(), "/"]);
            push(&mut bytes, &[metadata.name.as_deref().unwrap_or_default(), "\n"]);
            push(&mut bytes, &[object.node().unwrap_or_default(), "\n"]);
            for image in images {
                push(&mut bytes, &[image, "\n"]);
            }
            content = Some(sum.wrapping_add(fnv1a(&bytes)));
        }
    }
    let mut digest = json!({ "event": "digest", "objects": objects, "checksum": format!("{checksum:016x}") });
    if let Some(content) = content {
        digest["content"] = format!("{content:016x}").into();
    }
    Ok(digest)
}

/// A key without a namespace has no slash of its own.
fn push_key(bytes: &mut Vec<u8>, key: &str) {
    if !key.contains('/') {
        bytes.push(b'/');
    }
    push(bytes, &[key]);
}

fn push(bytes: &mut Vec<u8>, parts: &[&str]) {
    parts.iter().for_each(|part| bytes.extend_from_slice(part.as_bytes()));
}

pub fn fnv1a(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}
