//! Writes: create, update, patch, delete and scale, by the rules of the server.

mod create;
mod delete;
mod effects;
mod fields;
pub(crate) mod input;
mod names;
mod options;
mod patch;
pub(crate) mod scale;
mod update;

pub(crate) use delete::{DeleteOptions, Deleted, FOREGROUND, ORPHAN, Propagation};
pub(crate) use fields::schemas;
pub(crate) use options::{FieldValidation, WriteOptions};
pub(crate) use patch::APPLY;
pub use patch::Patch;
