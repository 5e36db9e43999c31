//! Asking for the term of a cluster's log.

use super::Address;
use super::schema::{connect, open_log};
use super::session::{Role, Session, TTL};
use super::term;
use super::write::PostgresHistory;
use crate::error::Error;
use crate::report::Cluster;
use crate::sql::db::{Db, values};
use crate::sql::fault::Fault;

/// A process that would write, and its connection.
pub(crate) struct Claim {
    address: Address,
    cluster: Cluster,
    holder: String,
    session: Option<Session>,
}

impl Claim {
    /// Also returns the id of the log.
    pub(crate) fn open(address: &Address, cluster: &Cluster, holder: &str) -> Result<(Self, String), Error> {
        let session = opened(address, cluster)?;
        let id = session.id.clone();
        let (address, cluster, holder) = (address.clone(), cluster.clone(), holder.to_owned());
        Ok((Self { address, cluster, holder, session: Some(session) }, id))
    }

    /// Says that this process stands by. Returns who has the term, or had it last.
    pub(crate) fn register(&mut self) -> Result<Option<String>, Error> {
        let sql = format!("SELECT stand_by($1, '{} seconds')", TTL.as_secs());
        let holder = self.holder.clone();
        self.asks(|session| Db(session).one(&sql, values![holder]))
    }

    pub(crate) fn claim(&mut self) -> Result<Option<PostgresHistory>, Error> {
        let holder = self.holder.clone();
        let Some(token) = self.asks(|session| term::claim(session, &holder, false))? else { return Ok(None) };
        let session = self.session.take();
        session.map(|session| PostgresHistory::lead(&self.address, &self.cluster, session, token)).transpose()
    }

    /// Asks over a connection that may have to be made again.
    fn asks<T>(&mut self, ask: impl FnOnce(&Session) -> Result<T, Fault>) -> Result<T, Error> {
        let session = match self.session.take() {
            Some(session) => session,
            None => opened(&self.address, &self.cluster)?,
        };
        let asked = ask(&session).map_err(|fault| fault.at(self.address.place()))?;
        self.session = Some(session);
        Ok(asked)
    }
}

/// The term need not wait for this process any more.
impl Drop for Claim {
    fn drop(&mut self) {
        if let Some(session) = &self.session {
            // Without an answer, its word counts for some seconds more.
            let _ = session.ask("UPDATE terms SET standby = NULL WHERE standby = $1", values![&self.holder]);
        }
    }
}

fn opened(address: &Address, cluster: &Cluster) -> Result<Session, Error> {
    open_log(connect(address, Role::Writer)?, cluster).map_err(|fault| fault.at(address.place()))
}
