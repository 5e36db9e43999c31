//! A share of the requests asks for protobuf, and what comes is read back into JSON.

use fastrand::Rng;
use serde_json::{Value, json};
use testapi::schema::from_protobuf;

use crate::request::{Body, Request};

const TYPE: &str = "application/vnd.kubernetes.protobuf";

/// The media types that a client may accept in place of JSON.
const ACCEPTS: [&str; 8] = [
    "application/vnd.kubernetes.protobuf,application/json",
    "application/vnd.kubernetes.protobuf,application/json",
    "application/vnd.kubernetes.protobuf,application/json",
    "application/vnd.kubernetes.protobuf, application/json",
    "application/json;q=0.5,application/vnd.kubernetes.protobuf",
    "application/vnd.kubernetes.protobuf",
    "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json",
    "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json",
];

/// Lets a third of the requests for JSON ask for protobuf. It draws for itself: the scripts stay what they are.
pub(crate) fn ask(seed: u64, script: &mut [Request]) {
    let mut random = Rng::with_seed(seed ^ 0x6b38_7300);
    for request in script.iter_mut().filter(|request| request.accept == "application/json") {
        if random.u32(..3) == 0 {
            request.accept = ACCEPTS[random.usize(..ACCEPTS.len())];
        }
    }
}

/// An answer in protobuf as JSON; `None` for one in something else, or that cannot be read.
pub(crate) fn read(content_type: &str, mut bytes: &[u8]) -> Option<Body> {
    let parameters = content_type.strip_prefix(TYPE)?;
    if parameters != ";stream=watch" {
        let mut document = from_protobuf(bytes).ok()?;
        // An empty list has no items to be seen.
        if document["kind"].as_str().is_some_and(|kind| kind.ends_with("List"))
            && document.get("resources").is_none()
        {
            document.as_object_mut()?.entry("items").or_insert_with(|| json!([]));
        }
        return Some(Body::Json(document));
    }
    let mut events = Vec::new();
    while !bytes.is_empty() {
        let (length, rest) = bytes.split_first_chunk()?;
        let (frame, rest) = rest.split_at_checked(usize::try_from(u32::from_be_bytes(*length)).ok()?)?;
        events.push(event(frame)?);
        bytes = rest;
    }
    Some(Body::Events(events))
}

/// A `WatchEvent`: its type, and the object in a message of its own.
fn event(frame: &[u8]) -> Option<Value> {
    let (kind, rest) = field(frame, 0x0a)?;
    let (extension, rest) = field(rest, 0x12)?;
    let (object, more) = field(extension, 0x0a)?;
    let whole = rest.is_empty() && more.is_empty();
    whole.then(|| {
        Some(json!({ "type": std::str::from_utf8(kind).ok()?, "object": from_protobuf(object).ok()? }))
    })?
}

/// The content of the field with this tag, and what comes behind it.
fn field(bytes: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let mut rest = bytes.strip_prefix(&[tag])?;
    let mut length = 0;
    for shift in (0..35).step_by(7) {
        let (byte, behind) = rest.split_first()?;
        rest = behind;
        length |= usize::from(byte & 0x7f) << shift;
        if *byte < 0x80 {
            return rest.split_at_checked(length);
        }
    }
    None
}
