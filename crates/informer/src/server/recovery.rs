//! How the informers of a factory recover from an outage together. [`Outage`] decides; this module sends the probes, waits
//! and wakes.

use std::collections::HashMap;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use informer_core::Time;
use informer_core::outage::{Member, Outage, Output};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until, timeout};

use super::Server;
use crate::error_chain;
use crate::lock::lock;
use crate::transport::{Response, TransportError};

/// The state that all links to one server share.
pub(super) struct Recovery {
    state: Mutex<State>,
    /// The origin of the outage's time.
    started: Instant,
    /// Notified when something may be due earlier than what the probing link waits for.
    changed: Notify,
    /// Held by the link that probes for all links. When it is released from the outage or dropped, another held link takes
    /// over: no separate task could outlive them.
    probing: tokio::sync::Mutex<()>,
}

struct State {
    outage: Outage,
    links: HashMap<Member, Arc<Turn>>,
    /// Why the latest unanswered request failed.
    reason: String,
}

/// The result of a probe.
pub(super) enum Probe {
    /// The server answered, possibly with an error status.
    Answered,
    Failed,
    TimedOut,
}

/// One informer's way to the server.
pub(crate) struct Link {
    server: Arc<Server>,
    member: Member,
    turn: Arc<Turn>,
}

/// Notifies a link that it may send requests again.
#[derive(Default)]
struct Turn {
    has_come: AtomicBool,
    notify: Notify,
}

impl Recovery {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            state: Mutex::new(State {
                outage: Outage::new(seed),
                links: HashMap::new(),
                reason: String::new(),
            }),
            started: Instant::now(),
            changed: Notify::new(),
            probing: tokio::sync::Mutex::default(),
        }
    }

    /// Whether the server is unreachable, as far as known.
    pub(super) fn is_outage(&self) -> bool {
        lock(&self.state).outage.lasts()
    }

    fn now(&self) -> Time {
        Time::from_start(self.started.elapsed())
    }

    fn change(&self, change: impl FnOnce(&mut Outage, Time)) {
        let now = self.now();
        let (before, after) = {
            let outage = &mut lock(&self.state).outage;
            let before = outage.lasts();
            change(outage, now);
            (before, outage.lasts())
        };
        if before != after {
            self.changed.notify_one();
            let what = if after { "the server cannot be reached" } else { "the server answers again" };
            tracing::debug!("{what}");
        }
    }

    /// Probes and wakes while the future is polled.
    async fn run(&self, server: &Server) {
        let _for_all = self.probing.lock().await;
        loop {
            let deadline = lock(&self.state).outage.deadline();
            let deadline = deadline.map(|at| self.started + at.since(Time::ZERO));
            tokio::select! {
                biased;
                () = self.changed.notified() => {}
                () = async { sleep_until(deadline.unwrap_or_else(Instant::now)).await }, if deadline.is_some() => {}
            }
            while self.act() {
                match server.probe().await {
                    Probe::Answered => self.change(|outage, now| outage.answered(now, None)),
                    Probe::TimedOut => self.change(Outage::probe_timed_out),
                    // The outage has planned the next probe already.
                    Probe::Failed => {}
                }
            }
        }
    }

    /// Wakes the links whose turn it is. Returns whether a probe is due.
    fn act(&self) -> bool {
        let now = self.now();
        let mut state = lock(&self.state);
        while let Some(output) = state.outage.poll(now) {
            match output {
                Output::Probe => return true,
                Output::Wake(member) => {
                    if let Some(turn) = state.links.get(&member) {
                        turn.has_come.store(true, Ordering::Release);
                        turn.notify.notify_waiters();
                    }
                }
            }
        }
        false
    }
}

impl Link {
    pub(super) fn new(server: Arc<Server>) -> Self {
        let turn = Arc::<Turn>::default();
        let member = {
            let mut state = lock(&server.recovery.state);
            let member = state.outage.join();
            state.links.insert(member, turn.clone());
            member
        };
        Self { server, member, turn }
    }

    /// Sends a request, and notes whether the server answers it. A request that its caller drops after `patience` counts as
    /// unanswered.
    pub(crate) async fn send(
        &self,
        request: http::Request<Vec<u8>>,
        patience: Duration,
    ) -> Result<Response, TransportError> {
        let question = Question { link: self, asked: Instant::now(), patience };
        let response = self.server.transport().send(request).await;
        // A response or an error has arrived, so the drop of the question must not count as a failure.
        std::mem::forget(question);
        if let Err(error) = &response {
            lock(&self.server.recovery.state).reason = error_chain(error);
        }
        self.server.recovery.change(|outage, now| match &response {
            Ok(_) => outage.answered(now, Some(self.member)),
            Err(_) => outage.failed(now, self.member),
        });
        response
    }

    /// Waits until a request may be sent. In an outage that is when the outage has ended and it is this link's turn.
    ///
    /// # Errors
    ///
    /// When that takes longer than `patience`.
    pub(crate) async fn ready(&self, patience: Duration) -> Result<(), TransportError> {
        let freed = async {
            loop {
                // The wait is registered before the check, so that a turn that comes in between is not missed.
                let mut notified = pin!(self.turn.notify.notified());
                notified.as_mut().enable();
                if !self.is_held() {
                    return;
                }
                notified.await;
            }
        };
        let away = |_| {
            let reason = lock(&self.server.recovery.state).reason.clone();
            let context = format!("the server cannot be reached, and is being probed; last error: {reason}");
            TransportError::new(context, None)
        };
        timeout(patience, freed).await.map_err(away)
    }

    /// Resolves when it is this link's turn after an outage. Sends the probes while it lasts.
    ///
    /// # Cancel safety
    ///
    /// Safe: a turn that has come is not lost, and a dropped probe is followed by another one.
    pub(crate) async fn released(&self) {
        loop {
            let mut notified = pin!(self.turn.notify.notified());
            notified.as_mut().enable();
            if self.turn.has_come.swap(false, Ordering::AcqRel) {
                return;
            }
            if !self.is_held() {
                notified.await;
                continue;
            }
            tokio::select! {
                biased;
                () = notified => {}
                () = self.server.recovery.run(&self.server) => {}
            }
        }
    }

    fn is_held(&self) -> bool {
        lock(&self.server.recovery.state).outage.holds(self.member)
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        let recovery = &self.server.recovery;
        lock(&recovery.state).links.remove(&self.member);
        recovery.change(|outage, _| outage.leave(self.member));
    }
}

/// A request that waits for its response. Its drop before that notes a failure, if the caller has waited long enough.
struct Question<'a> {
    link: &'a Link,
    asked: Instant,
    patience: Duration,
}

impl Drop for Question<'_> {
    fn drop(&mut self) {
        if self.asked.elapsed() >= self.patience {
            self.link.server.recovery.change(|outage, now| outage.failed(now, self.link.member));
        }
    }
}
