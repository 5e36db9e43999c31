//! Carries out what the logic decides: waits, sends, opens and closes the gate, notifies observers.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use informer_core::Time;
use tokio::sync::{OwnedMutexGuard, oneshot, watch};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::lease::MicroTime;
use super::logic::{Answer, Candidate, Command, Request};
use super::requests::{LeaseClient, Problem};
use super::{ElectionError, ElectionStatus, Marks, Term, Timing};
use crate::gate::{Gate, GateKeeper, Loss};
use crate::host::Host;

/// The shared state of an election and its task.
pub(super) struct Shared {
    pub(super) leases: LeaseClient,
    /// The name of the lease.
    pub(super) name: String,
    pub(super) identity: String,
    pub(super) timing: Timing,
    pub(super) release_on_stop: bool,
    pub(super) host: Host,
    pub(super) status: watch::Sender<ElectionStatus>,
    pub(super) slow_renewals: AtomicU64,
    pub(super) marks: watch::Sender<Marks>,
    /// Whether controllers of this process have it.
    pub(super) is_claimed: AtomicBool,
}

/// Where the caller of `acquire` waits.
pub(super) type Seat = oneshot::Sender<Result<Term, ElectionError>>;

/// One campaign of a candidate, and the term that it wins.
pub(super) struct Driver {
    shared: Arc<Shared>,
    candidate: OwnedMutexGuard<Candidate>,
    command: Command,
    /// That of the current term.
    gate: Option<Gate>,
    /// Why the last request has failed.
    problem: Option<String>,
    /// The leader for whom the candidate waits, as the log has it.
    awaited: Option<String>,
    marks: watch::Receiver<Marks>,
}

impl Driver {
    pub(super) fn new(shared: Arc<Shared>, mut candidate: OwnedMutexGuard<Candidate>) -> Self {
        let command = candidate.wake(shared.host.time(), shared.wall());
        let marks = shared.marks.subscribe();
        Self { shared, candidate, command, gate: None, problem: None, awaited: None, marks }
    }

    /// Waits until the candidate leads, and renews its lease until the term is over.
    pub(super) async fn run(mut self, mut seat: Seat) {
        let won = tokio::select! {
            biased;
            () = seat.closed() => return self.release().await,
            won = self.campaign() => won,
        };
        let deadline = match won {
            Ok(deadline) => deadline,
            Err(error) => {
                // The caller may be gone.
                let _ = seat.send(Err(error));
                return;
            }
        };
        let keeper = Arc::new(GateKeeper::open(&self.shared.host, deadline));
        let ended = CancellationToken::new();
        let _ended = ended.clone().drop_guard();
        let generation = self.candidate.seen().map_or(0, |(generation, _)| generation);
        let term = Term::new(keeper.clone(), generation, ended);
        let stop = term.stop();
        self.gate = Some(keeper.gate());
        self.publish();
        tracing::info!(lease = self.shared.lease(), generation, "leading");
        // If the caller is gone, dropping the term stops it.
        let _ = seat.send(Ok(term));

        let loss = self.lead(&keeper, &stop).await;
        // First the gate, then everybody else.
        keeper.close(loss);
        self.gate = None;
        self.publish();
        tracing::info!(lease = self.shared.lease(), generation, %loss, "no longer leading");
        if loss == Loss::Released {
            self.release().await;
        }
    }

    /// Returns the deadline of the new term.
    async fn campaign(&mut self) -> Result<Time, ElectionError> {
        loop {
            if let Some(deadline) = self.candidate.deadline() {
                return Ok(deadline);
            }
            if let Err(error) = self.step().await {
                // Before the first answer it is a mistake of the set-up. After one it may pass: permissions are replaced, servers restart.
                if self.candidate.seen().is_none() {
                    return Err(error);
                }
                self.answered(self.shared.host.time(), Answer::Unknown, Some(error.to_string()));
            }
            self.tell_of_wait();
        }
    }

    /// Logs once for whom the candidate waits.
    fn tell_of_wait(&mut self) {
        let leader = self.candidate.seen().and_then(|(_, leader)| leader);
        if leader != self.awaited {
            if let Some(leader) = leader.as_ref().filter(|leader| **leader != self.shared.identity) {
                tracing::info!(lease = self.shared.lease(), leader, "another process leads; waiting");
            }
            self.awaited = leader;
        }
    }

