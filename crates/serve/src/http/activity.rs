//! What a connection is busy with: a client that takes nothing of its responses keeps no connection open.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::Response;
use http_body::{Frame, SizeHint};
use http_body_util::BodyExt as _;
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::Body;

/// The looks at a connection in the time that it may be idle.
const LOOKS: u32 = 4;

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
    /// Whether the client has taken everything, and it is the server's turn.
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
