//! An object as the server has it now, for callers in this crate.

use std::sync::Arc;

use informer::kube::Resource;
use informer::kube::client;
use informer::kube::core::params::ListParams;
use informer::{Item, ResourceVersion};
use serde_json::Value;

use super::attempt::Attempt;
use super::{Target, WriteError, Writer};
use crate::owned::Owned;
use crate::request::{collection, version};

impl Writer {
    /// The owned fields of this incarnation of an object on the server, and their version. `None` if it is gone.
    ///
    /// The request is a list by name: it needs no permission that the object's informer does not need.
    pub(crate) async fn look<K: Resource<DynamicType = (), Scope: 'static>>(
        &self,
        object: &Item<K>,
    ) -> Result<Option<(Arc<Owned>, ResourceVersion)>, WriteError> {
        let (resource, key) = (object.resource(), object.key());
        let (attempt, key) = Attempt::on("read", &resource, Some(key))?;
        let by_name = ListParams::default().fields(&format!("metadata.name={}", key.name()));
        let request = collection(&resource, key.namespace()).list_metadata(&by_name);
        let request = request.map_err(|error| attempt.failed(client::Error::BuildRequest(error)))?;
        let limit = self.shared.limit;
        let answer = tokio::time::timeout(limit, self.shared.client.request::<Value>(request)).await;
        let list = answer.map_err(|_| attempt.unanswered(limit))?.map_err(|error| attempt.failed(error))?;
        let item = &list["items"][0];
        if item["metadata"]["uid"].as_str() != Some(object.uid().to_string().as_str()) {
            return Ok(None);
        }
        let owned: Owned = serde_json::from_value(item.clone())
            .map_err(|error| attempt.failed(client::Error::SerdeError(error)))?;
        Ok(Some((Arc::new(owned), version(item))))
    }
}
