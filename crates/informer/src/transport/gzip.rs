//! Gzip bodies of many members: a server compresses a watch one member per flush (Kubernetes 1.37), so whatever a member
//! holds is handed out when it has come, without waiting for the next.

use std::io::Write;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use flate2::write::MultiGzDecoder;
use futures_util::stream::{BoxStream, Stream, StreamExt};

use super::TransportError;

/// A body with its compression taken off.
pub(crate) struct Inflated {
    body: BoxStream<'static, Result<Bytes, TransportError>>,
    decoder: Option<MultiGzDecoder<Vec<u8>>>,
}

/// Compressed bytes are inflated in pieces of this size, so that a small piece cannot become a huge one at once.
const STEP: usize = 16 * 1024;

impl Inflated {
    pub(crate) fn new(body: BoxStream<'static, Result<Bytes, TransportError>>) -> Self {
        Self { body, decoder: Some(MultiGzDecoder::new(Vec::new())) }
    }

    fn inflate(&mut self, compressed: &[u8]) -> Result<Bytes, TransportError> {
        let Some(decoder) = &mut self.decoder else { return Ok(Bytes::new()) };
        let broken = |error| TransportError::new("the gzip body is damaged", Some(Box::from(error)));
        for piece in compressed.chunks(STEP) {
            decoder.write_all(piece).map_err(broken)?;
        }
        decoder.flush().map_err(broken)?;
        Ok(std::mem::take(decoder.get_mut()).into())
    }

    /// The body is complete: so must be its last member.
    fn finish(&mut self) -> Result<Bytes, TransportError> {
        let Some(decoder) = self.decoder.take() else { return Ok(Bytes::new()) };
        match decoder.finish() {
            Ok(rest) => Ok(rest.into()),
            Err(error) => Err(TransportError::new("the gzip body ends early", Some(Box::from(error)))),
        }
    }
}

impl Stream for Inflated {
    type Item = Result<Bytes, TransportError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            let inflated = match std::task::ready!(self.body.poll_next_unpin(context)) {
                Some(Ok(compressed)) => self.inflate(&compressed),
                Some(Err(error)) => Err(error),
                None if self.decoder.is_none() => return Poll::Ready(None),
                None => self.finish(),
            };
            match inflated {
                Ok(bytes) if bytes.is_empty() => {}
                other => return Poll::Ready(Some(other)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use flate2::Compression;
    use flate2::bufread::GzEncoder;
    use futures_util::{FutureExt, stream};

    use super::*;

    fn member(text: &str) -> Vec<u8> {
        let mut compressed = Vec::new();
        GzEncoder::new(text.as_bytes(), Compression::fast()).read_to_end(&mut compressed).unwrap();
        compressed
    }

    fn chunks(body: Vec<u8>, size: usize) -> Inflated {
        let chunks: Vec<_> = body.chunks(size).map(|chunk| Ok(Bytes::copy_from_slice(chunk))).collect();
        Inflated::new(stream::iter(chunks).boxed())
    }

    async fn text(inflated: Inflated) -> Result<String, TransportError> {
        let chunks: Vec<_> = inflated.collect().await;
        let mut text = Vec::new();
        for chunk in chunks {
            text.extend_from_slice(&chunk?);
        }
        Ok(String::from_utf8(text).unwrap())
    }

    #[test]
    fn w16_many_members_with_borders_anywhere() {
        let body: Vec<u8> = ["first\n", "second ü\n", "", "third\n"].into_iter().flat_map(member).collect();
        for size in 1..body.len() {
            let all = text(chunks(body.clone(), size)).now_or_never().unwrap().unwrap();
            assert_eq!(all, "first\nsecond ü\nthird\n", "chunks of {size}");
        }
    }

    #[test]
    fn w16_a_member_is_handed_out_before_the_next_has_come() {
        let body = stream::iter([Ok(Bytes::from(member("event\n")))]).chain(stream::pending());
        let mut inflated = Inflated::new(body.boxed());
        let first = inflated.next().now_or_never().unwrap().unwrap().unwrap();
        assert_eq!(first, "event\n");
    }

    #[test]
    fn damage_is_an_error() {
        let mut body = member("some text that is long enough to be cut");
        body.truncate(body.len() - 6);
        assert!(text(chunks(body, 7)).now_or_never().unwrap().is_err());
        assert!(text(chunks(b"no gzip at all".to_vec(), 7)).now_or_never().unwrap().is_err());
    }
}
