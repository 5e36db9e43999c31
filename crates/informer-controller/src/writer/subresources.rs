//! Writes of subresources other than the status: the scale of an object, a pod's eviction, an account's token.

use informer::kube::core::params::DeleteParams;
use informer::kube::core::subresource::Scale;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;

use super::attempt::Attempt;
use super::form::Form;
use super::ledger::Expected;
use super::{Patch, Target, WriteError, Writer};

impl Writer {
    /// Sets the number of replicas that an object asks for, of whatever kind: a Deployment, or a custom resource with a scale. Returns
    /// its scale as written.
    ///
    /// Needs the permission to patch the subresource `scale`.
    ///
    /// # Errors
    ///
    /// As [`Writer::patch`]. A resource without a scale is not found ([`WriteError::is_not_found`]).
    pub async fn scale<K>(&self, target: impl Target<K>, replicas: i32) -> Result<Scale, WriteError> {
        // A scale of 0 replicas has no such field, and `add` replaces the one of others.
        let patch = Patch::Json(vec![json!({ "op": "add", "path": "/spec/replicas", "value": replicas })]);
        self.patch_as("scale", Some("scale"), target, patch).await
    }

    /// Evicts a pod: deletes it, with its grace period, if its PodDisruptionBudgets allow that now. If they do not, the server answers
    /// 429; the reconciliation that returns this error with `?` runs again later ([`WriteError::retry_after`]).
    /// ([Eviction](https://kubernetes.io/docs/concepts/scheduling-eviction/api-eviction/))
    ///
    /// The next reconciliation sees that the deletion has begun, as after [`Writer::delete`]. Needs the permission to create
    /// `pods/eviction`.
    ///
    /// # Errors
    ///
    /// As [`Writer::delete`].
    pub async fn evict<K>(&self, target: impl Target<K>) -> Result<(), WriteError> {
        let (resource, key) = (target.resource(), target.key());
        let (attempt, key) = Attempt::on("evict", &resource, key.as_ref())?;
        let attempt = Attempt { subresource: Some("eviction"), ..attempt };
        let options = self.deletion(&self.newest(&resource, key, target.seen()), DeleteParams::default());
        let eviction = json!({
            "apiVersion": "policy/v1", "kind": "Eviction",
            "metadata": { "namespace": key.namespace(), "name": key.name() },
            "deleteOptions": options,
        });
        self.send(attempt, Form::New, &eviction, Expected::Unknown).await.map(drop)
    }

    /// Creates a token of a service account: `request` is a `TokenRequest` of `authentication.k8s.io/v1`. Returns it with its status, in
    /// which the token is.
    ///
    /// No cache shows tokens, so no reconciliation waits for them. Needs the permission to create `serviceaccounts/token`.
    ///
    /// # Errors
    ///
    /// When the server refuses the request or does not answer.
    pub async fn create_token<K, T: Serialize + DeserializeOwned>(
        &self,
        target: impl Target<K>,
        request: &T,
    ) -> Result<T, WriteError> {
        let (resource, key) = (target.resource(), target.key());
        let (attempt, _) = Attempt::on("create a token of", &resource, key.as_ref())?;
        let attempt = Attempt { subresource: Some("token"), ..attempt };
        attempt.typed(self.send(attempt, Form::New, request, Expected::Nothing).await?)
    }
}
