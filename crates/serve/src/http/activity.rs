//! The activity of a connection: a client that takes nothing of its responses keeps none open.

use std::io::IoSlice;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::Response;
use http_body::{Frame, SizeHint};
use http_body_util::BodyExt as _;
use hyper::rt::{Read, ReadBufCursor, Write};
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::Body;

/// The looks at a connection in the time that it may be idle.
const LOOKS: u32 = 4;
/// A shorter write has no content: it may be a ping, or the answer to one.
const CONTENT: usize = 64;

/// A connection's activity.
#[derive(Clone)]
pub(super) struct Activity(Arc<Mutex<State>>);

struct State {
    /// Requests that are being answered, and bodies that wait for more to send.
    busy: usize,
    /// The last time when something went on.
    last: Instant,
}

/// Something that goes on as long as this lives.
pub(super) struct Busy(Activity);

impl Activity {
    pub(super) fn new() -> Self {
        Self(Arc::new(Mutex::new(State { busy: 0, last: Instant::now() })))
    }

    pub(super) fn begin(&self) -> Busy {
        self.0.lock().busy += 1;
        Busy(self.clone())
    }

    fn wrote(&self, written: &Poll<std::io::Result<usize>>) {
        if let Poll::Ready(Ok(CONTENT..)) = written {
            self.goes_on();
        }
    }

    fn goes_on(&self) {
        self.0.lock().last = Instant::now();
    }

    /// Waits until nothing has gone on for so long.
    pub(super) async fn is_idle(&self, limit: Duration) {
        loop {
            tokio::time::sleep(limit / LOOKS).await;
            let state = self.0.lock();
            if state.busy == 0 && state.last.elapsed() >= limit {
                return;
            }
        }
    }

    /// The response, whose body shows when the client takes a part of it.
    pub(super) fn watch(&self, response: Response<Body>) -> Response<Body> {
        self.goes_on();
        let activity = self.clone();
        response.map(|body| Watched { body, activity, waits: None }.boxed_unsync())
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        let mut state = self.0.0.lock();
        state.busy -= 1;
        state.last = Instant::now();
    }
}

struct Watched {
    body: Body,
    activity: Activity,
    /// While it is the server's turn.
    waits: Option<Busy>,
}

impl http_body::Body for Watched {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, std::io::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(context);
        self.activity.goes_on();
        if polled.is_ready() {
            self.waits = None;
        } else if self.waits.is_none() {
            self.waits = Some(self.activity.begin());
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// The bytes of a connection, whose writes show that the client takes content.
pub(super) struct Written<S> {
    stream: S,
    activity: Activity,
}

impl<S> Written<S> {
    pub(super) fn new(stream: S, activity: Activity) -> Self {
        Self { stream, activity }
    }
}

impl<S: Read + Unpin> Read for Written<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: Write + Unpin> Write for Written<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.activity.wrote(&written);
        written
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<std::io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.activity.wrote(&written);
        written
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use hyper_util::rt::TokioIo;

    use super::*;

    const LIMIT: Duration = Duration::from_secs(20);

    /// Whether a connection is idle after a minute in which so many bytes were written each 15 s.
    async fn is_idle_with_writes_of(length: usize) -> bool {
        let (ours, _theirs) = tokio::io::duplex(1 << 20);
        let activity = Activity::new();
        let mut stream = Written::new(TokioIo::new(ours), activity.clone());
        let idle = tokio::spawn(async move { activity.is_idle(LIMIT).await });
        for _ in 0..4 {
            let bytes = vec![0; length];
            let written = poll_fn(|context| Pin::new(&mut stream).poll_write(context, &bytes)).await;
            assert_eq!(written.unwrap(), length);
            for _ in 0..3 {
                tokio::time::advance(LIMIT / LOOKS).await;
                tokio::task::yield_now().await;
            }
        }
        idle.is_finished()
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_download_goes_on_and_pings_are_none() {
        assert!(!is_idle_with_writes_of(1_000).await);
        assert!(is_idle_with_writes_of(17).await);
    }
}
