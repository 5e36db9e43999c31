//! The formats of a request's body.

use bytes::Bytes;
use serde::Serialize;
use serde_json::value::RawValue;

use super::otlp;
use crate::json::{Marked, raw};
use crate::record::{Parcel, Record};

/// The format of a request's body.
#[derive(Debug, Clone, Default)]
pub enum Form {
    /// An object with the records: `{"changes": [{"id": "...", "number": 7, "change": {...}}]}`. A record with missing ones before it has
    /// `"missing": [5]`, a dead letter that is sent again `"late": true`.
    #[default]
    Plain,
    /// A batch of [CloudEvents 1.0](https://github.com/cloudevents/spec/blob/v1.0.2/cloudevents/formats/json-format.md#4-json-batch-format), or
    /// one event. The same marks are extensions: `late`, and `missing` with numbers that are separated by commas.
    CloudEvents {
        /// The attribute `source` of all events: `kubediff/my-cluster`.
        source: Box<str>,
        /// One event in each body, not a batch. Give the delivery a batch of one record then.
        single: bool,
    },
    /// An `ExportLogsServiceRequest` of OpenTelemetry, for the path `/v1/logs` of a receiver of OTLP/HTTP: a log record
    /// for each record. The record's JSON is its event, `{"eventName": "...", "severityNumber": 9, "severityText":
    /// "info", "attributes": {...}}`, whose attributes are texts, integers, truth values, and lists of them.
    /// `kubediff.id`, `kubediff.number`, `kubediff.details` and the marks `kubediff.late` and `kubediff.missing` are
    /// added to them. A receiver that takes a part of the records has refused them
    /// ([`Answer::Refused`](crate::Answer)): those that it took are sent again, too, because it does not say which they
    /// are.
    Otlp {
        /// The attributes of the resource, such as `service.name`: names and texts.
        resource: Vec<(Box<str>, Box<str>)>,
    },
    /// The record's JSON alone, without marks: for receivers that want a form of their own, which the program has given the
    /// record. Give the delivery a batch of one record; more are a list.
    Bare,
}

impl Form {
    pub(super) fn render(&self, parcel: &Parcel<'_>) -> (&'static str, Bytes) {
        let (content_type, body) = match self {
            Self::Plain => {
                let changes = parcel.records.iter().map(|record| Marked::of(record, parcel)).collect();
                ("application/json", serde_json::to_vec(&Plain { changes }))
            }
            Self::CloudEvents { source, single } => {
                let events: Vec<_> =
                    parcel.records.iter().map(|record| event(record, parcel, source)).collect();
                match (&events[..], single) {
                    ([event], true) => ("application/cloudevents+json", serde_json::to_vec(event)),
                    _ => ("application/cloudevents-batch+json", serde_json::to_vec(&events)),
                }
            }
            Self::Otlp { resource } => {
                ("application/json", serde_json::to_vec(&otlp::request(parcel, resource)))
            }
            Self::Bare => {
                let records: Vec<_> = parcel.records.iter().map(|record| raw(record)).collect();
                let body = match &records[..] {
                    [record] => serde_json::to_vec(record),
                    _ => serde_json::to_vec(&records),
                };
                ("application/json", body)
            }
        };
        // Strings, numbers and raw JSON: there is nothing that cannot be written.
        (content_type, body.unwrap_or_default().into())
    }
}

#[derive(Serialize)]
struct Plain<'a> {
    changes: Vec<Marked<'a>>,
}

#[derive(Serialize)]
struct Event<'a> {
    specversion: &'static str,
    id: &'a str,
    source: &'a str,
    #[serde(rename = "type")]
    kind: &'static str,
    subject: &'a str,
    time: String,
    datacontenttype: &'static str,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    late: bool,
    #[serde(skip_serializing_if = "String::is_empty")]
    missing: String,
    data: &'a RawValue,
}

fn event<'a>(record: &'a Record, parcel: &Parcel<'_>, source: &'a str) -> Event<'a> {
    let number = record.entry.number;
    let missing: Vec<String> = parcel.missing_before(number).iter().map(u64::to_string).collect();
    Event {
        specversion: "1.0",
        id: &record.id,
        source,
        kind: "kubediff.change",
        subject: &record.subject,
        time: record.time.to_string(),
        datacontenttype: "application/json",
        late: parcel.is_late,
        missing: missing.join(","),
        data: raw(record),
    }
}
