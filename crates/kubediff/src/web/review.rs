//! Reviews by the API server: of a token, and of a right.

use std::time::Duration;

use http::StatusCode;
use kube_client::Client;
use serde_json::{Value, json};

use super::problem::Problem;

/// How long one review may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// The status of a review by the API server.
pub(super) async fn review(
    client: &Client,
    group: &'static str,
    kind: &'static str,
    spec: &Value,
) -> Result<Value, Problem> {
    let no_answer = |detail: String| {
        let problem =
            Problem::new(StatusCode::SERVICE_UNAVAILABLE, "The API server does not say what you may see");
        Problem { detail, ..problem }.hint("Try again; nothing is shown without its answer.")
    };
    let api = format!("{group}/v1");
    let body = json!({ "apiVersion": api, "kind": kind, "metadata": {}, "spec": spec }).to_string();
    let request = http::Request::post(format!("/apis/{api}/{}s", kind.to_ascii_lowercase()))
        .header("content-type", "application/json")
        .body(body.into_bytes())
        .map_err(|error| no_answer(error.to_string()))?;
    match tokio::time::timeout(PATIENCE, client.request::<Value>(request)).await {
        Ok(Ok(mut review)) => Ok(review["status"].take()),
        Ok(Err(kube_client::Error::Api(status))) if status.code == 403 => {
            let missing =
                format!("The service account of kubediff may not create {}s.", kind.to_ascii_lowercase());
            let hint =
                "Bind it to the ClusterRole system:auth-delegator; the chart does so with `web.enabled`.";
            Err(no_answer(missing).hint(hint))
        }
        Ok(Err(error)) => Err(no_answer(informer::error_chain(&error))),
        Err(_) => Err(no_answer(format!("It has not answered within {} s.", PATIENCE.as_secs()))),
    }
}
