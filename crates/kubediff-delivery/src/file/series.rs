//! `changes.log`, `changes.log.1`, `changes.log.2`: the smaller the number, the newer.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::{fs, io};

/// Makes room for a new file: each becomes the next older one, and the oldest goes.
///
/// A crash in the middle leaves a number free. The next rotation fills it, and no file goes for it.
pub(super) fn rotate(path: &Path, most: u32) -> io::Result<()> {
    if most == 0 {
        return fs::remove_file(path);
    }
    let mut free = 1;
    while free < most && numbered(path, free).exists() {
        free += 1;
    }
    for number in (2..=free).rev() {
        fs::rename(numbered(path, number - 1), numbered(path, number))?;
    }
    fs::rename(path, numbered(path, 1))?;
    // There are more if fewer are wanted than before.
    let mut old = most + 1;
    while fs::remove_file(numbered(path, old)).is_ok() {
        old += 1;
    }
    Ok(())
}

fn numbered(path: &Path, number: u32) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(format!(".{number}"));
    name.into()
}

/// Makes the name of a new file last.
#[cfg(unix)]
pub(super) fn sync_folder(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    fs::File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}

#[cfg(not(unix))]
pub(super) fn sync_folder(_: &Path) -> io::Result<()> {
    Ok(())
}

/// The identity of a file: another file of the same name has another one.
#[cfg(unix)]
pub(super) fn identity(file: &fs::Metadata) -> impl PartialEq + use<> {
    use std::os::unix::fs::MetadataExt as _;
    (file.dev(), file.ino())
}

#[cfg(not(unix))]
pub(super) fn identity(_: &fs::Metadata) -> impl PartialEq + use<> {}
