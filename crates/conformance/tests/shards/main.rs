//! Q9: members in processes of their own join, leave, are frozen and killed. Every object is reconciled at its last state by
//! exactly one of them, in time, and no two write in turn: with a precondition never, without one only where Q8 says so.

#![cfg(target_os = "linux")]
#![expect(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test may stop at a surprise, its helpers too"
)]
#![expect(clippy::print_stderr, reason = "figures, and how far a soak is")]

mod history;
mod measured;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use conformance::{Actor, Rig, config_map};
use serde_json::json;

use history::{History, Overlap, TRACE, Write, overlaps};

/// The settings of `member`.
const LEASE: Duration = Duration::from_secs(2);
const RETRY_PERIOD: Duration = Duration::from_millis(300);

/// The limit of a round in which a member joins or leaves: the last member sees the map, the next owner sees that all
/// have. What runs ends at once here. The rest is for the writes of the round, new lists, and a machine that does other work.
const PLANNED: Duration = RETRY_PERIOD.saturating_mul(2).saturating_add(Duration::from_secs(5));
/// When one was killed or frozen, its lease has to expire before that: the last renewal is seen, its expiry is, and somebody
/// writes the next map.
const SUDDEN: Duration = PLANNED.saturating_add(LEASE).saturating_add(RETRY_PERIOD.saturating_mul(3));

/// With this number each of five members has an object. Uids are random: of 24 objects, about one play in forty left a member
/// without any.
const OBJECTS: usize = 64;

/// How often the story is played: once, or as often as `cargo xtask soak` asks for.
fn times() -> usize {
    std::env::var("INFORMER_SOAK").map_or(1, |times| times.parse().unwrap())
}

fn objects() -> impl Iterator<Item = String> {
    (0..OBJECTS).map(|number| format!("object-{number:02}"))
}

/// The members, and what they are to do.
struct Story<'a> {
    rig: &'a Rig,
    history: History,
    members: BTreeMap<&'static str, Actor>,
    wanted: u32,
}

impl Story<'_> {
    fn join<const N: usize>(&mut self, names: [&'static str; N]) {
        let program = env!("CARGO_BIN_EXE_member");
        self.members.extend(names.map(|name| (name, Actor::start(program, self.rig, name, |_| true))));
    }

    fn member(&self, name: &str) -> &Actor {
        self.members.get(name).expect("a member")
    }

    /// Gives every object something to do, and waits until it is done, which takes no longer than this.
    async fn round(&mut self, what: &str, limit: Duration) {
        self.wanted += 1;
        let (wanted, begun) = (self.wanted.to_string(), Instant::now());
        for name in objects() {
            self.rig.patch(&name, json!({ "data": { "wanted": wanted } })).await;
        }
        self.history.all_done(&wanted).await;
        let took = begun.elapsed();
        eprintln!("{}: {what}: all done after {took:?}", self.rig.namespace());
        assert!(took <= limit, "{what}: all done after {took:?}, not within {limit:?}");
    }

    /// Goes on until each of these members has done something, so that it is known to have joined.
    async fn until_all_write(&mut self, names: &[&str]) {
        for _ in 0..50 {
            self.round("a round", PLANNED).await;
            let wanted = self.wanted.to_string();
            if self.history.writers(&wanted).iter().map(String::as_str).eq(names.iter().copied()) {
                return;
            }
        }
        panic!("{names:?} do not share the objects: {:?}", self.history.writers(&self.wanted.to_string()));
    }
}

async fn play(rig: &Rig) {
    for name in objects() {
        rig.create_with(config_map(&format!("{TRACE}{name}"), "")).await;
        rig.create_with(config_map(&name, "")).await;
    }
    let history = History::watch(rig).await;
    let mut story = Story { rig, history, members: BTreeMap::new(), wanted: 0 };
    story.join(["a", "b", "c"]);
    story.round("three join", PLANNED).await;
    story.until_all_write(&["a", "b", "c"]).await;

    story.join(["d", "e"]);
    story.round("two more join", PLANNED).await;
    story.until_all_write(&["a", "b", "c", "d", "e"]).await;

    story.member("b").freeze();
    story.round("one is frozen", SUDDEN).await;
    story.until_all_write(&["a", "c", "d", "e"]).await;
    story.member("b").thaw();
    story.round("it goes on", PLANNED).await;
    story.until_all_write(&["a", "b", "c", "d", "e"]).await;

    drop(story.members.remove("c"));
    story.round("one is killed", SUDDEN).await;
    let leaving = story.members.remove("d").unwrap();
    let left = tokio::task::spawn_blocking(|| leaving.end());
    story.round("one leaves", PLANNED).await;
    left.await.unwrap();
    story.until_all_write(&["a", "b", "e"]).await;

    for name in ["a", "b", "e"] {
        let member = story.members.remove(name).unwrap();
        tokio::task::spawn_blocking(|| member.end()).await.unwrap();
    }
    judge(&story.history.overlaps(), rig.namespace());
}

/// A write that was sent may be carried out late, if nothing in it says which version it is for. Members have one worker: of
/// the one that was frozen this is one request. Everything else is not allowed.
fn judge(overlaps: &[Overlap], story: &str) {
    let is_late = |one: &&Overlap| {
        let is_former = one.late.writer == "b" && one.late.generation < one.newer.generation;
        one.object.starts_with(TRACE) && is_former
    };
    let (late, wrong): (Vec<_>, Vec<_>) = overlaps.iter().partition(is_late);
    assert!(wrong.is_empty() && late.len() <= 1, "{overlaps:#?}");
    eprintln!("{story}: played, late writes carried out: {late:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn q9_members_share_all_objects_whatever_happens_to_them() {
    for time in 1..=times() {
        let test = format!("q9_members_{time}");
        let Some(rig) = Rig::shared(conformance::Kind::Real, &test).await else { return };
        play(&rig).await;
    }
}

/// The judge, on histories that were made up: a story in which nobody writes late must not be the only one that it has seen.
#[test]
fn q9_a_late_write_is_judged_by_what_q8_promises() {
    let write =
        |writer: &str, generation| Write { done: "1".to_owned(), writer: writer.to_owned(), generation };
    let (former, next) = (write("b", 1), write("c", 2));
    let late = [former.clone(), next.clone(), former.clone()];
    let verdict = |object: &str, all: &[Write]| {
        let found = overlaps(object, all);
        (found.len(), std::panic::catch_unwind(|| judge(&found, "made up")).is_ok())
    };
    assert_eq!(verdict("a", &[former.clone(), next.clone()]), (0, true));
    // Without a precondition, the one request of the frozen member may be carried out late.
    assert_eq!(verdict("trace-a", &late), (1, true));
    // With one it conflicts; nobody else may write late; and not twice.
    assert_eq!(verdict("a", &late), (1, false));
    assert_eq!(verdict("trace-a", &[write("a", 1), next.clone(), write("a", 1)]), (1, false));
    assert!(!verdict("trace-a", &[former.clone(), next.clone(), former.clone(), next.clone(), former]).1);
    // Two owners under one map take turns.
    assert_eq!(verdict("trace-a", &[write("c", 2), write("d", 2), write("c", 2)]), (1, false));
}
