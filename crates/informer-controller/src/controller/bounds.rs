//! Which keys a controller may reconcile: all, or those of its seat.

use std::time::Duration;

use informer::share::{Ranges, ShareBy, hash};
use informer::{Object, ObjectKey};
use tokio::time::Instant;

use crate::cause::Causes;
use crate::seat::{News, Seat};

/// The bounds of a controller with a seat; none for all others.
pub(super) struct Bounds(Option<Limited>);

struct Limited {
    seat: Seat,
    accept: Ranges,
    /// Until when what runs outside may end; `None` if nothing does.
    draining: Option<Instant>,
}

impl Bounds {
    pub(super) fn of(seat: Option<&Seat>) -> Self {
        Self(seat.map(|seat| Limited { seat: seat.clone(), accept: seat.accepted(), draining: None }))
    }

    /// The hash by which a key belongs to a share. An object that is gone has none by its uid.
    pub(super) fn hash(&self, key: &ObjectKey, object: Option<&Object>) -> Option<u64> {
        let share = &self.0.as_ref()?.seat.share;
        match share.by() {
            ShareBy::Namespace => Some(hash(key.namespace().unwrap_or_default())),
            ShareBy::Uid | ShareBy::ControllerUid => share.hash_of(object?).ok().flatten(),
        }
    }

    /// Whether the key with this hash may be reconciled, for these causes. A key without an object belongs to whoever saw
    /// it go.
    pub(super) fn allow(&self, hash: Option<u64>, causes: u32) -> bool {
        let Some(limited) = &self.0 else { return true };
        hash.map_or(causes & Causes::GONE != 0, |hash| limited.accept.contains(hash))
    }

    /// Whether what runs with this hash has to end.
    pub(super) fn ends(&self, hash: Option<u64>) -> bool {
        let outside = |limited: &Limited| hash.is_some_and(|hash| !limited.accept.contains(hash));
        self.0.as_ref().is_some_and(outside)
    }

    /// Resolves when the bounds have become narrower.
    pub(super) async fn narrowed(&mut self) {
        match &mut self.0 {
            Some(limited) => limited.seat.shrunk().await,
            None => std::future::pending().await,
        }
    }

    /// Takes them over. What runs outside has so long to end.
    pub(super) fn narrow(&mut self, grace: Duration) {
        if let Some(limited) = &mut self.0 {
            limited.accept = limited.seat.accepted();
            limited.draining = Some(Instant::now() + grace);
        }
    }

    /// Nothing outside runs any more.
    pub(super) fn drained(&mut self) {
        if let Some(limited) = &mut self.0
            && limited.draining.take().is_some()
        {
            limited.seat.tell(News::Drained(limited.accept.clone()));
        }
    }

    /// Until when what runs outside may end.
    pub(super) fn draining(&self) -> Option<Instant> {
        self.0.as_ref().and_then(|limited| limited.draining)
    }
}
