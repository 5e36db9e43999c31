//! The server: the API over HTTP, with tokens, the request log and faults.

use std::sync::{Arc, OnceLock, Weak};

use bytes::Bytes;
use http::{HeaderMap, Request, Response, header};
use serve::Body;
use serve::http::{ConnectionInfo, Server, Serving};

use crate::call::Call;
use crate::faults::{Control, Faults, Refusal, refuse};
use crate::kubeconfig::kubeconfig;
use crate::requests::Requests;
use crate::tokens::Tokens;
use crate::{Api, Backup};

/// A running server. Dropping it ends it at once, with its port and all connections.
pub struct TestApi {
    serving: Arc<Serving>,
    state: Arc<ServerState>,
    ca_pem: Option<String>,
    first_token: Option<String>,
}

/// The first token is not shown.
impl std::fmt::Debug for TestApi {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TestApi")
            .field("serving", &self.serving)
            .field("state", &self.state)
            .finish_non_exhaustive()
    }
}

/// The effect of a restart on the history of events. The objects stay in any case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum History {
    /// Watches can resume.
    Kept,
    /// Watches of older versions get 410, as from a watch cache that has to fill again.
    Lost,
}

/// The parts of a running server that requests need.
#[derive(Debug)]
pub(crate) struct ServerState {
    api: Api,
    tokens: Tokens,
    requests: Requests,
    faults: Faults,
    /// The listener and the connections, for faults that concern all connections.
    serving: OnceLock<Weak<Serving>>,
}

impl TestApi {
    pub(crate) fn new(
        server: Server,
        state: ServerState,
        ca_pem: Option<String>,
        first_token: Option<String>,
    ) -> Self {
        let state = Arc::new(state);
        let answering = state.clone();
        let serving = Arc::new(server.serve(move |request, connection| {
            let state = answering.clone();
            async move { state.answer(request, &connection).await }
        }));
        // Nothing else sets it.
        let _ = state.serving.set(Arc::downgrade(&serving));
        Self { serving, state, ca_pem, first_token }
    }

    /// `http://127.0.0.1:40123`
    pub fn url(&self) -> String {
        let scheme = if self.ca_pem.is_some() { "https" } else { "http" };
        format!("{scheme}://{}", self.serving.address())
    }

    /// The port that it listens on.
    pub fn port(&self) -> u16 {
        self.serving.address().port()
    }

    /// The certificate of its authority, if it uses TLS.
    pub fn ca_pem(&self) -> Option<&str> {
        self.ca_pem.as_deref()
    }

    /// A kubeconfig for it as text, with the first token of the builder.
    pub fn kubeconfig(&self) -> String {
        self.kubeconfig_with(self.first_token.as_deref())
    }

    /// A kubeconfig for it as text, with another token, or none.
    pub fn kubeconfig_with(&self, token: Option<&str>) -> String {
        kubeconfig(&self.url(), self.ca_pem(), token)
    }

    /// The configuration of a client for it, with the first token of the builder: for `kube_client::Client::try_from`
    /// and other users of a `Config`. Needs the feature `kube`.
    #[cfg(feature = "kube")]
    pub fn config(&self) -> kube_client::Config {
        self.config_with(self.first_token.as_deref())
    }

    /// The configuration of a client with another token, or none.
    #[cfg(feature = "kube")]
    pub fn config_with(&self, token: Option<&str>) -> kube_client::Config {
        crate::kubeconfig::config(self.serving.address(), self.ca_pem(), token)
    }

    /// The server without the network: reads and writes in this process, bypassing tokens, log and faults.
    pub fn api(&self) -> &Api {
        &self.state.api
    }

    /// The faults.
    pub fn faults(&self) -> &Faults {
        &self.state.faults
    }

    /// The request log.
    pub fn requests(&self) -> &Requests {
        &self.state.requests
    }

    /// The accepted tokens.
    pub fn tokens(&self) -> &Tokens {
        &self.state.tokens
    }

    /// The number of open connections.
    pub fn connections(&self) -> usize {
        self.serving.connections()
    }

