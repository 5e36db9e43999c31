//! Log records of OpenTelemetry, as JSON over HTTP
//! ([OTLP/HTTP](https://github.com/open-telemetry/opentelemetry-proto/blob/v1.11.0/docs/specification.md#otlphttp)).

use reqwest::Response;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::answer::Answer;
use crate::client;
use crate::record::{Parcel, Record};

/// The most bytes of an answer, as the specification recommends.
const MOST: usize = 4 << 20;
/// The most characters of the receiver's reason that are told.
const TOLD: usize = 200;

/// The JSON of a record: its event.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase")]
struct Event {
    event_name: String,
    severity_number: u8,
    severity_text: String,
    attributes: Map<String, Value>,
}

/// The answer to a request that was taken, at least in part.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Taken {
    partial_success: Option<PartialSuccess>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct PartialSuccess {
    /// An `int64`, which is a string or a number.
    rejected_log_records: Value,
    error_message: String,
}

/// An `ExportLogsServiceRequest`.
pub(super) fn request(parcel: &Parcel<'_>, resource: &[(Box<str>, Box<str>)]) -> Value {
    let resource: Vec<Value> = resource
        .iter()
        .map(|(key, value)| json!({ "key": key, "value": { "stringValue": value } }))
        .collect();
    let scope = json!({ "name": "kubediff", "version": env!("CARGO_PKG_VERSION") });
    let records: Vec<Value> = parcel.records.iter().map(|record| log_record(record, parcel)).collect();
    json!({ "resourceLogs": [{
        "resource": { "attributes": resource },
        "scopeLogs": [{ "scope": scope, "logRecords": records }],
    }] })
}

fn log_record(record: &Record, parcel: &Parcel<'_>) -> Value {
    let number = record.entry.number;
    let mut event: Event = serde_json::from_slice(&record.body).unwrap_or_default();
    let mut own = |name: &str, value: Value| event.attributes.insert(format!("kubediff.{name}"), value);
    own("id", (*record.id).into());
    own("number", number.into());
    if !record.details.is_empty() {
        own("details", (*record.details).into());
    }
    if parcel.is_late {
        own("late", true.into());
    }
    let missing = parcel.missing_before(number);
    if !missing.is_empty() {
        own("missing", missing.into());
    }
    let attributes: Vec<Value> = event
        .attributes
        .iter()
        .map(|(key, value)| json!({ "key": key, "value": any_value(value) }))
        .collect();
    // 0 is for an unknown time, and there is none before 1970.
    let time = record.time.as_nanosecond().max(0).to_string();
    json!({
        "timeUnixNano": time,
        "observedTimeUnixNano": time,
        "severityNumber": event.severity_number,
        "severityText": event.severity_text,
        "eventName": event.event_name,
        "body": { "stringValue": record.summary },
        "attributes": attributes,
    })
}

/// A value of an attribute. Numbers are integers, which JSON's mapping has as strings.
fn any_value(value: &Value) -> Value {
    match value {
        Value::String(text) => json!({ "stringValue": text }),
        Value::Bool(is_so) => json!({ "boolValue": is_so }),
        Value::Number(number) if number.is_i64() => json!({ "intValue": number.to_string() }),
        Value::Array(values) => {
            json!({ "arrayValue": { "values": values.iter().map(any_value).collect::<Vec<_>>() } })
        }
        other => json!({ "stringValue": other.to_string() }),
    }
}

/// The outcome of `sent` records whose request was taken. The receiver may have rejected some of them, and does not say
/// which.
pub(super) async fn judge(mut response: Response, sent: usize) -> Answer {
    let mut body = Vec::new();
    loop {
        match response.chunk().await {
            Ok(Some(chunk)) if body.len() + chunk.len() > MOST => {
                return Answer::Refused { reason: "the receiver's answer is too long".into() };
            }
            Ok(Some(chunk)) => body.extend_from_slice(&chunk),
            Ok(None) => break,
            Err(error) => return client::unavailable(error),
        }
    }
    // Receivers that answer with something else have taken all of it.
    let taken: Taken = serde_json::from_slice(&body).unwrap_or_default();
    let PartialSuccess { rejected_log_records: rejected, error_message } =
        taken.partial_success.unwrap_or_default();
    let rejected = rejected.as_i64().or_else(|| rejected.as_str()?.parse().ok()).unwrap_or_default();
    if rejected <= 0 {
        return Answer::Accepted;
    }
    let why: String =
        error_message.chars().map(|c| if c.is_control() { ' ' } else { c }).take(TOLD).collect();
    Answer::Refused { reason: format!("{rejected} of {sent} log records were rejected: {why}").into() }
}
