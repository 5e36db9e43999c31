//! Writing a status only if it says something new.

use informer::Item;
use informer::kube::Resource;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::attempt::Attempt;
use super::form::Form;
use super::ledger::Expected;
use super::{Target, WriteError, Writer};

/// The part of an object that says how it is.
#[derive(Deserialize)]
struct HasStatus {
    #[serde(default)]
    status: Value,
}

impl Writer {
    /// Writes the status of an object, unless the object has it already. Returns the object as written, or `None` if nothing
    /// was sent.
    ///
    /// ```no_run
    /// use informer_controller::conditions::{self, Condition};
    /// use informer_controller::{Context, Failure, Outcome};
    /// use k8s_openapi::api::apps::v1::Deployment;
    ///
    /// async fn reconcile(context: Context<Deployment>) -> Result<Outcome, Failure> {
    ///     let Some(deployment) = context.object() else { return Ok(Outcome::Done) };
    ///     let mut status = deployment.status.clone().unwrap_or_default();
    ///     let checked = Condition::new("Checked", true, "AllGood");
    ///     conditions::set(status.conditions.get_or_insert_default(), &checked, context.now())?;
    ///     context.writer().write_status(deployment, &status).await?;
    ///     Ok(Outcome::Done)
    /// }
    /// ```
    ///
    /// The request is a merge patch of the fields that differ. A field that `S` does not know stays as it is; one that `S`
    /// knows and leaves out is removed. They are compared with the status in the cache, or, if this reconciliation has written
    /// the object before, with the server's answer to that.
    ///
    /// # Errors
    ///
    /// As [`Writer::patch_status`]. A status in the cache that does not decode as an `S` is written as a whole.
    pub async fn write_status<K, S>(&self, object: &Item<K>, status: &S) -> Result<Option<K>, WriteError>
    where
        K: Resource<DynamicType = (), Scope: 'static> + DeserializeOwned,
        S: Serialize + DeserializeOwned,
    {
        // A status that does not serialize is not sent, and the server reports that.
        let new = serde_json::to_value(status).unwrap_or_default();
        let patch = difference(&known::<S>(self.current(object)), new);
        if patch.as_object().is_some_and(Map::is_empty) {
            return Ok(None);
        }
        self.patch_status(object, json!({ "status": patch })).await.map(Some)
    }

    /// Applies a status (server-side apply): its fields get these values, and fields of the controller's last application that it
    /// leaves out go. Fields that others manage stay; with [`Writer::without_force`], also those that both name, by a
    /// conflict. Returns the object as written.
    ///
    /// It is sent also if it says nothing new: only the server knows which fields are the controller's. Use either this or
    /// [`Writer::write_status`] for a resource: the fields that the other one has set are not removed.
    ///
    /// # Errors
    ///
    /// As [`Writer::patch_status`].
    pub async fn apply_status<K: DeserializeOwned>(
        &self,
        target: impl Target<K>,
        status: &impl Serialize,
    ) -> Result<K, WriteError> {
        let (resource, key) = (target.resource(), target.key());
        let (attempt, key) = Attempt::on("apply the status of", &resource, key.as_ref())?;
        let attempt = Attempt { subresource: Some("status"), ..attempt };
        let mut body = json!({
            "apiVersion": resource.api_version(), "kind": resource.kind,
            "metadata": { "namespace": key.namespace(), "name": key.name() },
            // A status that does not serialize is not sent, and the server reports that.
            "status": serde_json::to_value(status).unwrap_or_default(),
        });
        self.condition(&mut body, &self.newest(&resource, key, target.seen()));
        let answer = self.send(attempt, Form::Apply, &body, Expected::Object { labels: None }).await;
        attempt.typed(answer.map_err(|error| error.between_managers(&self.options.manager))?)
    }

    /// The status that this reconciliation knows: of its own last write, else of the cache.
    fn current<K: Resource<DynamicType = (), Scope: 'static>>(&self, object: &Item<K>) -> Value {
        let written = self.shared.ledger.newest(&object.resource(), object.key()).flatten();
        match written
            .and_then(|written| written.json)
            .map(|json| serde_json::from_str::<HasStatus>(&json).ok())
        {
            Some(written) => written.map(|written| written.status),
            None => object.object().decode::<HasStatus>().ok().map(|cached| cached.status.clone()),
        }
        .unwrap_or_default()
    }
}

/// A status with the fields that `S` knows.
fn known<S: Serialize + DeserializeOwned>(status: Value) -> Value {
    let known = serde_json::from_value::<S>(status).ok();
    known.and_then(|known| serde_json::to_value(known).ok()).unwrap_or_default()
}

/// The merge patch (RFC 7386) that makes `old` into `new`; an empty object if there is nothing to do.
fn difference(old: &Value, new: Value) -> Value {
    let (Value::Object(old), Value::Object(new)) = (old, new.clone()) else {
        return if *old == new { json!({}) } else { new };
    };
    let mut patch = Map::new();
    for name in old.keys().filter(|name| !new.contains_key(*name)) {
        patch.insert(name.clone(), Value::Null);
    }
    for (name, value) in new {
        match old.get(&name) {
            Some(same) if *same == value => {}
            Some(differs) if differs.is_object() && value.is_object() => {
                patch.insert(name, difference(differs, value));
            }
            _ => drop(patch.insert(name, value)),
        }
    }
    Value::Object(patch)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_difference_has_what_is_new_and_removes_what_is_gone() {
        let old = json!({ "a": 1, "b": { "c": 1, "d": 2 }, "e": [1, 2], "f": 1 });
        let new = json!({ "a": 1, "b": { "c": 1, "d": 3 }, "e": [2], "g": { "h": 1 } });
        let patch = json!({ "b": { "d": 3 }, "e": [2], "f": null, "g": { "h": 1 } });
        assert_eq!(difference(&old, new.clone()), patch);
        assert_eq!(difference(&new, new.clone()), json!({}));
        assert_eq!(difference(&Value::Null, json!({})), json!({}));
        assert_eq!(difference(&Value::Null, new.clone()), new);
    }
}
