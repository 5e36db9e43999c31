//! Fetches what the server says of lists, when it is first needed.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use informer::ResourceType;
use kube_client::Client;
use tokio::time::{Instant, timeout};

use super::openapi::{document, index};
use crate::Schemas;

/// Changes wait for a schema this long at most; then they are compared without.
const LIMIT: Duration = Duration::from_secs(3);

/// After a failure the next attempt is made no earlier.
const PAUSE: Duration = Duration::from_secs(60);

/// Loads the OpenAPI documents of groups and versions into [`Schemas`].
pub(super) struct SchemaLoader {
    /// Without one, lists are compared by what is known of their kinds in general.
    client: Option<Client>,
    schemas: Schemas,
    /// Where each group and version's document is; with a hash, which changes with it.
    index: BTreeMap<String, String>,
    /// The fetched documents, by their places.
    loaded: BTreeMap<String, String>,
    /// The groups without a document, as long as the index is the same.
    absent: BTreeSet<String>,
    /// When the index is fetched again: at once when definitions have changed.
    refresh: Option<Instant>,
}

impl SchemaLoader {
    pub(super) fn new(client: Option<Client>, schemas: Schemas) -> Self {
        let (index, loaded) = (BTreeMap::new(), BTreeMap::new());
        Self { client, schemas, index, loaded, absent: BTreeSet::new(), refresh: Some(Instant::now()) }
    }

    /// Definitions have changed: a loaded schema is compared with the one that the server has now when it is next needed.
    pub(super) fn outdated(&mut self) {
        self.refresh = Some(Instant::now());
        self.absent.clear();
    }

    /// Sees to it that the schemas of the resource's kind are loaded, if the server has them and answers in time.
    pub(super) async fn need(&mut self, resource: &ResourceType) {
        let name = match resource.group.as_str() {
            "" => format!("api/{}", resource.version),
            group => format!("apis/{group}/{}", resource.version),
        };
        if self.refresh.is_none() && (self.loaded.contains_key(&name) || self.absent.contains(&name)) {
            return;
        }
        // A server that does not answer is not asked for each change anew.
        if self.refresh.is_some_and(|at| Instant::now() < at) {
            return;
        }
        let loaded = timeout(LIMIT, self.load(&name, resource)).await;
        if !matches!(loaded, Ok(Some(()))) {
            self.refresh = Some(Instant::now() + PAUSE);
        }
    }

    async fn load(&mut self, name: &str, resource: &ResourceType) -> Option<()> {
        let client = self.client.as_ref()?;
        if self.refresh.is_some() {
            self.index = index(client).await.ok()?;
            self.refresh = None;
        }
        let Some(url) = self.index.get(name).cloned() else {
            self.absent.insert(name.to_owned());
            self.loaded.remove(name);
            self.schemas.unload(&resource.group, &resource.version);
            return Some(());
        };
        if self.loaded.get(name) != Some(&url) {
            let document = document(client, &url).await.ok()?;
            self.schemas.load(&resource.group, &resource.version, &document).ok()?;
            self.loaded.insert(name.to_owned(), url);
        }
        Some(())
    }
}
