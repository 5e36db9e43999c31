//! Changes of a cluster: what changed, when, and by which manager.
//!
//! [`Change::between`] makes a [`Change`] of two states of an object: secrets are hidden first ([`Secrets`]; what may be shown
//! is [`Redacted`]), then the two are compared ([`diff()`]), then noise is left out and counted ([`Noise`]). A [`Renderer`](render::Renderer) shows it to
//! people; as JSON it is for programs. A [`Session`] counts what went by.

pub mod args;
mod ask;
mod audit;
pub mod backlog;
mod capture;
mod changes;
pub mod cluster;
pub mod config;
pub mod daemon;
#[cfg(feature = "demo")]
pub mod demo;
pub mod exit;
mod follow;
mod hide;
mod history;
#[cfg(feature = "mcp")]
pub mod mcp;
mod model;
pub mod program;
pub mod query;
pub mod route;
mod show;
mod signals;
mod status;
pub mod story;
mod text;
pub mod web;

pub use capture::record;
pub use capture::watch;
pub use changes::change::{Change, Compared, Origin, Profile, Sighting, UnknownForm, Verb, WithObjects};
pub use changes::recording::{Entry, InvalidRecording, Recording};
pub use changes::states::{States, Undecodable};
pub use hide::noise::{InvalidNoise, Noise, Rule, Tally};
pub use hide::secret::{Epoch, HashKey, InvalidKeyId, KeyFileError, KeyId, NoRandomKey, Redacted, Secrets};
pub use model::diff::{Difference, Edit, Hunk, InvalidTextEdit, Line, Side, TextEdit, diff, diff_as};
pub use model::gap::Gap;
pub use model::glob::Glob;
pub use model::gvk::{Gvk, Scope};
pub use model::managers::{Manager, managers};
pub use model::patch::{PatchOp, patch};
pub use model::path::{InvalidPath, InvalidPattern, Path, PathPattern, Segment};
pub use model::schema::{InvalidSchemas, KindSchema, Schemas};
pub use model::targets;
pub use show::render;
pub use show::summary::{Counts, Session};
pub use show::template::{InvalidTemplate, Template};
