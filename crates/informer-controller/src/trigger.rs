//! Why a reconciliation runs.

use std::fmt;

/// One reason for a reconciliation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Trigger {
    /// The object belongs to the initial list, of this process or of a source that was added.
    Initial,
    /// The object itself was added, changed or deleted.
    Object,
    /// The resync period of the controller's informer has passed.
    Resync,
    /// An object that this one owns, or that was mapped to it, was added, changed or deleted.
    Related,
    /// The last reconciliation failed.
    Retry,
    /// The last reconciliation asked for this one, with [`Outcome::After`](crate::Outcome::After).
    Again,
    /// The last reconciliation was cut off, because leadership was lost.
    Interrupted,
    /// This process became the leader: whatever the former leader left unfinished is done now.
    Leading,
    /// The program asked for it ([`ControllerHandle::reconcile`](crate::ControllerHandle::reconcile)).
    Asked,
}

const ALL: [Trigger; 9] = [
    Trigger::Initial,
    Trigger::Object,
    Trigger::Resync,
    Trigger::Related,
    Trigger::Retry,
    Trigger::Again,
    Trigger::Interrupted,
    Trigger::Leading,
    Trigger::Asked,
];

/// The reasons for one reconciliation. They are several if an object waits when the second one comes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Triggers(u32);

impl Trigger {
    const fn bit(self) -> u32 {
        1 << self as u32
    }
}

impl Triggers {
    /// Besides the triggers: the bit of a key whose object this process has seen to go.
    pub(crate) const GONE: u32 = 1 << 31;

    /// Whether `trigger` is among them.
    pub fn contains(self, trigger: Trigger) -> bool {
        self.0 & trigger.bit() != 0
    }

    /// Whether this process saw the object go since it was last reconciled.
    pub fn saw_deletion(self) -> bool {
        self.0 & Self::GONE != 0
    }

    /// All of them.
    pub fn iter(self) -> impl Iterator<Item = Trigger> {
        ALL.into_iter().filter(move |trigger| self.contains(*trigger))
    }

    pub(crate) fn from_bits(bits: u32) -> Self {
        Self(bits)
    }

    pub(crate) fn bits(self) -> u32 {
        self.0
    }
}

impl From<Trigger> for Triggers {
    fn from(trigger: Trigger) -> Self {
        Self(trigger.bit())
    }
}

impl fmt::Debug for Triggers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_trigger_has_a_bit_of_its_own() {
        let bits = ALL.map(Trigger::bit);
        assert_eq!(bits.iter().fold(0, |all, bit| all | bit).count_ones() as usize, ALL.len());
        let triggers = Triggers::from_bits(Trigger::Retry.bit() | Trigger::Object.bit());
        assert_eq!(triggers.iter().collect::<Vec<_>>(), [Trigger::Object, Trigger::Retry]);
    }
}
