//! A file of JSON lines, which is rotated.

mod series;

use std::fs;
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use crate::answer::Answer;
use crate::drive::Sink;
use crate::json::lines;
use crate::record::Parcel;

/// A file of JSON lines: `{"id": "...", "number": 7, "change": {...}}`, with the same marks as [`Form::Plain`](crate::Form::Plain).
///
/// A batch is accepted when it is on the disk (`fdatasync`). Every line is whole: the rest of a line that a
/// crash or a full disk left is cut off before anything is written after it, and its record is sent again. When the file is full, it becomes
/// `changes.log.1`, the one before `changes.log.2`, and so on. A file that somebody else moves away is opened anew; one
/// that another process writes is left alone.
#[derive(Debug)]
pub struct File {
    options: FileOptions,
    open: Option<Open>,
}

/// Which file, and how it is rotated.
#[derive(Debug, Clone)]
pub struct FileOptions {
    /// The file. Its folder is made when it does not exist.
    pub path: PathBuf,
    /// Another file begins before this one has more bytes, unless one batch has; 100 MiB by default.
    pub most_bytes: u64,
    /// How many older files are kept; 5 by default.
    pub most_files: u32,
    /// The permissions of a file that is made; `0o600` by default.
    pub mode: u32,
}

impl FileOptions {
    /// This file, with the defaults.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), most_bytes: 100 << 20, most_files: 5, mode: 0o600 }
    }
}

impl File {
    /// Sets a file up. It is opened when there is something to write.
    #[must_use]
    pub fn new(options: FileOptions) -> Self {
        Self { options, open: None }
    }
}

impl Sink for File {
    async fn send(&mut self, parcel: Parcel<'_>) -> Answer {
        let lines = lines(&parcel);
        let (options, open) = (self.options.clone(), self.open.take());
        // A disk may take long.
        let written = tokio::task::spawn_blocking(move || write(&options, open, &lines)).await;
        match written {
            Ok(Ok(open)) => {
                self.open = Some(open);
                Answer::Accepted
            }
            Ok(Err(error)) => Answer::Unavailable { reason: in_words(&error) },
            Err(_) => Answer::Unavailable { reason: "the file was not written".into() },
        }
    }
}

/// Writes lines to the file of today, all of them or none.
fn write(options: &FileOptions, open: Option<Open>, lines: &[u8]) -> io::Result<Open> {
    let mut open = match open.filter(|open| open.is_at(&options.path)) {
        Some(open) => open,
        None => Open::at(options)?,
    };
    let length = open.file.metadata()?.len();
    if length > 0 && length.saturating_add(lines.len() as u64) > options.most_bytes {
        drop(open);
        series::rotate(&options.path, options.most_files)?;
        open = Open::at(options)?;
    }
    open.append(lines)?;
    Ok(open)
}

/// A file that this process alone writes.
#[derive(Debug)]
struct Open {
    file: fs::File,
}

impl Open {
    fn at(options: &FileOptions) -> io::Result<Self> {
        let path = options.path.as_path();
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            fs::create_dir_all(folder)?;
        }
        let mut opening = fs::File::options();
        opening.read(true).append(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut opening, 0o600);
        let file = match opening.clone().create_new(true).open(path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => opening.open(path)?,
            made => {
                let made = made?;
                // A mask would take permissions from those of an opening.
                #[cfg(unix)]
                made.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(options.mode))?;
                made
            }
        };
        file.try_lock().map_err(|error| match error {
            fs::TryLockError::WouldBlock => io::Error::other("another process writes this file"),
            fs::TryLockError::Error(error) => error,
        })?;
        let mut open = Self { file };
        open.cut_half_line()?;
        series::sync_folder(path)?;
        Ok(open)
    }

    /// Whether the file is still the one of this name.
    fn is_at(&self, path: &Path) -> bool {
        let same =
            |one: &fs::Metadata, other: &fs::Metadata| series::identity(one) == series::identity(other);
        match (self.file.metadata(), fs::metadata(path)) {
            (Ok(mine), Ok(there)) => same(&mine, &there),
            _ => false,
        }
    }

    /// Cuts off what is behind the last end of a line.
    fn cut_half_line(&mut self) -> io::Result<()> {
        const STEP: u64 = 64 << 10;
        let length = self.file.metadata()?.len();
        let mut end = length;
        while end > 0 {
            let start = end.saturating_sub(STEP);
            let mut bytes = Vec::new();
            self.file.seek(SeekFrom::Start(start))?;
            (&self.file).take(end - start).read_to_end(&mut bytes)?;
            if let Some(at) = bytes.iter().rposition(|byte| *byte == b'\n') {
                end = start + at as u64 + 1;
                break;
            }
            end = start;
        }
        if end < length { self.file.set_len(end) } else { Ok(()) }
    }

    fn append(&mut self, lines: &[u8]) -> io::Result<()> {
        let length = self.file.metadata()?.len();
        let written = self.file.write_all(lines).and_then(|()| self.file.sync_data());
        if written.is_err() {
            // If this fails too, the next opening of the file cuts the half line off.
            let _ = self.file.set_len(length);
        }
        written
    }
}

/// "No space left on device", without the number that systems add.
fn in_words(error: &io::Error) -> Box<str> {
    let text = error.to_string();
    text.split(" (os error ").next().unwrap_or_default().into()
}
