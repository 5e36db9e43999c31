//! One request and its whole answer.

use bytes::BytesMut;
use futures_util::TryStreamExt;
use http::{Method, Request, StatusCode, header};
use informer::transport::{Response, Transport, TransportError};
use serde::Serialize;

/// The longest answer that is read. A lease has a few hundred bytes, that with a map of 1,000 members 200,000.
const LONGEST: usize = 8 << 20;

/// Sends a request with a body of JSON, and reads the answer.
pub(crate) async fn exchange(
    transport: &dyn Transport,
    method: Method,
    path: String,
    body: Option<&(impl Serialize + Sync)>,
) -> Result<(StatusCode, BytesMut), TransportError> {
    let failed = |error| TransportError::new("the request could not be built", error);
    let body = match body {
        Some(body) => serde_json::to_vec(body).map_err(|error| failed(Some(error.into())))?,
        None => Vec::new(),
    };
    let json = "application/json";
    let builder = Request::builder().method(method).uri(path).header(header::ACCEPT, json);
    let request = builder.header(header::CONTENT_TYPE, json).body(body);
    let request = request.map_err(|error| failed(Some(error.into())))?;
    let Response { head, mut body } = transport.send(request).await?;
    let mut read = BytesMut::new();
    while let Some(chunk) = body.try_next().await? {
        read.extend_from_slice(&chunk);
        if read.len() > LONGEST {
            return Err(TransportError::new("the answer is longer than leases can be", None));
        }
    }
    Ok((head.status, read))
}
