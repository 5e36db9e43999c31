//! Options of a server, and its start.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use serde_json::Value;
use serve::http::{Server, ServerOptions};
use serve::{Reason, ServerVersion, Status};

use crate::server::{ServerState, TestApi};
#[cfg(feature = "tls")]
use crate::tls::{Offer, TlsError};
use crate::tokens::Tokens;
use crate::{Api, ApiOptions, Gvr};

/// Starts a [`TestApi`]. By default: plain HTTP (1.1, and 2 with prior knowledge) on a free port of the loopback address, without authentication, an
/// empty Kubernetes 1.37.
#[must_use = "nothing is started yet"]
#[derive(Clone)]
pub struct Builder {
    options: ApiOptions,
    address: IpAddr,
    port: u16,
    #[cfg(feature = "tls")]
    tls: Offer,
    tokens: BTreeMap<String, String>,
    first_token: Option<String>,
    anonymous: bool,
    objects: Vec<Value>,
}

/// Why a server did not start.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct StartError(#[from] ErrorKind);

#[derive(Debug, thiserror::Error)]
pub(crate) enum ErrorKind {
    #[error("failed to listen on {0}")]
    Listen(SocketAddr, #[source] std::io::Error),
    #[cfg(feature = "tls")]
    #[error("failed to make a certificate")]
    Tls(#[from] TlsError),
    #[error("failed to create a first object of kind {kind:?}")]
    Object {
        kind: String,
        #[source]
        status: Box<Status>,
    },
}

/// Shows neither tokens nor objects, which may be Secrets.
impl std::fmt::Debug for Builder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Builder")
            .field("options", &self.options)
            .field("address", &self.address)
            .field("port", &self.port)
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
            #[cfg(feature = "tls")]
            tls: Offer::default(),
            tokens: BTreeMap::new(),
            first_token: None,
            anonymous: false,
            objects: Vec::new(),
        }
    }
}

impl TestApi {
    /// The options of a server.
    pub fn builder() -> Builder {
        Builder::default()
    }
}

impl Builder {
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

    /// Accepts a bearer token. A server with tokens refuses requests without one. The kubeconfig contains the first
    /// token.
    pub fn token(mut self, token: impl Into<String>, user: impl Into<String>) -> Self {
        let token = token.into();
        self.first_token.get_or_insert_with(|| token.clone());
        self.tokens.insert(token, user.into());
        self
    }

    /// Accepts requests without a token although the server has tokens.
    pub fn anonymous(mut self, anonymous: bool) -> Self {
        self.anonymous = anonymous;
        self
    }

    /// The seed of uids and generated names.
    pub fn seed(mut self, seed: u64) -> Self {
        self.options.seed = seed;
        self
    }

    /// Poses as Kubernetes 1.`minor`, with the defaults of that release: streaming lists in 1.32 and from 1.34 on,
    /// compressed streaming lists from 1.37 on. Every release answers lists from the newest state, which is how clients
    /// see consistent lists from the cache (from 1.31 on).
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

    /// Keeps this many events of each resource for watches and for lists of older versions; at least 1.
    pub fn history(mut self, events: usize) -> Self {
        self.options.history = events;
        self
    }

    /// How often a watch that allows bookmarks gets one; every 60 seconds by default.
    pub fn bookmark_period(mut self, period: Duration) -> Self {
        self.options.serve.bookmark_period = period;
        self
    }

    /// Deletes the dependents of deleted objects.
    pub fn garbage_collection(mut self, on: bool) -> Self {
        self.options.garbage_collection = on;
        self
    }

    /// Changes any other option.
    pub fn options(mut self, change: impl FnOnce(&mut ApiOptions)) -> Self {
        change(&mut self.options);
        self
    }

    /// Creates an object at the start, and its namespace if missing. The object needs `kind` and `apiVersion`.
    pub fn object(mut self, object: Value) -> Self {
        self.objects.push(object);
        self
    }

    /// Creates objects at the start, in order.
    pub fn objects(mut self, objects: impl IntoIterator<Item = Value>) -> Self {
        self.objects.extend(objects);
        self
    }

    /// Starts the server. Must be called in a tokio runtime with I/O and time.
    ///
    /// # Errors
    ///
    /// The port is taken, or an initial object is invalid.
    pub async fn start(self) -> Result<TestApi, StartError> {
        let api = Api::new(self.options);
        for object in self.objects {
            let kind = object["kind"].as_str().unwrap_or_default().to_owned();
            create(&api, object).map_err(|status| ErrorKind::Object { kind, status: Box::new(status) })?;
        }
        let address = SocketAddr::new(self.address, self.port);
        let options = ServerOptions { address, ..ServerOptions::default() };
        #[cfg(feature = "tls")]
        let (options, ca_pem) = self.tls.add_to(options).map_err(ErrorKind::from)?;
        #[cfg(not(feature = "tls"))]
        let ca_pem = None;
        let server = Server::bind(options).await.map_err(|error| ErrorKind::Listen(address, error))?;
        let state = ServerState::new(api, Tokens::new(self.tokens, self.anonymous));
        Ok(TestApi::new(server, state, ca_pem, self.first_token))
    }
}

#[cfg(feature = "tls")]
impl Builder {
    /// Uses TLS, with a certificate whose authority is created at the start: [`TestApi::ca_pem`].
    pub fn tls(mut self) -> Self {
        self.tls.on = true;
        self
    }

    /// Offers HTTP/1.1 only. Plain connections have no negotiation: there the client decides.
    pub fn http1_only(mut self) -> Self {
        self.tls.protocols = &[b"http/1.1"];
        self
    }

    /// Offers HTTP/2 only. Plain connections have no negotiation: there the client decides.
    pub fn http2_only(mut self) -> Self {
        self.tls.protocols = &[b"h2"];
        self
    }
}

/// Creates an object; its `kind` and `apiVersion` name the resource.
fn create(api: &Api, object: Value) -> Result<(), Status> {
    let api_version = object["apiVersion"].as_str().unwrap_or_default();
    let kind = object["kind"].as_str().unwrap_or_default();
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let resources = api.catalog().resources();
    let Some(resource) = resources.find_kind(group, version, kind) else {
        let message = format!("no matches for kind {kind:?} in version {api_version:?}");
        return Err(Status::new(Reason::NotFound, message));
    };
    api.create(&Gvr::new(api_version, &resource.plural), object).map(|_| ())
}
