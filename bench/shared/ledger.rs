//! The reconciled versions of each owner, and whether two workers had the same owner at a time.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::delays::{Delays, SENT_AT};
use crate::digest::fnv1a;

const NAMESPACES: usize = 20;

#[derive(Default)]
pub struct Ledger {
    sum: Mutex<Sum>,
    changed: Notify,
}

struct Sum {
    owners: Vec<Owner>,
    /// How many owners were reconciled.
    reconciled: usize,
    /// The sum of the versions that were reconciled last.
    versions: u64,
    first: Option<Instant>,
    /// Counts and delays start once all owners were reconciled.
    counts: bool,
    updates: usize,
    failures: usize,
    /// How often a worker began with an owner that another one had.
    overlaps: usize,
    delays: Delays,
    random: fastrand::Rng,
}

/// An owner, by its number.
#[derive(Clone, Copy, Default)]
struct Owner {
    /// The last version that was reconciled with success.
    version: u64,
    is_busy: bool,
}

/// A reconciliation. One that is dropped has failed.
pub struct Busy<'a> {
    ledger: &'a Ledger,
    index: usize,
}

impl Default for Sum {
    fn default() -> Self {
        Self {
            owners: Vec::new(),
            reconciled: 0,
            versions: 0,
            first: None,
            counts: false,
            updates: 0,
            failures: 0,
            overlaps: 0,
            delays: Delays::default(),
            random: fastrand::Rng::with_seed(1),
        }
    }
}

impl Ledger {
    pub fn expect(&self, owners: usize) {
        self.sum().owners = vec![Owner::default(); owners];
    }

    /// A worker has the owner of this name. `None` for an object that is no owner.
    pub fn begin(&self, name: &str) -> Option<Busy<'_>> {
        let index: usize = name.strip_prefix("owner-")?.parse().ok()?;
        let sum = &mut *self.sum();
        let owner = sum.owners.get_mut(index)?;
        sum.overlaps += usize::from(owner.is_busy);
        owner.is_busy = true;
        sum.first.get_or_insert_with(Instant::now);
        Some(Busy { ledger: self, index })
    }

    /// One of twenty times.
    pub fn draws_failure(&self) -> bool {
        self.sum().random.u8(..20) == 0
    }

    /// When the first reconciliation began.
    pub fn first(&self) -> Option<Instant> {
        self.sum().first
    }

    pub fn begin_counts(&self) {
        self.sum().counts = true;
    }

    /// Waits until each owner was reconciled.
    pub async fn until_all(&self) {
        self.until(|sum| sum.reconciled == sum.owners.len()).await;
    }

    /// Waits until the versions that were reconciled have this sum.
    pub async fn until_versions(&self, versions: u64) -> Value {
        self.until(|sum| sum.versions >= versions).await;
        let sum = self.sum();
        let Sum { updates, failures, overlaps, .. } = &*sum;
        let mut reached = json!({
            "event": "reached", "updates": updates, "failures": failures, "overlaps": overlaps,
        });
        sum.delays.say_in(&mut reached);
        reached
    }

    async fn until(&self, reached: impl Fn(&Sum) -> bool) {
        while !reached(&self.sum()) {
            self.changed.notified().await;
        }
    }

    /// The checksum of the versions that were reconciled.
    pub fn digest(&self) -> Value {
        let sum = self.sum();
        let texts =
            sum.owners.iter().enumerate().map(|(index, owner)| {
                format!("owners-{}/owner-{index}\n{}", index % NAMESPACES, owner.version)
            });
        let checksum = texts.fold(0_u64, |checksum, text| checksum.wrapping_add(fnv1a(text.as_bytes())));
        json!({ "event": "digest", "objects": sum.reconciled, "checksum": format!("{checksum:016x}") })
    }

    fn sum(&self) -> MutexGuard<'_, Sum> {
        self.sum.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Busy<'_> {
    /// The owner was reconciled as it is in this metadata.
    pub fn done(self, metadata: &ObjectMeta) {
        let version = metadata.resource_version.as_ref().and_then(|it| it.parse().ok()).unwrap_or_default();
        let sum = &mut *self.ledger.sum();
        let owner = &mut sum.owners[self.index];
        owner.is_busy = false;
        if version <= owner.version {
            return;
        }
        sum.reconciled += usize::from(owner.version == 0);
        sum.versions += version - owner.version;
        owner.version = version;
        if sum.counts {
            sum.updates += 1;
            let sent_at = metadata.annotations.as_ref().and_then(|annotations| annotations.get(SENT_AT));
            if let Some(micros) = sent_at.and_then(|micros| micros.parse().ok()) {
                sum.delays.add_since(micros);
            }
        }
        self.ledger.changed.notify_one();
    }
}

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        let sum = &mut *self.ledger.sum();
        let owner = &mut sum.owners[self.index];
        // `done` has said so already if the reconciliation succeeded.
        sum.failures += usize::from(owner.is_busy);
        owner.is_busy = false;
    }
}
