//! The way of a leader's writes.

use informer::kube::{Client, Config, client};

use super::Gate;

/// How the writes of a leader reach the server: a configuration, from which each term gets a client of its own
/// ([`Gate::client`]), or a ready-made client, which is weaker
/// ([`Gate::guard`]).
#[derive(Clone)]
pub struct TermClient(Kind);

#[derive(Clone)]
enum Kind {
    Config(Box<Config>),
    Client(Client),
}

impl From<Config> for TermClient {
    fn from(config: Config) -> Self {
        Self(Kind::Config(Box::new(config)))
    }
}

impl From<Client> for TermClient {
    fn from(client: Client) -> Self {
        Self(Kind::Client(client))
    }
}

impl std::fmt::Debug for TermClient {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TermClient").finish_non_exhaustive()
    }
}

impl TermClient {
    /// A client for the writes of a term.
    pub(crate) async fn of(&self, gate: &Gate) -> Result<Client, client::Error> {
        match &self.0 {
            Kind::Config(config) => gate.client((**config).clone()).await,
            Kind::Client(client) => Ok(gate.guard(client.clone())),
        }
    }

    /// A client of the same user, for requests that change nothing.
    pub(crate) fn asking(&self) -> Result<Client, client::Error> {
        match &self.0 {
            Kind::Client(client) => Ok(client.clone()),
            Kind::Config(config) => Client::try_from((**config).clone()),
        }
    }
}
