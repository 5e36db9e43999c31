//! Requests without a network.

use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use http::{Method, Request, Response};
use http_body_util::BodyExt as _;
use serde_json::Value;
use serve::{Body, Serve, ServeOptions};

use crate::model::{Served, World};

pub(crate) const PODS: &str = "/api/v1/namespaces/shop/pods";
pub(crate) const WIDGETS: &str = "/apis/example.com/v1/namespaces/shop/widgets";

/// A complete response.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) code: u16,
    pub(crate) headers: http::HeaderMap,
    pub(crate) body: Bytes,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("no JSON: {:?}", self.body))
    }

    pub(crate) fn message(&self) -> String {
        self.json()["message"].as_str().unwrap_or_default().to_string()
    }

    /// `namespace/name` of the items of a list.
    pub(crate) fn names(&self) -> Vec<String> {
        self.json()["items"].as_array().expect("a list").iter().map(name).collect()
    }
}

pub(crate) fn name(object: &Value) -> String {
    let part = |name: &str| object["metadata"][name].as_str().unwrap_or_default().to_string();
    format!("{}/{}", part("namespace"), part("name"))
}

pub(crate) fn serve(world: &Arc<World>) -> Serve {
    serve_with(world, |_| {})
}

pub(crate) fn serve_with(world: &Arc<World>, choose: impl FnOnce(&mut ServeOptions)) -> Serve {
    let mut options = ServeOptions::default();
    choose(&mut options);
    Serve::new(Arc::new(Served(Arc::clone(world))), options)
}

/// A request with headers, its body unread.
pub(crate) async fn send(
    serve: &Serve,
    method: Method,
    uri: &str,
    headers: &[(&str, &str)],
) -> Response<Body> {
    let mut request = Request::builder().method(method).uri(uri);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let (parts, ()) = request.body(()).unwrap().into_parts();
    serve.read(&parts).await
}

pub(crate) async fn answer(response: Response<Body>) -> Answer {
    let (head, body) = response.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    Answer { code: head.status.as_u16(), headers: head.headers, body }
}

pub(crate) async fn get(serve: &Serve, uri: &str) -> Answer {
    answer(send(serve, Method::GET, uri, &[]).await).await
}

pub(crate) async fn accepting(serve: &Serve, uri: &str, accept: &str) -> Answer {
    answer(send(serve, Method::GET, uri, &[("accept", accept)]).await).await
}

/// The events of a watch, one by one.
pub(crate) struct Watch {
    body: Pin<Box<Body>>,
    buffer: Vec<u8>,
}

impl Watch {
    pub(crate) async fn open(serve: &Serve, uri: &str) -> Self {
        Self::accepting(serve, uri, "application/json").await
    }

    pub(crate) async fn accepting(serve: &Serve, uri: &str, accept: &str) -> Self {
        let response = send(serve, Method::GET, uri, &[("accept", accept)]).await;
        assert_eq!(response.status(), 200, "{uri}");
        assert_eq!(response.headers()["content-type"], "application/json", "{uri}");
        Self { body: Box::pin(response.into_body()), buffer: Vec::new() }
    }

    /// The next event, or `None` at the end of the stream.
    pub(crate) async fn next(&mut self) -> Option<Value> {
        loop {
            if let Some(end) = self.buffer.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.buffer.drain(..=end).collect();
                return Some(serde_json::from_slice(&line).unwrap());
            }
            let Some(frame) = self.body.frame().await else {
                assert!(self.buffer.is_empty(), "an event was cut");
                return None;
            };
            self.buffer.extend_from_slice(&frame.unwrap().into_data().unwrap());
        }
    }

    /// The next event in short: `ADDED shop/a@101`.
    pub(crate) async fn told(&mut self) -> String {
        self.next().await.map_or_else(|| "END".to_string(), |event| short(&event))
    }

    /// All events up to the end of the stream, in short.
    pub(crate) async fn rest(mut self) -> Vec<String> {
        let mut all = Vec::new();
        while let Some(event) = self.next().await {
            all.push(short(&event));
        }
        all
    }
}

pub(crate) fn short(event: &Value) -> String {
    let object = &event["object"];
    let kind = event["type"].as_str().unwrap();
    let version = object["metadata"]["resourceVersion"].as_str().unwrap_or_default();
    match kind {
        "ERROR" => format!("ERROR {} {}", object["code"], object["message"].as_str().unwrap()),
        "BOOKMARK" => {
            let end = object["metadata"]["annotations"]["k8s.io/initial-events-end"] == "true";
            format!("BOOKMARK {version}{}", if end { " end" } else { "" })
        }
        _ => format!("{kind} {}@{version}", name(object)),
    }
}
