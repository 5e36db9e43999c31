//! Where answers are read: a file, a database, or the daemon in a cluster.

use std::collections::BTreeSet;

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
            Location::File(_) if self.all_clusters => return Err(QueryError::OneFile),
            Location::File(_) => None,
            Location::Database(_) => self.cluster.cluster.clone(),
        };
        let others = ClusterArgs { cluster: of_history, ..ClusterArgs::default() };
        if self.daemon.is_none() && *self.cluster != others {
            return Err(QueryError::NoDaemon);
        }
        Ok(location)
    }

    /// The clusters whose histories are read, where there are several; none where all are, or the only one.
    pub(super) fn clusters(&self, location: &Location) -> Result<Vec<String>, QueryError> {
        let named = std::env::var(CLUSTER).ok().filter(|name| !name.is_empty());
        let Some(text) = self.cluster.cluster.clone().or(named) else { return Ok(Vec::new()) };
        if self.all_clusters || location.file().is_some() {
            return Ok(Vec::new());
        }
        let names: BTreeSet<String> = text.split(',').map(|name| name.trim().to_owned()).collect();
        if names.contains("") || names.len() < text.split(',').count() {
            return Err(QueryError::Clusters(text));
        }
        Ok(names.into_iter().collect())
    }

    /// The cluster whose history is read, where there are several.
    pub(crate) fn cluster(&self, location: &Location) -> Result<Option<String>, QueryError> {
        let mut clusters = self.clusters(location)?;
        if self.all_clusters || clusters.len() > 1 {
            return Err(QueryError::OneCluster);
        }
        Ok(clusters.pop())
    }

    /// Opens the history.
    pub(super) fn open(&self) -> Result<Reader, QueryError> {
        let location = self.location()?;
        let cluster = self.cluster(&location)?;
        self.open_at(&location, cluster.as_deref())
    }

    /// Opens the history of this cluster.
    pub(super) fn open_at(&self, location: &Location, cluster: Option<&str>) -> Result<Reader, QueryError> {
        let mut reader = Reader::at(location, cluster).map_err(|error| self.failed(error))?;
        mask_again(&mut reader, location.file())?;
        Ok(reader)
    }

    /// The error, as the container of a daemon has it.
    pub(super) fn failed(&self, error: kubediff_history::Error) -> QueryError {
        match error {
            kubediff_history::Error::Missing { path } if self.of_this_daemon => QueryError::Elsewhere(path),
            error => error.into(),
        }
    }
}
