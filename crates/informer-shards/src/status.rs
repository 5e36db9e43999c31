//! Where a member stands, for observers.

use std::collections::BTreeMap;

use informer::share::Ranges;

/// Where a member of shards stands, as far as it knows.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ShardsStatus {
    /// The name of the shards.
    pub name: String,
    /// This member.
    pub identity: String,
    /// The number of the map that was found last. It rises with each map.
    pub generation: Option<u64>,
    /// Which member has which hashes in that map.
    pub members: BTreeMap<String, Ranges>,
    /// The hashes on which this member acts: those that it has in the map, or fewer while a change is under way.
    pub acts_on: Ranges,
    /// The live members that have not acknowledged the map. While there are some, nobody begins with new hashes.
    pub waiting_for: Vec<String>,
    /// Why the member cannot look at the leases, or cannot follow the map.
    pub problem: Option<String>,
    /// How often the member has lost its lease.
    pub losses: u64,
    /// How many controllers were made for new shares.
    pub controllers: u64,
}

impl ShardsStatus {
    pub(crate) fn new(name: &str, identity: &str) -> Self {
        Self {
            name: name.to_owned(),
            identity: identity.to_owned(),
            generation: None,
            members: BTreeMap::new(),
            acts_on: Ranges::none(),
            waiting_for: Vec::new(),
            problem: None,
            losses: 0,
            controllers: 0,
        }
    }

    /// The hashes that this member has in the map.
    pub fn share(&self) -> Ranges {
        self.members.get(&self.identity).cloned().unwrap_or_default()
    }

    /// Whether this member acts on all that it has in the map.
    pub fn is_settled(&self) -> bool {
        self.generation.is_some() && self.waiting_for.is_empty() && self.acts_on == self.share()
    }
}
