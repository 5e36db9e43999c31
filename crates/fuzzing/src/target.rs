//! All fuzz targets, by name.

#[cfg(feature = "typed")]
use crate::typed;
use crate::{json, lists, mailbox, protobuf, seeds, selectors, store, watches};
#[cfg(feature = "secrets")]
use crate::{matrix, secrets};

/// One thing that takes any bytes, and panics where it breaks a promise.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    /// As the file in `fuzz/fuzz_targets` is called.
    pub name: &'static str,
    /// Runs it.
    pub run: fn(&[u8]),
    /// An input that leads into it, by seed: where a fuzzer begins.
    pub example: fn(u64) -> Vec<u8>,
}

/// All of them.
pub const TARGETS: &[Target] = &[
    Target { name: "list_decoder", run: lists::run, example: lists::example },
    Target { name: "watch_decoder", run: watches::run, example: watches::example },
    Target { name: "protobuf_list_decoder", run: protobuf::lists::run, example: protobuf::lists::example },
    Target {
        name: "protobuf_watch_decoder",
        run: protobuf::watches::run,
        example: protobuf::watches::example,
    },
    Target { name: "selectors", run: selectors::run, example: selectors::example },
    Target { name: "store", run: store::run, example: |seed| seeds::bytes(seed, 400) },
    Target { name: "packed_store", run: store::run_packed, example: |seed| seeds::bytes(seed, 400) },
    Target { name: "protobuf", run: protobuf::run, example: protobuf::example },
    #[cfg(feature = "typed")]
    Target { name: "typed", run: typed::run, example: typed::example },
    #[cfg(feature = "secrets")]
    Target { name: "secrets", run: secrets::run, example: secrets::example },
    #[cfg(feature = "secrets")]
    Target { name: "matrix", run: matrix::run, example: matrix::example },
    Target { name: "mailbox", run: mailbox::run, example: |seed| seeds::bytes(seed, 400) },
];

impl Target {
    /// An input by seed: of three, one is an example, and two are damaged ones.
    pub fn input(&self, seed: u64) -> Vec<u8> {
        let mut input = (self.example)(seed);
        if !seed.is_multiple_of(3) {
            json::garble(&mut fastrand::Rng::with_seed(seed), &mut input);
        }
        input
    }
}
