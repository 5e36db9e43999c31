//! Under which leadership a controller runs: without one, elected, or as the owner of a share.

use informer::kube::{Client, Config, client};

use crate::election::{Election, Term};
use crate::error::RunError;
use crate::gate::{Gate, Loss};
use crate::seat::{Seat, Turn};

/// How a controller comes to write.
pub(crate) enum Leadership {
    /// It is the only one of its kind.
    Alone(Client),
    /// It writes while it leads.
    Elected(Election, TermClient),
    /// It writes objects of a share, from its turn on.
    Seated(Seat, TermClient),
}

/// How the writes of a leader reach the server: a configuration, from which each term gets a client of its own
/// ([`Gate::client`](crate::gate::Gate::client)), or a ready-made client, which is weaker
/// ([`Gate::guard`](crate::gate::Gate::guard)).
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

/// The right to write, until it is lost.
pub(crate) struct Authority {
    client: Client,
    right: Right,
}

enum Right {
    Unlimited,
    Term(Term),
    /// The giver of the gate ends it.
    Gate(Gate),
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
    fn asking(&self) -> Result<Client, RunError> {
        match &self.0 {
            Kind::Client(client) => Ok(client.clone()),
            Kind::Config(config) => Client::try_from((**config).clone()).map_err(RunError::client),
        }
    }
}

impl Leadership {
    /// A client of the same user, for requests that change nothing. No gate is below it.
    pub(crate) fn asking_client(&self) -> Result<Client, RunError> {
        match self {
            Self::Alone(client) => Ok(client.clone()),
            Self::Elected(_, writes) | Self::Seated(_, writes) => writes.asking(),
        }
    }

    /// Waits until this process may write.
    pub(crate) async fn begin(&self) -> Result<Authority, RunError> {
        match self {
            Self::Alone(client) => Ok(Authority { client: client.clone(), right: Right::Unlimited }),
            Self::Elected(election, writes) => {
                let term = election.acquire().await.map_err(RunError::election)?;
                let client = writes.of(&term.gate()).await.map_err(RunError::client)?;
                Ok(Authority { client, right: Right::Term(term) })
            }
            Self::Seated(seat, _) => {
                let Turn { client, gate } = seat.turn().await;
                Ok(Authority { client, right: Right::Gate(gate) })
            }
        }
    }

    /// The seat, if it is that of a share.
    pub(crate) fn seat(&self) -> Option<&Seat> {
        match self {
            Self::Seated(seat, _) => Some(seat),
            Self::Alone(_) | Self::Elected(..) => None,
        }
    }
}

impl Authority {
    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    /// Resolves when this process may not write any more.
    pub(crate) async fn lost(&self) -> Loss {
        match &self.right {
            Right::Term(term) => term.lost().await,
            Right::Gate(gate) => gate.closed().await.loss(),
            Right::Unlimited => std::future::pending().await,
        }
    }

    /// Gives the leadership up.
    pub(crate) async fn end(self) {
        if let Right::Term(term) = self.right {
            term.release().await;
        }
    }
}
