//! What a history is told besides changes.

use jiff::Timestamp;

use super::item::{InboxItem, Resources};
use super::{Follow, Target};

impl Follow {
    /// Tells a history what is followed now.
    pub(super) fn tell_resources(&self) {
        if self.options.with_first {
            let names = self.targets.keys().map(Target::text).collect();
            let (served, complete) = (self.served.clone(), self.unavailable.is_empty());
            self.inbox.push(InboxItem::Resources(Resources { names, served, complete }));
        }
    }

    /// Tells a history that a gap has begun.
    pub(super) fn tell_lost(&self, target: &Target, now: Timestamp, cause: String) {
        if self.options.with_first {
            self.inbox.push(InboxItem::Lost(target.text(), now, cause));
        }
    }

    /// Tells a history that everything is watched at present.
    pub(super) fn tell_alive(&self, until: Timestamp) {
        // While the server cannot be reached, nothing is seen. One resource that is lost has a gap of its own.
        if self.options.with_first && self.announced && self.standing.borrow().is_watching() {
            self.inbox.push(InboxItem::Alive(until));
        }
    }
}
