//! Histories in PostgreSQL: of any number of clusters in one database.

mod address;
pub(crate) mod archive;
mod attempt;
mod claim;
pub(crate) mod link;
mod rows;
mod schema;
pub(crate) mod session;
mod term;
mod write;

pub use address::Address;
pub(crate) use claim::Claim;
pub use schema::migrate as migrate_database;
pub(crate) use schema::{connect, logs};
pub(crate) use write::PostgresHistory;
