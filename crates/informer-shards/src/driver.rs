//! Carries out what the logic plans: holds the lease, looks at all leases, makes and ends controllers, notifies observers.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use informer::kube::Client;
use informer::share::{Ranges, Share, ShareBy};
use informer_controller::election::{Election, Term};
use informer_controller::gate::Loss;
use informer_controller::internals::{Problem, Time, Timing};
use informer_controller::{Host, RunError, TermClient};
use tokio::sync::{mpsc, watch};
use tokio::task::{Id, JoinError, JoinSet};

use crate::access::{ACKNOWLEDGED, LEAVING, OF};
use crate::bounds::{News, Reporter};
use crate::logic::{Logic, Plan, Step};
use crate::map::MapId;
use crate::requests::{Leases, Requests};
use crate::slot::{Make, Slot};
use crate::{ShardsError, ShardsStatus};

/// The shared state of a member and its observers.
pub(crate) struct Shared {
    pub(crate) requests: Requests,
    pub(crate) by: ShareBy,
    pub(crate) timing: Timing,
    pub(crate) host: Host,
    pub(crate) status: Arc<watch::Sender<ShardsStatus>>,
}

/// One member that runs.
pub(crate) struct Driver {
    election: Election,
    shared: Arc<Shared>,
    logic: Logic,
    writes: TermClient,
    make: Make,
    running: Option<Slot>,
    prepared: Option<Slot>,
    awaited: Option<Awaited>,
    tasks: JoinSet<Result<(), RunError>>,
    telling: mpsc::UnboundedSender<(u64, News)>,
    news: mpsc::UnboundedReceiver<(u64, News)>,
    /// The request under way.
    request: Option<BoxFuture<'static, Answer>>,
    look_at: Time,
    has_looked: bool,
    /// Why the last request has failed.
    problem: Option<String>,
}

enum Answer {
    Looked { sent: Time, leases: Result<Box<Leases>, Problem> },
    Wrote { generation: u64, written: Result<bool, Problem> },
    Deleted,
}

/// Why a member that has no lease does not join again.
const BLOCKS: &str = "a reconciliation still runs: it blocks its thread";
/// A reconciliation that runs for so long after it was dropped blocks its thread.
const ABORTS: Duration = Duration::from_secs(1);

/// The wait for running reconciliations to end, so that this member can follow the map.
struct Awaited {
    /// All of them, or those outside of `accept`.
    all: bool,
    accept: Ranges,
    /// When they have been dropped for so long that one of them blocks its thread.
    until: Time,
}

/// How the time with one term of the lease ended.
enum End {
    Left,
    Lost(Loss),
    /// A reconciliation blocks its thread, so this member cannot follow the map.
    Blocked,
}

impl Driver {
    pub(crate) fn new(
        election: Election,
        shared: Arc<Shared>,
        logic: Logic,
        writes: TermClient,
        make: Make,
    ) -> Self {
        let (telling, news) = mpsc::unbounded_channel();
        Self {
            election,
            shared,
            logic,
            writes,
            make,
            running: None,
            prepared: None,
            awaited: None,
            tasks: JoinSet::new(),
            telling,
            news,
            request: None,
            look_at: Time::ZERO,
            has_looked: false,
            problem: None,
        }
    }

    /// Runs until the member has left, or cannot go on.
    pub(crate) async fn run(mut self, mut until: BoxFuture<'static, ()>) -> Result<(), ShardsError> {
        let of = self.shared.requests.names().shards.clone();
        self.election.mark(|marks| {
            marks.labels.insert(OF, of);
            marks.annotations.insert(LEAVING, None);
        });
        while !self.logic.is_leaving() {
            // A new term has acknowledged nothing.
            self.acknowledge(None);
            let term = tokio::select! {
                biased;
                () = &mut until => return Ok(()),
                term = self.election.acquire() => term?,
            };
            let client = term.client(self.writes.clone()).await.map_err(ShardsError::client)?;
            self.look_at = Time::ZERO;
            match self.serve(&term, &client, &mut until).await {
                Ok(End::Lost(loss)) => {
                    tracing::warn!(shards = self.name(), %loss, "the lease of this member is lost; it joins again");
                    self.drop_all(term).await;
                    self.shared.status.send_modify(|status| status.losses += 1);
                }
                Ok(End::Blocked) => {
                    tracing::warn!(
                        shards = self.name(),
                        "this member cannot follow the map, and leaves for now"
                    );
                    self.drop_all(term).await;
                    self.shared.status.send_modify(|status| status.losses += 1);
                }
                ended => {
                    self.drop_all(term).await;
                    return ended.map(drop);
                }
            }
        }
        Ok(())
    }

