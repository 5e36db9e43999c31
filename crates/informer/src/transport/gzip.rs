//! Decompresses gzip bodies of many members. A server compresses a watch as one member per flush (Kubernetes 1.37). The
//! content of a member is therefore returned on arrival, without waiting for the next one.

use std::io::Write;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use flate2::write::MultiGzDecoder;
use futures_util::stream::{BoxStream, Stream, StreamExt};

use super::TransportError;

/// A decompressed body.
pub(crate) struct Inflated {
    body: BoxStream<'static, Result<Bytes, TransportError>>,
    /// Bytes that have arrived and are still compressed.
    rest: Bytes,
    /// `None` once the body has ended or turned out to be damaged.
    decoder: Option<MultiGzDecoder<Vec<u8>>>,
    is_empty: bool,
}

/// Compressed bytes are inflated in steps of this size, and each result is returned before the next step. So a small body
/// cannot become a huge one at once: deflate expands by at most 1032, which makes 4 MiB of one step.
const STEP: usize = 4 * 1024;

impl Inflated {
    pub(crate) fn new(body: BoxStream<'static, Result<Bytes, TransportError>>) -> Self {
        Self { body, rest: Bytes::new(), decoder: Some(MultiGzDecoder::new(Vec::new())), is_empty: true }
    }

    /// Inflates the next step.
    fn inflate(&mut self) -> Result<Bytes, TransportError> {
        let piece = self.rest.split_to(self.rest.len().min(STEP));
        self.is_empty = false;
        let Some(decoder) = &mut self.decoder else { return Ok(Bytes::new()) };
        match decoder.write_all(&piece).and_then(|()| decoder.flush()) {
            Ok(()) => Ok(std::mem::take(decoder.get_mut()).into()),
            Err(error) => {
                self.decoder = None;
                Err(TransportError::new("the gzip body is damaged", Some(Box::from(error))))
            }
        }
    }

    /// Called when the body has ended: its last member must be complete. A body without a member belongs to a response that
    /// ended before it began.
    fn finish(&mut self) -> Result<Bytes, TransportError> {
        let Some(decoder) = self.decoder.take().filter(|_| !self.is_empty) else { return Ok(Bytes::new()) };
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
            let inflated = if self.rest.is_empty() {
                match std::task::ready!(self.body.poll_next_unpin(context)) {
                    Some(Ok(compressed)) => {
                        self.rest = compressed;
                        continue;
                    }
                    Some(Err(error)) => Err(error),
                    None if self.decoder.is_none() => return Poll::Ready(None),
                    None => self.finish(),
                }
            } else {
                self.inflate()
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
    use tokio::sync::mpsc;

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

    /// A body that does not end while its sender exists.
    fn unfinished() -> (mpsc::UnboundedSender<Vec<u8>>, BoxStream<'static, Result<Bytes, TransportError>>) {
        let (sender, mut receiver) = mpsc::unbounded_channel();
        let chunks = stream::poll_fn(move |context| receiver.poll_recv(context));
        (sender, chunks.map(|chunk: Vec<u8>| Ok(Bytes::from(chunk))).boxed())
    }

    /// All text that the arrived bytes give.
    fn available(inflated: &mut Inflated) -> String {
        let mut text = Vec::new();
        while let Some(Some(piece)) = inflated.next().now_or_never() {
            text.extend_from_slice(&piece.unwrap());
        }
        String::from_utf8(text).unwrap()
    }

    /// The text of a body that arrives in one chunk.
    fn inflated(body: Vec<u8>) -> Result<String, TransportError> {
        let size = body.len().max(1);
        text(chunks(body, size)).now_or_never().unwrap()
    }

    #[test]
    fn w16_many_members_with_borders_anywhere() {
        let body: Vec<u8> =
            ["first\n", "second ü\n", "", "", "third\n", ""].into_iter().flat_map(member).collect();
        for size in 1..=body.len() {
            let all = text(chunks(body.clone(), size)).now_or_never().unwrap().unwrap();
            assert_eq!(all, "first\nsecond ü\nthird\n", "chunks of {size}");
        }
    }

    #[test]
    fn w16_a_member_is_handed_out_before_the_next_has_come() {
        let texts = ["event\n".to_owned(), String::new(), "long ".repeat(100_000), "last\n".to_owned()];
        let (sender, receiver) = unfinished();
        let mut inflated = Inflated::new(receiver);
        for expected in &texts {
            sender.send(member(expected)).unwrap();
            assert_eq!(&available(&mut inflated), expected);
        }
    }

    #[test]
    fn w16_what_was_flushed_inside_of_a_member_is_handed_out() {
        let (sender, receiver) = unfinished();
        let mut inflated = Inflated::new(receiver);
        let mut server = flate2::write::GzEncoder::new(Vec::new(), Compression::fast());
        for event in ["first\n", "second\n", "third\n"] {
            server.write_all(event.as_bytes()).unwrap();
            server.flush().unwrap();
            sender.send(std::mem::take(server.get_mut())).unwrap();
            assert_eq!(available(&mut inflated), event);
        }
    }

    #[test]
    fn w16_l9_what_is_inflated_at_once_is_bounded() {
        let zeros = "0".repeat(64 << 20);
        let body = member(&zeros);
        assert!(body.len() < 1 << 19, "{}", body.len());
        let size = body.len();
        let pieces: Vec<_> = chunks(body, size).collect::<Vec<_>>().now_or_never().unwrap();
        let longest = pieces.iter().map(|piece| piece.as_ref().unwrap().len()).max().unwrap();
        let total: usize = pieces.iter().map(|piece| piece.as_ref().unwrap().len()).sum();
        assert_eq!(total, 64 << 20);
        assert!(longest <= STEP * 1032 + 64 * 1024, "{longest}");
    }

    #[test]
    fn w16_a_body_without_a_member_is_empty() {
        assert_eq!(inflated(Vec::new()).unwrap(), "");
        assert_eq!(inflated(member("")).unwrap(), "");
    }

    #[test]
    fn damage_is_an_error() {
        let whole = member("some text that is long enough to be cut");
        for length in 1..whole.len() {
            let error = inflated(whole[..length].to_vec()).unwrap_err();
            assert!(error.to_string().contains("ends early"), "{length}: {error}");
        }
        assert!(inflated(b"no gzip at all".to_vec()).is_err());
        // A wrong checksum.
        let mut wrong = whole.clone();
        wrong[whole.len() - 6] ^= 1;
        assert!(inflated(wrong).is_err());
        // A member may be followed only by another one; any other bytes are damage, however few.
        for garbage in ["x", "garbage", "more than the header of a member"] {
            let body: Vec<u8> = [&whole, garbage.as_bytes()].concat();
            assert!(inflated(body).is_err(), "{garbage}");
        }
    }

    #[test]
    fn after_damage_nothing_follows() {
        let body = [member("good"), b"garbage that is no member".to_vec(), member("never")].concat();
        let pieces: Vec<_> = chunks(body, 16).collect::<Vec<_>>().now_or_never().unwrap();
        assert_eq!(pieces.iter().filter(|piece| piece.is_err()).count(), 1);
        assert!(pieces.last().unwrap().is_err());
    }
}