    /// Returns why the term is over.
    async fn lead(&mut self, keeper: &GateKeeper, stop: &CancellationToken) -> Loss {
        let gate = keeper.gate();
        loop {
            let step = tokio::select! {
                biased;
                () = stop.cancelled() => return Loss::Released,
                closed = gate.closed() => return self.closed(closed.loss()),
                step = self.step() => step,
            };
            if let Err(error) = step {
                // A missing permission may come back before the deadline.
                self.answered(self.shared.host.time(), Answer::Unknown, Some(error.to_string()));
            }
            if let Command::Lost(loss) = self.command {
                return loss;
            }
            if let Some(deadline) = self.candidate.deadline()
                && let Err(closed) = keeper.extend(deadline)
            {
                return self.closed(closed.loss());
            }
        }
    }

    /// The gate has closed. A term that is dropped closes it before it says `stop`: it is still to be released.
    fn closed(&mut self, loss: Loss) -> Loss {
        if loss != Loss::Released {
            self.candidate.lose(loss);
        }
        loss
    }

    /// Carries out one command. Not cancel safe: the answer to a request may be lost, as on a bad network.
    async fn step(&mut self) -> Result<(), ElectionError> {
        let shared = self.shared.clone();
        match self.command.clone() {
            Command::Send(request) => {
                let request = request.with(&self.marks.borrow_and_update());
                let sent = shared.host.time();
                let (answer, problem) = shared.send(&request).await?;
                self.answered(sent, answer, problem);
            }
            Command::Wait(at) => {
                tokio::select! {
                    biased;
                    () = shared.host.sleep_until(at) => {}
                    Ok(()) = self.marks.changed() => {}
                }
                self.command = self.candidate.wake(shared.host.time(), shared.wall());
            }
            Command::Lost(_) | Command::Done => {
                self.command = self.candidate.wake(shared.host.time(), shared.wall());
            }
        }
        Ok(())
    }

    fn answered(&mut self, sent: Time, answer: Answer, problem: Option<String>) {
        let (now, wall) = (self.shared.host.time(), self.shared.wall());
        self.command = self.candidate.answered(sent, now, wall, answer);
        self.shared.slow_renewals.store(self.candidate.slow_renewals(), Ordering::Relaxed);
        if let Some(problem) = &problem
            && self.problem.as_ref() != Some(problem)
        {
            // Once, and not for each retry.
            tracing::warn!(lease = self.shared.lease(), problem, "a request for the lease failed");
        }
        self.problem = problem;
        self.publish();
    }

    /// Gives the lease up, if this candidate has it or may have it.
    async fn release(mut self) {
        if !self.shared.release_on_stop {
            return;
        }
        let wall = self.shared.wall();
        self.command = self.candidate.release(wall);
        let limit = self.shared.timing.renew_deadline;
        let released = timeout(limit, async {
            while matches!(self.command, Command::Send(_)) {
                self.step().await?;
            }
            Ok::<_, ElectionError>(())
        });
        if let Ok(Err(error)) = released.await {
            tracing::warn!(lease = self.shared.lease(), %error, "not released; it will expire");
        }
    }

    /// Tells observers where the election stands.
    fn publish(&self) {
        let (generation, leader) = self.candidate.seen().unzip();
        let status = ElectionStatus {
            leader: leader.flatten(),
            generation,
            problem: self.problem.clone(),
            gate: self.gate.clone(),
        };
        self.shared.status.send_if_modified(|current| {
            let is_news = *current != status;
            *current = status;
            is_news
        });
    }
}

impl Shared {
    fn wall(&self) -> MicroTime {
        MicroTime::new(self.host.now())
    }

    /// `shop/cart`
    pub(super) fn lease(&self) -> String {
        format!("{}/{}", self.leases.namespace(), self.name)
    }

    /// Sends a request. Returns the answer for the logic, and the problem if that is [`Answer::Unknown`].
    ///
    /// # Errors
    ///
    /// When trying again will not help.
    async fn send(&self, request: &Request) -> Result<(Answer, Option<String>), ElectionError> {
        let answered = match request {
            Request::Get => self.leases.get(&self.name).await,
            Request::Create(lease) | Request::Update(lease) => self.leases.write(lease).await,
        };
        let creates = matches!(request, Request::Create(_));
        let code = answered.as_ref().err().and_then(Problem::code);
        match (answered, code) {
            (Ok(lease), _) => Ok((Answer::Lease(lease), None)),
            // Only a creation does not expect it: then the namespace or the API is missing.
            (_, Some(404)) if !creates => Ok((Answer::NotFound, None)),
            (_, Some(409)) => Ok((Answer::Conflict, None)),
            (Err(Problem::Passing(problem)), _) => Ok((Answer::Unknown, Some(problem))),
            (Err(Problem::Lasting(error)), _) => Err(error),
        }
    }
}
