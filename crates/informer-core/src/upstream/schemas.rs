//! Which schemas a server has, by the hashes in the index of its OpenAPI documents, and when the index is read.
//!
//! A schema changes with a definition (defaults, pruning) and with an upgrade of the server. Objects that were not written
//! since may then read differently at the same resourceVersion (L14). One small request shows this for all resources. It is
//! sent when the first informer starts, and when a watch has ended before its timeout: a server ends the watches of a changed
//! definition. Further requests follow at growing intervals, because the index follows the definitions with a delay.

use std::collections::HashMap;
use std::time::Duration;

use crate::Time;

#[derive(Debug)]
pub(super) struct Schemas {
    pace: Duration,
    /// The address of each document, which contains its hash, by group and version as in `apis/apps/v1`.
    addresses: HashMap<String, String>,
    /// When the last request was answered, or gave up.
    read: Option<Time>,
    /// When the next request is due. `None` before an informer starts.
    due: Option<Time>,
    /// A request was sent, and not answered yet.
    is_reading: bool,
    /// The interval until the next request.
    distance: Duration,
}

/// The longest interval between requests, if no watch ends before its timeout.
const LONGEST_DISTANCE: Duration = Duration::from_secs(600);
const SHORTEST_PACE: Duration = Duration::from_millis(100);
/// A request without an answer is sent again after this time: the informer that sent it may have ended.
const GIVE_UP: Duration = Duration::from_secs(15);
/// The document of the core group contains the minor version of the server, so its hash changes with each minor upgrade.
const CORE: &str = "api/v1";

impl Schemas {
    pub(super) fn new(pace: Duration) -> Self {
        let pace = pace.clamp(SHORTEST_PACE, LONGEST_DISTANCE);
        Self { pace, addresses: HashMap::new(), read: None, due: None, is_reading: false, distance: pace }
    }

    /// An informer starts, and `lists` at once.
    pub(super) fn wanted(&mut self, now: Time, lists: bool) {
        if lists && self.read.is_none() && !self.is_reading {
            self.due = Some(now);
        }
        self.due.get_or_insert(now + self.pace / 10);
    }

    /// A watch has ended before its timeout. The index shows a changed definition after about a second.
    pub(super) fn read_soon(&mut self, now: Time) {
        self.distance = self.pace;
        let soon = now + self.pace / 10;
        let due = self.read.map_or(soon, |read| soon.max(read + self.pace));
        self.due = self.due.map(|later| if self.is_reading { later } else { later.min(due) });
    }

    /// Whether to send a request now. In an outage the turn passes.
    pub(super) fn is_due(&mut self, now: Time, is_outage: bool) -> bool {
        if self.due.is_none_or(|due| now < due) {
            return false;
        }
        if is_outage {
            self.read(now, None);
            return false;
        }
        self.is_reading = true;
        self.due = Some(now + GIVE_UP);
        true
    }

    pub(super) fn read(&mut self, now: Time, addresses: Option<HashMap<String, String>>) {
        self.is_reading = false;
        self.read = Some(now);
        self.due = Some(now + self.distance);
        self.distance = (self.distance * 2).min(LONGEST_DISTANCE);
        // A document that is missing now keeps its former hash: a server that has just started does not have all of them.
        self.addresses.extend(addresses.unwrap_or_default());
    }

    /// Whether the index was read once, or could not be.
    pub(super) fn were_read(&self) -> bool {
        self.read.is_some()
    }

    pub(super) fn deadline(&self) -> Option<Time> {
        self.due
    }

    /// The fingerprint of the schema of a group and version: its name and the hashes of its own document and of the core group's,
    /// which shows the server's release. `None` while it is unknown.
    pub(super) fn fingerprint(&self, api_version: &str) -> Option<String> {
        let root = if api_version.contains('/') { "apis" } else { "api" };
        let own = self.addresses.get(&format!("{root}/{api_version}"))?;
        let core = self.addresses.get(CORE).map(String::as_str).unwrap_or_default();
        Some(format!("{api_version} {core} {own}"))
    }
}
