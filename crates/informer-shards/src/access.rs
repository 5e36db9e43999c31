//! The names of leases, and of what is written on them.

use informer_controller::internals::{check_name, host_name};

use crate::ShardsError;

/// The label of all leases of one set of shards: its name.
pub(crate) const OF: &str = "shards.informer.dev/of";
/// The map, as JSON, on the lease of the shards.
pub(crate) const MAP: &str = "shards.informer.dev/map";
/// The map outside of which a member does nothing, on its lease.
pub(crate) const ACKNOWLEDGED: &str = "shards.informer.dev/acknowledged";
/// Present on the lease of a member that wants no hashes any more.
pub(crate) const LEAVING: &str = "shards.informer.dev/leaving";

/// The longest value of a label, and the longest name of an object.
/// <https://kubernetes.io/docs/concepts/overview/working-with-objects/names/>
const LONGEST_LABEL: usize = 63;
const LONGEST_NAME: usize = 253;

/// The names of one member's leases.
#[derive(Debug, Clone)]
pub(crate) struct Names {
    /// That of the shards, and of the lease with the map.
    pub(crate) shards: String,
    identity: String,
}

impl Names {
    pub(crate) fn new(namespace: &str, shards: &str, identity: &str) -> Result<Self, ShardsError> {
        for name in [namespace, shards, identity] {
            check_name(name)?;
        }
        if shards.len() > LONGEST_LABEL || !shards.ends_with(|last: char| last.is_ascii_alphanumeric()) {
            return Err(ShardsError::invalid(format!("`{shards}` cannot be the value of a label")));
        }
        let names = Self { shards: shards.to_owned(), identity: identity.to_owned() };
        if names.own_lease().len() > LONGEST_NAME {
            return Err(ShardsError::invalid("the name and the identity are too long together"));
        }
        Ok(names)
    }

    pub(crate) fn own_lease(&self) -> String {
        format!("{}-{}", self.shards, self.identity)
    }

    /// The member to whom a lease belongs.
    pub(crate) fn member<'a>(&self, lease: &'a str) -> Option<&'a str> {
        lease.strip_prefix(&self.shards)?.strip_prefix('-')
    }
}

/// The host's name as far as it fits, and a random number.
pub(crate) fn default_identity() -> String {
    let fits = |letter: char| if letter.is_ascii_alphanumeric() { letter.to_ascii_lowercase() } else { '-' };
    let host: String = host_name().chars().take(100).map(fits).collect();
    format!("{}-{:010x}", host.trim_matches('-'), fastrand::u64(..1 << 40)).trim_start_matches('-').to_owned()
}
