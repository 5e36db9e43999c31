//! Asking the server what this client may do.

use std::collections::BTreeSet;
use std::time::Duration;

use futures_util::StreamExt;
use informer::kube::core::Request;
use informer::kube::core::params::PostParams;
use informer::kube::{Client, client};
use serde_json::{Value, json};

use super::{Permission, Rules};

/// The number of reviews in flight at a time.
const PARALLEL: usize = 8;
/// How long the server may take for each.
const LIMIT: Duration = Duration::from_secs(10);

/// The missing part of some rules.
pub(crate) async fn review(client: &Client, controller: &str, rules: &Rules) -> Rules {
    let permissions: Vec<_> = rules.permissions().cloned().collect();
    let reviews = permissions.into_iter().map(|permission| {
        let client = client.clone();
        async move {
            let review = tokio::time::timeout(LIMIT, is_allowed(&client, &permission)).await;
            (permission, review)
        }
    });
    let mut reviews = futures_util::stream::iter(reviews).buffer_unordered(PARALLEL);
    let mut missing = BTreeSet::new();
    while let Some((permission, review)) = reviews.next().await {
        let why = match review {
            Ok(Ok(true)) => continue,
            Ok(Ok(false)) => {
                missing.insert(permission);
                continue;
            }
            Ok(Err(error)) => informer::error_chain(&error),
            Err(_) => format!("no answer within {} s", LIMIT.as_secs()),
        };
        // The other reviews would fare the same.
        tracing::warn!(controller, error = %why, "cannot review the permissions; going on without");
        break;
    }
    rules.only(missing)
}

async fn is_allowed(client: &Client, permission: &Permission) -> Result<bool, client::Error> {
    let Permission { namespace, group, plural, subresource, verb } = permission;
    let review = json!({
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": { "resourceAttributes": {
            "namespace": namespace, "verb": verb.as_str(), "group": group, "resource": plural,
            "subresource": subresource,
        } },
    });
    let reviews = Request::new("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews");
    let request = reviews.create(&PostParams::default(), review.to_string().into_bytes());
    let answer: Value = client.request(request.map_err(client::Error::BuildRequest)?).await?;
    Ok(answer["status"]["allowed"].as_bool().unwrap_or(false))
}
