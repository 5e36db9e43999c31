//! A record as JSON, with the marks of its delivery.

use serde::Serialize;
use serde_json::value::RawValue;

use crate::record::{Parcel, Record};

/// `{"id": "...", "number": 7, "change": {...}}`. A record with missing ones before it has `"missing": [5]`, a dead letter that is
/// sent again `"late": true`.
#[derive(Serialize)]
pub(crate) struct Marked<'a> {
    id: &'a str,
    number: u64,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    late: bool,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    missing: &'a [u64],
    change: &'a RawValue,
}

impl<'a> Marked<'a> {
    pub(crate) fn of(record: &'a Record, parcel: &'a Parcel<'_>) -> Self {
        let number = record.entry.number;
        Self {
            id: &record.id,
            number,
            late: parcel.is_late,
            missing: parcel.missing_before(number),
            change: raw(record),
        }
    }
}

/// The records in lines, each with its end.
pub(crate) fn lines(parcel: &Parcel<'_>) -> Vec<u8> {
    let mut lines = Vec::new();
    for record in &parcel.records {
        // Numbers and raw JSON: there is nothing that cannot be written.
        let line = serde_json::to_vec(&Marked::of(record, parcel)).unwrap_or_default();
        // In JSON, white space between values is all that can be a line's end.
        lines.extend(line.into_iter().filter(|byte| !matches!(byte, b'\n' | b'\r')));
        lines.push(b'\n');
    }
    lines
}

pub(crate) fn raw(record: &Record) -> &RawValue {
    serde_json::from_slice(&record.body).unwrap_or(RawValue::NULL)
}
