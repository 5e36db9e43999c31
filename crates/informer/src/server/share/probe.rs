//! Whether a server filters by shares.

use std::time::Duration;

use http::header::{ACCEPT, ACCEPT_ENCODING, USER_AGENT};
use informer_core::Scope;
use informer_core::share::{HashRange, Share, ShareBy};
use informer_core::wire::ApiStatus;
use serde::Deserialize;
use serde::de::IgnoredAny;
use tokio::time::timeout;

use crate::options::resource::ResourceType;
use crate::transport::{Transport, TransportError};

/// A server did not say whether it filters by shares.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProbeError {
    /// The server did not answer, or its answer broke off or is no list.
    #[error("the server did not say whether it filters by shares")]
    Unanswered(#[from] TransportError),
    /// The server refused the list.
    #[error("the server refused to say whether it filters by shares: {0}")]
    Refused(ApiStatus),
}

const LIMIT: Duration = Duration::from_secs(30);
/// No object is longer, by default (see `FactoryBuilder::item_limit`).
const LONGEST_ANSWER: usize = 16 << 20;

/// The part of a list that shows whether the server has filtered it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct List {
    metadata: Metadata,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    shard_info: Option<IgnoredAny>,
}

/// Whether a server filters lists and watches by shares (KEP-5866: kube-apiserver from 1.36 on, with the feature gate
/// `ShardedListAndWatch`), as [`FactoryBuilder::ask_for_share`](crate::FactoryBuilder::ask_for_share) wants to know.
///
/// Sends one LIST of one object. Ask for a built-in resource that the credentials may list, in one namespace or in all:
/// lists of custom resources never say that they are filtered. An aggregated API server answers for itself only.
///
/// # Errors
///
/// When the server does not answer within 30 s, refuses the list, or its answer is no list.
///
/// # Cancel safety
///
/// Safe: the request is cancelled.
pub async fn server_filters(
    transport: &dyn Transport,
    resource: &ResourceType,
    namespace: Option<&str>,
) -> Result<bool, ProbeError> {
    let late = |late| Err(TransportError::new("no answer in time", Some(Box::from(late))).into());
    timeout(LIMIT, ask(transport, resource, namespace)).await.unwrap_or_else(late)
}

async fn ask(
    transport: &dyn Transport,
    resource: &ResourceType,
    namespace: Option<&str>,
) -> Result<bool, ProbeError> {
    let scope = namespace.map_or(Scope::All, |namespace| Scope::Namespace(namespace.into()));
    let all = Share::new(ShareBy::Uid, HashRange::ALL).selector().unwrap_or_default();
    let query = form_urlencoded::Serializer::new(String::new())
        .append_pair("limit", "1")
        .append_pair("shardSelector", &all)
        .finish();
    let request = http::Request::get(format!("{}?{query}", resource.path(&scope)))
        .header(ACCEPT, "application/json")
        .header(ACCEPT_ENCODING, "identity")
        .header(USER_AGENT, concat!("informer/", env!("CARGO_PKG_VERSION")))
        .body(Vec::new())
        .map_err(|error| TransportError::new("the request is invalid", Some(Box::from(error))))?;
    let response = transport.send(request).await?;
    let code = response.head.status;
    let body = response.collect(LONGEST_ANSWER).await?;
    if !code.is_success() {
        return Err(ProbeError::Refused(ApiStatus::from_body(code.as_u16(), &body)));
    }
    // serde's message may quote an object's content.
    let list: List =
        serde_json::from_slice(&body).map_err(|_| TransportError::new("the answer is no list", None))?;
    Ok(list.metadata.shard_info.is_some())
}
