//! HTTP responses.

use bytes::Bytes;
use futures_util::stream::{self, Stream};
use futures_util::{StreamExt as _, TryStreamExt as _};
use http::header::{CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, HeaderValue, RETRY_AFTER, VARY};
use http::{HeaderMap, Response, StatusCode};
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use serde_json::Value;

use crate::gzip::Gzip;
use crate::{Body, CollectionError, Status, full, negotiate, protobuf};

/// The text of a JSON response that could also be protobuf: an extension of the response, until the client's encoding
/// is known.
#[derive(Debug, Clone)]
pub(crate) struct Document {
    pub(crate) text: Bytes,
    /// The media type in protobuf, if the client is known to want that one.
    pub(crate) wanted: Option<&'static str>,
}

impl Document {
    /// The media type of the response, if it is to be in protobuf.
    pub(crate) fn protobuf_type(&self, headers: &HeaderMap) -> Option<&'static str> {
        let negotiated = || negotiate::wants_protobuf(headers).then_some(protobuf::CONTENT_TYPE);
        self.wanted.or_else(negotiated)
    }
}

/// A complete JSON body, which may become protobuf.
pub(crate) fn json(code: StatusCode, text: impl Into<Bytes>) -> Response<Body> {
    let text = text.into();
    let mut response = answer(code, "application/json", full(text.clone()));
    response.extensions_mut().insert(Document { text, wanted: None });
    response
}

/// A refusal in JSON.
pub(crate) fn status(status: &Status) -> Response<Body> {
    status_text(status, &status.to_json())
}

/// A refusal whose text has something that a [`Status`] cannot express.
pub(crate) fn status_text(status: &Status, text: &Value) -> Response<Body> {
    let mut response = json(status.code, format!("{text}\n"));
    if let Some(seconds) = status.retry_after {
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}

/// A body that is made chunk by chunk, on demand. Compressed, if the client accepts that and the body has more than
/// `gzip_from` bytes. Fails if its beginning cannot be made.
pub(crate) async fn chunks(
    chunks: impl Stream<Item = Result<Bytes, CollectionError>> + Send + 'static,
    content_type: &'static str,
    gzip_from: Option<usize>,
) -> Result<Response<Body>, CollectionError> {
    let mut chunks = Box::pin(chunks);
    let mut first = Vec::new();
    let mut length = 0;
    let enough = gzip_from.unwrap_or(0);
    let more = loop {
        match chunks.try_next().await? {
            None => break false,
            Some(chunk) => {
                length += chunk.len();
                first.push(chunk);
            }
        }
        if length > enough {
            break true;
        }
    };
    if !more && first.len() == 1 {
        return Ok(answer(StatusCode::OK, content_type, full(first.remove(0))));
    }
    let chunks = stream::iter(first.into_iter().map(Ok)).chain(chunks);
    if gzip_from.is_none() || !more {
        return Ok(answer(StatusCode::OK, content_type, streamed(chunks)));
    }
    let compressed = stream::try_unfold((Some(Gzip::new()), chunks), |(mut gzip, mut chunks)| async move {
        loop {
            let Some(open) = gzip.as_mut() else { return Ok(None) };
            let written = match chunks.try_next().await? {
                Some(chunk) => open.write(&chunk),
                None => gzip.take().map(Gzip::finish).unwrap_or_default(),
            };
            if !written.is_empty() {
                return Ok(Some((written, (gzip, chunks))));
            }
        }
    });
    let mut response = answer(StatusCode::OK, content_type, streamed(compressed));
    response.headers_mut().insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    response.headers_mut().insert(VARY, HeaderValue::from_static("Accept-Encoding"));
    Ok(response)
}

/// A streamed body. An error breaks the connection.
pub(crate) fn streamed(chunks: impl Stream<Item = Result<Bytes, CollectionError>> + Send + 'static) -> Body {
    StreamBody::new(chunks.map_ok(Frame::data).map_err(std::io::Error::other)).boxed_unsync()
}

/// A response with the headers that every response has.
pub(crate) fn answer(code: StatusCode, content_type: &'static str, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = code;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    response
}
