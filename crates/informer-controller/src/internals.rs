//! Leases and gates by themselves, hidden in the documentation: for the crate `informer-shards`, and for tests.

pub use crate::election::lease::{Lease, MicroTime, Record};
pub use crate::election::marks::Marks;
pub use crate::election::requests::{LeaseClient, Problem};
pub use crate::election::timing::{LONGEST, Timing};
pub use crate::election::{Access, check_name};
pub use crate::gate::GateKeeper;
pub use crate::host::host_name;
pub use informer_core::Time;
