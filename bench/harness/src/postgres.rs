//! A PostgreSQL with histories, and what it spends.

use std::time::Duration;

use kubediff_history::{Address, migrate_database};
use postgres_server::{Durability, Server};
use tooling::Error;

use crate::meter::Meter;

pub(crate) struct Postgres {
    server: Server,
    database: String,
    meter: Meter,
}

/// The CPU and log that the server has spent since its start, and the tables and connections that it has.
#[derive(Clone, Copy)]
pub(crate) struct Spent {
    pub(crate) cpu: Duration,
    /// Bytes of the write-ahead log.
    pub(crate) log: f64,
    /// Bytes of all tables and indexes.
    pub(crate) bytes: f64,
    pub(crate) connections: f64,
}

impl Postgres {
    /// Starts a server that writes to the disk before it answers, with the tables of histories.
    pub(crate) fn start() -> Result<Self, Error> {
        let server = Server::start(Durability::Full).map_err(|error| match error {
            postgres_server::Error::NotInstalled => {
                Error::missing("PostgreSQL", "install it (`apt-get install postgresql`)")
            }
            other => failed(other),
        })?;
        let database = server.create_database().map_err(failed)?;
        let address = Address::parse(&server.address(&database)).map_err(failed)?;
        migrate_database(&address).map_err(failed)?;
        let meter = Meter::new(server.pid().map_err(failed)?);
        Ok(Self { server, database, meter })
    }

    /// Its name and version.
    pub(crate) fn version(&self) -> Result<String, Error> {
        self.ask("SELECT 'PostgreSQL ' || current_setting('server_version')")
    }

    /// The address for the daemon of a cluster, which gets a login of its own.
    pub(crate) fn login(&self, cluster: &str) -> Result<String, Error> {
        self.ask(&format!("CREATE ROLE \"{cluster}\" LOGIN IN ROLE kubediff_writer"))?;
        Ok(self.server.address_as(cluster, &self.database))
    }

    /// Vacuums and analyzes now, which the server would do some time later.
    pub(crate) fn tidy(&self) -> Result<(), Error> {
        self.ask("VACUUM ANALYZE").map(drop)
    }

    /// After a checkpoint, each page is written whole at its first change: in a run of minutes, that is chance.
    pub(crate) fn put_off_checkpoints(&self) -> Result<(), Error> {
        self.server.configure("checkpoint_timeout = '1d'\nmax_wal_size = '100GB'").map_err(failed)
    }

    /// The table of objects, with its indexes.
    pub(crate) fn bytes_of_objects(&self) -> Result<f64, Error> {
        let answer = self.ask("SELECT pg_total_relation_size('kubediff.objects')")?;
        answer.parse().map_err(|_| Error::format("PostgreSQL", answer))
    }

    pub(crate) fn spent(&self) -> Result<Spent, Error> {
        let answer = self.ask(
            "SELECT pg_current_wal_insert_lsn() - '0/0', pg_database_size(current_database()),
             (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid())",
        )?;
        let numbers: Vec<f64> = answer.split('|').filter_map(|text| text.parse().ok()).collect();
        let [log, bytes, connections] = numbers[..] else { return Err(Error::format("PostgreSQL", answer)) };
        Ok(Spent { cpu: self.cpu()?, log, bytes, connections })
    }

    /// Of all its processes.
    pub(crate) fn cpu(&self) -> Result<Duration, Error> {
        self.meter.cpu_of_all()
    }

    fn ask(&self, sql: &str) -> Result<String, Error> {
        self.server.sql(&self.database, sql).map_err(failed)
    }
}

fn failed(error: impl std::fmt::Display) -> Error {
    Error::Found(format!("PostgreSQL: {error}"))
}
