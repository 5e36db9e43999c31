//! Masks take secrets out of a history: of the answers to a reader, or of the file.

use jiff::Timestamp;
use serde_json::Value;

use crate::body::Body;
use crate::record::{ChangeRecord, ObjectId, Verb, Version};

/// Takes out what must not be there, such as values of Secrets that became known later. A value that is taken out stays out: to
/// mask content twice changes nothing.
pub trait Mask: Send + Sync {
    /// In the content of an object.
    fn object(&self, object: &ObjectId, content: &mut Value);

    /// In the details of a change.
    fn change(&self, object: &ObjectId, details: Details<'_>);

    /// In a text that is of no object.
    fn text(&self, text: &mut String);
}

/// The texts of a change.
#[derive(Debug)]
pub struct Details<'a> {
    /// Where the object differs.
    pub paths: &'a mut Vec<String>,
    /// How it differs, in the form of the writer.
    pub diff: &'a mut Value,
    /// The change in a few words. They may have a part of what is taken out.
    pub summary: &'a mut String,
    /// The change is of this kind,
    pub verb: Verb,
    /// and of this time.
    pub observed_at: Timestamp,
    /// Of an object that came or went, what the mask leaves of it, if it takes something out.
    pub masked: Option<&'a Value>,
}

/// Masks a record. `body` is the content of an object that came or went.
pub(crate) fn record(mask: &dyn Mask, record: &mut ChangeRecord, body: Option<&[u8]>) {
    let masked = body.and_then(|body| masked(mask, &record.object, body));
    let ChangeRecord { object, paths, diff, summary, verb, observed_at, .. } = record;
    let (verb, observed_at) = (*verb, *observed_at);
    mask.change(object, Details { paths, diff, summary, verb, observed_at, masked: masked.as_ref() });
}

pub(crate) fn version(mask: &dyn Mask, version: &mut Version) {
    if let Some(body) = body(mask, &version.object, version.body.bytes()) {
        version.body = Body::redacted(body);
    }
}

/// The masked content; `None` where there is nothing to mask.
pub(crate) fn body(mask: &dyn Mask, object: &ObjectId, bytes: &[u8]) -> Option<Vec<u8>> {
    serde_json::to_vec(&masked(mask, object, bytes)?).ok()
}

fn masked(mask: &dyn Mask, object: &ObjectId, bytes: &[u8]) -> Option<Value> {
    let content: Value = serde_json::from_slice(bytes).ok()?;
    let mut masked = content.clone();
    mask.object(object, &mut masked);
    (masked != content).then_some(masked)
}