    /// Acts for as long as the term lasts.
    async fn serve(
        &mut self,
        term: &Term,
        client: &Client,
        until: &mut BoxFuture<'static, ()>,
    ) -> Result<End, ShardsError> {
        let host = self.shared.host.clone();
        loop {
            if self.carry_out(client)? {
                return Ok(End::Left);
            }
            self.publish();
            let is_asking = self.request.is_some();
            let until_blocked = self.awaited.as_ref().map(|awaited| awaited.until);
            tokio::select! {
                biased;
                loss = term.lost() => return Ok(End::Lost(loss)),
                () = &mut *until, if !self.logic.is_leaving() => self.leave(),
                Some((number, news)) = self.news.recv() => self.heard(number, news),
                Some(ended) = self.tasks.join_next_with_id() => self.ended(ended)?,
                answer = answer(&mut self.request) => self.answered(answer)?,
                () = host.sleep_until(self.look_at), if !is_asking => self.look(),
                () = host.sleep_until(until_blocked.unwrap_or(Time::ZERO)), if until_blocked.is_some() => {
                    return Ok(End::Blocked);
                }
            }
        }
    }

    /// Does what the logic plans. Returns whether this member has left.
    fn carry_out(&mut self, client: &Client) -> Result<bool, ShardsError> {
        loop {
            let Plan { accept, prepare, step, acknowledge } = self.logic.plan();
            if let Some(running) = &self.running {
                running.shrink(&accept);
            }
            if self.prepared.as_ref().map(|slot| &slot.ranges) != prepare.as_ref() {
                self.prepared = prepare.map(|ranges| self.prepare(ranges, client)).transpose()?;
            }
            self.acknowledge(acknowledge);
            match step {
                Step::GoOn => {
                    self.await_what_runs(false, accept);
                    return Ok(false);
                }
                Step::Leave => return Ok(true),
                Step::End => {
                    if let Some(running) = &self.running {
                        running.stop();
                    }
                    self.await_what_runs(true, accept);
                    return Ok(false);
                }
                Step::Begin => {
                    self.running = self.prepared.take();
                    if let Some(running) = &self.running {
                        running.begin();
                    }
                    self.logic.begun();
                    tracing::info!(shards = self.name(), share = %self.logic.accepted(), "acting on a new share");
                }
            }
        }
    }

    /// Takes note of the wait for all that runs, or else for what runs outside of `accept`, if there is one.
    fn await_what_runs(&mut self, all: bool, accept: Ranges) {
        let waits = all || !self.logic.is_drained();
        let Some(running) = self.running.as_ref().filter(|_| waits) else {
            self.awaited = None;
            return;
        };
        let until = self.shared.host.time() + running.grace + ABORTS;
        let is_new = self.awaited.as_ref().is_none_or(|of| of.all != all || of.accept != accept);
        if is_new {
            self.awaited = Some(Awaited { all, accept, until });
        }
    }

    fn prepare(&mut self, ranges: Ranges, client: &Client) -> Result<Slot, ShardsError> {
        let share = Share::new(self.shared.by, ranges);
        self.shared.status.send_modify(|status| status.controllers += 1);
        let number = self.shared.status.borrow().controllers;
        let reporter = Reporter { number, news: self.telling.clone() };
        Slot::new(share, &mut self.make, client.clone(), reporter, &mut self.tasks)
    }

    /// A controller has reported something.
    fn heard(&mut self, number: u64, news: News) {
        let is = |slot: &&Slot| slot.number == number;
        match news {
            News::Synced => {
                if let Some(slot) = self.prepared.as_ref().filter(is) {
                    self.logic.synced(slot.ranges.clone());
                }
            }
            News::Drained(ranges) => {
                if self.running.as_ref().filter(is).is_some() {
                    self.logic.drained(&ranges);
                }
            }
        }
    }

    /// The task of a controller has ended.
    fn ended(&mut self, ended: Result<(Id, Result<(), RunError>), JoinError>) -> Result<(), ShardsError> {
        let (id, result) = match ended {
            Ok((id, result)) => (id, result.map_err(ShardsError::controller)),
            Err(error) if error.is_cancelled() => return Ok(()),
            Err(error) => (error.id(), Err(ShardsError::panicked())),
        };
        let is = |slot: &&Slot| slot.id() == id;
        if self.running.as_ref().filter(is).is_some() {
            result?;
            self.running = None;
            self.logic.ended();
        } else if self.prepared.as_ref().filter(is).is_some() {
            result?;
        }
        Ok(())
    }

