//! A process that waits for the term of a cluster's log.

use super::schema::{self, open_log};
use super::session::{Role, Session};
use super::write::{PostgresHistory, TTL, term};
use super::{Address, connect};
use crate::error::Error;
use crate::history::History;
use crate::location::Location;
use crate::reader::Reader;
use crate::report::{Cluster, Settings};
use crate::sql::db::{Db, values};
use crate::sql::fault::Fault;

/// Waits for the term of a cluster's log, and reads how far its leader has recorded.
///
/// While a standby [registers](Self::register) itself, the term goes to nobody else: not even to the former leader when that begins again.
pub struct Standby {
    address: Address,
    cluster: Cluster,
    holder: String,
    reader: Reader,
    session: Option<Session>,
}

impl Standby {
    /// A standby of a cluster's log in a database, under the name of `settings`.
    ///
    /// # Errors
    ///
    /// As [`History::at`]. A file has no standby: [`Error::Invalid`].
    pub fn at(location: &Location, cluster: &Cluster, settings: &Settings) -> Result<Self, Error> {
        let Location::Database(address) = location else {
            return Err(Error::Invalid("a file has no standby"));
        };
        let failed = |fault: Fault| fault.at(address.place());
        let session = open_log(connect(address, Role::Writer)?, cluster).map_err(failed)?;
        let reader = Reader::of_log(address, &session.id)?;
        let holder = settings.holder.clone().unwrap_or_else(|| "kubediff".to_owned());
        let (address, cluster) = (address.clone(), cluster.clone());
        Ok(Self { address, cluster, holder, reader, session: Some(session) })
    }

    /// Reads the log of the leader.
    pub fn reader(&mut self) -> &mut Reader {
        &mut self.reader
    }

    /// Says that this process would take over now. It counts for 5 seconds, and only as long as no other standby says so. Returns the name of
    /// the process that has the term, or had it last.
    ///
    /// # Errors
    ///
    /// When the database cannot be reached.
    pub fn register(&mut self) -> Result<Option<String>, Error> {
        let sql = format!("SELECT stand_by($1, '{} seconds')", TTL.as_secs());
        let holder = self.holder.clone();
        self.asks(|session| Db(session).one(&sql, values![holder]))
    }

    /// Takes the term, if it is free or over: `None` while another process has it.
    ///
    /// # Errors
    ///
    /// When the database cannot be reached.
    pub fn claim(&mut self) -> Result<Option<History>, Error> {
        let holder = self.holder.clone();
        let Some(token) = self.asks(|session| term(session, &holder, false))? else { return Ok(None) };
        let Some(session) = self.session.take() else { return Ok(None) };
        let history = PostgresHistory::lead(&self.address, &self.cluster, session, token)?;
        Ok(Some(History::of_postgres(history)))
    }

    /// Asks over a connection that may have to be made again.
    fn asks<T>(&mut self, ask: impl FnOnce(&Session) -> Result<T, Fault>) -> Result<T, Error> {
        let failed = |fault: Fault| fault.at(self.address.place());
        let session = match self.session.take() {
            Some(session) => session,
            None => open_log(schema::connect(&self.address, Role::Writer)?, &self.cluster).map_err(failed)?,
        };
        let asked = ask(&session).map_err(failed)?;
        self.session = Some(session);
        Ok(asked)
    }
}
