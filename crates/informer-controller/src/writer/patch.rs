//! Changes of an object by a patch.

use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::attempt::Attempt;
use super::form::Form;
use super::ledger::Expected;
use super::{Seen, Target, WriteError, Writer};

/// A change of an object. A `Value` is a merge patch.
///
/// ```no_run
/// # use informer::Item;
/// # use informer_controller::{Patch, WriteError, Writer};
/// # use k8s_openapi::api::apps::v1::Deployment;
/// # use serde_json::json;
/// # async fn example(writer: &Writer, deployment: &Item<Deployment>) -> Result<(), WriteError> {
/// // One container by its name; a merge patch would replace the list.
/// let containers = json!([{ "name": "web", "image": "shop/web:2" }]);
/// let image = json!({ "spec": { "template": { "spec": { "containers": containers } } } });
/// writer.patch(deployment, Patch::Strategic(image)).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq)]
pub enum Patch {
    /// A merge patch ([RFC 7386](https://www.rfc-editor.org/rfc/rfc7386)): `null` removes a field, and a list is replaced as a whole.
    Merge(Value),
    /// A strategic merge patch: lists are merged by the keys of their items, such as the names of containers. Only for types that are
    /// built into Kubernetes; for custom resources the server answers 415.
    Strategic(Value),
    /// The operations of a JSON patch ([RFC 6902](https://www.rfc-editor.org/rfc/rfc6902)). One that does not fit the object, as a test
    /// that fails, is a conflict.
    Json(Vec<Value>),
}

impl From<Value> for Patch {
    fn from(merge: Value) -> Self {
        Self::Merge(merge)
    }
}

impl Writer {
    /// Changes an object by a [`Patch`]; a `Value` is a merge patch. Returns the object as written.
    ///
    /// # Errors
    ///
    /// When the server refuses the request or does not answer.
    pub async fn patch<K: DeserializeOwned>(
        &self,
        target: impl Target<K>,
        patch: impl Into<Patch>,
    ) -> Result<K, WriteError> {
        self.patch_as("patch", None, target, patch.into()).await
    }

    /// Changes the status of an object by a [`Patch`] with the field `status`. Returns the object as written.
    ///
    /// # Errors
    ///
    /// As [`Writer::patch`]. A resource without a status subresource is not found
    /// ([`WriteError::is_not_found`]).
    pub async fn patch_status<K: DeserializeOwned>(
        &self,
        target: impl Target<K>,
        patch: impl Into<Patch>,
    ) -> Result<K, WriteError> {
        self.patch_as("patch the status of", Some("status"), target, patch.into()).await
    }

    /// Changes an object, or a part of it, whose answer is read as an `A`.
    pub(crate) async fn patch_as<K, A: DeserializeOwned>(
        &self,
        verb: &'static str,
        subresource: Option<&'static str>,
        target: impl Target<K>,
        patch: Patch,
    ) -> Result<A, WriteError> {
        let (resource, key) = (target.resource(), target.key());
        let (attempt, key) = Attempt::on(verb, &resource, key.as_ref())?;
        let attempt = Attempt { subresource, ..attempt };
        let seen = self.newest(&resource, key, target.seen());
        let (form, body) = match patch {
            Patch::Merge(body) => (Form::Merge, body),
            Patch::Strategic(body) => (Form::Strategic, body),
            Patch::Json(operations) => (Form::Operations, Value::Array(operations)),
        };
        let body = match body {
            Value::Array(operations) if form == Form::Operations => {
                self.tests(&seen).into_iter().chain(operations).collect()
            }
            mut body if body.is_object() => {
                self.condition(&mut body, &seen);
                body
            }
            _ => return Err(attempt.no_object()),
        };
        let expected =
            if subresource == Some("scale") { Expected::Part } else { Expected::Object { labels: None } };
        let answer = self.send(attempt, form, &body, expected).await;
        match answer {
            Err(error) if form == Form::Operations && error.is_misfit() => Err(attempt.changed()),
            answer => attempt.typed(answer?),
        }
    }

    /// The preconditions of a JSON patch are its first operations.
    fn tests(&self, seen: &Seen) -> Vec<Value> {
        let uid = seen.uid.as_ref().map(|uid| ("/metadata/uid", uid.to_string()));
        let version = seen.version.as_ref().filter(|_| self.options.locked);
        let version = version.map(|version| ("/metadata/resourceVersion", version.to_string()));
        let test = |(path, value)| json!({ "op": "test", "path": path, "value": value });
        [uid, version].into_iter().flatten().map(test).collect()
    }
}
