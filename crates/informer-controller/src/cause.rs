//! Why a reconciliation runs.

use std::fmt;

/// One reason for a reconciliation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Cause {
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

const ALL: [Cause; 9] = [
    Cause::Initial,
    Cause::Object,
    Cause::Resync,
    Cause::Related,
    Cause::Retry,
    Cause::Again,
    Cause::Interrupted,
    Cause::Leading,
    Cause::Asked,
];

/// The reasons for one reconciliation. They are several if an object waits when the second one comes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Causes(u32);

impl Cause {
    const fn bit(self) -> u32 {
        1 << self as u32
    }
}

impl Causes {
    /// Besides the causes: the bit of a key whose object this process has seen to go.
    pub(crate) const GONE: u32 = 1 << 31;

    /// Whether `cause` is among them.
    pub fn contains(self, cause: Cause) -> bool {
        self.0 & cause.bit() != 0
    }

    /// Whether this process saw the object go since it was last reconciled.
    pub fn saw_deletion(self) -> bool {
        self.0 & Self::GONE != 0
    }

    /// All of them.
    pub fn iter(self) -> impl Iterator<Item = Cause> {
        ALL.into_iter().filter(move |cause| self.contains(*cause))
    }

    pub(crate) fn from_bits(bits: u32) -> Self {
        Self(bits)
    }

    pub(crate) fn bits(self) -> u32 {
        self.0
    }
}

impl From<Cause> for Causes {
    fn from(cause: Cause) -> Self {
        Self(cause.bit())
    }
}

impl fmt::Debug for Causes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_cause_has_a_bit_of_its_own() {
        let bits = ALL.map(Cause::bit);
        assert_eq!(bits.iter().fold(0, |all, bit| all | bit).count_ones() as usize, ALL.len());
        let causes = Causes::from_bits(Cause::Retry.bit() | Cause::Object.bit());
        assert_eq!(causes.iter().collect::<Vec<_>>(), [Cause::Object, Cause::Retry]);
    }
}
