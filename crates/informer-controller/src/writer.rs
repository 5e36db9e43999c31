//! The writes of a reconciliation.

mod answer;
mod error;
mod json_patch;
mod ledger;
mod look;
mod status;
mod target;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use informer::kube::core::Resource;
use informer::kube::core::params::{DeleteParams, Patch, PatchParams, PostParams, Preconditions};
use informer::kube::core::request;
use informer::kube::{Client, client};
use informer::{Labels, Object, ObjectKey, ResourceType, Snapshot, Uid, path_segment};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::caches::Caches;
use crate::confirmed::Confirmed;
use crate::request::collection;

use answer::Answer;
pub use error::WriteError;
pub(crate) use ledger::Writes;
use ledger::{Ledger, labels};
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
    locked: bool,
    forced: bool,
}

struct Shared {
    /// The field manager.
    name: Arc<str>,
    client: Client,
    snapshots: Arc<[Snapshot<Object>]>,
    limit: Duration,
    ledger: Ledger,
    confirmed: Arc<Confirmed>,
}

/// A request, as errors name it.
#[derive(Debug, Clone, Copy)]
struct Attempt<'a> {
    verb: &'static str,
    resource: &'a ResourceType,
    namespace: Option<&'a str>,
    /// Unknown before the server generates it.
    name: Option<&'a str>,
}

/// The preconditions of a request on the object that it writes.
#[derive(Default)]
struct Request {
    /// The labels that the object will have.
    labels: Option<Labels>,
    /// The incarnation that it demands.
    uid: Option<Uid>,
}

impl Request {
    fn of_body(body: &Value) -> Self {
        Self { labels: Some(labels(&body["metadata"])), ..Self::default() }
    }
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
        let shared = Arc::new(Shared { name, client, snapshots, limit, ledger, confirmed });
        Self { shared, locked: true, forced: true }
    }

    /// The same writer, whose writes carry the uid but no resourceVersion: they also succeed when somebody else has written
    /// the object since.
    #[must_use]
    pub fn unlocked(&self) -> Self {
        Self { locked: false, ..self.clone() }
    }

    /// The same writer, whose applications take over no field that another manager has set to another value: the server refuses
    /// them with a conflict, which names both managers ([`WriteError::is_conflict`]). Kubernetes tells controllers to force, as
    /// writers do without this.
    #[must_use]
    pub fn without_force(&self) -> Self {
        Self { forced: false, ..self.clone() }
    }

    /// Creates or changes an object by server-side apply: the fields in `object` get its values, and fields that an earlier
    /// apply set and `object` leaves out are removed. The controller's name is the field manager; it takes over fields that
    /// others manage ([`Writer::without_force`] does not). Returns the object as written.
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
        let (namespace, name) = place(&body);
        let attempt =
            Attempt { verb: "apply", resource, namespace: namespace.as_deref(), name: name.as_deref() };
        let key = attempt.key()?;
        if let Some(metadata) = body["metadata"].as_object_mut() {
            // The server refuses an apply with managed fields.
            metadata.remove("managedFields");
        }
        self.condition(&mut body, &self.known(resource, &key));
        let request =
            attempt.collection().patch(&path_segment(key.name()), &self.application(), &Patch::Apply(&body));
        let answer = self.send(attempt, Request::of_body(&body), request).await;
        attempt.typed(answer.map_err(|error| error.between_managers(&self.shared.name))?)
    }

    /// The parameters of an apply.
    fn application(&self) -> PatchParams {
        PatchParams { force: self.forced, ..PatchParams::apply(&self.shared.name) }
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
        let resource = ResourceType::of::<K>();
        let body = body("create", &resource, object)?;
        let (namespace, name) = place(&body);
        let attempt = Attempt {
            verb: "create",
            resource: &resource,
            namespace: namespace.as_deref(),
            name: name.as_deref(),
        };
        attempt.check()?;
        let parameters =
            PostParams { field_manager: Some(self.shared.name.to_string()), ..PostParams::default() };
        let request = attempt.collection().create(&parameters, body.to_string().into_bytes());
        attempt.typed(self.send(attempt, Request::of_body(&body), request).await?)
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
        let resource = ResourceType::of::<K>();
        let mut body = body("replace", &resource, object)?;
        let (namespace, name) = place(&body);
        let attempt = Attempt {
            verb: "replace",
            resource: &resource,
            namespace: namespace.as_deref(),
            name: name.as_deref(),
        };
        let key = attempt.key()?;
        self.condition(&mut body, &self.known(&resource, &key));
        let parameters =
            PostParams { field_manager: Some(self.shared.name.to_string()), ..PostParams::default() };
        let request = attempt.collection().replace(
            &path_segment(key.name()),
            &parameters,
            body.to_string().into_bytes(),
        );
        attempt.typed(self.send(attempt, Request::of_body(&body), request).await?)
    }

    /// Changes an object by a merge patch ([RFC 7386](https://www.rfc-editor.org/rfc/rfc7386)). Returns it as written.
    ///
    /// # Errors
    ///
    /// When the server refuses the request or does not answer.
    pub async fn patch<K: DeserializeOwned>(
        &self,
        target: impl Target<K>,
        patch: Value,
    ) -> Result<K, WriteError> {
        self.merge("patch", target, patch, None).await
    }

    /// Changes the status of an object by a merge patch: `patch` has the field `status`. Returns the object as written.
    ///
    /// # Errors
    ///
    /// As [`Writer::patch`]. A resource without a status subresource is not found
    /// ([`WriteError::is_not_found`]).
    pub async fn patch_status<K: DeserializeOwned>(
        &self,
        target: impl Target<K>,
        patch: Value,
    ) -> Result<K, WriteError> {
        self.merge("patch the status of", target, patch, Some("status")).await
    }

    async fn merge<K: DeserializeOwned>(
        &self,
        verb: &'static str,
        target: impl Target<K>,
        mut patch: Value,
        subresource: Option<&str>,
    ) -> Result<K, WriteError> {
        let (resource, key) = (target.resource(), target.key());
        let attempt =
            Attempt { verb, resource: &resource, namespace: key.namespace(), name: Some(key.name()) };
        attempt.check()?;
        if !patch.is_object() {
            return Err(attempt.no_object());
        }
        self.condition(&mut patch, &self.newest(&resource, &key, target.seen()));
        let parameters =
            PatchParams { field_manager: Some(self.shared.name.to_string()), ..PatchParams::default() };
        let (name, patch) = (path_segment(key.name()), Patch::Merge(&patch));
        let request = match subresource {
            Some(subresource) => {
                attempt.collection().patch_subresource(subresource, &name, &parameters, &patch)
            }
            None => attempt.collection().patch(&name, &parameters, &patch),
        };
        attempt.typed(self.send(attempt, Request::default(), request).await?)
    }

    /// Deletes an object. An object with a grace period or finalizers stays, with a deletion timestamp, until these are
    /// over. What it owns is deleted in the background.
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
        let attempt = Attempt {
            verb: "delete",
            resource: &resource,
            namespace: key.namespace(),
            name: Some(key.name()),
        };
        attempt.check()?;
        let Seen { uid, version } = self.newest(&resource, &key, target.seen());
        let preconditions = Preconditions {
            uid: uid.as_ref().map(ToString::to_string),
            resource_version: version.filter(|_| self.locked).map(|version| version.to_string()),
        };
        let request =
            attempt.collection().delete(&path_segment(key.name()), &parameters.preconditions(preconditions));
        let deletion = Request { labels: None, uid };
        self.send(attempt, deletion, request).await.map(drop)
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
        let is_newer = seen.version.is_none() || self.shared.ledger.newest(resource, key).is_some();
        let known = if is_newer { self.known(resource, key) } else { Seen::default() };
        let is_same = known.uid.is_some() && (seen.uid.is_none() || seen.uid == known.uid);
        if is_same { known } else { seen }
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
        if self.locked {
            set("resourceVersion", seen.version.as_ref().map(ToString::to_string));
        } else {
            metadata.remove("resourceVersion");
        }
    }

    async fn send(
        &self,
        attempt: Attempt<'_>,
        expected: Request,
        request: Result<http::Request<Vec<u8>>, request::Error>,
    ) -> Result<Answer, WriteError> {
        let Shared { client, limit, ledger, .. } = &*self.shared;
        let request = request.map_err(|error| attempt.failed(client::Error::BuildRequest(error)))?;
        let Some(entry) = ledger.begin(attempt, expected.labels.as_ref()) else {
            return Err(attempt.ended());
        };
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
        ledger.answered(entry, attempt, expected.uid, &answer);
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

    /// The same writer, whose writes carry the resourceVersion also after [`Writer::unlocked`].
    pub(crate) fn locked(&self) -> Self {
        Self { locked: true, ..self.clone() }
    }
}

