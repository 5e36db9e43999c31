//! The workers that wait for an item, and which of them is woken.

use std::collections::BTreeMap;
use std::task::Waker;

use informer_core::Time;

/// A worker that waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Ticket(u64);

/// The workers that wait. As many of them are woken as there are items. One of them also waits for the time of the next
/// delayed item, so that the others sleep until there is an item for them.
#[derive(Default)]
pub(super) struct Waiters {
    /// Those that were not woken, in the order of arrival.
    asleep: BTreeMap<Ticket, Waker>,
    /// How many were woken and have not looked for an item since.
    woken: usize,
    /// Which of those asleep wakes by itself, and when.
    timekeeper: Option<(Ticket, Time)>,
    next_ticket: u64,
}

/// What there is to wake for.
pub(super) struct Work {
    /// Items that are ready.
    pub(super) ready: usize,
    /// The time of the next delayed item.
    pub(super) next: Option<Time>,
    /// There will be no items any more.
    pub(super) is_over: bool,
}

impl Waiters {
    /// A worker found nothing, and sleeps. It keeps its place if it had one. If this returns a time, the worker wakes by itself
    /// at that time.
    pub(super) fn sleep(
        &mut self,
        ticket: &mut Option<Ticket>,
        waker: Waker,
        next: Option<Time>,
    ) -> Option<Time> {
        let ticket = *ticket.get_or_insert_with(|| {
            self.next_ticket += 1;
            Ticket(self.next_ticket)
        });
        self.asleep.insert(ticket, waker);
        let at = next.filter(|at| self.is_too_late(*at))?;
        // A timekeeper that has too late a time wakes then and finds nothing to do.
        self.timekeeper = Some((ticket, at));
        Some(at)
    }

    /// A worker looks for an item, or is gone: it does not sleep any more. Returns its waker if it was asleep.
    pub(super) fn awake(&mut self, ticket: Ticket) -> Option<Waker> {
        let waker = self.asleep.remove(&ticket);
        if waker.is_none() {
            self.woken = self.woken.saturating_sub(1);
        }
        self.timekeeper = self.timekeeper.filter(|(keeper, _)| *keeper != ticket);
        waker
    }

    /// Whether there is nobody to wake.
    pub(super) fn are_none(&self) -> bool {
        self.asleep.is_empty()
    }

    /// The next worker to wake, until there is none. It must be asked after each change of the work, and after a worker is
    /// [`awake`](Self::awake) without sleeping again.
    pub(super) fn wake_next(&mut self, work: &Work) -> Option<Waker> {
        let (first, _) = self.asleep.first_key_value()?;
        let keeper = self.timekeeper.map(|(keeper, _)| keeper);
        let ticket = if work.is_over {
            *first
        } else if self.woken < work.ready {
            // The timekeeper is last, because another one has to take its place.
            let others = self.asleep.keys().find(|ticket| Some(**ticket) != keeper);
            *others.unwrap_or(first)
        } else if self.woken == 0 && work.next.is_some_and(|at| self.is_too_late(at)) {
            keeper.unwrap_or(*first)
        } else {
            // Those who were woken and find nothing keep the time.
            return None;
        };
        self.timekeeper = self.timekeeper.filter(|(keeper, _)| *keeper != ticket);
        self.woken += 1;
        self.asleep.remove(&ticket)
    }

    /// Whether nobody wakes by itself as early as this.
    fn is_too_late(&self, at: Time) -> bool {
        self.timekeeper.is_none_or(|(_, kept)| at < kept)
    }
}
