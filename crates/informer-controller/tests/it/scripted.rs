//! Clients whose server is a function: no socket, so that tests can pause the time.

use std::convert::Infallible;
use std::sync::{Arc, Mutex};

use http_body_util::BodyExt;
use informer::kube::Client;
use informer::kube::client::client::Body;
use serde_json::{Value, json};

/// A request, and its body if it is JSON.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) body: Value,
}

/// The requests so far.
pub(crate) type Log = Arc<Mutex<Vec<Asked>>>;

/// A client whose requests `answer` answers, with a status code and an object. `None` is no answer at all.
pub(crate) fn client(
    answer: impl Fn(&Asked) -> Option<(u16, Value)> + Send + Sync + 'static,
) -> (Client, Log) {
    let log = Log::default();
    let (answer, asked) = (Arc::new(answer), log.clone());
    let service = tower::service_fn(move |request: http::Request<Body>| {
        let (answer, asked) = (answer.clone(), asked.clone());
        async move {
            let (parts, body) = request.into_parts();
            let body = body.collect().await.unwrap().to_bytes();
            let one = Asked {
                method: parts.method.to_string(),
                path: parts.uri.path().to_owned(),
                body: serde_json::from_slice(&body).unwrap_or_default(),
            };
            asked.lock().unwrap().push(one.clone());
            let Some((code, object)) = answer(&one) else { return std::future::pending().await };
            let response = http::Response::builder().status(code);
            Ok::<_, Infallible>(response.body(Body::from(object.to_string().into_bytes())).unwrap())
        }
    });
    (Client::new(service, "default"), log)
}

/// A refusal, as the server words it.
pub(crate) fn status(code: u16, reason: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Status", "metadata": {}, "status": "Failure",
        "message": "refused", "reason": reason, "code": code,
    })
}
