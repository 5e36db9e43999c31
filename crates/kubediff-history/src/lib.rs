//! The history of a Kubernetes cluster in one file: every version of every object, and what changed, when, by which manager.
//!
//! A [`History`] writes, one per file. Each [`Reader`] reads, also while a history writes. [`History::commit`] stores a
//! [`Batch`] whole or not at all; when it returns, its changes and positions are **acknowledged**: they survive the death
//! of the process.
//!
//! ```
//! use kubediff_history::*;
//!
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("history.db");
//! let cluster = Cluster { uid: "6f1d…".to_owned(), name: Some("prod".to_owned()) };
//! let mut history = History::open(&path, &cluster, &Settings::default())?;
//! let gvk = Gvk { group: "apps".to_owned(), version: "v1".to_owned(), kind: "Deployment".to_owned() };
//! let object = ObjectId {
//!     gvk,
//!     resource: "deployments".to_owned(),
//!     namespace: Some("shop".to_owned()),
//!     name: "cart".to_owned(),
//!     uid: "1".to_owned(),
//! };
//! let mut batch = Batch::default();
//! batch.observe(Observation {
//!     record: ChangeRecord {
//!         object,
//!         verb: Verb::Added,
//!         rv: Some("7".to_owned()),
//!         observed_at: "2026-11-23T14:05:00Z".parse()?,
//!         ..ChangeRecord::default()
//!     },
//!     body: Body::redacted(r#"{"spec":{"replicas":3}}"#),
//!     what: What::Change,
//!     replaces: None,
//! });
//! batch.reached("deployments.apps", "7");
//! let last = history.commit(&batch)?;
//!
//! let mut reader = history.reader()?;
//! let page = reader.records(&Filter::default(), &Page::newest(10))?;
//! assert_eq!(page.records[0].number(), last);
//! assert_eq!(reader.positions()?["deployments.apps"], "7");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The store takes redacted contents only: no value of a Secret and no key of a hash belongs here ([`Body`]).

mod batch;
mod blame;
mod body;
mod document;
mod error;
mod filter;
mod history;
mod location;
mod mask;
mod patience;
mod places;
#[cfg(feature = "postgres")]
mod postgres;
mod reader;
mod record;
mod report;
mod sight;
mod sql;
mod sqlite;
#[cfg(feature = "postgres")]
mod standby;
mod story;
mod survey;

pub use batch::{Batch, Observation, What};
pub use blame::{Blame, Field, FieldBlame};
pub use body::Body;
pub use document::Document;
pub use error::{Error, Place};
pub use filter::{At, Filter, KindName, Order, Page, Scope};
pub use history::History;
pub use location::Location;
pub use mask::{Details, Mask};
pub use patience::Patience;
pub use places::Places;
#[cfg(feature = "postgres")]
pub use postgres::{Address, migrate_database};
pub use reader::{Reader, ask_all};
pub use record::{
    ChangeRecord, Event, Gap, Gvk, Incarnation, Manager, Number, ObjectId, Origin, Record, Scrubbed, User,
    Verb, Version,
};
pub use report::{
    Checked, Cluster, DeadLetter, Ids, Keys, Leader, Lost, Moment, Overview, Plan, Present, Records,
    Retained, Retention, Scrub, Settings, Settled, Sink, Size, Standing,
};
pub use sight::{Right, Sight};
#[cfg(feature = "postgres")]
pub use standby::Standby;
pub use story::{Folded, StoredStory};
pub use survey::{Counts, Survey};
