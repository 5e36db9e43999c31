//! Changes of a cluster: what changed, when, and by which manager.
//!
//! [`Change::between`] makes a [`Change`] of two states of an object: secrets are hidden first ([`Secrets`]; what may be shown
//! is [`Redacted`]), then the two are compared ([`diff()`]), then noise is left out and counted ([`Noise`]). A [`Renderer`](render::Renderer) shows it to
//! people; as JSON it is for programs. A [`Session`] counts what went by.

mod alike;
pub mod args;
pub mod backlog;
mod change;
pub mod cluster;
pub mod config;
pub mod daemon;
#[cfg(feature = "demo")]
pub mod demo;
mod diff;
mod document;
mod envelope;
mod events;
pub mod exit;
mod facts;
mod follow;
mod gap;
mod glob;
mod gvk;
mod headline;
mod image;
mod managers;
mod merged;
mod noise;
mod notes;
mod patch;
mod path;
pub mod program;
pub mod query;
pub mod record;
mod recorded;
mod recorder;
mod recording;
pub mod render;
pub mod route;
mod schema;
mod screen;
mod secret;
mod signals;
mod status;
mod summary;
mod table;
mod taker;
pub mod targets;
mod template;
mod terminal;
pub mod watch;
mod words;

pub use change::{Change, Compared, Origin, Profile, Sighting, Undecodable, Verb, WithObjects};
pub use diff::{Difference, Edit, Hunk, InvalidTextEdit, Line, Side, TextEdit, diff, diff_as};
pub use gap::Gap;
pub use glob::Glob;
pub use gvk::{Gvk, Scope};
pub use managers::{Manager, managers};
pub use noise::{Dropped, InvalidNoise, Noise, Rule, Tally};
pub use patch::{PatchOp, patch};
pub use path::{InvalidPath, InvalidPattern, Path, PathPattern, Segment};
pub use recorded::UnknownForm;
pub use recording::{Entry, InvalidRecording, Recording};
pub use schema::{InvalidSchemas, KindSchema, Schemas};
pub use secret::{Epoch, HashKey, InvalidKeyId, KeyFileError, KeyId, NoRandomKey, Redacted, Secrets};
pub use summary::{Counts, Session};
pub use template::{InvalidTemplate, Template};
