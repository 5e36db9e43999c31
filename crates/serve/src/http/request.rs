//! A request with its whole body, or the reason why it has none.

use bytes::Bytes;
use http::{Request, Response, header};
use http_body::Body as _;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::Incoming;

use crate::{Body, Reason, Status, full};

/// Reads the body, at most `limit` bytes.
pub(super) async fn collect(
    request: Request<Incoming>,
    limit: usize,
) -> Result<Request<Bytes>, Response<Body>> {
    let (parts, body) = request.into_parts();
    if body.is_end_stream() {
        return Ok(Request::from_parts(parts, Bytes::new()));
    }
    match Limited::new(body, limit).collect().await {
        Ok(collected) => Ok(Request::from_parts(parts, collected.to_bytes())),
        Err(error) if error.is::<LengthLimitError>() => Err(refuse(&Status::new(
            Reason::RequestEntityTooLarge,
            format!("Request entity too large: limit is {limit}"),
        ))),
        Err(error) => Err(refuse(&Status::bad_request(error.to_string()))),
    }
}

fn refuse(status: &Status) -> Response<Body> {
    let mut response = Response::new(full(status.to_json().to_string()));
    *response.status_mut() = status.code;
    response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/json"));
    response
}
