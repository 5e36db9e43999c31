//! Opens histories for reading: one, or several of a database.

use std::collections::HashMap;
#[cfg(feature = "postgres")]
use std::collections::VecDeque;
use std::panic::resume_unwind;
use std::path::Path;
#[cfg(feature = "postgres")]
use std::sync::Arc;

use super::{Reader, Session};
use crate::error::{Error, Place};
use crate::location::Location;
#[cfg(feature = "postgres")]
use crate::postgres::session::{Log, Role};
#[cfg(feature = "postgres")]
use crate::postgres::{self, Address};
use crate::sql::codec::Codec;
use crate::sql::fault::Outcome;
use crate::sql::read::Lens;
use crate::sqlite::schema;

/// A daemon's login may be no reader: it has its own history.
#[cfg(feature = "postgres")]
const ROLES: &[Role] = &[Role::Reader, Role::Writer];

/// The readers of several histories share no more connections than this, in turn: large ones may follow each other.
const CONNECTIONS: usize = 2;

/// Asks all of them, as many at the same time as they have connections.
///
/// # Errors
///
/// The first one of a question.
pub fn ask_all<T: Send, E: Send>(
    of: &mut [T],
    ask: impl Fn(&mut T) -> Result<(), E> + Sync,
) -> Result<(), E> {
    let mut shares = [const { Vec::new() }; CONNECTIONS];
    for it in of {
        let [share, ..] = &mut shares;
        share.push(it);
        shares.rotate_left(1);
    }
    std::thread::scope(|scope| {
        let asked = shares.map(|share| scope.spawn(|| share.into_iter().try_for_each(&ask)));
        asked.into_iter().try_for_each(|thread| thread.join().unwrap_or_else(|panic| resume_unwind(panic)))
    })
}

impl Reader {
    /// Opens the history in this file for reading.
    ///
    /// # Errors
    ///
    /// When there is no such file, it is no history, or of a format that this program does not know.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        let session = Session::File { path: path.to_owned(), connection: schema::open_for_reading(path)? };
        Self::new(path.into(), session)
    }

    /// Opens the history at a location. In a database with several, it is that of the cluster with this name or uid.
    ///
    /// # Errors
    ///
    /// As [`Reader::open`]; in a database also [`Error::WhichCluster`], [`Error::NoTables`], [`Error::Denied`] and [`Error::Unreachable`].
    #[cfg_attr(not(feature = "postgres"), expect(unused_variables, reason = "a file has one cluster"))]
    pub fn at(location: &Location, cluster: Option<&str>) -> Result<Self, Error> {
        match location {
            Location::File(path) => Self::open(path),
            #[cfg(feature = "postgres")]
            Location::Database(address) => Self::of_database(address, ROLES, |logs| {
                let log = match (cluster, logs) {
                    (None, [log]) => Some(log),
                    (None, _) => None,
                    (Some(wanted), logs) => logs.iter().find(|log| log.is_of(wanted)),
                };
                log.cloned().ok_or_else(|| which(address, cluster, logs))
            }),
        }
    }

    /// Opens the histories of several clusters of a database, by their names or uids, in the order of their names; those of all clusters
    /// if none is named. A file has one.
    ///
    /// Neighbours share one of a few connections, so they answer one after the other, and none of them can be [limited](Reader::limit).
    ///
    /// # Errors
    ///
    /// As [`Reader::at`].
    #[cfg_attr(not(feature = "postgres"), expect(unused_variables, reason = "a file has one cluster"))]
    pub fn several(location: &Location, clusters: &[String]) -> Result<Vec<Self>, Error> {
        match location {
            Location::File(path) => Ok(vec![Self::open(path)?]),
            #[cfg(feature = "postgres")]
            Location::Database(address) => {
                let (link, mut logs, role) = postgres::logs(address, ROLES)?;
                let unknown = clusters.iter().find(|wanted| !logs.iter().any(|log| log.is_of(wanted)));
                if unknown.is_some() || logs.is_empty() {
                    return Err(which(address, unknown.map(String::as_str), &logs));
                }
                logs.retain(|log| clusters.is_empty() || clusters.iter().any(|wanted| log.is_of(wanted)));
                logs.sort_by(|a, b| a.cluster.shown().cmp(b.cluster.shown()));
                let (mut first, mut links) = (Some(link), VecDeque::new());
                let reader = |log| {
                    let used = if links.len() < CONNECTIONS { None } else { links.pop_front() };
                    let (link, turn) = match (used, first.take()) {
                        (Some(used), _) => used,
                        (None, Some(first)) => (first, Arc::default()),
                        (None, None) => (postgres::connect(address, role)?, Arc::default()),
                    };
                    let session = postgres::session::Session::among(&link, &turn, log);
                    links.push_back((link, turn));
                    Self::new(address.place(), Session::Postgres(Box::new(session), address.clone(), role))
                };
                logs.into_iter().map(reader).collect()
            }
        }
    }

    /// Opens the history with this id.
    #[cfg(feature = "postgres")]
    pub(crate) fn of_log(address: &Address, id: &str) -> Result<Self, Error> {
        Self::of_database(address, &[Role::Writer], |logs| {
            let log = logs.iter().find(|log| log.id == id);
            log.cloned().ok_or_else(|| which(address, None, logs))
        })
    }

    #[cfg(feature = "postgres")]
    fn of_database(
        address: &Address,
        roles: &[Role],
        choose: impl FnOnce(&[Log]) -> Result<Log, Error>,
    ) -> Result<Self, Error> {
        let (link, logs, role) = postgres::logs(address, roles)?;
        let session = postgres::session::Session::of(link, choose(&logs)?);
        let session = session.map_err(|fault| fault.at(address.place()))?;
        Self::new(address.place(), Session::Postgres(Box::new(session), address.clone(), role))
    }

    fn new(place: Place, session: Session) -> Result<Self, Error> {
        let opened = || -> Outcome<_> { Ok((Codec::new()?, session.db().cluster()?.shown().to_owned())) };
        let (codec, cluster) = opened().map_err(|fault| fault.at(place.clone()))?;
        let lens = Lens { cluster, mask: None, is_limited: false };
        Ok(Self { place, session, codec, lens, made: HashMap::new() })
    }
}

/// The question which cluster is meant, if not this one.
#[cfg(feature = "postgres")]
fn which(address: &Address, wanted: Option<&str>, logs: &[Log]) -> Error {
    let known = logs.iter().map(|log| log.cluster.shown().to_owned()).collect();
    Error::WhichCluster { place: address.place(), wanted: wanted.map(str::to_owned), known }
}
