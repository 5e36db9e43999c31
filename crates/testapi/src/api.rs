//! The server without a network: HTTP requests in, responses out, and the same operations as Rust methods.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use serde_json::Value;
use serve::{Body, Catalog, Collection, Object, Resource, Serve, Status};

use crate::answer;
use crate::controllers::{self, in_turn};
use crate::core::{ApiOptions, Core};
use crate::object::{Meta, metadata_mut, typed};
use crate::store::{Backup, Text, encode};
use crate::turn::{Target, Turn};
use crate::write::{DeleteOptions, Deleted, Patch, WriteOptions};

/// A Kubernetes API server in this process, without a network. A clone is a handle to the same server.
///
/// ```
/// # tokio_test(async {
/// use serde_json::json;
/// use testapi::{Api, Gvr, Patch};
///
/// let api = Api::default();
/// let maps = Gvr::new("v1", "configmaps");
/// let made = api.create(&maps, json!({"metadata": {"namespace": "default", "name": "a"}, "data": {"x": "1"}}))?;
/// assert_eq!(made["kind"], "ConfigMap");
/// api.patch(&maps, "default", "a", &Patch::Merge(json!({"data": {"x": "2"}})))?;
/// assert_eq!(api.get(&maps, "default", "a")?["data"]["x"], "2");
/// api.delete(&maps, "default", "a")?;
/// # Ok::<(), serve::Status>(()) }).unwrap();
/// # fn tokio_test<T>(run: impl Future<Output = T>) -> T {
/// #     tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(run)
/// # }
/// ```
#[derive(Clone)]
pub struct Api {
    core: Arc<Core>,
    serve: Arc<Serve>,
}

/// Group, version and plural name of a resource, as in paths.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Gvr {
    /// The API group; empty for the core group.
    pub group: String,
    /// `v1`
    pub version: String,
    /// `deployments`
    pub plural: String,
}

impl Gvr {
    /// From `apps/v1` and `deployments`.
    pub fn new(api_version: &str, plural: &str) -> Self {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        Self { group: group.into(), version: version.into(), plural: plural.into() }
    }
}

/// The manager of writes by Rust methods, in `managedFields`.
const MANAGER: &str = "testapi";

impl Default for Api {
    fn default() -> Self {
        Self::new(ApiOptions::default())
    }
}

impl Api {
    /// A new server that has only the namespaces of every server.
    pub fn new(options: ApiOptions) -> Self {
        let serve_options = options.serve.clone();
        let core = Arc::new(Core::new(options));
        // This cannot fail: the names are valid, and the server is empty.
        let _ = in_turn(&core, controllers::create_first);
        let catalog: Arc<dyn Catalog> = Arc::clone(&core) as _;
        Self { serve: Arc::new(Serve::new(catalog, serve_options)), core }
    }

    /// Answers a request.
    pub async fn handle(&self, request: Request<Bytes>) -> Response<Body> {
        answer::handle(&self.core, &self.serve, request).await
    }

    /// A refusal in the encoding that the client accepts.
    pub(crate) fn encoded(&self, headers: &HeaderMap, answer: Response<Body>) -> Response<Body> {
        self.serve.encoded(headers, answer)
    }

    /// The newest revision: a list taken now has it as its `resourceVersion`.
    pub fn revision(&self) -> u64 {
        self.core.store.revision()
    }

    /// An object's JSON with its kind and version.
    #[doc(hidden)]
    pub fn typed(&self, resource: &Resource, object: &Arc<Object>) -> Arc<Value> {
        self.core.recent.typed(resource, object)
    }

    /// The catalog of its resources, for other ways to read them.
    pub fn catalog(&self) -> Arc<dyn Catalog> {
        Arc::clone(&self.core) as _
    }

    /// The objects of a resource with their history; `None` if the resource is not served.
    pub fn collection(&self, resource: &Gvr) -> Option<Arc<dyn Collection>> {
        self.core.collection(&*self.resource(resource).ok()?)
    }

