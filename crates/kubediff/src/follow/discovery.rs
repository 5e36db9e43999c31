//! Resolves the configured targets against the server's discovery documents.

use std::collections::BTreeSet;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use informer::{ResourceType, SharedInformerFactory};
use kube_client::Client;

use super::error::WatchError;
use super::identity::identity;
use super::reach::Targets;
use crate::model::targets::Target;
use crate::text::words::Server;

/// A discovery under way.
pub(super) type Discovery = BoxFuture<'static, Result<Discovered, WatchError>>;

/// The configured targets that the server has.
pub(super) struct Discovered {
    pub(super) targets: Vec<Target>,
    pub(super) served: BTreeSet<String>,
    pub(super) unavailable: Vec<String>,
}

pub(super) fn discover(
    factory: SharedInformerFactory,
    server: Server,
    targets: Targets,
    limit: Duration,
    expected: Option<(Client, String)>,
) -> Discovery {
    let discovery = async move {
        if let Some((client, expected)) = expected {
            let found = identity(&client, &server, limit).await?;
            if found != expected {
                return Err(WatchError::OtherCluster { address: server.address.clone(), expected, found });
            }
        }
        let catalog = tokio::time::timeout(limit, factory.catalog()).await;
        let silent = |_| WatchError::Silent { address: server.address.clone(), limit };
        let catalog = catalog.map_err(silent)?;
        let catalog = catalog.map_err(|error| WatchError::Unreachable(server.no_discovery(&error)))?;
        let unknown = |error| WatchError::Unknown(Box::new(error));
        let targets = targets(&catalog).map_err(unknown)?;
        let served = catalog.resources().map(ResourceType::qualified_name).collect();
        Ok(Discovered { targets, served, unavailable: catalog.unavailable().to_vec() })
    };
    discovery.boxed()
}
