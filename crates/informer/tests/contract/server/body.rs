//! Bodies as they come from a network: cut anywhere, and noticed when they are dropped.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use futures_util::stream::{self, BoxStream, StreamExt};
use informer::transport::TransportError;
use tokio::sync::{mpsc, watch};

pub(crate) type Body = BoxStream<'static, Result<Bytes, TransportError>>;
/// Lines of a watch; an error breaks the connection.
pub(crate) type Lines = mpsc::UnboundedReceiver<Result<String, &'static str>>;

/// Counts as an open request for as long as it lives.
pub(crate) struct Open(Arc<AtomicUsize>);

impl Open {
    pub(crate) fn new(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::SeqCst);
        Self(count.clone())
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// A body in pieces of odd sizes.
pub(crate) struct Chunks(Vec<Bytes>);

impl Chunks {
    pub(crate) fn of(mut bytes: &[u8], random: &mut fastrand::Rng) -> Self {
        let mut chunks = Vec::new();
        while !bytes.is_empty() {
            let size = random.usize(1..=1_500).min(bytes.len());
            let (chunk, rest) = bytes.split_at(size);
            chunks.push(Bytes::copy_from_slice(chunk));
            bytes = rest;
        }
        Self(chunks)
    }

    pub(crate) fn at_once(self, open: Open) -> Body {
        stream::iter(self.0)
            .map(move |chunk| {
                let _ = &open;
                Ok(chunk)
            })
            .boxed()
    }

    /// The second half only when it is let go.
    pub(crate) fn held_in_the_middle(self, held: watch::Receiver<bool>, open: Open) -> Body {
        let middle = self.0.len() / 2;
        stream::iter(self.0.into_iter().enumerate())
            .then(move |(at, chunk)| {
                let _ = &open;
                let mut held = held.clone();
                async move {
                    if at >= middle {
                        let _ = held.wait_for(|held| !held).await;
                    }
                    Ok(chunk)
                }
            })
            .boxed()
    }
}

/// The lines of a watch, each cut somewhere, and sometimes two in one piece.
pub(crate) fn cut_lines(lines: Lines, seed: u64, open: Open) -> Body {
    let state = (lines, fastrand::Rng::with_seed(seed), Vec::new(), open);
    stream::unfold(state, |(mut lines, mut random, mut rest, open)| async move {
        if rest.is_empty() {
            match lines.recv().await? {
                Ok(line) => rest = line.into_bytes(),
                Err(broken) => {
                    let error = TransportError::new(broken, None);
                    return Some((Err(error), (lines, random, rest, open)));
                }
            }
        }
        if random.bool()
            && let Ok(Ok(next)) = lines.try_recv()
        {
            rest.extend(next.into_bytes());
        }
        let left = rest.split_off(random.usize(1..=rest.len()));
        Some((Ok(Bytes::from(rest)), (lines, random, left, open)))
    })
    .boxed()
}

/// The same line for ever.
pub(crate) fn endless(line: String, open: Open) -> Body {
    stream::repeat_with(move || {
        let _ = &open;
        Ok(Bytes::from(line.clone()))
    })
    .boxed()
}