    /// Creates an object in the namespace that `metadata.namespace` names. Creates that namespace first if it does not
    /// exist; a client that writes through HTTP gets 404 there, as from the real server.
    ///
    /// # Errors
    ///
    /// The [`Status`] with which the API refuses. The methods below fail the same way.
    pub fn create(&self, resource: &Gvr, object: Value) -> Result<Value, Status> {
        let target = self.target(resource, Meta(&object).namespace(), "")?;
        let made = in_turn(&self.core, |turn| {
            if !target.namespace.is_empty() {
                controllers::ensure(turn, &target.namespace)?;
            }
            turn.create(&target, object, &WriteOptions::by(MANAGER))
        })?;
        Ok(typed(&target.resource, &made))
    }

    /// Returns an object; `namespace` is empty for cluster-wide resources.
    pub fn get(&self, resource: &Gvr, namespace: &str, name: &str) -> Result<Value, Status> {
        let target = self.target(resource, namespace, name)?;
        let found = target.current().ok_or_else(|| target.not_found())?;
        Ok(typed(&target.resource, &found))
    }

    /// Returns all objects of a resource, or those of one namespace, sorted by namespace and name.
    pub fn list(&self, resource: &Gvr, namespace: Option<&str>) -> Result<Vec<Value>, Status> {
        let target = self.target(resource, "", "")?;
        let objects = target.objects.all(namespace);
        Ok(objects.iter().map(|object| typed(&target.resource, object)).collect())
    }

    /// Replaces an object.
    pub fn update(&self, resource: &Gvr, object: Value) -> Result<Value, Status> {
        self.replace(resource, object, false).map(|(target, updated)| typed(&target.resource, &updated))
    }

    /// Replaces the status of an object.
    pub fn update_status(&self, resource: &Gvr, object: Value) -> Result<Value, Status> {
        self.replace(resource, object, true).map(|(target, updated)| typed(&target.resource, &updated))
    }

    pub(crate) fn replace(
        &self,
        resource: &Gvr,
        object: Value,
        status: bool,
    ) -> Result<(Target, Arc<Object>), Status> {
        let meta = Meta(&object);
        let target = Target { status, ..self.target(resource, meta.namespace(), meta.name())? };
        let mut options = WriteOptions::by(MANAGER);
        options.subresource = status.then(|| "status".into());
        let (updated, _) = in_turn(&self.core, |turn| turn.update(&target, object, &options))?;
        Ok((target, updated))
    }

    /// Patches an object; server-side apply may create it.
    pub fn patch(&self, resource: &Gvr, namespace: &str, name: &str, patch: &Patch) -> Result<Value, Status> {
        let target = self.target(resource, namespace, name)?;
        let options = WriteOptions::by(MANAGER);
        let (patched, _) = in_turn(&self.core, |turn| turn.patch(&target, patch, &options))?;
        Ok(typed(&target.resource, &patched))
    }

    /// Deletes an object. Returns the object if it stays for now, because of finalizers or a grace period.
    pub fn delete(&self, resource: &Gvr, namespace: &str, name: &str) -> Result<Option<Value>, Status> {
        let target = self.target(resource, namespace, name)?;
        match in_turn(&self.core, |turn| turn.delete(&target, &DeleteOptions::default()))? {
            Deleted::Gone(_) => Ok(None),
            Deleted::Waiting(object) => Ok(Some(typed(&target.resource, &object))),
        }
    }

    /// Inserts or replaces many objects, fast: unchanged and without validation. Clients that ask for protobuf get only
    /// fields that fit the schema of a built-in kind. Each gets a resourceVersion, and a uid and a creation time if it
    /// has none. Returns the number of objects.
    pub fn load(&self, resource: &Gvr, objects: impl IntoIterator<Item = Value>) -> Result<usize, Status> {
        let target = self.target(resource, "", "")?;
        let mut count = 0;
        for mut object in objects {
            let metadata = metadata_mut(&mut object);
            metadata.entry("uid").or_insert_with(|| self.core.new_uid().into());
            let turn = Turn::new(&self.core);
            metadata.entry("creationTimestamp").or_insert_with(|| turn.now().into());
            let object = encode(&mut object, turn.writer.next_revision(), target.order());
            turn.writer.put(&target.objects, Arc::new(object));
            count += 1;
        }
        Ok(count)
    }

