//! Writes through [`testapi::Api::handle`], compared with what a real kube-apiserver 1.36 answered to the same requests.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests may stop at a surprise")]

mod calling;
mod collecting;
mod creating;
mod custom;
mod deleting;
mod fixture;
mod kinds;
mod namespaces;
mod patching;
mod random;
mod restoring;
mod updating;
