//! The messages of the kinds that fill clusters, by `cargo xtask messages` from the Go types of Kubernetes.
//!
//! The code has the fields of every version that k8s-openapi supports. Those that came with a later version than the program's are
//! skipped.

#![allow(
    clippy::match_same_arms,
    clippy::match_single_binding,
    clippy::single_match,
    clippy::too_many_lines,
    unused_variables,
    reason = "generated: a line for each field"
)]

use informer_protobuf::Kind;
use k8s_openapi::{api, apimachinery};

use crate::element::Member;
use crate::fields::{At, Context};
use crate::messages::Message;

include!("generated/messages.inc");
