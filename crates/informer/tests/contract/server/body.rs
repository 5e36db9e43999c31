//! Bodies as they come from a network: cut anywhere, broken off, and with lines that no server would send.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use futures_util::stream::{self, BoxStream, StreamExt};
use informer::transport::TransportError;

pub(super) type Chunk = Result<Bytes, TransportError>;
pub(super) type Body = BoxStream<'static, Chunk>;

pub(super) fn whole(text: impl Into<Bytes>) -> Body {
    stream::iter([Ok(text.into())]).boxed()
}

/// The body in pieces of odd sizes.
pub(super) fn cut(body: Body, seed: u64) -> Body {
    let mut random = fastrand::Rng::with_seed(seed);
    let cut = move |chunk: Chunk| {
        let mut pieces = Vec::new();
        match chunk {
            Ok(mut rest) => {
                while !rest.is_empty() {
                    pieces.push(Ok(rest.split_to(random.usize(1..=rest.len().min(1_500)))));
                }
            }
            broken => pieces.push(broken),
        }
        stream::iter(pieces)
    };
    body.flat_map(cut).boxed()
}

/// A running watch.
pub(super) struct Watch {
    pub(super) plural: String,
    /// The rest; `None` once the watch is over.
    rest: Option<Body>,
    /// Sent, and not read yet.
    sent: VecDeque<Chunk>,
    reader: Option<Waker>,
}

impl Watch {
    pub(super) fn new(plural: &str, body: Body) -> Self {
        Self { plural: plural.to_owned(), rest: Some(body), sent: VecDeque::new(), reader: None }
    }

    pub(super) fn read(this: Arc<Mutex<Self>>) -> Body {
        let next = move |context: &mut Context<'_>| {
            let mut watch = this.lock().unwrap();
            watch.reader = Some(context.waker().clone());
            watch.send(context);
            match watch.sent.pop_front() {
                None if watch.rest.is_some() => Poll::Pending,
                next => Poll::Ready(next),
            }
        };
        stream::poll_fn(next).boxed()
    }

    /// Adds something after all that has happened so far. Without more, it is the end.
    pub(super) fn add(&mut self, chunk: Option<Chunk>, more: bool) {
        self.send(&mut Context::from_waker(Waker::noop()));
        self.sent.extend(chunk);
        self.rest.take_if(|_| !more);
        if let Some(reader) = self.reader.take() {
            reader.wake();
        }
    }

    fn send(&mut self, context: &mut Context<'_>) {
        while let Some(rest) = &mut self.rest
            && let Poll::Ready(next) = rest.poll_next_unpin(context)
        {
            match next {
                Some(chunk) => self.sent.push_back(chunk),
                None => self.rest = None,
            }
        }
    }
}
