//! The writes of a reconciliation.

mod answer;
mod attempt;
mod error;
mod form;
mod ledger;
mod look;
mod options;
mod patch;
mod request;
mod status;
mod subresources;
mod target;

use std::sync::Arc;
use std::time::Duration;

use informer::kube::core::Resource;
use informer::kube::core::params::{DeleteParams, Preconditions};
use informer::kube::{Client, client};
use informer::{Object, ObjectKey, ResourceType, Snapshot};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::caches::Caches;
use crate::confirmed::Confirmed;

use answer::Answer;
use attempt::Attempt;
pub use error::WriteError;
use form::Form;
pub(crate) use ledger::Writes;
use ledger::{Expected, Ledger};
use options::Options;
pub use patch::Patch;
pub use target::{Seen, Target};

/// Writes objects for one reconciliation, and remembers what it wrote: the next reconciliation of the same object begins
/// when the caches reflect these writes.
///
/// Each write of an object that exists carries the uid and the resourceVersion that this reconciliation knows: of the cache
/// as it was when the reconciliation began, or of its own last write. If somebody else has written the object since, the
/// server refuses the write ([`WriteError::is_conflict`]). The reconciliation then fails, and is repeated on newer state.
/// [`Writer::unlocked`] leaves the resourceVersion out. (The status subresource of custom resources ignores the uid alone.)
///
/// Writes by other ways, for example with a client of your own, are not remembered.
///
/// Each write is sent once. kube's client repeats what is answered with 429, 503 or 504, unless `Config::default_retry` is
/// `false`; a creation with a generated name may have been carried out by then. Here the reconciliation fails, and the next one
/// waits until it is known what became of the write.
///
/// ```no_run
/// use informer_controller::{Context, Failure, Outcome};
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use serde_json::json;
///
/// async fn stamp(context: Context<ConfigMap>) -> Result<Outcome, Failure> {
///     if let Some(map) = context.object() {
///         context.writer().patch(map, json!({ "metadata": { "labels": { "seen": "yes" } } })).await?;
///     }
///     Ok(Outcome::Done)
/// }
/// ```
///
/// # Cancel safety
///
/// A write whose future is dropped may have been carried out. The next reconciliation waits until the caches are as new as
/// the server then is.
#[derive(Clone)]
pub struct Writer {
    shared: Arc<Shared>,
    options: Options,
}

struct Shared {
    client: Client,
    snapshots: Arc<[Snapshot<Object>]>,
    limit: Duration,
    ledger: Ledger,
    confirmed: Arc<Confirmed>,
}

impl Writer {
    pub(crate) fn new(
        name: Arc<str>,
        client: Client,
        caches: Arc<Caches>,
        snapshots: Arc<[Snapshot<Object>]>,
        limit: Duration,
        confirmed: Arc<Confirmed>,
    ) -> Self {
        let ledger = Ledger::new(caches);
        let shared = Arc::new(Shared { client, snapshots, limit, ledger, confirmed });
        Self { shared, options: Options::new(name) }
    }

    /// Creates or changes an object by server-side apply: the fields in `object` get its values, and fields that an earlier
    /// apply set and `object` leaves out are removed. The controller's name is the field manager, without
    /// [`Writer::field_manager`]; it takes over fields that others manage ([`Writer::without_force`] does not). Returns the object as
    /// written.
    ///
    /// An object that the caches lack is created, or changed if it exists all the same: then nothing protects what somebody
    /// else wrote. [`Writer::create`] fails in that case.
    /// ([Server-side apply](https://kubernetes.io/docs/reference/using-api/server-side-apply/))
    ///
    /// # Errors
    ///
    /// When `object` has no name, or the server refuses the request or does not answer.
    pub async fn apply<K>(&self, object: &K) -> Result<K, WriteError>
    where
        K: Resource<DynamicType = (), Scope: 'static> + Serialize + DeserializeOwned,
    {
        self.apply_as(&ResourceType::of::<K>(), object).await
    }

    /// As [`Writer::apply`], for an object whose type is known at run time only, or written with `json!`. `apiVersion` and
    /// `kind` are filled in.
    ///
    /// ```no_run
    /// # async fn example(writer: &informer_controller::Writer) -> Result<(), informer_controller::WriteError> {
    /// use informer::ResourceType;
    /// use k8s_openapi::api::core::v1::ConfigMap;
    /// use serde_json::json;
    ///
    /// let map = json!({ "metadata": { "namespace": "shop", "name": "prices" }, "data": { "cart": "7" } });
    /// writer.apply_value(&ResourceType::of::<ConfigMap>(), &map).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Writer::apply`].
    pub async fn apply_value(&self, resource: &ResourceType, object: &Value) -> Result<Value, WriteError> {
        self.apply_as(resource, object).await
    }

