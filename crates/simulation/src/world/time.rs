//! Time passes, bytes arrive, and readers read.

use std::time::Duration;

use informer_core::Time;
use informer_core::engine::Input;
use informer_core::upstream;

use super::{TURNS, World};
use crate::invariant::{Invariant, Violation};
use crate::subscription::Subscription;

impl World<'_> {
    /// Lets time pass, and stops at each deadline.
    pub(crate) fn pass(&mut self, duration: Duration) -> Result<(), Violation> {
        let until = self.now + duration;
        let asked = self.asked();
        for _ in 0..TURNS {
            let Some(next) = self.deadline().filter(|deadline| *deadline <= until) else {
                self.now = until;
                return self.check_requests(&asked, duration);
            };
            self.now = self.now.max(next);
            self.server.tick(self.now);
            if self.upstream.deadline().is_some_and(|deadline| deadline <= self.now) {
                self.upstream(upstream::Input::Tick)?;
            }
            self.each(Self::tick)?;
            self.flow()?;
            self.each(|world| {
                world.reconcile()?;
                world.check()
            })?;
        }
        Err(Invariant::Pace.violated("time does not pass"))
    }

    fn deadline(&self) -> Option<Time> {
        let informers = [Some(&self.mine), self.other.as_ref()].into_iter().flatten();
        let of_informers = informers.flat_map(|informer| {
            let of_controller =
                informer.controller.as_ref().and_then(|controller| controller.deadline(self.now));
            [informer.content.engine.deadline(), of_controller].into_iter().flatten()
        });
        let of_server = self.server.deadline().into_iter().chain(self.upstream.deadline());
        let answers = self.answers.iter().map(|answer| answer.at);
        of_informers.chain(of_server).chain(answers).min()
    }

    fn tick(&mut self) -> Result<(), Violation> {
        if self.mine.content.engine.deadline().is_none_or(|deadline| deadline > self.now) {
            return Ok(());
        }
        self.input(Input::Tick)?;
        // The first tick may confirm a load, whose next deadline may be due, too.
        if self.mine.content.engine.deadline().is_some_and(|deadline| deadline <= self.now) {
            self.input(Input::Tick)?;
        }
        let next = self.mine.content.engine.deadline();
        Invariant::Pace.holds(next.is_none_or(|next| next > self.now), || {
            format!("after its tick the next deadline is {next:?}, at {:?}", self.now)
        })
    }

    /// The numbers of requests of all sources.
    fn asked(&self) -> Vec<u32> {
        let informers = [Some(&self.mine), self.other.as_ref()].into_iter().flatten();
        informers.flat_map(|informer| informer.clients.iter().map(|client| client.asked)).collect()
    }

    /// The backoff allows few requests in a given time. A source that the server does not reach asks again at each answer to another one.
    fn check_requests(&self, before: &[u32], duration: Duration) -> Result<(), Violation> {
        let mut most = 16 + u32::try_from(duration.as_secs() / 10).unwrap_or(u32::MAX);
        let mut asked: Vec<u32> =
            self.asked().into_iter().zip(before).map(|(after, before)| after - before).collect();
        asked.sort_unstable();
        for asked in asked {
            Invariant::Pace.holds(asked <= most, || format!("{asked} requests within {duration:?}"))?;
            most = most.saturating_add(asked);
        }
        Ok(())
    }

    /// Lets bytes arrive and readers read, and checks the invariants.
    pub(super) fn settle(&mut self) -> Result<(), Violation> {
        self.flow()?;
        self.each(|world| {
            world.read_by_themselves()?;
            world.check()
        })
    }

    pub(super) fn read_by_themselves(&mut self) -> Result<(), Violation> {
        self.reconcile()?;
        for which in 0..self.mine.content.subscriptions.len() {
            let pace = self
                .mine
                .content
                .subscriptions
                .get(which)
                .map_or(0, |subscription| subscription.reading.pace);
            // Such a reader reads only when it was woken.
            if pace > 0 && self.mine.content.subscriptions.get(which).is_some_and(Subscription::is_awake) {
                self.mine.content.read(which, pace.into(), &self.server.truth, self.trace)?;
            }
        }
        Ok(())
    }

    /// Lets the controller take changes and start reconciliations.
    pub(super) fn reconcile(&mut self) -> Result<(), Violation> {
        let Some(controller) = &mut self.mine.controller else { return Ok(()) };
        controller.listen(self.now);
        controller.advance(self.now, &self.mine.content, &self.server, self.trace)
    }

    pub(super) fn flow(&mut self) -> Result<(), Violation> {
        for _ in 0..TURNS {
            self.follow_upstream()?;
            let mut moved = self.take_answers()?;
            self.each(|world| {
                moved |= world.flow_once()?;
                Ok(())
            })?;
            if !moved {
                return Ok(());
            }
        }
        Err(Invariant::Pace.violated("there are always more bytes"))
    }

    fn flow_once(&mut self) -> Result<bool, Violation> {
        let chunk = usize::from(self.setup.chunk);
        let mut moved = false;
        for which in 0..self.mine.clients.len() {
            let link = self.mine.clients.get(which).and_then(|client| client.link);
            if link.and_then(|link| self.server.link(link)).is_some_and(|link| link.flows) {
                moved |= self.receive(which, chunk)?;
            }
        }
        if !self.setup.code_by_hand {
            moved |= self.run_code()?;
        }
        Ok(moved)
    }
}
