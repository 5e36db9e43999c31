//! Deliveries by script, under random sinks against what is promised, and to real HTTP servers.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::cast_possible_truncation,
    reason = "a test may stop at a surprise, its helpers too; it prints its seed; its numbers are small"
)]

mod files;
mod jetstream;
mod lines;
mod log;
mod nats;
mod otlp;
mod random;
mod refusals;
mod running;
mod scripts;
mod server;
mod slack;
mod stage;
mod streams;
mod tenants;
mod webhooks;
