//! Questions of the page to the API server: reviews of a token and of a right, and the namespaces at present.

use std::collections::HashMap;
use std::time::Duration;

use http::StatusCode;
use jiff::Timestamp;
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
    let api = format!("{group}/v1");
    let body = json!({ "apiVersion": api, "kind": kind, "metadata": {}, "spec": spec }).to_string();
    let request = http::Request::post(format!("/apis/{api}/{}s", kind.to_ascii_lowercase()))
        .header("content-type", "application/json")
        .body(body.into_bytes())
        .map_err(|error| no_answer(error.to_string()))?;
    let missing = format!("create {}s", kind.to_ascii_lowercase());
    let hint = "Bind it to the ClusterRole system:auth-delegator; the chart does so with `web.enabled`.";
    Ok(answer(client, request, &missing, hint).await?["status"].take())
}

/// The uid of each namespace that exists, and when the server made it.
pub(super) async fn namespaces(client: &Client) -> Result<HashMap<String, (String, Timestamp)>, Problem> {
    let metadata = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
    let request = http::Request::get("/api/v1/namespaces")
        .header("accept", metadata)
        .body(Vec::new())
        .map_err(|error| no_answer(error.to_string()))?;
    let hint = "Give it the verb list on namespaces; the chart does. A right in a namespace is one to objects of the present one.";
    let answer = answer(client, request, "list namespaces", hint).await?;
    let made = |item: &Value| {
        let text = |name: &str| item["metadata"][name].as_str();
        Some((text("name")?.to_owned(), (text("uid")?.to_owned(), text("creationTimestamp")?.parse().ok()?)))
    };
    Ok(answer["items"].as_array().into_iter().flatten().filter_map(made).collect())
}

fn no_answer(detail: String) -> Problem {
    let problem =
        Problem::new(StatusCode::SERVICE_UNAVAILABLE, "The API server does not say what you may see");
    Problem { detail, ..problem }.hint("Try again; nothing is shown without its answer.")
}

/// The answer to a request that needs a right.
async fn answer(
    client: &Client,
    request: http::Request<Vec<u8>>,
    right: &str,
    hint: &str,
) -> Result<Value, Problem> {
    match tokio::time::timeout(PATIENCE, client.request::<Value>(request)).await {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(kube_client::Error::Api(status))) if status.code == 403 => {
            Err(no_answer(format!("The service account of kubediff may not {right}.")).hint(hint))
        }
        Ok(Err(error)) => Err(no_answer(informer::error_chain(&error))),
        Err(_) => Err(no_answer(format!("It has not answered within {} s.", PATIENCE.as_secs()))),
    }
}
