//! The selectors of Kubernetes: conditions on the labels or fields of objects, and shards by ranges of hashes.
//!
//! Syntax, meaning and the reasons of errors are those of Kubernetes (the packages `labels` and `fields` of apimachinery), as
//! for `kubectl -l` and `kubectl --field-selector`. Client and server use the same code; a differential test compares it with a
//! real server.

mod error;
pub mod fields;
mod labels;
mod parse;
mod range;
mod ranges;
mod shard;
mod validity;

pub use error::InvalidSelector;
pub use fields::FieldSelector;
pub use labels::{LabelSet, Operator, Requirement, Selector};
pub use range::{HashRange, InvalidRange};
pub use ranges::Ranges;
pub use shard::{ShardBy, ShardSelector, hash};
