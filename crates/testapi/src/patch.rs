//! JSON patches, merge patches and strategic merge patches.
//!
//! They work on the JSON of an object and know nothing of the store. Errors have the messages of the API server.
//! Server-side apply, which the API counts as a patch too, is in [`managed`](crate::managed).

mod json;
mod merge;
mod ordered;
mod strategic;

pub use json::json;
pub use merge::merge;
pub use strategic::strategic;

use http::StatusCode;
use serde_json::{Map, Value};
use serve::{Reason, Status};

use crate::go;

/// The body of a merge patch.
///
/// # Errors
///
/// 400 if the body is not a JSON object.
pub fn merge_body(patch: &[u8]) -> Result<Value, Status> {
    match object(patch) {
        Ok(Value::Null) => Err(Status::bad_request("Invalid JSON Patch")),
        Ok(patch) => Ok(patch),
        Err(message) => Err(Status::bad_request(format!("error decoding patch: {message}"))),
    }
}

/// The body of a strategic merge patch.
///
/// # Errors
///
/// 400 if the body is neither a JSON object nor null. Null changes nothing.
pub fn strategic_body(patch: &[u8]) -> Result<Value, Status> {
    match object(patch).map_err(Status::bad_request)? {
        Value::Null => Ok(Value::Object(Map::new())),
        patch => Ok(patch),
    }
}

fn object(patch: &[u8]) -> Result<Value, String> {
    match serde_json::from_slice(patch) {
        Ok(patch @ (Value::Object(_) | Value::Null)) => Ok(patch),
        Ok(other) => Err(format!(
            "json: cannot unmarshal {} into Go value of type map[string]interface {{}}",
            go::json_kind(&other)
        )),
        Err(error) => Err(go::syntax_error(&error)),
    }
}

/// The error of a well-formed patch that does not fit the object; the server gives no reason.
fn does_not_fit() -> Status {
    let mut status =
        Status::new(Reason::Invalid, "the server rejected our request due to an error in our request");
    status.code = StatusCode::UNPROCESSABLE_ENTITY;
    status.about("", "", "")
}