    fn leave(&mut self) {
        tracing::info!(shards = self.name(), "leaving");
        let now = self.shared.host.time();
        self.logic.leave(now, self.shared.timing.lease_duration);
        self.election.mark(|marks| drop(marks.annotations.insert(LEAVING, Some("true".to_owned()))));
        self.look_at = now;
    }

    fn look(&mut self) {
        let shared = self.shared.clone();
        self.request = Some(
            async move {
                let sent = shared.host.time();
                Answer::Looked { sent, leases: shared.requests.look().await.map(Box::new) }
            }
            .boxed(),
        );
    }

    fn answered(&mut self, answer: Answer) -> Result<(), ShardsError> {
        let now = self.shared.host.time();
        match answer {
            Answer::Looked { sent, leases: Ok(leases) } => {
                self.has_looked = true;
                self.problem = None;
                let next = self.logic.looked(sent, now, &leases.look);
                self.look_at = self.logic.look_at(now);
                let shared = self.shared.clone();
                if let Some(next) = next {
                    self.request = Some(
                        async move {
                            let written = shared.requests.write_map(&leases, next.text).await;
                            Answer::Wrote { generation: next.generation, written }
                        }
                        .boxed(),
                    );
                } else if let Some(member) = self.logic.forgotten(sent).cloned() {
                    self.request = Some(
                        async move {
                            // Another member may have deleted it, or it came back.
                            let _ = shared.requests.delete(&leases, &member).await;
                            Answer::Deleted
                        }
                        .boxed(),
                    );
                }
            }
            Answer::Looked { leases: Err(problem), .. } => {
                self.look_at = now + self.shared.timing.retry_period;
                match problem {
                    Problem::Lasting(error) if !self.has_looked => return Err(ShardsError::look(error)),
                    Problem::Lasting(error) => self.failed(error.to_string()),
                    Problem::Passing(problem) => self.failed(problem),
                }
            }
            Answer::Wrote { generation, written } => {
                self.look_at = now;
                match written {
                    Ok(true) => tracing::info!(shards = self.name(), generation, "wrote the next map"),
                    // Somebody else was faster.
                    Ok(false) => {}
                    Err(Problem::Passing(problem)) => self.failed(problem),
                    Err(Problem::Lasting(error)) => {
                        self.look_at = now + self.shared.timing.retry_period;
                        self.failed(error.to_string());
                    }
                }
            }
            Answer::Deleted => {}
        }
        Ok(())
    }

    fn failed(&mut self, problem: String) {
        if self.problem.as_ref() != Some(&problem) {
            // Once, and not for each retry.
            tracing::warn!(shards = self.name(), problem, "a request for the leases of the members failed");
        }
        self.problem = Some(problem);
    }

    /// Sets the acknowledged map in the lease of this member, which is written at once.
    fn acknowledge(&self, id: Option<MapId>) {
        let text = id.map(|id| id.to_string());
        self.election.mark(|marks| drop(marks.annotations.insert(ACKNOWLEDGED, text)));
    }

    /// Ends all controllers, and then the term. Waits for code of the user that blocks, as its key would have two workers otherwise: without
    /// the lease, so that the others do not wait.
    async fn drop_all(&mut self, term: Term) {
        self.request = None;
        self.prepared = None;
        self.awaited = None;
        self.logic.lost();
        let ended = self.running.take().map(Slot::abort);
        let blocks = match ended {
            Some(bounds) => tokio::time::timeout(ABORTS, bounds.ended()).await.is_err().then_some(bounds),
            None => None,
        };
        term.release().await;
        if let Some(bounds) = blocks {
            tracing::warn!(shards = self.name(), "{BLOCKS}");
            self.problem = Some(BLOCKS.to_owned());
            self.publish();
            bounds.ended().await;
            self.problem = None;
        }
        self.publish();
    }

    fn name(&self) -> &str {
        &self.shared.requests.names().shards
    }

    /// Tells observers where this member stands.
    fn publish(&self) {
        let problem = self.logic.problem().or(self.problem.as_deref());
        let map = self.logic.map();
        let accepted = self.logic.accepted();
        self.shared.status.send_if_modified(|status| {
            let before = status.clone();
            status.generation = map.map(|map| map.id().generation);
            status.members = map.map(|map| map.members().clone()).unwrap_or_default();
            status.acts_on = accepted.clone();
            status.waiting_for = self.logic.waiting_for().cloned().collect();
            status.problem = problem.map(str::to_owned);
            *status != before
        });
    }
}

/// The answer to the request under way; never, without one.
async fn answer(request: &mut Option<BoxFuture<'static, Answer>>) -> Answer {
    let Some(asking) = request else { return std::future::pending().await };
    let answer = asking.await;
    *request = None;
    answer
}
