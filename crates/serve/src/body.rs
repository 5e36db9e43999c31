//! What an answer is made of.

use bytes::Bytes;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};

/// The body of an answer: all at once, or as it comes. An error ends the connection in the middle of the body, as a
/// server that dies does.
pub type Body = UnsyncBoxBody<Bytes, std::io::Error>;

/// A body that is there at once.
pub fn full(bytes: impl Into<Bytes>) -> Body {
    Full::new(bytes.into()).map_err(|never| match never {}).boxed_unsync()
}
