//! Where the tests keep histories: in a database for each path.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use kubediff_history::*;
use postgres_server::{Durability, Server};

/// The server of these tests, which ends with their process.
struct Stores {
    server: Server,
    /// A database with tables and no history.
    empty: String,
    databases: HashMap<PathBuf, String>,
}

static STORES: Mutex<Option<Stores>> = Mutex::new(None);

/// Works with the server and the database for a path.
fn with<T>(path: &Path, work: impl FnOnce(&Server, &str) -> T) -> T {
    let mut stores = STORES.lock().unwrap_or_else(PoisonError::into_inner);
    let Stores { server, empty, databases } = stores.get_or_insert_with(|| {
        let server = Server::start(Durability::None).unwrap();
        let empty = server.create_database().unwrap();
        let Location::Database(address) = Location::parse(&server.address(&empty)).unwrap() else {
            panic!("no address")
        };
        assert!(migrate_database(&address).unwrap());
        Stores { server, empty, databases: HashMap::new() }
    });
    let database = databases.entry(path.to_owned()).or_insert_with(|| server.copy_database(empty).unwrap());
    work(server, database)
}

pub(crate) fn location(path: &Path) -> Location {
    with(path, |server, database| Location::parse(&server.address(database)).unwrap())
}

pub(crate) fn open(path: &Path, cluster: &Cluster) -> History {
    History::at(&location(path), cluster, &Settings::default()).unwrap()
}

pub(crate) fn read(path: &Path) -> Reader {
    Reader::at(&location(path), None).unwrap()
}

/// Damages the content of all versions.
pub(crate) fn damage(path: &Path) {
    let sql = "UPDATE kubediff.versions SET crc = crc + 1";
    with(path, |server, database| server.sql(database, sql).unwrap());
}

/// Seeds of random operations.
pub(crate) const SEEDS: u64 = 2;
pub(crate) const IS_FILE: bool = false;

/// The size of a table with its partitions.
pub(crate) fn bytes(path: &Path, table: &str) -> u64 {
    let sql = format!("SELECT sum(pg_total_relation_size(relid)) FROM pg_partition_tree('kubediff.{table}')");
    with(path, |server, database| server.sql(database, &sql).unwrap().parse().unwrap())
}

/// How often the rows of the history have a text as it is.
pub(crate) fn count(path: &Path, text: &str) -> usize {
    let dump = with(path, |server, database| server.dump(database).unwrap());
    let hex: String = text.bytes().map(|byte| format!("{byte:02x}")).collect();
    dump.matches(text).count() + dump.matches(&hex).count()
}
