//! Informers of resources that are named as kubectl takes them.

use futures_util::FutureExt;
use informer_core::View;
use tokio::sync::oneshot;

use super::SharedInformerFactory;
use crate::discovery::{Catalog, DiscoveryError, Questions};
use crate::informer::Informer;
use crate::resource::ResourceType;

impl SharedInformerFactory {
    /// The informer of a resource that is named as kubectl takes it, viewed as any type: `deploy`, `deployments`,
    /// `Deployment`, `deployments.apps`, `apps/v1/deployments` ([`Catalog::resource`] has the rules).
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
    /// The informer follows the resource: when the server no longer finds it (404), discovery is asked what it is served as now, after each
    /// [denied retry](crate::FactoryBuilder::denied_retry). Objects that are another version of what they were are updates; with another
    /// scope (a definition that was deleted and made anew) the former objects are deletions. [`Informer::resource`] says what is
    /// watched. Other informers stay with the version that they were made for.
    ///
    /// Asks the server each time: for several names, take one [`catalog`](Self::catalog).
    ///
    /// # Errors
    ///
    /// When the server has no such resource ([`DiscoveryError::is_unknown`], which names some that are much like it), or does
    /// not say what it has.
    ///
    /// # Cancel safety
    ///
    /// Safe: there is no informer then.
    pub async fn informer_named<T: View>(&self, name: &str) -> Result<Informer<T>, DiscoveryError> {
        let informer = self.informer_of(self.resource(name).await?);
        let questions = self.questions();
        let discover = move |name: String| {
            let questions = questions.clone();
            async move { questions.catalog().await.ok()?.resource(&name).ok().cloned() }.boxed()
        };
        informer.core().follow(self.selection.clone(), Box::new(discover));
        Ok(informer)
    }

    /// The resource that a name means to the server, as kubectl takes it ([`Catalog::resource`]).
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

    /// Everything that the server has and that can be watched. Two requests; servers before Kubernetes 1.26 need one for each
    /// version of each API group.
    ///
    /// # Errors
    ///
    /// When the server does not answer within the response timeout of the factory, denies it, or answers something else.
    ///
    /// # Cancel safety
    ///
    /// Safe.
    pub async fn catalog(&self) -> Result<Catalog, DiscoveryError> {
        let questions = self.questions();
        // Where the connections are driven, which may not be the caller's runtime.
        let (mut answer, answered) = oneshot::channel();
        self.inner.runtime.spawn(async move {
            tokio::select! {
                catalog = questions.catalog() => {
                    // Nobody may be waiting any more.
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
