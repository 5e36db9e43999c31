//! A process that waits for the term of a history in a database.

use crate::error::Error;
use crate::history::History;
use crate::location::Location;
use crate::postgres::Claim;
use crate::reader::Reader;
use crate::report::{Cluster, Settings};

/// Waits for the term of a history in a database, and reads how far its leader has recorded.
///
/// While a standby [registers](Self::register) itself, the term goes to nobody else: not even to the former leader when that begins again.
pub struct Standby {
    claim: Claim,
    reader: Reader,
}

impl Standby {
    /// A standby of a cluster's history, under the name of `settings`.
    ///
    /// # Errors
    ///
    /// As [`History::at`]. A file has no standby: [`Error::Invalid`].
    pub fn at(location: &Location, cluster: &Cluster, settings: &Settings) -> Result<Self, Error> {
        let Location::Database(address) = location else {
            return Err(Error::Invalid("a file has no standby"));
        };
        let (claim, log) = Claim::open(address, cluster, settings.holder())?;
        Ok(Self { claim, reader: Reader::of_log(address, &log)? })
    }

    /// Reads the history of the leader.
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
        self.claim.register()
    }

    /// Takes the term, if it is free or over: `None` while another process has it.
    ///
    /// # Errors
    ///
    /// When the database cannot be reached.
    pub fn claim(&mut self) -> Result<Option<History>, Error> {
        Ok(self.claim.claim()?.map(History::of_postgres))
    }
}
