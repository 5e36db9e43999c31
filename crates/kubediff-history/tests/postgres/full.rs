//! Issue 22, full disk: a database without room is an error, and the writer goes on when there is some.

use std::path::Path;
use std::process::Command;

use kubediff_history::*;
use postgres_server::{Durability, Server};

use crate::faults::{address, batch, database, insist, is_whole, settings};
use crate::world::cluster;

/// A disk of its own, in memory.
struct Disk(tempfile::TempDir);

impl Disk {
    fn mount() -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=200m", "tmpfs"]).arg(folder.path());
        let is_mounted = mount.output().is_ok_and(|output| output.status.success());
        is_mounted.then(|| Self(folder))
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    /// Leaves this much room.
    fn fill(&self, left: usize) {
        let free = Command::new("df").args(["-B1", "--output=avail"]).arg(self.path()).output().unwrap();
        let free = String::from_utf8(free.stdout).unwrap();
        let free: usize = free.lines().last().unwrap().trim().parse().unwrap();
        std::fs::write(self.path().join("ballast"), vec![0; free - left]).unwrap();
    }

    fn empty(&self) {
        std::fs::remove_file(self.path().join("ballast")).unwrap();
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // The server's files may still be open.
        let _ = Command::new("umount").arg("--lazy").arg(self.path()).status();
    }
}

/// Commits until it fails. Returns the next number, and why.
fn fill(history: &mut History, mut between: impl FnMut()) -> (u64, Error) {
    let mut next = 1;
    loop {
        match history.commit(&batch(next..=next + 19)) {
            Ok(_) => next += 20,
            Err(error) => return (next, error),
        }
        between();
    }
}

#[test]
fn a_full_disk_loses_nothing_and_is_waited_out() {
    let Some(disk) = Disk::mount() else {
        println!("not shown: this user may not mount a small disk");
        return;
    };
    // A write-ahead log that has room beside a full disk, and one that is full, too: then the server itself ends.
    let beside = tempfile::tempdir().unwrap();
    for log in [Some(beside.path()), None] {
        let mut server = Server::start_in(disk.path(), log, Durability::Full).unwrap();
        let location = address(&server.address(&database(&server)));
        let mut history = History::at(&location, &cluster(), &settings("a")).unwrap();
        disk.fill(512 << 10);
        let (next, error) = fill(&mut history, || {
            if log.is_none() {
                // The next part of the log needs a file, for which there is no room: the server ends.
                let _ = server.sql("postgres", "SELECT pg_switch_wal()");
            }
        });
        println!("{next}: {error:?}");
        assert!(error.is_passing() && next > 1, "{error:?}");
        if log.is_some() {
            assert!(error.is_full() && error.to_string().contains("the disk is full"), "{error}");
            // It goes on failing, and what is there is read.
            assert!(history.commit(&batch(next..=next + 19)).unwrap_err().is_full());
            assert_eq!(
                history.reader().unwrap().check().unwrap().problems,
                [""; 0],
                "while the disk is full"
            );
        }
        disk.empty();
        if log.is_none() {
            server.restart().unwrap();
        }
        insist(&mut history, &batch(next..=next + 30));
        is_whole(&mut history.reader().unwrap(), next + 30, "when there is room");
    }
}