impl fmt::Debug for Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Writer")
            .field("name", &self.shared.name)
            .field("locked", &self.locked)
            .finish_non_exhaustive()
    }
}

impl Attempt<'_> {
    fn collection(&self) -> request::Request {
        collection(self.resource, self.namespace)
    }

    /// No object has such a name, and a server or proxy may read it as another path, though it is escaped: a deletion of `.`
    /// as one of the collection.
    fn check(&self) -> Result<(), WriteError> {
        for (field, text) in [("metadata.namespace", self.namespace), ("metadata.name", self.name)] {
            if text.is_some_and(|text| matches!(text, "." | "..") || text.contains('/')) {
                return Err(self.no_name(field));
            }
        }
        Ok(())
    }

    fn key(&self) -> Result<ObjectKey, WriteError> {
        self.check()?;
        let key = self.name.and_then(|name| ObjectKey::new(self.namespace, name).ok());
        key.ok_or_else(|| self.unnamed())
    }

    fn typed<K: DeserializeOwned>(&self, answer: Answer) -> Result<K, WriteError> {
        answer.decode().map_err(|error| self.failed(error))
    }
}

/// An object as the server reads it.
fn body<K: Serialize>(verb: &'static str, resource: &ResourceType, object: &K) -> Result<Value, WriteError> {
    let attempt = Attempt { verb, resource, namespace: None, name: None };
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
fn place(body: &Value) -> (Option<String>, Option<String>) {
    let text =
        |field: &str| body["metadata"][field].as_str().filter(|text| !text.is_empty()).map(str::to_owned);
    (text("namespace"), text("name"))
}
