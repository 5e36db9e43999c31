//! Compression: a list as one gzip stream, a watch as many members.

use std::io::Write as _;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH, VARY};
use http::{HeaderMap, HeaderValue, Response};
use http_body::Body as _;
use http_body_util::{BodyExt as _, StreamBody};

use crate::body::{Body, full};
use crate::negotiate::accepts_gzip;

/// A shorter content is sent as it is.
const LEAST: u64 = 1_024;

/// A response whose whole content is there, compressed if the client accepts that by these headers. A streamed one stays as it is.
pub async fn compressed(headers: &HeaderMap, response: Response<Body>) -> Response<Body> {
    let is_long = response.body().size_hint().exact().is_some_and(|length| length >= LEAST);
    if !is_long || response.headers().contains_key(CONTENT_ENCODING) {
        return response;
    }
    let (mut parts, body) = response.into_parts();
    parts.headers.insert(VARY, HeaderValue::from_static("Accept-Encoding"));
    let mut content = match body.collect().await {
        Ok(content) => content.to_bytes(),
        // The server that this content is passed on from has ended in the middle.
        Err(error) => {
            let broken = StreamBody::new(futures_util::stream::iter([Err(error)]));
            return Response::from_parts(parts, broken.boxed_unsync());
        }
    };
    if accepts_gzip(headers) {
        let mut gzip = Gzip::new();
        content = [gzip.write(&content), gzip.finish()].concat().into();
        parts.headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        parts.headers.remove(CONTENT_LENGTH);
    }
    Response::from_parts(parts, full(content))
}

/// Compresses one stream. Writing to memory cannot fail.
pub(crate) struct Gzip(GzEncoder<Vec<u8>>);

impl Gzip {
    /// Uses the fastest level, like the real server.
    pub(crate) fn new() -> Self {
        Self(GzEncoder::new(Vec::new(), Compression::fast()))
    }

    /// Takes text and returns the compressed bytes that are ready.
    pub(crate) fn write(&mut self, text: &[u8]) -> Bytes {
        let _ = self.0.write_all(text);
        Bytes::from(std::mem::take(self.0.get_mut()))
    }

    /// Returns the rest.
    pub(crate) fn finish(self) -> Bytes {
        Bytes::from(self.0.finish().unwrap_or_default())
    }
}

/// A complete member, which a client can decompress without what follows. It is flushed before it ends, as the real
/// server does it: Go's reader gives out the text of a last block only when the next member begins.
pub(crate) fn member(text: &[u8]) -> Bytes {
    let mut gzip = Gzip::new();
    let mut bytes = gzip.write(text).to_vec();
    let _ = gzip.0.flush();
    bytes.extend_from_slice(&std::mem::take(gzip.0.get_mut()));
    bytes.extend_from_slice(&gzip.finish());
    Bytes::from(bytes)
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use flate2::read::GzDecoder;
    use http::header::ACCEPT_ENCODING;

    use super::*;

    #[tokio::test]
    async fn a_whole_content_is_compressed_for_clients_that_accept_it() {
        let long = "0123456789".repeat(1_000);
        let asking = |accepts: &'static str| {
            HeaderMap::from_iter([(ACCEPT_ENCODING, HeaderValue::from_static(accepts))])
        };
        for (accepts, text, is_compressed) in [
            ("gzip, deflate, br", long.as_str(), true),
            ("br", long.as_str(), false),
            ("gzip;q=0", long.as_str(), false),
            ("gzip", "short", false),
        ] {
            let response = compressed(&asking(accepts), Response::new(full(text.to_owned()))).await;
            assert_eq!(response.headers().contains_key(CONTENT_ENCODING), is_compressed, "{accepts}");
            assert_eq!(response.headers().contains_key(VARY), text.len() > 1_000);
            let content = response.into_body().collect().await.unwrap().to_bytes();
            let mut read = String::new();
            match is_compressed {
                true => drop(GzDecoder::new(&*content).read_to_string(&mut read).unwrap()),
                false => read = String::from_utf8(content.to_vec()).unwrap(),
            }
            assert_eq!(read, text, "{accepts}");
            assert!(!is_compressed || content.len() < text.len() / 20);
        }
        let endless = crate::answer::streamed(futures_util::stream::pending());
        let response = compressed(&asking("gzip"), Response::new(endless)).await;
        assert!(!response.headers().contains_key(CONTENT_ENCODING));
    }
}
