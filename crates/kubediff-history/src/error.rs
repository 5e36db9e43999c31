//! The errors of a history.

use std::fmt;
use std::path::{Path, PathBuf};

/// Where a history is: the path of its file, or the address of its database. It has no password.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place(Box<str>);

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<String> for Place {
    fn from(place: String) -> Self {
        Self(place.into())
    }
}

impl From<&Path> for Place {
    fn from(path: &Path) -> Self {
        Self(path.display().to_string().into())
    }
}

/// An error of the history. After each of them, everything acknowledged is as it was.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No room for the batch, of which nothing was stored. The history can be used further: when there is room again,
    /// commits succeed again.
    #[error(
        "no room to write to the history {place}: the disk is full, or the file has reached its limit; free some space, or keep less"
    )]
    Full {
        /// The history.
        place: Place,
    },
    /// Another program has locked the file for over 5 s, and nothing was stored. When it is done, commits succeed again.
    #[error("another program has locked the history {place}; end its transaction")]
    Busy {
        /// The history.
        place: Place,
    },
    /// Another process writes to the file.
    #[error("the history {} is in use: another process writes to it; end that one, or choose another file", .path.display())]
    InUse {
        /// The file.
        path: PathBuf,
    },
    /// The file has several names, and SQLite keeps a log for each.
    #[error("the history {} has {names} names (hard links), and only one can be used; remove the others, or make the backup by `history backup`", .path.display())]
    Linked {
        /// The file.
        path: PathBuf,
        /// How many names it has.
        names: u64,
    },
    /// Its name, or that of the log beside it, stands for another file now or for none, or it was cut: nothing more can be written.
    #[error("the history {} (with its -wal, -shm and -lock) was replaced, removed or cut while it was written; start again", .path.display())]
    Replaced {
        /// The file.
        path: PathBuf,
    },
    /// There is no such file.
    #[error("there is no history {}", .path.display())]
    Missing {
        /// The file.
        path: PathBuf,
    },
    /// The file exists, and is not a history.
    #[error("{place} is not a history of kubediff; choose another file")]
    Foreign {
        /// The history.
        place: Place,
    },
    /// A newer program has written the file.
    #[error(
        "the history {place} has format {found}, and this program knows up to {known}; use a newer program"
    )]
    Newer {
        /// The history.
        place: Place,
        /// Its format.
        found: u32,
        /// The newest known format.
        known: u32,
    },
    /// The file's format is older, and the file was to be read only, or cannot be migrated.
    #[error(
        "the history {place} has the older format {found}; migrate it with `kubediff history migrate {place}`"
    )]
    Older {
        /// The history.
        place: Place,
        /// Its format.
        found: u32,
    },
    /// The file's format is older, and the disk has no room for the backup before it is migrated. Nothing was touched.
    #[error(
        "the history {} has the older format {found}, and its backup needs {missing} bytes more than the disk has; free some space, or move the file", .path.display()
    )]
    NoRoom {
        /// The file.
        path: PathBuf,
        /// Its format.
        found: u32,
        /// How many bytes are missing.
        missing: u64,
    },
    /// The file belongs to another cluster.
    #[error("the history {place} is of the cluster with uid {found}, not {wanted}; choose another file")]
    OtherCluster {
        /// The history.
        place: Place,
        /// The cluster's uid in the file.
        found: String,
        /// The cluster's uid of the caller.
        wanted: String,
    },
    /// The content of the file contradicts itself.
    #[error("the history {place} is damaged: {what}; restore a backup")]
    Damaged {
        /// The history.
        place: Place,
        /// The damage.
        what: String,
    },
    /// The database cannot be reached, or refuses for now. Whether the last batch was stored is not known: committed again, it is stored
    /// once.
    #[error("the history {place} cannot be reached")]
    Unreachable {
        /// The history.
        place: Place,
        /// Why.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The certificate of the database is not one of this server by a trusted authority.
    #[error(
        "the history {place} has a certificate that is not trusted; name the server as its certificate does, and an authority of your own with \
         `sslrootcert=FILE`"
    )]
    Untrusted {
        /// The history.
        place: Place,
        /// Why.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The database refuses this login.
    #[error(
        "the history {place} refuses this login; look at its password, at the name of the database, and at its role: kubediff_writer for a daemon, kubediff_reader for questions"
    )]
    Denied {
        /// The history.
        place: Place,
        /// Why.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// Another process has the term, and writes. Nothing was stored, and nothing will be.
    #[error("another process writes to the history {place} now; this one has lost its term")]
    Fenced {
        /// The history.
        place: Place,
    },
    /// The database is as it was before: acknowledged records are gone. Nothing was stored, and nothing will be.
    #[error(
        "the history {place} has lost acknowledged records ({what}): a backup was restored, or a replica took over that lacked them"
    )]
    WentBack {
        /// The history.
        place: Place,
        /// How many records are gone, as far as the writer knows.
        what: String,
    },
    /// Another process has the term, and this one cannot claim it.
    #[error(
        "the history {place} is in use: {holder} writes to it; end that one, or wait until its term is over"
    )]
    Held {
        /// The history.
        place: Place,
        /// The other process.
        holder: String,
    },
    /// Another cluster in the same database has the name of this one.
    #[error(
        "in the history {place} the cluster with uid {uid} has the name of this one; choose another `cluster`"
    )]
    NameTaken {
        /// The history.
        place: Place,
        /// The other cluster's uid.
        uid: String,
    },
    /// The database has no tables of histories.
    #[error("{place} has no history; make one with `kubediff history migrate {place}`")]
    NoTables {
        /// The database.
        place: Place,
    },
    /// The database has the histories of several clusters, or none of this name.
    #[error("{place} has {}", choice(wanted.as_deref(), known))]
    WhichCluster {
        /// The database.
        place: Place,
        /// The name that it does not have, if one was chosen.
        wanted: Option<String>,
        /// Their names.
        known: Vec<String>,
    },
    /// The address of a database is none.
    #[error("{place} is no address of a history: {what}")]
    Address {
        /// The address, without its password.
        place: Place,
        /// Why.
        what: String,
    },
    /// The caller's data cannot be stored.
    #[error("an observation cannot be stored: {0}")]
    Invalid(&'static str),
    /// Nobody waits for the answer any more ([`Reader::wait`](crate::Reader::wait)).
    #[error("the answer takes too long; ask for a shorter time, for a kind or a namespace")]
    Late,
    /// There is nothing of that name.
    #[error("the history has no {0}")]
    NotFound(String),
    /// The file could not be read or written.
    #[error("the history {place} cannot be used")]
    Io {
        /// The history.
        place: Place,
        /// Why.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

/// `no history of prd; choose with --cluster from prod, staging`.
fn choice(wanted: Option<&str>, known: &[String]) -> String {
    let known_in_words = known.join(", ");
    match wanted {
        _ if known.is_empty() => {
            "no history that this login may read; `kubediff serve` of a cluster begins one".to_owned()
        }
        Some(wanted) => {
            format!("no history of the cluster {wanted}; choose with --cluster from {known_in_words}")
        }
        None => format!(
            "the histories of {known_in_words}; choose one with --cluster (`log` and `get` also take several, and --all-clusters)"
        ),
    }
}

impl Error {
    /// Whether there was no room.
    pub fn is_full(&self) -> bool {
        matches!(self, Self::Full { .. })
    }

    /// Whether the content of the file contradicts itself: a history that was opened is none any more then, or has parts that
    /// nobody can read.
    pub fn is_damage(&self) -> bool {
        matches!(self, Self::Damaged { .. } | Self::Foreign { .. })
    }

    /// Whether this process may not write any more, and another one, or this one from the beginning, may.
    pub fn ends_the_term(&self) -> bool {
        matches!(self, Self::Fenced { .. } | Self::WentBack { .. })
    }

    /// Whether the same may succeed later: there was no room, another program has the file, or a database is away, or has another password or
    /// certificate for now.
    pub fn is_passing(&self) -> bool {
        let is_away = matches!(self, Self::Unreachable { .. } | Self::Untrusted { .. } | Self::Denied { .. });
        self.is_full() || is_away || matches!(self, Self::Busy { .. })
    }
}
