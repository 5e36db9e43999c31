//! Q8: three candidates in processes of their own are frozen, also exactly between the gate's check and the call that
//! sends, and killed. The objects' history shows overlapping writes only where the documentation says so.

#![cfg(target_os = "linux")]
#![expect(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test may stop at a surprise, its helpers too"
)]
#![expect(clippy::print_stderr, reason = "a soak shows how far it is, and what was carried out late")]

mod cast;
mod history;

use conformance::{Rig, config_map};

use cast::{Cast, TooBusy};
use history::History;

/// How often the story is played: once, or as often as `cargo xtask soak` asks for.
fn times() -> usize {
    std::env::var("INFORMER_SOAK").map_or(1, |times| times.parse().unwrap())
}

/// The story; returns the generations of the writes that were sent late.
async fn story(cast: &mut Cast, history: &History) -> Result<Vec<u32>, TooBusy> {
    // Frozen wherever it is, for longer than the lease.
    let frozen = cast.leader(history).await?;
    cast.freeze(&frozen);
    let mut leader = cast.leader(history).await?;
    cast.thaw(&frozen);
    assert_eq!(cast.loss(&frozen).await?, "Expired");

    // Frozen between the check and the call that sends: once with a precondition, once without.
    let mut late = Vec::new();
    for object in ["guarded", "unguarded"] {
        cast.stop_before(&leader, object).await?;
        late.push(leader.generation);
        let next = cast.leader(history).await?;
        cast.thaw(&leader);
        cast.sent_late(&leader).await?;
        assert_eq!(cast.loss(&leader).await?, "Expired");
        leader = next;
    }

    cast.kill(&leader);
    let last = cast.leader(history).await?;
    // It gives the lease up, and another goes on.
    cast.end(&last);
    let other = cast.leader(history).await?;
    cast.end(&other);
    Ok(late)
}

/// Plays the story in the test's namespace. Returns whether it came to its end: the machine may be too busy for a lease of
/// two seconds. What is promised must hold in any case.
async fn play(rig: &Rig) -> bool {
    for name in ["guarded", "unguarded"] {
        rig.create_with(config_map(name, "")).await;
    }
    let history = History::watch(rig).await;
    let mut cast = Cast::start(rig, ["a", "b", "c"]);
    let end = story(&mut cast, &history).await;
    // The last check of a term came before the next term's begin.
    cast.check_terms();
    // With a precondition, a write that was sent late has failed.
    assert_eq!(history.overlaps("guarded"), [0; 0]);
    // Without one it may have been carried out, which is not promised. Nothing else was.
    let overlaps = history.overlaps("unguarded");
    if let Ok(late) = &end {
        assert!(overlaps.is_empty() || overlaps == late[1..], "{overlaps:?}, sent late: {late:?}");
        eprintln!("{}: played, late writes carried out: {overlaps:?}", rig.namespace());
    }
    end.is_ok()
}

#[tokio::test(flavor = "multi_thread")]
async fn q8_leaders_write_one_after_another() {
    /// How often in a row the machine may be too busy.
    const ATTEMPTS: usize = 10;
    for time in 1..=times() {
        let mut played = false;
        for attempt in 1..=ATTEMPTS {
            let test = format!("q8_leaders_{time}_{attempt}");
            let Some(rig) = Rig::shared(conformance::Kind::Real, &test).await else { return };
            played = play(&rig).await;
            if played {
                break;
            }
        }
        assert!(played, "the machine is too busy for a lease of two seconds");
    }
}