    /// As [`load`](Self::load), from JSON texts: ten times as fast, because no tree is built. The members of an object
    /// and of its metadata get the order in which servers write them, all other members keep theirs.
    ///
    /// ```
    /// # use testapi::{Api, Gvr, sample};
    /// let api = Api::default();
    /// let pods = Gvr::new("v1", "pods");
    /// assert_eq!(api.load_text(&pods, (0..100).map(|index| sample::pod_text(7, index, 2)))?, 100);
    /// assert_eq!(api.list(&pods, Some("shop-1"))?.len(), 50);
    /// # Ok::<(), serve::Status>(())
    /// ```
    ///
    /// # Errors
    ///
    /// 400 for a text that is not a JSON object, or whose metadata is malformed. The objects before it are loaded.
    pub fn load_text<T: AsRef<[u8]>>(
        &self,
        resource: &Gvr,
        objects: impl IntoIterator<Item = T>,
    ) -> Result<usize, Status> {
        let target = self.target(resource, "", "")?;
        let mut count = 0;
        for text in objects {
            self.load_one(&target, text.as_ref().trim_ascii())
                .map_err(|error| Status::bad_request(format!("not an object in JSON: {error}")))?;
            count += 1;
        }
        Ok(count)
    }

    fn load_one(&self, target: &Target, text: &[u8]) -> Result<(), serde_json::Error> {
        let in_lines = memchr::memchr(b'\n', text).is_some();
        let line = if in_lines { serde_json::from_slice::<Value>(text)?.to_string() } else { String::new() };
        let mut object = Text::read(if in_lines { line.as_bytes() } else { text })?;
        object.fill("uid", || self.core.new_uid())?;
        let turn = Turn::new(&self.core);
        object.fill("creationTimestamp", || turn.now())?;
        let object = object.encode(turn.writer.next_revision(), target.order())?;
        turn.writer.put(&target.objects, Arc::new(object));
        Ok(())
    }

    /// Discards all history: lists and watches of older versions get 410.
    pub fn compact(&self) {
        self.core.store.compact();
    }

    /// A copy of the whole state, for [`restore`](Self::restore).
    pub fn backup(&self) -> Backup {
        self.core.store.backup()
    }

    /// Restores an older state, like an etcd restored from a backup: the revision goes back too, history is lost, and
    /// all watches end.
    pub fn restore(&self, backup: &Backup) {
        let turn = Turn::new(&self.core);
        turn.writer.restore(backup);
        controllers::serve_all(&turn);
    }

    /// Ends all watches and, unless `keep_history` is set, discards history, like a server that restarts with its data.
    pub fn restart(&self, keep_history: bool) {
        if !keep_history {
            self.core.store.compact();
        }
        self.core.store.end_watches();
    }

    fn resource(&self, resource: &Gvr) -> Result<Arc<Resource>, Status> {
        let resources = self.core.resources();
        let found = resources.find(&resource.group, &resource.version, &resource.plural);
        found.cloned().ok_or_else(|| {
            Status::new(serve::Reason::NotFound, "the server could not find the requested resource")
        })
    }

    pub(crate) fn wait_limit(&self) -> Duration {
        self.core.options.wait_limit
    }

    pub(crate) fn target(&self, resource: &Gvr, namespace: &str, name: &str) -> Result<Target, Status> {
        let found = self.resource(resource)?;
        let namespace = if found.namespaced { namespace } else { "" };
        Target::new(&self.core, &found, namespace, name).ok_or_else(|| {
            Status::new(serve::Reason::MethodNotAllowed, "no objects of this resource are kept")
        })
    }
}

impl std::fmt::Debug for Api {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Api(at revision {})", self.revision())
    }
}
