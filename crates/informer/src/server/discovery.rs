//! The resources that a server serves, by aggregated discovery (Kubernetes 1.26 and later), or group by group.

mod catalog;
mod documents;
mod error;

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use http::header::{ACCEPT, ACCEPT_ENCODING, USER_AGENT};
use http::{HeaderValue, StatusCode};
use informer_core::wire::ApiStatus;

use crate::transport::{Transport, TransportError};
use documents::{Document, GroupVersion};

pub use catalog::Catalog;
pub use error::DiscoveryError;

/// Sends discovery requests to a server.
#[derive(Clone)]
pub(crate) struct Questions {
    pub(crate) transport: Arc<dyn Transport>,
    pub(crate) user_agent: HeaderValue,
    /// The time limit of an answer.
    pub(crate) limit: Duration,
}

/// The accepted forms of an answer, the preferred one first. A server without aggregated discovery sends the last one.
const FORMS: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,\
application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json";
/// The limit for an answer. That of a cluster with thousands of definitions has some megabytes.
const LIMIT: usize = 64 * 1024 * 1024;

impl Questions {
    /// Fetches all resources that can be listed and watched.
    pub(crate) async fn catalog(&self) -> Result<Catalog, DiscoveryError> {
        let mut catalog = Catalog::default();
        for path in ["/api", "/apis"] {
            match self.document(path).await? {
                Document::Aggregated(groups) => groups.into_iter().for_each(|group| catalog.add(group)),
                Document::Versions(versions) => self.each(versions, &mut catalog).await?,
            }
        }
        Ok(catalog)
    }

    /// Asks version by version. Versions that the server does not serve at present, such as those of an aggregated API that
    /// is down, are left out.
    async fn each(&self, versions: Vec<GroupVersion>, catalog: &mut Catalog) -> Result<(), DiscoveryError> {
        for version in versions {
            match self.get(&version.path()).await {
                Ok(json) => {
                    let resources = documents::resources(&json).ok_or_else(DiscoveryError::not_understood)?;
                    catalog.add(version.with(resources));
                }
                Err(error) if error.is_refused() => catalog.leave_out(version.api_version()),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    async fn document(&self, path: &str) -> Result<Document, DiscoveryError> {
        Document::read(&self.get(path).await?).ok_or_else(DiscoveryError::not_understood)
    }

    /// The answer to one request. After a 401 the credentials are refreshed, and the request is repeated once.
    async fn get(&self, path: &str) -> Result<Vec<u8>, DiscoveryError> {
        let (mut code, mut body) = self.ask(path).await?;
        if code == StatusCode::UNAUTHORIZED {
            self.transport.refresh_credentials().await?;
            (code, body) = self.ask(path).await?;
        }
        if code.is_success() {
            Ok(body)
        } else {
            Err(DiscoveryError::refused(ApiStatus::from_body(code.as_u16(), &body)))
        }
    }

    async fn ask(&self, path: &str) -> Result<(StatusCode, Vec<u8>), TransportError> {
        let request = http::Request::get(path)
            .header(ACCEPT, FORMS)
            .header(ACCEPT_ENCODING, "identity")
            .header(USER_AGENT, self.user_agent.clone())
            .body(Vec::new())
            .map_err(|error| TransportError::new("the request is invalid", Some(Box::from(error))))?;
        let answer = async {
            let response = self.transport.send(request).await?;
            let code = response.head.status;
            let mut content = response.into_content();
            let mut body = Vec::new();
            while let Some(chunk) = content.next().await {
                body.extend_from_slice(&chunk?);
                if body.len() > LIMIT {
                    return Err(TransportError::new("the answer is too long", None));
                }
            }
            Ok((code, body))
        };
        let late = |_| TransportError::new(format!("no answer within {} s", self.limit.as_secs_f64()), None);
        tokio::time::timeout(self.limit, answer).await.map_err(late)?
    }
}
