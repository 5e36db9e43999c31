//! Random lives of a collection, with everything that goes wrong on the way: whoever listens hears a story that can be
//! believed, and ends up with what the server has.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::{FutureExt, StreamExt};
use informer::{
    Change, Changes, Deleted, Handler, Informer, Item, Object, Previous, StreamingListChoice, WhenFull,
};
use serde_json::json;

use super::server::Server;
use super::support::{Log, builder, cached, content, labelled, pods, settle, soon, until};

/// The state that a reader derives from its notifications.
#[derive(Default)]
struct Belief {
    objects: BTreeMap<String, Item<Object>>,
    synced: bool,
    gaps: bool,
    wrong: Log,
    told: usize,
}

impl Belief {
    fn hear(&mut self, change: &Change<Object>, informer: &Informer<Object>) {
        self.told += 1;
        match change {
            Change::Added { new: object, initial, .. } => {
                self.check(*initial != self.synced, format!("initial: {initial}, synced: {}", self.synced));
                let before = self.objects.insert(object.key().to_string(), object.clone());
                self.check(before.is_none() || self.gaps, format!("{object:?} is added to {before:?}"));
            }
            Change::Updated { old, new, .. } => {
                let before = self.objects.insert(new.key().to_string(), new.clone());
                let follows =
                    before.as_ref().is_some_and(|before| Arc::ptr_eq(before.object(), old.object()));
                self.check(follows || self.gaps, format!("{new:?} follows {old:?}, believed is {before:?}"));
                let newer = new.resource_version().is_at_least(old.object().resource_version());
                self.check(newer, format!("{old:?} becomes {new:?}"));
            }
            Change::Deleted(deleted) => {
                let before = self.objects.remove(deleted.key().as_str());
                self.check(before.is_some() || self.gaps, format!("{deleted:?} of nothing"));
            }
            Change::Resynced(object) => {
                let known = self.objects.get(object.key().as_str());
                let same = known.is_some_and(|known| Arc::ptr_eq(known.object(), object.object()));
                self.check(same || self.gaps, format!("a resync of {object:?} is news after {known:?}"));
            }
            Change::Synced => {
                self.check(!self.synced, "synced twice".to_owned());
                self.synced = true;
            }
            Change::Lagged(_) => self.gaps = true,
            Change::Undecodable(error) => self.check(false, error.to_string()),
            _ => self.check(false, format!("{change:?}")),
        }
        // The cache is never behind.
        if let Change::Added { new: object, .. } | Change::Updated { new: object, .. } = change {
            let reached = informer.snapshot();
            let there = reached.get(object.key()).unwrap();
            let ahead = there
                .is_some_and(|there| there.resource_version().is_at_least(object.resource_version()))
                || informer.snapshot().get(object.key()).unwrap().is_none();
            self.check(ahead, format!("the cache is behind {object:?}"));
        }
    }

    fn check(&mut self, right: bool, wrong: String) {
        if !right {
            self.wrong.push(wrong);
        }
    }

    fn objects(&self) -> Vec<String> {
        let mut objects: Vec<_> = self.objects.values().map(|object| format!("{object:?}")).collect();
        objects.sort();
        objects
    }
}

/// Believes as a handler.
struct Believer {
    belief: Arc<Mutex<Belief>>,
    informer: Informer<Object>,
    random: fastrand::Rng,
}

impl Believer {
    async fn hear(&mut self, change: Change<Object>) {
        self.belief.lock().unwrap().hear(&change, &self.informer);
        for _ in 0..self.random.u8(..4) {
            tokio::task::yield_now().await;
        }
    }
}

impl Handler<Object> for Believer {
    async fn on_add(&mut self, object: Item<Object>, initial: bool) {
        self.hear(Change::Added { new: object, initial, origin: informer::Origin::Watch }).await;
    }

    async fn on_update(&mut self, old: Previous<Object>, new: Item<Object>) {
        self.hear(Change::Updated { old, new, origin: informer::Origin::Watch }).await;
    }

    async fn on_delete(&mut self, deleted: Deleted<Object>) {
        self.hear(Change::Deleted(deleted)).await;
    }

    async fn on_resync(&mut self, object: Item<Object>) {
        self.hear(Change::Resynced(object)).await;
    }

    async fn on_synced(&mut self) {
        self.hear(Change::Synced).await;
    }
}

/// One step in the life of the server.
fn trouble(server: &Server, random: &mut fastrand::Rng) {
    let key = format!("shop/{}", random.u8(..12));
    match random.u8(..40) {
        0 => server.expire("pods"),
        1 => server.break_watches("pods"),
        2 => server.end_watches("pods"),
        3 => server.hold("pods"),
        4 => server.hold_in_the_middle_of_lists("pods"),
        5 => server.deny("pods", [401, 403, 404, 429, 500, 503][random.usize(..6)], "Trouble"),
        6 => server.bookmark("pods"),
        7..=12 => {
            server.allow("pods");
            server.release("pods");
        }
        13..=22 if server.content("pods").contains_key(&key) => _ = server.delete("pods", &key),
        _ => _ = server.put("pods", &key, labelled("turn", &random.u8(..3).to_string())),
    }
}

