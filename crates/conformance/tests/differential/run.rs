//! Runs a script against one server.

use std::time::{Duration, Instant};

use futures_util::StreamExt;
use http_body_util::BodyExt;
use kube_client::Client;
use kube_client::client::Body as RequestBody;
use serde_json::Value;

use crate::protobuf;
use crate::request::{Answer, Body, Request};

/// How long a definition may take to have its effect.
const PATIENCE: Duration = Duration::from_secs(20);

/// Sends all requests, one after the other, and returns what was answered.
pub(crate) async fn run(client: &Client, namespace: &str, script: &[Request]) -> Vec<Answer> {
    let mut answers: Vec<Answer> = Vec::with_capacity(script.len());
    for request in script {
        let filled = fill(request, namespace, script, &answers);
        let began = Instant::now();
        let answer = loop {
            let answer = send(client, &filled).await;
            if request.until.is_none_or(|status| status == answer.status) || began.elapsed() > PATIENCE {
                break answer;
            }
        };
        answers.push(answer);
    }
    answers
}

async fn send(client: &Client, request: &Request) -> Answer {
    let mut query = form_urlencoded::Serializer::new(String::new());
    for (name, value) in &request.query {
        query.append_pair(name, value);
    }
    let query = query.finish();
    let mark = if query.is_empty() { "" } else { "?" };
    let mut head = http::Request::builder()
        .method(request.method.clone())
        .uri(format!("{}{mark}{query}", request.path))
        .header("accept", request.accept)
        .header("user-agent", "differential/1");
    if request.body.is_some() {
        head = head.header("content-type", request.content_type);
    }
    let body =
        request.body.clone().map_or_else(RequestBody::empty, |body| RequestBody::from(body.into_bytes()));
    let answer = client.send(head.body(body).expect("a request")).await.expect("an answer");
    let status = answer.status().as_u16();
    let content_type = answer.headers().get("content-type").and_then(|value| value.to_str().ok());
    let content_type = content_type.unwrap_or_default().to_owned();
    let mut bytes = Vec::new();
    let mut chunks = answer.into_body().into_data_stream();
    while let Some(chunk) = chunks.next().await {
        bytes.extend_from_slice(&chunk.expect("a whole body"));
    }
    let body = protobuf::read(&content_type, &bytes).unwrap_or_else(|| read(request, status, &bytes));
    Answer { status, content_type, body }
}

fn read(request: &Request, status: u16, bytes: &[u8]) -> Body {
    let lines = || bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    // A refusal is a document, whatever was asked for.
    if request.is_watch()
        && status == 200
        && let Ok(events) = lines().map(serde_json::from_slice).collect::<Result<Vec<Value>, _>>()
    {
        return Body::Events(events);
    }
    match serde_json::from_slice(bytes) {
        Ok(json) => Body::Json(json),
        Err(_) => Body::Text(String::from_utf8_lossy(bytes).into_owned()),
    }
}

/// Puts in what earlier answers said.
fn fill(request: &Request, namespace: &str, script: &[Request], answers: &[Answer]) -> Request {
    let mut filled = request.clone();
    let fill = |text: &str| {
        let mut text = text.replace("{ns}", namespace);
        for (mark, pointer) in [
            ("rv", "/metadata/resourceVersion"),
            ("uid", "/metadata/uid"),
            ("continue", "/metadata/continue"),
        ] {
            while let Some(at) = text.find(&format!("{{{mark}:")) {
                let Some(length) = text[at..].find('}') else { break };
                let number = text[at + mark.len() + 2..at + length].parse::<usize>().unwrap_or(usize::MAX);
                // A list of any version is as old as its cache, and who watches from there is told what others are not.
                let of_any_version = |(asked, _): &(&Request, &Answer)| {
                    mark == "rv" && asked.query.iter().any(|(name, _)| *name == "resourceVersion")
                };
                let answered = script.iter().zip(answers).nth(number).filter(|pair| !of_any_version(pair));
                let said = answered.and_then(|(_, answer)| match &answer.body {
                    Body::Json(json) => json.pointer(pointer).and_then(Value::as_str),
                    Body::Events(_) | Body::Text(_) => None,
                });
                text.replace_range(at..=at + length, said.unwrap_or_default());
            }
        }
        text
    };
    filled.path = fill(&request.path);
    for (_, value) in &mut filled.query {
        *value = fill(value);
    }
    filled.body = request.body.as_deref().map(fill);
    filled
}
