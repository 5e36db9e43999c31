//! `kubediff record`: the changes go to a file that `kubediff replay` shows.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::Path;

use crate::args::RecordArgs;
use crate::capture::screen::Screen;
use crate::capture::watch::{self, Sitting};
use crate::follow::WatchError;

/// Records until it is interrupted.
///
/// # Errors
///
/// When watching cannot begin, or the recording cannot be written.
pub async fn run(args: &RecordArgs) -> Result<(), WatchError> {
    let file =
        create(&args.file).map_err(|source| WatchError::Recording { file: args.file.clone(), source })?;
    let sitting = Sitting {
        what: &args.what,
        session: &args.session,
        cluster: &args.cluster,
        history: None,
        names_cluster: true,
    };
    watch::sit(&sitting, watch::profile(&args.session, None)?, Screen::recording(file)).await
}

/// A new file, for its owner alone: others may not read here the objects that they may not read in the cluster.
fn create(file: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(file)
}
