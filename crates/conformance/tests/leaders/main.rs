//! Q8: three candidates in processes of their own are frozen, also exactly between the gate's check and the call that
//! sends, and killed. The objects' history shows overlapping writes only where the documentation says so.

#![cfg(target_os = "linux")]
#![expect(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test may stop at a surprise, its helpers too"
)]

mod cast;
mod history;

use conformance::{Rig, config_map};

use cast::Cast;
use history::History;

/// How often the story is played: once, or as often as `cargo xtask soak` asks for.
fn times() -> usize {
    std::env::var("INFORMER_SOAK").map_or(1, |times| times.parse().unwrap())
}

async fn story(rig: &Rig) {
    for name in ["guarded", "unguarded"] {
        rig.create_with(config_map(name, "")).await;
    }
    let history = History::watch(rig).await;
    let mut cast = Cast::start(rig, ["a", "b", "c"]);

    // Frozen wherever it is, for longer than the lease.
    let frozen = cast.leader().await;
    history.has(frozen.generation).await;
    cast.freeze(&frozen);
    let mut leader = cast.leader().await;
    history.has(leader.generation).await;
    cast.thaw(&frozen);
    assert_eq!(cast.loss(&frozen).await, "Expired");

    // Frozen between the check and the call that sends: once with a precondition, once without.
    let mut late = Vec::new();
    for object in ["guarded", "unguarded"] {
        cast.stop_before(&leader, object).await;
        let next = cast.leader().await;
        history.has(next.generation).await;
        cast.thaw(&leader);
        cast.sent_late(&leader).await;
        assert_eq!(cast.loss(&leader).await, "Expired");
        late.push(leader.generation);
        leader = next;
    }

    cast.kill(&leader);
    let last = cast.leader().await;
    history.has(last.generation).await;
    // The last one gives the lease up, and another goes on.
    cast.end(&last);
    let other = cast.leader().await;
    history.has(other.generation).await;
    cast.end(&other);

    // Nobody's last check came after the next one's begin.
    cast.check_terms();
    // With a precondition, a write that was sent late has failed.
    assert_eq!(history.overlaps("guarded"), [0; 0]);
    // Without one it may have been carried out: that is not promised. Nothing else was.
    let overlaps = history.overlaps("unguarded");
    assert!(overlaps.is_empty() || overlaps == late[1..], "{overlaps:?}, sent late: {late:?}");
    eprintln!("{}: 6 terms, late writes: {overlaps:?}", rig.namespace());
}

#[tokio::test(flavor = "multi_thread")]
async fn q8_leaders_write_one_after_another() {
    for time in 1..=times() {
        let test = format!("q8_leaders_{time}");
        let Some(rig) = Rig::shared(conformance::Kind::Real, &test).await else { return };
        story(&rig).await;
    }
}
