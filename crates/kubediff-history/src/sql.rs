//! Questions and changes as SQL, whichever database has the history.

mod candidates;
mod chosen;
pub(crate) mod clock;
pub(crate) mod codec;
pub(crate) mod conditions;
pub(crate) mod db;
pub(crate) mod detail;
pub(crate) mod documents;
pub(crate) mod fault;
pub(crate) mod links;
pub(crate) mod names;
pub(crate) mod noise;
pub(crate) mod overview;
pub(crate) mod packing;
pub(crate) mod read;
pub(crate) mod recent;
pub(crate) mod retain;
pub(crate) mod scrub;
pub(crate) mod sight;
pub(crate) mod sinks;
pub(crate) mod states;
pub(crate) mod stories;
pub(crate) mod survey;
pub(crate) mod times;
pub(crate) mod users;
pub(crate) mod values;
pub(crate) mod verify;
