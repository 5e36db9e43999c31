//! A storage that keeps objects' bytes in a file: an example of what `Storage` is for.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::sync::{Arc, Mutex, PoisonError};

use informer_core::{ObjectBytes, Storage, StorageError, Stored, StoredBytes};

/// Appends the bytes of each version to a file, and reads them from there.
///
/// The place of a version that is gone is not used again: for a cache whose objects change, write the file anew from
/// time to time, or keep a list of free places.
pub(crate) struct FileStorage {
    file: Arc<Mutex<File>>,
}

/// Where the bytes of one version are.
struct InFile {
    file: Arc<Mutex<File>>,
    at: u64,
    length: usize,
}

impl FileStorage {
    /// Keeps objects in this file, which nobody else uses.
    pub(crate) fn new(file: File) -> Self {
        Self { file: Arc::new(Mutex::new(file)) }
    }
}

impl Storage for FileStorage {
    fn keep(&self, bytes: Cow<'_, [u8]>) -> Stored {
        let written = with(&self.file, |file| {
            let at = file.seek(SeekFrom::End(0))?;
            file.write_all(&bytes)?;
            Ok(at)
        });
        match written {
            Ok(at) => Stored::new(bytes.len(), InFile { file: self.file.clone(), at, length: bytes.len() }),
            // A full disk is no reason to lose an object.
            Err(_) => Stored::plain(bytes),
        }
    }

    fn shared_bytes(&self) -> usize {
        size_of::<Mutex<File>>()
    }
}

impl StoredBytes for InFile {
    fn read(&self) -> Result<ObjectBytes, StorageError> {
        let read = with(&self.file, |file| {
            let mut bytes = vec![0; self.length];
            file.seek(SeekFrom::Start(self.at))?;
            file.read_exact(&mut bytes)?;
            Ok(bytes)
        });
        match read {
            Ok(bytes) => Ok(bytes.into()),
            Err(error) => {
                let context = format!("{} bytes cannot be read at {} of the file", self.length, self.at);
                Err(StorageError::new(context, Some(error.into())))
            }
        }
    }

    fn held_bytes(&self) -> usize {
        size_of::<Self>()
    }
}

/// A file has one position, so one reader or writer at a time.
fn with<T>(file: &Mutex<File>, work: impl FnOnce(&mut File) -> io::Result<T>) -> io::Result<T> {
    work(&mut file.lock().unwrap_or_else(PoisonError::into_inner))
}
