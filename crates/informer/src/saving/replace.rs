//! Replaces a file in one step: a reader finds the old one or the new one, also after a power failure.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
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
    let mut beside = Beside::create(directory, path).map_err(SaveError::file("created"))?;
    reached(Step::Created);
    let mut output = BufWriter::with_capacity(BUFFER, Counted { file: &mut beside.file, bytes: 0, reached });
    let result = write(&mut output)?;
    output.flush().map_err(SaveError::file("written"))?;
    let bytes = output.get_ref().bytes;
    drop(output);
    beside.file.sync_all().map_err(SaveError::file("synced to the disk"))?;
    reached(Step::Synced);
    beside.take_place_of(path).map_err(SaveError::file("put in its place"))?;
    reached(Step::Renamed);
    sync_directory(directory).map_err(SaveError::file("synced to the disk"))?;
    reached(Step::Finished);
    Ok((result, bytes))
}

/// A temporary file beside the one that it will replace. If it is dropped before that, the file is removed.
struct Beside {
    path: Option<PathBuf>,
    file: File,
}

/// Distinguishes the temporary files of one process.
static NUMBER: AtomicU64 = AtomicU64::new(0);

impl Beside {
    fn create(directory: &Path, path: &Path) -> io::Result<Self> {
        let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        loop {
            let number = NUMBER.fetch_add(1, Ordering::Relaxed);
            let mut beside = prefix(name);
            beside.push(format!("{}-{number}{SUFFIX}", std::process::id()));
            let path = directory.join(beside);
            match create_for_the_owner_alone(&path) {
                Ok(file) => return Ok(Self { path: Some(path), file }),
                // Left by a process with the same process id.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn take_place_of(&mut self, path: &Path) -> io::Result<()> {
        if let Some(beside) = &self.path {
            fs::rename(beside, path)?;
        }
        self.path = None;
        Ok(())
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        if let Some(path) = &self.path {
            // Best effort.
            let _ = fs::remove_file(path);
        }
    }
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

fn create_for_the_owner_alone(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.create_new(true).write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
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
