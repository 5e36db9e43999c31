//! Notices when the server begins or ends to serve resources.

use futures_util::stream::{BoxStream, StreamExt, select};
use informer::{Change as CacheChange, Error, Object, ResourceType, SharedInformerFactory};

/// Tells of changes of custom resource definitions and of aggregated APIs.
pub(super) struct Definitions(BoxStream<'static, ()>);

impl Definitions {
    pub(super) fn new(factory: &SharedInformerFactory) -> Result<Self, Error> {
        // Labels and fields that were asked for are about the objects, not their definitions.
        let factory = factory.everything();
        let custom = changes(
            &factory,
            "apiextensions.k8s.io",
            "customresourcedefinitions",
            "CustomResourceDefinition",
        )?;
        let aggregated = changes(&factory, "apiregistration.k8s.io", "apiservices", "APIService")?;
        Ok(Self(select(custom, aggregated).boxed()))
    }

    /// Resolves when something has changed.
    pub(super) async fn changed(&mut self) {
        if self.0.next().await.is_none() {
            std::future::pending().await
        }
    }
}

fn changes(
    factory: &SharedInformerFactory,
    group: &str,
    plural: &str,
    kind: &str,
) -> Result<BoxStream<'static, ()>, Error> {
    let resource = ResourceType {
        group: group.to_owned(),
        version: "v1".to_owned(),
        plural: plural.to_owned(),
        kind: kind.to_owned(),
        namespaced: false,
    };
    let changes = factory.informer_of::<Object>(resource).changes()?;
    let news = changes.filter_map(|told| async move {
        let known = matches!(
            told,
            CacheChange::Added { initial: true, .. } | CacheChange::Synced | CacheChange::Undecodable(_)
        );
        (!known).then_some(())
    });
    Ok(news.boxed())
}