    async fn apply_as<K: Serialize + DeserializeOwned>(
        &self,
        resource: &ResourceType,
        object: &K,
    ) -> Result<K, WriteError> {
        let mut body = body("apply", resource, object)?;
        let place = place(&body);
        let attempt = place.attempt("apply", resource);
        let key = attempt.key()?;
        if let Some(metadata) = body["metadata"].as_object_mut() {
            // The server refuses an apply with managed fields.
            metadata.remove("managedFields");
        }
        self.condition(&mut body, &self.known(resource, &key));
        let answer = self.send(attempt, Form::Apply, &body, Expected::of_body(&body)).await;
        attempt.typed(answer.map_err(|error| error.between_managers(&self.options.manager))?)
    }

    /// Creates an object. With `generateName` instead of a name, the server chooses one. Returns the object as written.
    ///
    /// # Errors
    ///
    /// When the object exists ([`WriteError::is_already_exists`]), or the server refuses the request or does not answer.
    pub async fn create<K>(&self, object: &K) -> Result<K, WriteError>
    where
        K: Resource<DynamicType = (), Scope: 'static> + Serialize + DeserializeOwned,
    {
        self.create_as(&ResourceType::of::<K>(), object).await
    }

    /// As [`Writer::create`], for an object whose type is known at run time only, or written with `json!`. `apiVersion` and
    /// `kind` are filled in.
    ///
    /// # Errors
    ///
    /// As [`Writer::create`].
    pub async fn create_value(&self, resource: &ResourceType, object: &Value) -> Result<Value, WriteError> {
        self.create_as(resource, object).await
    }

    async fn create_as<K: Serialize + DeserializeOwned>(
        &self,
        resource: &ResourceType,
        object: &K,
    ) -> Result<K, WriteError> {
        let body = body("create", resource, object)?;
        let place = place(&body);
        let attempt = place.attempt("create", resource);
        attempt.check()?;
        attempt.typed(self.send(attempt, Form::New, &body, Expected::of_body(&body)).await?)
    }

    /// Replaces an object as a whole. Returns it as written.
    ///
    /// # Errors
    ///
    /// When `object` has no name, or the server refuses the request or does not answer.
    pub async fn replace<K>(&self, object: &K) -> Result<K, WriteError>
    where
        K: Resource<DynamicType = (), Scope: 'static> + Serialize + DeserializeOwned,
    {
        self.replace_as(&ResourceType::of::<K>(), object).await
    }

    /// As [`Writer::replace`], for an object whose type is known at run time only. `apiVersion` and `kind` are filled in.
    ///
    /// # Errors
    ///
    /// As [`Writer::replace`].
    pub async fn replace_value(&self, resource: &ResourceType, object: &Value) -> Result<Value, WriteError> {
        self.replace_as(resource, object).await
    }

    async fn replace_as<K: Serialize + DeserializeOwned>(
        &self,
        resource: &ResourceType,
        object: &K,
    ) -> Result<K, WriteError> {
        let mut body = body("replace", resource, object)?;
        let place = place(&body);
        let attempt = place.attempt("replace", resource);
        let key = attempt.key()?;
        self.condition(&mut body, &self.known(resource, &key));
        attempt.typed(self.send(attempt, Form::Whole, &body, Expected::of_body(&body)).await?)
    }

    /// Deletes an object. An object with a grace period or finalizers stays, with a deletion timestamp, until these are
    /// over. The objects that it owns are deleted in the background.
    ///
    /// # Errors
    ///
    /// When the object does not exist ([`WriteError::is_not_found`]), or the server refuses the request or does not answer.
    pub async fn delete<K>(&self, target: impl Target<K>) -> Result<(), WriteError> {
        self.delete_with(target, DeleteParams::background()).await
    }

    /// As [`Writer::delete`], with a grace period or another propagation policy. The preconditions of `parameters` are
    /// replaced by those of this writer.
    ///
    /// # Errors
    ///
    /// As [`Writer::delete`].
    pub async fn delete_with<K>(
        &self,
        target: impl Target<K>,
        parameters: DeleteParams,
    ) -> Result<(), WriteError> {
        let (resource, key) = (target.resource(), target.key());
        let (attempt, key) = Attempt::on("delete", &resource, key.as_ref())?;
        let seen = self.newest(&resource, key, target.seen());
        let options = self.deletion(&seen, parameters);
        let expected = if options.dry_run { Expected::Nothing } else { Expected::Deletion { uid: seen.uid } };
        self.send(attempt, Form::Deletion, &options, expected).await.map(drop)
    }

    /// The options of a deletion of the object that this reconciliation has seen.
    fn deletion(&self, seen: &Seen, mut options: DeleteParams) -> DeleteParams {
        let version = seen.version.as_ref().filter(|_| self.options.locked);
        options.dry_run |= self.options.dry_run;
        options.preconditions(Preconditions {
            uid: seen.uid.as_ref().map(ToString::to_string),
            resource_version: version.map(ToString::to_string),
        })
    }

