//! Where the tests keep histories: in files.

use std::path::Path;

use kubediff_history::*;

pub(crate) fn open(path: &Path, cluster: &Cluster) -> History {
    History::open(path, cluster, &Settings::default()).unwrap()
}

pub(crate) fn read(path: &Path) -> Reader {
    Reader::open(path).unwrap()
}

/// Damages the content of all versions.
pub(crate) fn damage(path: &Path) {
    rusqlite::Connection::open(path).unwrap().execute_batch("UPDATE versions SET crc = crc + 1").unwrap();
}

/// Seeds of random operations.
pub(crate) const SEEDS: u64 = 4;
pub(crate) const IS_FILE: bool = true;

/// The size of the file. A database tells the size of each table.
pub(crate) fn bytes(path: &Path, _: &str) -> u64 {
    std::fs::metadata(path).unwrap().len()
}

/// How often the files of the history have a text as it is.
pub(crate) fn count(path: &Path, text: &str) -> usize {
    let folder = path.parent().unwrap();
    let files = std::fs::read_dir(folder).unwrap().map(|file| std::fs::read(file.unwrap().path()).unwrap());
    files.map(|bytes| bytes.windows(text.len()).filter(|it| *it == text.as_bytes()).count()).sum()
}
