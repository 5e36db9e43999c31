//! How a server starts.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use serde_json::{Value, json};
use serve::http::{Server, ServerOptions};
use serve::{Reason, ServerVersion, Status};

use crate::server::{Shared, TestApi};
use crate::tls::{Tls, TlsError};
use crate::tokens::Tokens;
use crate::{Api, ApiOptions, Gvr};

/// Starts a [`TestApi`]. Without further words: plain HTTP on a free port of the loopback address, open to everybody,
/// a Kubernetes 1.36 with nothing in it.
#[must_use = "nothing is started yet"]
#[derive(Clone)]
pub struct Builder {
    options: ApiOptions,
    address: IpAddr,
    port: u16,
    tls: bool,
    protocols: Vec<&'static [u8]>,
    tokens: BTreeMap<String, String>,
    first_token: Option<String>,
    anonymous: bool,
    objects: Vec<Value>,
}

/// Why a server has not started.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct StartError(#[from] Cause);

#[derive(Debug, thiserror::Error)]
pub(crate) enum Cause {
    #[error("failed to listen on {0}")]
    Listen(SocketAddr, #[source] std::io::Error),
    #[error("failed to make a certificate")]
    Tls(#[from] TlsError),
    #[error("failed to create a first object of kind {kind:?}")]
    Object {
        kind: String,
        #[source]
        status: Box<Status>,
    },
}

/// Without the tokens and the objects, which may be Secrets.
impl std::fmt::Debug for Builder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Builder")
            .field("options", &self.options)
            .field("address", &self.address)
            .field("port", &self.port)
            .field("tls", &self.tls)
            .field("anonymous", &self.anonymous)
            .finish_non_exhaustive()
    }
}

impl Default for Builder {
    fn default() -> Self {
        Self {
            options: ApiOptions::default(),
            address: Ipv4Addr::LOCALHOST.into(),
            port: 0,
            tls: false,
            protocols: vec![b"h2", b"http/1.1"],
            tokens: BTreeMap::new(),
            first_token: None,
            anonymous: false,
            objects: Vec::new(),
        }
    }
}

impl Builder {
    /// Speaks plain HTTP: 1.1, and 2 with clients that know.
    pub fn plain(mut self) -> Self {
        self.tls = false;
        self
    }

    /// Speaks TLS, with a certificate of an authority that is made at the start: [`TestApi::ca_pem`].
    pub fn tls(mut self) -> Self {
        self.tls = true;
        self
    }

    /// Offers HTTP/1.1 only. Over plain connections there is no offer, and the client decides.
    pub fn http1_only(mut self) -> Self {
        self.protocols = vec![b"http/1.1"];
        self
    }

    /// Offers HTTP/2 only. Over plain connections there is no offer, and the client decides.
    pub fn http2_only(mut self) -> Self {
        self.protocols = vec![b"h2"];
        self
    }

    /// Listens on another address than 127.0.0.1.
    pub fn address(mut self, address: IpAddr) -> Self {
        self.address = address;
        self
    }

    /// Listens on this port; 0, the default, takes a free one.
    pub fn port(mut self, port: u16) -> Self {
        self.port = port;
        self
    }

    /// Accepts a bearer token, and from then on no request without one. That of the first goes into the kubeconfig.
    pub fn token(mut self, token: impl Into<String>, user: impl Into<String>) -> Self {
        let token = token.into();
        self.first_token.get_or_insert_with(|| token.clone());
        self.tokens.insert(token, user.into());
        self
    }

    /// Takes requests without a token although there are tokens.
    pub fn anonymous(mut self, anonymous: bool) -> Self {
        self.anonymous = anonymous;
        self
    }

    /// What uids and generated names are made from.
    pub fn seed(mut self, seed: u64) -> Self {
        self.options.seed = seed;
        self
    }

    /// Poses as Kubernetes 1.`minor`, with what its servers do when nothing else is said: streaming lists in 1.32 and
    /// from 1.34 on, compressed streaming lists from 1.37 on. Lists are answered from the newest state in all of them,
    /// which is what consistent lists from the cache (from 1.31 on) look like to clients.
    pub fn version(mut self, minor: u32) -> Self {
        let default = ApiOptions::default().version;
        self.options.version = match default.minor == minor {
            true => default,
            false => ServerVersion { major: 1, minor, git_version: format!("v1.{minor}.0") },
        };
        self.options.serve.streaming_lists = minor == 32 || minor >= 34;
        self.options.serve.gzip_watch_members = minor >= 37;
        self
    }

    /// Keeps so many events of each resource for watches and for lists of older versions; at least 1.
    pub fn history(mut self, events: usize) -> Self {
        self.options.history = events;
        self
    }

    /// How often a watch that allows bookmarks gets one; 60 seconds if nothing else is said.
    pub fn bookmark_period(mut self, period: Duration) -> Self {
        self.options.serve.bookmark_period = period;
        self
    }

    /// Deletes what is owned by what is deleted.
    pub fn garbage_collection(mut self, on: bool) -> Self {
        self.options.garbage_collection = on;
        self
    }

    /// Changes any other option.
    pub fn options(mut self, change: impl FnOnce(&mut ApiOptions)) -> Self {
        change(&mut self.options);
        self
    }

    /// Creates an object at the start, and its namespace where there is none. It says its `kind` and `apiVersion`.
    pub fn object(mut self, object: Value) -> Self {
        self.objects.push(object);
        self
    }

    /// Creates objects at the start, in their order.
    pub fn objects(mut self, objects: impl IntoIterator<Item = Value>) -> Self {
        self.objects.extend(objects);
        self
    }

    /// Starts it. Must be called in a tokio runtime with I/O and time.
    ///
    /// # Errors
    ///
    /// The port is taken, or a first object is not valid.
    pub async fn start(self) -> Result<TestApi, StartError> {
        let api = Api::new(self.options);
        for object in self.objects {
            let kind = object["kind"].as_str().unwrap_or_default().to_owned();
            create(&api, object).map_err(|status| Cause::Object { kind, status: Box::new(status) })?;
        }
        let tls = match self.tls {
            true => Some(Tls::new(self.address, &self.protocols).map_err(Cause::from)?),
            false => None,
        };
        let address = SocketAddr::new(self.address, self.port);
        let config = tls.as_ref().map(|tls| tls.config.clone());
        let server = Server::bind(ServerOptions { address, tls: config, ..ServerOptions::default() })
            .await
            .map_err(|error| Cause::Listen(address, error))?;
        let shared = Shared::new(api, Tokens::new(self.tokens, self.anonymous));
        Ok(TestApi::new(server, shared, tls.map(|tls| tls.ca_pem), self.first_token))
    }
}

/// Creates an object, and its namespace where there is none.
fn create(api: &Api, object: Value) -> Result<(), Status> {
    let api_version = object["apiVersion"].as_str().unwrap_or_default();
    let kind = object["kind"].as_str().unwrap_or_default();
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let resources = api.catalog().resources();
    let Some(resource) = resources.find_kind(group, version, kind) else {
        let message = format!("no matches for kind {kind:?} in version {api_version:?}");
        return Err(Status::new(Reason::NotFound, message));
    };
    if resource.namespaced
        && let Some(namespace) = object["metadata"]["namespace"].as_str()
    {
        let namespaces = Gvr::new("v1", "namespaces");
        match api.create(&namespaces, json!({ "metadata": { "name": namespace } })) {
            Err(status) if status.reason != Reason::AlreadyExists => return Err(status),
            _ => {}
        }
    }
    api.create(&Gvr::new(api_version, &resource.plural), object).map(|_| ())
}
