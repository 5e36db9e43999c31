//! Questions to a history and their answers, as data: the command line prints them, the page shows them, programs get them as JSON. An
//! answer that could look at all of a history can be bounded, and then says how far it has looked.

mod blame;
pub(crate) mod cursor;
mod error;
mod fields;
pub(crate) mod instant;
pub(crate) mod log;
pub(crate) mod merge;
pub(crate) mod names;
pub(crate) mod net;
pub(crate) mod period;
mod stored;
mod stories;
mod table;
pub(crate) mod twins;

pub(crate) use blame::{authors, fields_of};
pub use error::{AskError, UnknownName};
pub use instant::InvalidTime;
pub(crate) use stored::{full_name, object, shown};
pub(crate) use stories::Stories;
pub(crate) use table::resource;
