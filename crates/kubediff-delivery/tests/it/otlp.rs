//! Log records of OpenTelemetry, to receivers that take all, a part or nothing of a request. kubediff's
//! `tests/watch/streams.rs` sends them to the collector's own receiver.

use std::time::Duration;

use expect_test::expect;
use kubediff_delivery::{Answer, Form, Parcel, Policy, Sink, Webhook, WebhookOptions};
use serde_json::{Value, json};

use crate::log::Memory;
use crate::running::{Running, quick};
use crate::server::{Act, Server};

fn sink(server: &Server) -> Webhook {
    let resource = vec![("k8s.cluster.uid".into(), "c1".into())];
    let form = Form::Otlp { resource };
    Webhook::new(&server.url(), WebhookOptions { form, ..WebhookOptions::default() }).expect("a sink")
}

async fn send(server: &Server, log: &Memory, missing: &[(u64, Vec<u64>)], is_late: bool) -> Answer {
    let records = [log.record(1), log.record(2)];
    let parcel = Parcel { records: records.iter().collect(), is_digest: false, is_late, missing };
    sink(server).send(parcel).await
}

/// Two records; the first one has an event.
fn log() -> Memory {
    let log = Memory::of([1]);
    log.say(2, "updated ConfigMap shop/object-2", "");
    log.write(
        1,
        &json!({
            "eventName": "io.kubediff.change.updated", "severityNumber": 13, "severityText": "warning",
            "attributes": {"kubediff.paths": ["spec.a", "spec.b"], "k8s.pod.name": "cart", "n": -3, "b": false},
        }),
    );
    log
}

#[tokio::test]
async fn a_request_is_an_export_of_log_records() {
    let server = Server::start([]).await;
    send(&server, &log(), &[(2, vec![1])], true).await;
    let seen = &server.seen()[0];
    assert_eq!(
        (&*seen.method, &seen.headers["content-type"]),
        ("POST", &"application/json".parse().unwrap())
    );
    let body: Value = serde_json::from_slice(&seen.body).expect("JSON");
    let logs = &body["resourceLogs"][0];
    let scope = &logs["scopeLogs"][0];
    let records: Vec<String> =
        scope["logRecords"].as_array().expect("records").iter().map(Value::to_string).collect();
    let said = format!("{}\n{}\n{}\n", logs["resource"], scope["scope"], records.join("\n"));
    expect![[r#"
        {"attributes":[{"key":"k8s.cluster.uid","value":{"stringValue":"c1"}}]}
        {"name":"kubediff","version":"VERSION"}
        {"attributes":[{"key":"b","value":{"boolValue":false}},{"key":"k8s.pod.name","value":{"stringValue":"cart"}},{"key":"kubediff.details","value":{"stringValue":"- n: 0\n+ n: 1"}},{"key":"kubediff.id","value":{"stringValue":"log-1-1"}},{"key":"kubediff.late","value":{"boolValue":true}},{"key":"kubediff.number","value":{"intValue":"1"}},{"key":"kubediff.paths","value":{"arrayValue":{"values":[{"stringValue":"spec.a"},{"stringValue":"spec.b"}]}}},{"key":"n","value":{"intValue":"-3"}}],"body":{"stringValue":"updated ConfigMap shop/object-1: n 0 -> 1"},"eventName":"io.kubediff.change.updated","observedTimeUnixNano":"0","severityNumber":13,"severityText":"warning","timeUnixNano":"0"}
        {"attributes":[{"key":"kubediff.id","value":{"stringValue":"log-1-2"}},{"key":"kubediff.late","value":{"boolValue":true}},{"key":"kubediff.missing","value":{"arrayValue":{"values":[{"intValue":"1"}]}}},{"key":"kubediff.number","value":{"intValue":"2"}}],"body":{"stringValue":"updated ConfigMap shop/object-2"},"eventName":"","observedTimeUnixNano":"0","severityNumber":0,"severityText":"","timeUnixNano":"0"}
    "#]].assert_eq(&said.replace(env!("CARGO_PKG_VERSION"), "VERSION"));
}

#[tokio::test]
async fn what_a_receiver_rejected_is_refused_and_a_warning_is_none() {
    let answers = [
        ("", ""),
        ("{}", ""),
        ("<html>", ""),
        (r#"{"partialSuccess": {}}"#, ""),
        (r#"{"partialSuccess": {"rejectedLogRecords": "0", "errorMessage": "slow down"}}"#, ""),
        (
            r#"{"partialSuccess": {"rejectedLogRecords": "1", "errorMessage": "too\u001b old"}}"#,
            "1 of 2 log records were rejected: too  old",
        ),
        (r#"{"partialSuccess": {"rejectedLogRecords": 2}}"#, "2 of 2 log records were rejected: "),
    ];
    let long = " ".repeat(5 << 20);
    for (body, refused) in answers.into_iter().chain([(&*long, "the receiver's answer is too long")]) {
        let server = Server::start([Act::Json(body.to_owned())]).await;
        let expected = match refused {
            "" => Answer::Accepted,
            reason => Answer::Refused { reason: reason.into() },
        };
        assert_eq!(send(&server, &log(), &[], false).await, expected, "{}", &body[..body.len().min(100)]);
    }
}

/// The numbers of a request's records.
fn numbers(body: &[u8]) -> Vec<u64> {
    let body: Value = serde_json::from_slice(body).expect("JSON");
    let records = body["resourceLogs"][0]["scopeLogs"][0]["logRecords"].as_array().expect("records").clone();
    let number = |record: &Value| {
        let attributes = record["attributes"].as_array().expect("attributes");
        let number = attributes.iter().find(|attribute| attribute["key"] == "kubediff.number");
        number.expect("a number")["value"]["intValue"].as_str().expect("text").parse().expect("digits")
    };
    records.iter().map(number).collect()
}

/// The answer says how many records were rejected, and not which.
#[tokio::test]
async fn the_record_that_a_receiver_rejects_is_found_and_the_others_arrive() {
    let log = Memory::of(1..=20);
    let server = Server::with(|seen| {
        let rejected = numbers(&seen.body).contains(&13);
        let answer = json!({"partialSuccess": {"rejectedLogRecords": u8::from(rejected).to_string(), "errorMessage": "bad"}});
        Act::Json(if rejected { answer.to_string() } else { "{}".to_owned() })
    })
    .await;
    let policy = Policy { batch: 10, first_wait: Duration::from_millis(2), ..quick() };
    let running = Running::start(&log, sink(&server), policy);
    let settled = log.reaches(20).await;
    running.stop().await;
    let dead: Vec<_> = settled.dead.iter().map(|dead| (dead.number, &*dead.reason)).collect();
    assert_eq!(dead, [(13, "1 of 1 log records were rejected: bad")]);
    let requests: Vec<Vec<u64>> = server.seen().iter().map(|seen| numbers(&seen.body)).collect();
    for number in 1..=20 {
        // Halves of halves: in a few requests, and the last of them was taken whole.
        let times = requests.iter().filter(|request| request.contains(&number)).count();
        assert!((1..=9).contains(&times), "{number} was sent {times} times: {requests:?}");
        let last = requests.iter().rfind(|request| request.contains(&number)).expect("a request");
        assert!(number == 13 || !last.contains(&13), "{number} was not taken: {requests:?}");
    }
}
