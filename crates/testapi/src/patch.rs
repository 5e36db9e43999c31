//! Patches: an object, changed as a client describes the change.
//!
//! All of them work on the JSON of one version of the API and know nothing of where objects are kept. What the API
//! server says of a wrong patch, they say. Server-side apply, which the API counts among the patches too, is in
//! [`managed`](crate::managed).

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
/// 400 for what is no JSON object.
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
/// 400 for what is neither a JSON object nor null, which changes nothing.
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

/// The patch is well formed and does not fit the object; the server does not say why.
fn does_not_fit() -> Status {
    let mut status =
        Status::new(Reason::Invalid, "the server rejected our request due to an error in our request");
    status.code = StatusCode::UNPROCESSABLE_ENTITY;
    status.about("", "", "")
}
