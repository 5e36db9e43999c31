//! Replaces a file in one step: a reader finds the old one or the new one, also after a power failure.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::time::{Duration, SystemTime};

use super::{BUFFER, SaveError};

/// A step of a replacement, after which the process may crash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// The new file exists beside the old one.
    Created,
    /// The new file has more of the content.
    Written,
    /// All content of the new file is on the disk.
    Synced,
    /// The new file has replaced the old one.
    Renamed,
    /// The rename is on the disk, too.
    Finished,
}

/// Replaces the file by what `write` writes. Returns the result of `write`, and the number of bytes written.
pub(super) fn replace<R>(
    path: &Path,
    reached: &mut dyn FnMut(Step),
    write: impl FnOnce(&mut dyn Write) -> Result<R, SaveError>,
) -> Result<(R, u64), SaveError> {
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let name = path.file_name().ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput));
    let name = name.map_err(SaveError::file("created"))?;
    // Only its owner can read it, and it is removed if the save fails.
    let beside = tempfile::Builder::new().prefix(&prefix(name)).suffix(SUFFIX).tempfile_in(directory);
    let mut beside = beside.map_err(SaveError::file("created"))?;
    reached(Step::Created);
    let counted = Counted { file: beside.as_file_mut(), bytes: 0, reached };
    let mut output = BufWriter::with_capacity(BUFFER, counted);
    let result = write(&mut output)?;
    output.flush().map_err(SaveError::file("written"))?;
    let bytes = output.get_ref().bytes;
    drop(output);
    beside.as_file().sync_all().map_err(SaveError::file("synced to the disk"))?;
    reached(Step::Synced);
    beside.persist(path).map_err(|error| SaveError::file("put in its place")(error.error))?;
    reached(Step::Renamed);
    sync_directory(directory).map_err(SaveError::file("synced to the disk"))?;
    reached(Step::Finished);
    Ok((result, bytes))
}

const SUFFIX: &str = ".tmp";
/// A temporary file of this age is abandoned: no save takes this long.
const ABANDONED: Duration = Duration::from_secs(3600);

fn prefix(name: &std::ffi::OsStr) -> std::ffi::OsString {
    let mut prefix = std::ffi::OsString::from(".");
    prefix.push(name);
    prefix.push(".");
    prefix
}

/// Removes temporary files that crashes left beside a file. Best effort: other processes may be writing there.
pub(crate) fn remove_abandoned(path: &Path) {
    let (Some(directory), Some(name)) = (path.parent(), path.file_name()) else { return };
    let prefix = prefix(name);
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let bytes = name.as_encoded_bytes();
        let is_ours = bytes.starts_with(prefix.as_encoded_bytes()) && bytes.ends_with(SUFFIX.as_bytes());
        let modified = || entry.metadata().and_then(|metadata| metadata.modified());
        if is_ours && modified().is_ok_and(is_abandoned) {
            // If it still exists, the next save tries again.
            let _ = fs::remove_file(entry.path());
        }
    }
}

fn is_abandoned(modified: SystemTime) -> bool {
    SystemTime::now().duration_since(modified).is_ok_and(|age| age > ABANDONED)
}

/// Creates a directory that only its owner can access, if missing.
pub(crate) fn make_directory(path: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

/// Only Unix can open directories.
fn sync_directory(directory: &Path) -> io::Result<()> {
    if cfg!(unix) { File::open(directory)?.sync_all() } else { Ok(()) }
}

struct Counted<'a> {
    file: &'a mut File,
    bytes: u64,
    reached: &'a mut dyn FnMut(Step),
}

impl Write for Counted<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes)?;
        self.bytes += written as u64;
        (self.reached)(Step::Written);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}