async fn one_life(seed: u64) {
    let mut random = fastrand::Rng::with_seed(seed);
    let server = Server::new();
    for _ in 0..random.u8(..20) {
        trouble(&server, &mut random);
    }
    let streaming = [StreamingListChoice::Never, StreamingListChoice::Always][random.usize(..2)];
    let factory = builder(&server)
        .reflector(|reflector| {
            reflector.streaming_list = streaming;
            reflector.denied_retry = Duration::from_secs(2);
            reflector.silence_limit = Duration::from_secs(30);
        })
        .build()
        .unwrap();
    let informer = factory.informer_of::<Object>(pods());
    let mut handlers = Vec::new();
    let mut streams: Vec<(Changes<Object>, Belief)> = Vec::new();
    let start_at = random.u8(..10);
    for step in 0..random.u8(50..200) {
        if step == start_at {
            factory.start();
        }
        match random.u8(..20) {
            0 if handlers.len() < 4 => {
                let belief = Arc::<Mutex<Belief>>::default();
                let believer =
                    Believer { belief: belief.clone(), informer: informer.clone(), random: random.fork() };
                let subscribe = informer.subscribe().resync(Duration::from_millis(random.u64(..500)));
                handlers.push((subscribe.handler(believer).unwrap(), belief));
            }
            1 if streams.len() < 6 => {
                let subscribe = informer.subscribe().resync(Duration::from_millis(random.u64(..500)));
                let subscribe = match random.u8(..4) {
                    0 => subscribe.every_change(random.usize(..20), WhenFull::Coalesce),
                    1 => subscribe.every_change(random.usize(..20), WhenFull::Drop),
                    2 => subscribe.split_recreated(),
                    _ => subscribe,
                };
                streams.push((subscribe.changes().unwrap(), Belief::default()));
            }
            2..=6 => tokio::time::advance(Duration::from_millis(random.u64(..1_000))).await,
            _ => trouble(&server, &mut random),
        }
        for _ in 0..random.u8(..30) {
            tokio::task::yield_now().await;
        }
        for (changes, belief) in &mut streams {
            for _ in 0..random.u8(..4) {
                let Some(change) = changes.next().now_or_never() else { break };
                belief.hear(&change.unwrap(), &informer);
            }
        }
    }
    factory.start();
    server.allow("pods");
    server.release("pods");
    let context = format!("seed {seed}");
    until(&context, || informer.is_synced() && cached(&informer) == content(&server)).await;
    settle().await;
    for (changes, belief) in &mut streams {
        until(&context, || {
            while let Some(change) = changes.next().now_or_never() {
                belief.hear(&change.unwrap(), &informer);
            }
            belief.gaps || (belief.synced && belief.objects() == content(&server))
        })
        .await;
        assert_eq!(belief.wrong.lines(), [""; 0], "{context}");
    }
    for (registration, belief) in handlers {
        until(&context, || belief.lock().unwrap().objects() == content(&server)).await;
        assert!(soon(registration.synced()).await, "{context}");
        assert_eq!(belief.lock().unwrap().wrong.lines(), [""; 0], "{context}");
    }
    drop(streams);
    tokio::time::timeout(Duration::from_secs(60), factory.shutdown()).await.expect(&context);
    assert_eq!(server.open(), 0, "{context}");
}

#[tokio::test(start_paused = true)]
async fn c1_d4_h1_h2_h3_h4_w1_random_lives_end_with_what_the_server_has() {
    for seed in 0..80 {
        one_life(seed).await;
    }
}

#[tokio::test(start_paused = true)]
async fn w16_events_cut_anywhere_arrive_whole() {
    let (server, _factory, informer) = super::support::live(&[]).await;
    let text = "ü€😀\u{2028}\"\\\n".repeat(500);
    let version = server.put("pods", "shop/a", json!({ "text": text }));
    until("it is there", || informer.len() == 1).await;
    let object = informer.lister().get("shop/a").unwrap().unwrap();
    assert_eq!(object.decode::<serde_json::Value>().unwrap()["text"], *text);
    assert_eq!(object.resource_version().to_string(), version.to_string());
}

#[tokio::test(start_paused = true)]
async fn w16_an_object_that_is_too_long_concerns_itself_alone() {
    for streaming in [StreamingListChoice::Never, StreamingListChoice::Always] {
        let server = Server::new();
        let long = || json!({ "text": "x".repeat(5_000) });
        server.put("pods", "shop/a", json!({}));
        server.put("pods", "shop/b", long());
        server.put("pods", "shop/c", json!({}));
        let factory = builder(&server)
            .item_limit(2_000)
            .reflector(|reflector| reflector.streaming_list = streaming)
            .build()
            .unwrap();
        let informer = super::support::started(&factory).await;
        let keys = || informer.lister().list().iter().map(|object| object.key().to_string()).collect();
        let keys = || -> Vec<String> { keys() };
        let quarantined = || -> Vec<String> {
            informer.quarantined().iter().map(|quarantined| quarantined.key.to_string()).collect()
        };
        assert_eq!(
            (keys(), quarantined()),
            (vec!["shop/a".into(), "shop/c".into()], vec!["shop/b".to_owned()])
        );
        let requests = server.log().len();

        // In the watch the last good version stays.
        server.put("pods", "shop/c", long());
        server.put("pods", "shop/b", json!({}));
        until("b is there", || informer.len() == 3).await;
        assert_eq!(quarantined(), ["shop/c"], "{streaming:?}");
        assert_eq!(server.log().len(), requests, "the same watch");

        // So it does in a re-list; and a deletion ends it, though that is too long as well.
        server.expire("pods");
        until("it was listed again", || server.log().len() >= requests + 2).await;
        settle().await;
        assert_eq!((informer.len(), quarantined()), (3, vec!["shop/c".to_owned()]));
        server.delete("pods", "shop/c");
        until("c is gone", || informer.len() == 2).await;
        assert_eq!(quarantined(), [""; 0]);
    }
}
