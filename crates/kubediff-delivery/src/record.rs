//! A record of the log with its text, ready to be delivered.

use bytes::Bytes;
use jiff::Timestamp;

use crate::window::Entry;

/// A record of the log. Everything in it may be sent: secrets are hidden before a record is made.
#[derive(Debug, Clone)]
pub struct Record {
    /// Its number and its object, for order.
    pub entry: Entry,
    /// Its id, by which receivers tell repetitions: no other record has it.
    pub id: Box<str>,
    /// When it was observed.
    pub time: Timestamp,
    /// The event that it tells.
    pub event: Event,
    /// Its subject, for people and filters: `Deployment shop/cart`.
    pub subject: Box<str>,
    /// The event in one line, for people: `updated Deployment shop/cart: image 1.2.3 -> 1.2.4`.
    pub summary: Box<str>,
    /// The differences, in lines, for people. It may be empty.
    pub details: Box<str>,
    /// The record, a JSON object.
    pub body: Bytes,
    /// The story of which it tells a milestone. A sink that can do so edits what it has said of the story.
    pub story: Option<u64>,
}

/// The event of a record, for subjects and filters.
#[derive(Debug, Clone, Default)]
pub struct Event {
    /// Its type, as CloudEvents have it: `io.kubediff.change.updated`.
    pub kind: Box<str>,
    /// What it is about: `deployments.apps/shop/cart`.
    pub about: Box<str>,
    /// Where its object is; `None` if it is about none.
    pub place: Option<Place>,
}

/// The place of an object in a cluster.
#[derive(Debug, Clone, Default)]
pub struct Place {
    /// Its group; empty for the core group.
    pub group: Box<str>,
    /// The plural name of its resource.
    pub resource: Box<str>,
    /// Its namespace; `None` for an object of the whole cluster.
    pub namespace: Option<Box<str>>,
}

/// Records that are sent together.
#[derive(Debug)]
pub struct Parcel<'a> {
    /// The records, in order.
    pub records: Vec<&'a Record>,
    /// Whether too many wait for each to be told at length: one summary has to name them all.
    pub is_digest: bool,
    /// Whether this is a dead letter that is sent again.
    pub is_late: bool,
    /// For records of an object with dead letters since its last delivery: the record's number, and theirs.
    pub missing: &'a [(u64, Vec<u64>)],
}

impl Parcel<'_> {
    /// The numbers of the dead letters of this record's object since its last delivery.
    #[must_use]
    pub fn missing_before(&self, number: u64) -> &[u64] {
        self.missing.iter().find(|(before, _)| *before == number).map_or(&[], |(_, missing)| missing)
    }

    /// The same for the same records, however often they are sent: receivers tell repetitions by it.
    #[must_use]
    pub fn id(&self) -> String {
        match &self.records[..] {
            [] => String::new(),
            [record] => record.id.to_string(),
            [first, .., last] => format!("{}-{}-{}", first.id, last.entry.number, self.records.len()),
        }
    }
}
