//! The background task of a recorder: it correlates what is recorded, and sends one request at a time.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::future::BoxFuture;
use informer_core::Time;
use jiff::Timestamp;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use super::Counters;
use super::correlator::{Correlator, Ended, Observed, Write};
use super::event::Subject;
use super::sink::{Answer, Sink};

/// How often a request is sent until its event is lost, and the pause in between: client-go's numbers.
const ATTEMPTS: u32 = 12;
const PAUSE: Duration = Duration::from_secs(10);
/// How long the last requests of a recorder that was dropped may take.
const FAREWELL: Duration = Duration::from_secs(10);

pub(super) enum Message {
    Observed(Timestamp, Box<Subject>),
    Flush(oneshot::Sender<()>),
}

pub(super) struct Sender {
    sink: Arc<Sink>,
    correlator: Correlator,
    counters: Arc<Counters>,
    random: fastrand::Rng,
    start: Instant,
    /// The request that is on its way.
    sending: Option<BoxFuture<'static, (Write, Answer)>>,
    /// The request to repeat, and when.
    again: Option<(Write, Instant)>,
    attempts: u32,
    /// The flushes that have not ended. While there are some, no request is repeated.
    flushes: Vec<oneshot::Sender<()>>,
    /// The last request did not succeed, and the log says so.
    failing: bool,
}

impl Sender {
    pub(super) fn new(sink: Sink, counters: Arc<Counters>, seed: u64) -> Self {
        Self {
            sink: Arc::new(sink),
            correlator: Correlator::new(),
            counters,
            random: fastrand::Rng::with_seed(seed),
            start: Instant::now(),
            sending: None,
            again: None,
            attempts: 0,
            flushes: Vec::new(),
            failing: false,
        }
    }

    pub(super) async fn run(mut self, mut messages: mpsc::Receiver<Message>) {
        loop {
            self.begin();
            let wake = self.wake();
            tokio::select! {
                biased;
                () = sleep_until(wake) => self.correlator.tick(self.now()),
                (write, answer) = ready(&mut self.sending) => self.answered(write, &answer),
                message = messages.recv() => match message {
                    Some(message) => self.receive(message),
                    None => break,
                },
            }
        }
        let _ = tokio::time::timeout(FAREWELL, self.drain()).await;
    }

    /// Sends what is left, each once.
    async fn drain(&mut self) {
        let (done, _flushed) = oneshot::channel();
        self.flushes.push(done);
        self.begin();
        while self.sending.is_some() {
            let (write, answer) = ready(&mut self.sending).await;
            self.answered(write, &answer);
            self.begin();
        }
    }

    fn receive(&mut self, message: Message) {
        match message {
            Message::Observed(at, subject) => match self.correlator.observe(self.now(), at, *subject) {
                Observed::Waits | Observed::Counts => {}
                Observed::Filtered => add(&self.counters.filtered),
                Observed::Lost => add(&self.counters.lost),
            },
            Message::Flush(done) => self.flushes.push(done),
        }
    }

    /// Starts the next request, if one may start.
    fn begin(&mut self) {
        if self.sending.is_some() {
            return;
        }
        let repeated = match &self.again {
            Some((_, at)) if self.flushes.is_empty() && Instant::now() < *at => return,
            Some(_) => self.again.take().map(|(write, _)| write),
            None => None,
        };
        if !self.flushes.is_empty() {
            // The server gets all counts, also those that grew while a request was on its way.
            self.correlator.finish();
        }
        match repeated.or_else(|| self.correlator.next_write()) {
            Some(write) => {
                let sink = self.sink.clone();
                self.sending = Some(Box::pin(async move {
                    let answer = sink.send(&write).await;
                    (write, answer)
                }));
            }
            None => self.flushes.drain(..).for_each(|done| {
                let _ = done.send(());
            }),
        }
    }

    fn answered(&mut self, write: Write, answer: &Answer) {
        let reporter = self.sink.reporter();
        let ended = match answer {
            Answer::Ended(ended) => {
                self.failing = false;
                if *ended == Ended::Done {
                    add(&self.counters.written);
                }
                *ended
            }
            Answer::Refused { code, reason } => {
                add(&self.counters.refused);
                if !self.failing {
                    let regarding = &write.subject.regarding;
                    tracing::warn!(controller = reporter, %regarding, code, reason, "the server refused an event");
                }
                self.failing = true;
                Ended::Failed
            }
            Answer::NotNow => {
                if !self.failing {
                    tracing::warn!(controller = reporter, "the server does not accept events now");
                }
                self.failing = true;
                self.attempts += 1;
                if self.attempts < ATTEMPTS && self.flushes.is_empty() {
                    let pause = PAUSE.mul_f64(1.0 + 0.25 * self.random.f64());
                    self.again = Some((write, Instant::now() + pause));
                    return;
                }
                add(&self.counters.lost);
                Ended::Failed
            }
        };
        self.attempts = 0;
        self.correlator.ended(self.now(), &write, ended);
    }

    /// When something is to be done although nothing happens.
    fn wake(&self) -> Option<Instant> {
        let due = self.correlator.due().map(|due| self.start + due.since(Time::ZERO));
        let again = self.again.as_ref().map(|(_, at)| *at);
        due.into_iter().chain(again).min()
    }

    fn now(&self) -> Time {
        Time::from_start(self.start.elapsed())
    }
}

/// The result of the future in a slot, which is empty then. Never ready while the slot is empty.
async fn ready<T>(slot: &mut Option<BoxFuture<'static, T>>) -> T {
    match slot {
        Some(future) => {
            let result = future.await;
            *slot = None;
            result
        }
        None => std::future::pending().await,
    }
}

async fn sleep_until(instant: Option<Instant>) {
    match instant {
        Some(instant) => tokio::time::sleep_until(instant).await,
        None => std::future::pending().await,
    }
}

fn add(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}
