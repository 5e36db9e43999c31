//! Informers of resources that are named in kubectl's syntax.

use futures_util::FutureExt;
use informer_core::View;
use tokio::sync::oneshot;

use super::SharedInformerFactory;
use crate::informer::Informer;
use crate::options::resource::ResourceType;
use crate::server::discovery::{Catalog, DiscoveryError, Questions};

impl SharedInformerFactory {
    /// The informer of a resource that is named in kubectl's syntax: `deploy`, `deployments`, `Deployment`,
    /// `deployments.apps`, `apps/v1/deployments` ([`Catalog::resource`] has the rules). `T` can be any view.
    ///
    /// ```no_run
    /// # async fn example(factory: informer::SharedInformerFactory) -> Result<(), Box<dyn std::error::Error>> {
    /// use std::time::Duration;
    /// use informer::Object;
    ///
    /// let deployments = factory.informer_named::<Object>("deploy").await?;
    /// deployments.start();
    /// deployments.wait_for_sync(Duration::from_secs(30)).await?;
    /// println!("{} {}", deployments.len(), deployments.resource());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// The informer follows the resource. When the server answers 404, the informer asks discovery which version is served
    /// now, after each [denied retry](crate::ReflectorOptions::denied_retry). While the version in use is served, the informer
    /// stays with it; otherwise it takes the version that the server prefers. It compares the next list with the cache: an
    /// object in another version is an update. If the resource has another scope (its definition was deleted and created
    /// again), all former objects are deletions. [`Informer::resource`] returns the resource that is watched. Other
    /// informers stay with the version that they were made for.
    ///
    /// Each call asks the server. To resolve several names, fetch one [`catalog`](Self::catalog).
    ///
    /// # Errors
    ///
    /// When the server has no such resource ([`DiscoveryError::is_unknown`]; the error names similar ones), or discovery
    /// fails.
    ///
    /// # Cancel safety
    ///
    /// Safe: no informer is created.
    pub async fn informer_named<T: View>(&self, name: &str) -> Result<Informer<T>, DiscoveryError> {
        let informer = self.informer_of(self.resource(name).await?);
        let questions = self.questions();
        let discover = move |in_use: ResourceType| {
            let questions = questions.clone();
            async move {
                let catalog = questions.catalog().await.ok()?;
                let version = format!("{}/{}", in_use.api_version(), in_use.plural);
                let served =
                    catalog.resource(&version).or_else(|_| catalog.resource(&in_use.qualified_name()));
                served.ok().cloned()
            }
            .boxed()
        };
        informer.core().follow(self.selection.clone(), Box::new(discover));
        Ok(informer)
    }

    /// Resolves a name in kubectl's syntax to a resource of the server ([`Catalog::resource`]).
    ///
    /// ```no_run
    /// # async fn example(factory: informer::SharedInformerFactory) -> Result<(), informer::DiscoveryError> {
    /// let carts = factory.resource("carts.example.com").await?;
    /// println!("{}, {}", carts.kind, carts.version);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`informer_named`](Self::informer_named).
    ///
    /// # Cancel safety
    ///
    /// Safe.
    pub async fn resource(&self, name: &str) -> Result<ResourceType, DiscoveryError> {
        self.catalog().await?.resource(name).cloned()
    }

    /// All resources of the server that can be listed and watched. This takes two requests; servers before Kubernetes 1.26
    /// need one for each version of each API group.
    ///
    /// # Errors
    ///
    /// When the server does not answer within the response timeout of the factory, denies the request, or sends something
    /// that is not a discovery document.
    ///
    /// # Cancel safety
    ///
    /// Safe.
    pub async fn catalog(&self) -> Result<Catalog, DiscoveryError> {
        let questions = self.questions();
        // The runtime that drives the connections sends the requests; it may not be the caller's.
        let (mut answer, answered) = oneshot::channel();
        self.inner.runtime.spawn(async move {
            tokio::select! {
                biased;
                catalog = questions.catalog() => {
                    // The caller may have stopped waiting.
                    let _ = answer.send(catalog);
                }
                () = answer.closed() => {}
            }
        });
        answered.await.unwrap_or_else(|_| Err(DiscoveryError::ended()))
    }

    fn questions(&self) -> Questions {
        let settings = &self.inner.options.settings;
        Questions {
            transport: self.inner.server.transport().clone(),
            user_agent: settings.user_agent.clone(),
            limit: settings.reflector.response_timeout,
        }
    }
}
