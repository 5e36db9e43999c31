//! The requests for the leases of all members.

use std::collections::BTreeMap;

use informer::share::ShareBy;
use informer_controller::internals::{Lease, LeaseClient, Marks, Problem};

use crate::access::{ACKNOWLEDGED, LEAVING, MAP, Names, OF};
use crate::logic::Look;
use crate::map::Found;
use crate::members::FoundMember;

/// Carries the requests of one member.
pub(crate) struct Requests {
    leases: LeaseClient,
    names: Names,
    by: ShareBy,
}

/// The leases at one moment.
#[derive(Debug)]
pub(crate) struct Leases {
    pub(crate) look: Look,
    /// The lease of the map, if there is one.
    map: Option<Lease>,
    /// The leases of members.
    members: BTreeMap<String, Lease>,
}

impl Requests {
    pub(crate) fn new(leases: LeaseClient, names: Names, by: ShareBy) -> Self {
        Self { leases, names, by }
    }

    pub(crate) fn names(&self) -> &Names {
        &self.names
    }

    /// Lists the leases.
    pub(crate) async fn look(&self) -> Result<Leases, Problem> {
        let shards = &self.names.shards;
        let mut map = None;
        let mut members = BTreeMap::new();
        for lease in self.leases.list(OF, shards).await? {
            if lease.name() == shards {
                map = Some(lease);
            } else if let Some(member) = self.names.member(lease.name()) {
                members.insert(member.to_owned(), lease);
            }
        }
        if map.is_none() {
            map = self.unlabelled().await?;
        }
        let look = Look {
            map: self.read_map(map.as_ref()),
            members: members.iter().map(|(member, lease)| (member.clone(), found(lease))).collect(),
        };
        Ok(Leases { look, map, members })
    }

    /// The lease of the map, if somebody has removed its label.
    async fn unlabelled(&self) -> Result<Option<Lease>, Problem> {
        match self.leases.get(&self.names.shards).await {
            Ok(lease) => Ok(Some(lease)),
            Err(problem) if problem.code() == Some(404) => Ok(None),
            Err(problem) => Err(problem),
        }
    }

    fn read_map(&self, lease: Option<&Lease>) -> Found {
        let Some(lease) = lease else { return Found::Nothing };
        let found = Found::read(lease.annotation(MAP).unwrap_or_default(), self.by);
        match found {
            // It was not read together with the leases of the members.
            Found::Map(_) if lease.label(OF) != Some(&self.names.shards) => Found::Nothing,
            found => found,
        }
    }

    /// Writes a map if the lease of the map is still the one that was found. Returns whether it was.
    pub(crate) async fn write_map(&self, leases: &Leases, text: String) -> Result<bool, Problem> {
        let marks = Marks {
            labels: [(OF, self.names.shards.clone())].into(),
            annotations: [(MAP, Some(text))].into(),
        };
        let lease = leases.map.clone().unwrap_or_else(|| Lease::new(&self.names.shards));
        match self.leases.write(&lease.marked(&marks)).await {
            Ok(_) => Ok(true),
            Err(problem) if matches!(problem.code(), Some(404 | 409)) => Ok(false),
            Err(problem) => Err(problem),
        }
    }

    /// Deletes the lease of a member, if it is still the one that was found.
    pub(crate) async fn delete(&self, leases: &Leases, member: &str) -> Result<(), Problem> {
        match leases.members.get(member) {
            Some(lease) => self.leases.delete(lease).await,
            None => Ok(()),
        }
    }
}

fn found(lease: &Lease) -> FoundMember {
    FoundMember {
        record: lease.record(),
        acknowledged: lease.annotation(ACKNOWLEDGED).and_then(|text| text.parse().ok()),
        leaving: lease.annotation(LEAVING).is_some(),
    }
}
