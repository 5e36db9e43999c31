//! The state that all parts of the server use: objects, resources and options.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use parking_lot::{Mutex, RwLock};
use serve::{Resource, Resources, ServeOptions, ServerVersion};

use crate::definitions::Definition;
use crate::recent::Recent;
use crate::store::{GroupResource, Objects, Store};
use serve::builtin;

/// Options of an [`Api`](crate::Api). The default is a kube-apiserver 1.37 with the controller that empties deleted
/// namespaces, and with nodes that end pods at once.
#[derive(Clone)]
#[non_exhaustive]
pub struct ApiOptions {
    /// The version that the server reports.
    pub version: ServerVersion,
    /// Options for reads.
    pub serve: ServeOptions,
    /// How many events of each resource are kept for watches and for lists of older versions; at least 1.
    pub history: usize,
    /// Whether the objects of a deleted namespace are deleted, and then the namespace; otherwise it stays
    /// `Terminating`.
    pub empty_namespaces: bool,
    /// Whether dependents of deleted objects are deleted, and the finalizers `orphan` and `foregroundDeletion` take
    /// effect. This is the garbage collector of the kube-controller-manager, except that it finishes before the
    /// deletion is answered.
    pub garbage_collection: bool,
    /// Whether a deleted pod on a node stays for its grace period, until a client deletes it with period 0, as a
    /// kubelet does. Otherwise it is deleted at once.
    pub graceful_pods: bool,
    /// How long [`Api::wait_for`](crate::Api::wait_for) and
    /// [`Api::wait_until_gone`](crate::Api::wait_until_gone) wait at most; 10 seconds by default.
    pub wait_limit: Duration,
    /// The seed of uids and generated names.
    pub seed: u64,
    /// The clock.
    pub clock: Arc<dyn Fn() -> SystemTime + Send + Sync>,
}

impl Default for ApiOptions {
    fn default() -> Self {
        Self {
            version: ServerVersion { major: 1, minor: 37, git_version: "v1.37.2".into() },
            serve: ServeOptions::default(),
            history: 10_000,
            empty_namespaces: true,
            garbage_collection: false,
            graceful_pods: false,
            wait_limit: Duration::from_secs(10),
            seed: 0,
            clock: Arc::new(SystemTime::now),
        }
    }
}

impl std::fmt::Debug for ApiOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ApiOptions")
            .field("version", &self.version)
            .field("serve", &self.serve)
            .field("history", &self.history)
            .field("empty_namespaces", &self.empty_namespaces)
            .field("garbage_collection", &self.garbage_collection)
            .field("graceful_pods", &self.graceful_pods)
            .field("wait_limit", &self.wait_limit)
            .field("seed", &self.seed)
            .finish_non_exhaustive()
    }
}

/// The state of the server.
pub(crate) struct Core {
    pub(crate) options: ApiOptions,
    pub(crate) store: Store,
    served: RwLock<Served>,
    random: Mutex<fastrand::Rng>,
    pub(crate) recent: Recent,
}

/// The served resources: the built-in ones, then the custom ones.
#[derive(Default)]
struct Served {
    resources: Arc<Resources>,
    definitions: BTreeMap<GroupResource, Arc<Definition>>,
}

impl Core {
    /// A server without objects.
    pub(crate) fn new(options: ApiOptions) -> Self {
        let store = Store::new(options.history.max(1));
        for resource in builtin::resources().iter().filter(|resource| resource.allows("list")) {
            store.open(GroupResource::new(&resource.group, &resource.plural));
        }
        let random = Mutex::new(fastrand::Rng::with_seed(options.seed));
        let core = Self { options, store, served: RwLock::default(), random, recent: Recent::default() };
        core.serve_definitions(BTreeMap::new());
        core
    }

    pub(crate) fn resources(&self) -> Arc<Resources> {
        Arc::clone(&self.served.read().resources)
    }

    pub(crate) fn definition(&self, resource: &GroupResource) -> Option<Arc<Definition>> {
        self.served.read().definitions.get(resource).cloned()
    }

    pub(crate) fn definitions(&self) -> BTreeMap<GroupResource, Arc<Definition>> {
        self.served.read().definitions.clone()
    }

    /// Serves these custom resources from now on.
    pub(crate) fn serve_definitions(&self, definitions: BTreeMap<GroupResource, Arc<Definition>>) {
        let custom = definitions.values().flat_map(|definition| definition.resources.iter().cloned());
        let resources = Arc::new(builtin::resources().into_iter().chain(custom).collect());
        *self.served.write() = Served { resources, definitions };
    }

    /// The objects of a resource.
    pub(crate) fn objects(&self, group: &str, plural: &str) -> Option<Objects> {
        self.store.objects(&GroupResource::new(group, plural))
    }

    pub(crate) fn now(&self) -> SystemTime {
        (self.options.clock)()
    }

    /// A random uid (RFC 9562, version 4).
    pub(crate) fn new_uid(&self) -> String {
        let bits = self.random.lock().u128(..);
        let bits = bits & !(0xf << 76) & !(0x3 << 62) | (0x4 << 76) | (0x2 << 62);
        let hex = format!("{bits:032x}");
        format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
    }

    pub(crate) fn random_u16(&self) -> u16 {
        self.random.lock().u16(..)
    }

    /// A name for `generateName`: the prefix and five random letters.
    pub(crate) fn generated_name(&self, prefix: &str) -> String {
        const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
        const MAX: usize = 63;
        let mut random = self.random.lock();
        let mut name: String = prefix.chars().take(MAX - 5).collect();
        name.extend((0..5).map(|_| char::from(LETTERS[random.usize(..LETTERS.len())])));
        name
    }
}

/// The resource without its version.
pub(crate) fn group_resource(resource: &Resource) -> GroupResource {
    GroupResource::new(&resource.group, &resource.plural)
}