    /// The state of an object that this reconciliation knows: that of its own last write, else of its snapshots.
    fn known(&self, resource: &ResourceType, key: &ObjectKey) -> Seen {
        if let Some(written) = self.shared.ledger.newest(resource, key) {
            return written.map(|written| written.seen).unwrap_or_default();
        }
        let numbers = self.shared.ledger.caches().of(resource);
        let mut cached =
            numbers.filter_map(|number| self.shared.snapshots.get(number)?.get(key.as_str()).ok().flatten());
        cached.next().map(|object| Seen::of(&object)).unwrap_or_default()
    }

    /// The newest version of a target that this reconciliation knows, if it is the same incarnation.
    fn newest(&self, resource: &ResourceType, key: &ObjectKey, seen: Seen) -> Seen {
        let is_known = seen.version.is_none() || self.shared.ledger.newest(resource, key).is_some();
        let known = if is_known { self.known(resource, key) } else { Seen::default() };
        let is_same = known.uid.is_some() && (seen.uid.is_none() || seen.uid == known.uid);
        if is_same && !known.is_older_than(&seen) { known } else { seen }
    }

    /// Adds preconditions to the body of a request, unless it has its own.
    fn condition(&self, body: &mut Value, seen: &Seen) {
        if !body["metadata"].is_object() {
            body["metadata"] = json!({});
        }
        let Some(metadata) = body["metadata"].as_object_mut() else { return };
        let mut set = |field: &str, value: Option<String>| {
            if let Some(value) = value
                && metadata.get(field).is_none_or(Value::is_null)
            {
                metadata.insert(field.to_owned(), Value::String(value));
            }
        };
        set("uid", seen.uid.as_ref().map(ToString::to_string));
        if self.options.locked {
            set("resourceVersion", seen.version.as_ref().map(ToString::to_string));
        } else {
            metadata.remove("resourceVersion");
        }
    }

    async fn send(
        &self,
        attempt: Attempt<'_>,
        form: Form,
        body: &impl Serialize,
        expected: Expected,
    ) -> Result<Answer, WriteError> {
        let Shared { client, limit, ledger, .. } = &*self.shared;
        let expected = if self.options.dry_run { Expected::Nothing } else { expected };
        let request = attempt.request(form, &self.options, body)?;
        let entry = ledger.begin(attempt, &expected).ok_or_else(|| attempt.ended())?;
        let answering = async { Answer::read(client.request_text(request).await?) };
        let answer = match tokio::time::timeout(*limit, answering).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(error)) => {
                let error = attempt.failed(error);
                if !error.is_uncertain() {
                    ledger.refused(entry);
                }
                return Err(error);
            }
            Err(_) => return Err(attempt.unanswered(*limit)),
        };
        ledger.answered(entry, attempt, expected, &answer);
        Ok(answer)
    }

    /// Refuses further writes, as at the end of the reconciliation.
    #[doc(hidden)]
    pub fn close(&self) {
        self.shared.ledger.close();
    }

    /// Ends the reconciliation: later writes are refused. Returns what was written.
    pub(crate) fn end(&self) -> Writes {
        self.shared.ledger.end()
    }

    pub(crate) fn client(&self) -> &Client {
        &self.shared.client
    }

    pub(crate) fn confirmed(&self) -> &Confirmed {
        &self.shared.confirmed
    }
}

/// An object as the server reads it.
fn body<K: Serialize>(verb: &'static str, resource: &ResourceType, object: &K) -> Result<Value, WriteError> {
    let nowhere = Place::default();
    let attempt = nowhere.attempt(verb, resource);
    let mut body =
        serde_json::to_value(object).map_err(|error| attempt.failed(client::Error::SerdeError(error)))?;
    if !body.is_object() {
        return Err(attempt.unnamed());
    }
    body["apiVersion"] = Value::String(resource.api_version());
    body["kind"] = Value::String(resource.kind.clone());
    Ok(body)
}

/// The namespace and the name that an object has.
#[derive(Default)]
struct Place {
    namespace: Option<String>,
    name: Option<String>,
}

impl Place {
    fn attempt<'a>(&'a self, verb: &'static str, resource: &'a ResourceType) -> Attempt<'a> {
        let (namespace, name) = (self.namespace.as_deref(), self.name.as_deref());
        Attempt { verb, resource, namespace, name, subresource: None }
    }
}

fn place(body: &Value) -> Place {
    let text =
        |field: &str| body["metadata"][field].as_str().filter(|text| !text.is_empty()).map(str::to_owned);
    Place { namespace: text("namespace"), name: text("name") }
}
