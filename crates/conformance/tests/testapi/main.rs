//! The contract, shown against the embedded server: the same clauses as against the real one, and those that need
//! faults which no real server makes on demand.

#![expect(
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "a test may stop at a surprise, its helpers too"
)]

#[path = "../clauses/mod.rs"]
mod clauses;
mod compressed_watches;
mod faulty_lists;
mod faulty_streams;
mod faulty_watches;
mod layers;
mod newer_servers;
#[cfg(unix)]
mod plugins;
mod storms;

/// The kind of server that the clauses are shown against.
const SERVER: conformance::Kind = conformance::Kind::TestApi;

/// The causes that an informer has reported since the last call, without the ends of watches.
fn causes(reports: &mut informer::Reports) -> Vec<informer::Cause> {
    let mut causes = Vec::new();
    while let Some(report) = reports.try_recv() {
        match report {
            informer::Report::Disconnected(informer::Cause::Ended) => {}
            informer::Report::Disconnected(cause) => causes.push(cause),
            _ => {}
        }
    }
    causes
}
