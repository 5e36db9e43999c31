//! Asking servers what this program may do.

use std::collections::BTreeSet;
use std::time::Duration;

use futures_util::StreamExt;
use informer::kube::Client;
use informer::kube::core::Request;
use informer::kube::core::params::PostParams;
use informer::{Informer, Object};
use serde_json::{Value, json};

use super::{Needs, Permission, Rules, of_informer};

/// The number of reviews in flight at a time, for each user.
const PARALLEL: usize = 8;
/// How long a server may take for each.
const LIMIT: Duration = Duration::from_secs(10);

/// The user whose permissions are asked for.
enum User<'a> {
    Writer(&'a Client),
    Informer(&'a Informer<Object>),
}

/// The missing part of what a controller and its informers need.
pub(crate) async fn review(
    client: &Client,
    controller: &str,
    needs: &Needs,
    informers: &[Informer<Object>],
) -> Rules {
    let writer = (User::Writer(client), needs.permissions().collect());
    let readers = informers.iter().map(|informer| (User::Informer(informer), of_informer(informer)));
    let all = std::iter::once(writer).chain(readers);
    let missing = all.map(|(user, permissions)| missing(user, controller, permissions));
    let missing = futures_util::future::join_all(missing).await;
    Rules::new(controller, missing.into_iter().flatten().collect())
}

/// The missing ones of some permissions of a user.
async fn missing(
    user: User<'_>,
    controller: &str,
    permissions: BTreeSet<Permission>,
) -> BTreeSet<Permission> {
    let reviews = permissions.into_iter().map(|permission| async {
        let review = tokio::time::timeout(LIMIT, user.may(&permission)).await;
        (permission, review)
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
            Ok(Err(why)) => why,
            Err(_) => format!("no answer within {} s", LIMIT.as_secs()),
        };
        // The user's other reviews would fare the same.
        tracing::warn!(controller, error = %why, "cannot review the permissions; going on without");
        break;
    }
    missing
}

impl User<'_> {
    /// Whether the user has a permission, or why that is not known.
    async fn may(&self, permission: &Permission) -> Result<bool, String> {
        let request = Request::new("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews")
            .create(&PostParams::default(), review_of(permission).to_string().into_bytes())
            .map_err(|error| informer::error_chain(&error))?;
        let answer: Value = match self {
            Self::Writer(client) => {
                client.request(request).await.map_err(|error| informer::error_chain(&error))?
            }
            Self::Informer(informer) => {
                let answer = informer.ask(request).await;
                let (status, body) = answer.map_err(|error| informer::error_chain(&error))?;
                if !status.is_success() {
                    return Err(format!("the server answers {status}"));
                }
                serde_json::from_slice(&body).map_err(|error| error.to_string())?
            }
        };
        Ok(answer["status"]["allowed"].as_bool().unwrap_or(false))
    }
}

fn review_of(permission: &Permission) -> Value {
    let Permission { namespace, group, plural, subresource, selected, verb } = permission;
    let mut attributes = json!({
        "namespace": namespace, "verb": verb.as_str(), "group": group, "resource": plural,
        "subresource": subresource, "name": selected.name,
    });
    for (field, selector) in [("labelSelector", &selected.labels), ("fieldSelector", &selected.fields)] {
        if !selector.is_empty() {
            attributes[field] = json!({ "rawSelector": selector });
        }
    }
    json!({
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": { "resourceAttributes": attributes },
    })
}
