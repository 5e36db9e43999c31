//! The body of a response.

use bytes::Bytes;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};

/// The body of a response: complete, or streamed. An error breaks the connection in the middle of the body, like a
/// server that dies.
pub type Body = UnsyncBoxBody<Bytes, std::io::Error>;

/// A complete body.
pub fn full(bytes: impl Into<Bytes>) -> Body {
    Full::new(bytes.into()).map_err(|never| match never {}).boxed_unsync()
}
