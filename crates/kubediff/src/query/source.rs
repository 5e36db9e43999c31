//! Where answers are read: a file, or the daemon in a cluster.

use kubediff_history::{Location, Reader};

use super::args::SourceArgs;
use super::error::QueryError;
use crate::cluster::ClusterArgs;
use crate::config::HistorySettings;
use crate::history::mask::mask_again;

/// The file, where the command line names neither a file nor a daemon. The chart sets it in the daemon's container.
pub(super) const FILE: &str = "KUBEDIFF_HISTORY";
/// The cluster, where the command line names none.
const CLUSTER: &str = "KUBEDIFF_CLUSTER";

impl SourceArgs {
    /// Where the history is that is read.
    pub(crate) fn location(&self) -> Result<Location, QueryError> {
        let named = std::env::var(FILE).ok().filter(|file| !file.is_empty());
        // Not by the command line's own parser, which prints what it refuses: a password.
        let location = match self.history.clone().or(named) {
            Some(text) => Location::parse(&text)?,
            None if self.of_this_daemon => Location::File(HistorySettings::default().path),
            None => return Err(QueryError::NoSource),
        };
        // In a database, a cluster is one of its histories.
        let of_history = match location {
            Location::File(_) => None,
            Location::Database(_) => self.cluster.cluster.clone(),
        };
        let others = ClusterArgs { cluster: of_history, ..ClusterArgs::default() };
        if self.daemon.is_none() && *self.cluster != others {
            return Err(QueryError::NoDaemon);
        }
        Ok(location)
    }

    /// The cluster whose history is read, where there are several.
    pub(crate) fn cluster_of_history(&self) -> Option<String> {
        let named = std::env::var(CLUSTER).ok().filter(|name| !name.is_empty());
        self.cluster.cluster.clone().or(named)
    }

    /// Opens the history.
    pub(super) fn open(&self) -> Result<Reader, QueryError> {
        let location = self.location()?;
        let opened = Reader::at(&location, self.cluster_of_history().as_deref());
        let mut reader = opened.map_err(|error| match error {
            kubediff_history::Error::Missing { path } if self.of_this_daemon => QueryError::Elsewhere(path),
            error => error.into(),
        })?;
        mask_again(&mut reader, location.file())?;
        Ok(reader)
    }
}
