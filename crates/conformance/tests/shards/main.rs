//! Q9: members in processes of their own join, leave, are frozen and killed. Every object is reconciled at its last state by
//! exactly one of them, and no two write in turn.

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
use std::time::Instant;

use conformance::{Actor, Rig, config_map};
use serde_json::json;

use history::History;

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

    /// Gives every object something to do, and waits until it is done.
    async fn round(&mut self, what: &str) {
        self.wanted += 1;
        let (wanted, begun) = (self.wanted.to_string(), Instant::now());
        for name in objects() {
            self.rig.patch(&name, json!({ "data": { "wanted": wanted } })).await;
        }
        self.history.all_done(&wanted).await;
        eprintln!("{}: {what}: all done after {:?}", self.rig.namespace(), begun.elapsed());
    }

    /// Goes on until each of these members has done something, so that it is known to have joined.
    async fn until_all_write(&mut self, names: &[&str]) {
        for _ in 0..50 {
            self.round("a round").await;
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
        rig.create_with(config_map(&name, "")).await;
    }
    let history = History::watch(rig).await;
    let mut story = Story { rig, history, members: BTreeMap::new(), wanted: 0 };
    story.join(["a", "b", "c"]);
    story.round("three join").await;
    story.until_all_write(&["a", "b", "c"]).await;

    story.join(["d", "e"]);
    story.round("two more join").await;
    story.until_all_write(&["a", "b", "c", "d", "e"]).await;

    story.member("b").freeze();
    story.round("one is frozen").await;
    story.until_all_write(&["a", "c", "d", "e"]).await;
    story.member("b").thaw();
    story.round("it goes on").await;
    story.until_all_write(&["a", "b", "c", "d", "e"]).await;

    drop(story.members.remove("c"));
    story.round("one is killed").await;
    let leaving = story.members.remove("d").unwrap();
    let left = tokio::task::spawn_blocking(|| leaving.end());
    story.round("one leaves").await;
    left.await.unwrap();
    story.until_all_write(&["a", "b", "e"]).await;

    assert_eq!(story.history.overlaps(), [""; 0]);
    for name in ["a", "b", "e"] {
        let member = story.members.remove(name).unwrap();
        tokio::task::spawn_blocking(|| member.end()).await.unwrap();
    }
    assert_eq!(story.history.overlaps(), [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn q9_members_share_all_objects_whatever_happens_to_them() {
    for time in 1..=times() {
        let test = format!("q9_members_{time}");
        let Some(rig) = Rig::shared(conformance::Kind::Real, &test).await else { return };
        play(&rig).await;
    }
}
