//! Where answers are read: a file, or the daemon in a cluster.

use std::path::PathBuf;

use kubediff_history::Reader;

use super::args::SourceArgs;
use super::error::QueryError;
use crate::cluster::ClusterArgs;
use crate::config::HistorySettings;
use crate::history::mask::mask_again;

/// The file, where the command line names neither a file nor a daemon. The chart sets it in the daemon's container.
pub(super) const FILE: &str = "KUBEDIFF_HISTORY";

impl SourceArgs {
    /// The file that is read.
    pub(crate) fn file(&self) -> Result<PathBuf, QueryError> {
        if self.daemon.is_none() && *self.cluster != ClusterArgs::default() {
            return Err(QueryError::NoDaemon);
        }
        let named = std::env::var_os(FILE).filter(|file| !file.is_empty()).map(PathBuf::from);
        match self.history.clone().or(named) {
            Some(file) => Ok(file),
            None if self.of_this_daemon => Ok(HistorySettings::default().path),
            None => Err(QueryError::NoSource),
        }
    }

    /// Opens the file.
    pub(super) fn open(&self) -> Result<Reader, QueryError> {
        let file = self.file()?;
        let mut reader = Reader::open(&file).map_err(|error| match error {
            kubediff_history::Error::Missing { path } if self.of_this_daemon => QueryError::Elsewhere(path),
            error => error.into(),
        })?;
        mask_again(&mut reader, &file)?;
        Ok(reader)
    }
}
