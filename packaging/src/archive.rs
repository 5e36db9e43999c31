//! Tar archives that depend on nothing but their content: no times, owners or names of users.

use std::io::Write;

use flate2::{Compression, GzBuilder};
use tar::{Builder, EntryType, Header};

use crate::Error;

/// A tar archive in memory.
pub(crate) struct Archive {
    tar: Builder<Vec<u8>>,
}

impl Default for Archive {
    fn default() -> Self {
        Self { tar: Builder::new(Vec::new()) }
    }
}

impl Archive {
    /// Adds a file with these permissions.
    pub(crate) fn file(&mut self, path: &str, mode: u32, content: &[u8]) -> Result<(), Error> {
        let mut header = header(mode);
        header.set_size(content.len() as u64);
        Ok(self.tar.append_data(&mut header, path, content)?)
    }

    /// Adds an empty folder with these permissions, which is this user's.
    pub(crate) fn folder(&mut self, path: &str, mode: u32, user: u64) -> Result<(), Error> {
        let mut header = header(mode);
        header.set_uid(user);
        header.set_gid(user);
        header.set_entry_type(EntryType::Directory);
        header.set_size(0);
        Ok(self.tar.append_data(&mut header, path, std::io::empty())?)
    }

    pub(crate) fn uncompressed(self) -> Result<Vec<u8>, Error> {
        Ok(self.tar.into_inner()?)
    }

    pub(crate) fn compressed(self) -> Result<Vec<u8>, Error> {
        gzip(&self.uncompressed()?)
    }
}

/// Of the user 0, from the time 0.
fn header(mode: u32) -> Header {
    let mut header = Header::new_ustar();
    header.set_mode(mode);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(0);
    header
}

/// Without a time and a name in the header.
pub(crate) fn gzip(bytes: &[u8]) -> Result<Vec<u8>, Error> {
    let mut gzip = GzBuilder::new().mtime(0).write(Vec::new(), Compression::best());
    gzip.write_all(bytes)?;
    Ok(gzip.finish()?)
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    fn example() -> Archive {
        let mut archive = Archive::default();
        archive.file("a/b", 0o755, b"content").unwrap();
        archive.folder("tmp/", 0o1777, 7).unwrap();
        archive
    }

    #[test]
    fn what_went_in_comes_out_and_nothing_else() {
        let tar = example().uncompressed().unwrap();
        let mut archive = tar::Archive::new(&tar[..]);
        let mut seen = Vec::new();
        for entry in archive.entries().unwrap() {
            let mut entry = entry.unwrap();
            let mut text = String::new();
            entry.read_to_string(&mut text).unwrap();
            let header = entry.header();
            let (mode, time, user) = (header.mode().unwrap(), header.mtime().unwrap(), header.uid().unwrap());
            seen.push(format!("{} {mode:o} {time} {user} {text}", entry.path().unwrap().display()));
        }
        assert_eq!(seen, ["a/b 755 0 0 content", "tmp/ 1777 0 7 "]);
    }

    #[test]
    fn the_same_content_gives_the_same_bytes() {
        assert_eq!(example().compressed().unwrap(), example().compressed().unwrap());
    }
}