    /// Closes all connections in the middle of their traffic; new ones are accepted.
    pub fn disconnect_all(&self) {
        self.serving.disconnect_all();
    }

    /// Refuses new connections from now on, like a machine without a server; the port stays reserved, and open
    /// connections stay.
    pub fn refuse_connections(&self) {
        self.serving.refuse();
    }

    /// Accepts connections again.
    ///
    /// # Errors
    ///
    /// The errors of listen.
    pub fn accept_connections(&self) -> std::io::Result<()> {
        self.serving.resume()
    }

    /// Restarts like a server that is killed: all connections break, objects and port stay.
    ///
    /// # Errors
    ///
    /// The errors of listen.
    pub async fn restart(&self, history: History) -> std::io::Result<()> {
        self.down_for(|api| api.restart(history == History::Kept)).await
    }

    /// Restarts like a server whose etcd is restored from a backup of [`Api::backup`]: all connections break, the
    /// objects are those of the backup, and resourceVersions go back.
    ///
    /// # Errors
    ///
    /// The errors of listen.
    pub async fn restore(&self, backup: &Backup) -> std::io::Result<()> {
        self.down_for(|api| api.restore(backup)).await
    }

    /// Discards the history: requests for an older version get 410.
    pub fn compact(&self) {
        self.state.api.compact();
    }

    /// Stops the server and returns when all its tasks have ended.
    pub async fn stop(self) {
        let Self { serving, .. } = self;
        // Otherwise a request that breaks all connections still holds a reference, and drops it in a moment.
        if let Some(serving) = Arc::into_inner(serving) {
            serving.stop().await;
        }
    }

    /// Runs something while the server accepts no connections.
    async fn down_for(&self, change: impl FnOnce(&Api)) -> std::io::Result<()> {
        self.serving.refuse();
        self.serving.disconnect_all();
        // A watch whose connection breaks must not end properly, so this waits until all connections are closed.
        while self.serving.connections() > 0 {
            tokio::task::yield_now().await;
        }
        change(&self.state.api);
        self.serving.resume()
    }
}

impl ServerState {
    pub(crate) fn new(api: Api, tokens: Tokens) -> Self {
        Self { api, tokens, requests: Requests::new(), faults: Faults::new(), serving: OnceLock::new() }
    }

    async fn answer(&self, request: Request<Bytes>, connection: &ConnectionInfo) -> Response<Body> {
        let (mut parts, body) = request.into_parts();
        let user = self.tokens.user(&parts.headers);
        let known = user.is_some();
        let call = self.requests.add(|number| Call::new(number, user.unwrap_or_default(), &parts));
        tracing::debug!(number = call.number, user = call.user, "{call}");
        let response = if !known {
            self.api.encoded(&parts.headers, refuse(Refusal::Unauthorized, &call))
        } else {
            let plan = self.faults.meet(&call);
            plan.prepare(&mut parts.headers);
            let control = Controlled { state: self, connection };
            let early = match plan.before(&control).await {
                Some(response) => Some(response),
                None => self.faults.hidden(&call, &mut parts.headers),
            };
            let wanted = parts.headers.get(header::ACCEPT).cloned();
            let wanted = HeaderMap::from_iter(wanted.map(|accept| (header::ACCEPT, accept)));
            let response = match early {
                Some(response) => self.api.encoded(&wanted, response),
                None => self.api.handle(Request::from_parts(parts, body)).await,
            };
            // The resource may have been hidden meanwhile.
            self.api.encoded(&wanted, self.faults.apply(&plan, response).await)
        };
        self.requests.answer(call.number, response.status());
        response
    }
}

/// The operations on the server for the faults of one request.
struct Controlled<'a> {
    state: &'a ServerState,
    connection: &'a ConnectionInfo,
}

impl Control for Controlled<'_> {
    fn disconnect(&self) {
        self.connection.close();
    }

    fn disconnect_all(&self) {
        if let Some(serving) = self.state.serving.get().and_then(Weak::upgrade) {
            serving.disconnect_all();
        }
    }

    fn compact(&self) {
        self.state.api.compact();
    }
}
