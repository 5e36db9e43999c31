//! H8: whatever a handler does not do, the others, the cache and the watch go on.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_util::StreamExt;
use informer::{Change, Changes, Handler, Informer, Item, Object, Previous, View, WhenFull};
use serde::de::{Deserialize, Deserializer, IgnoredAny};
use serde_json::json;

use super::support::{Log, Recorder, caught_up, live, next, settle, short, soon, until, until_synced};

/// Begins its first call and never ends it.
struct Stuck(Arc<AtomicBool>);

impl Stuck {
    fn new() -> (Self, Arc<AtomicBool>) {
        let began = Arc::<AtomicBool>::default();
        (Self(began.clone()), began)
    }
}

impl Handler<Object> for Stuck {
    async fn on_add(&mut self, _: Item<Object>, _: bool) {
        self.0.store(true, Ordering::SeqCst);
        std::future::pending().await
    }
}

#[tokio::test(start_paused = true)]
async fn h8_a_stuck_handler_delays_nobody() {
    let (server, _factory, informer) = live(&["shop/a"]).await;
    let (stuck, began) = Stuck::new();
    let _stuck = informer.add_handler(stuck).unwrap();
    let (recorder, log) = Recorder::new();
    let _other = informer.add_handler(recorder).unwrap();
    until("it is stuck", || began.load(Ordering::SeqCst)).await;
    server.put("pods", "shop/b", json!({}));
    log.until("add shop/b@102").await;
    server.expire("pods");
    server.put("pods", "shop/c", json!({}));
    log.until("add shop/c@103").await;
    caught_up(&server, &informer).await;
}

/// 100,000 updates to 100 keys: what a reader that never reads holds of them is one state per key.
#[tokio::test(start_paused = true)]
async fn h8_the_memory_of_a_reader_that_does_not_read_is_bounded() {
    let keys: Vec<_> = (0..100).map(|number| format!("shop/{number:02}")).collect();
    let (server, _factory, informer) = live(&keys.iter().map(String::as_str).collect::<Vec<_>>()).await;
    let (stuck, began) = Stuck::new();
    let _stuck = informer.add_handler(stuck).unwrap();
    let mut latest = informer.changes().unwrap();
    let merged = informer.subscribe().every_change(50, WhenFull::Coalesce).changes().unwrap();
    let dropped = informer.subscribe().every_change(50, WhenFull::Drop).changes().unwrap();
    until_synced(&mut latest).await;
    until("it is stuck", || began.load(Ordering::SeqCst)).await;
    let mut versions = Vec::new();
    for _ in 0..1_000 {
        for key in &keys {
            server.put("pods", key, json!({}));
        }
        let last = server.version().to_string();
        until("the round is in the cache", || informer.resource_version().to_string() == last).await;
        versions.extend(informer.snapshot().objects().map(Arc::downgrade));
    }
    assert_eq!(latest.backlog(), 100);
    // Besides what was there when they joined, which they have not read either.
    assert!(merged.backlog() <= 100 + 50 + 100, "{}", merged.backlog());
    assert!(dropped.backlog() <= 100 + 50, "{}", dropped.backlog());
    let alive = versions.iter().filter(|version| version.strong_count() > 0).count();
    assert!(alive <= 500, "{alive} of {} versions are held", versions.len());
    // Nothing was lost that one needs to know.
    for _ in 0..100 {
        assert!(short(&next(&mut latest).await).starts_with("update shop/"));
    }
}

#[tokio::test(start_paused = true)]
async fn h8_what_was_dropped_is_counted_and_the_first_content_is_not() {
    let (server, _factory, informer) = live(&["shop/a", "shop/b", "shop/c"]).await;
    struct Gated(Arc<tokio::sync::Notify>, Log);
    impl Handler<Object> for Gated {
        async fn on_add(&mut self, object: Item<Object>, initial: bool) {
            self.1.push(format!("add {object:?} {initial}"));
        }
        async fn on_synced(&mut self) {
            self.0.notified().await;
        }
        async fn on_lagged(&mut self, dropped: u64) {
            self.1.push(format!("lagged {dropped}"));
        }
    }
    let (gate, log) = (Arc::new(tokio::sync::Notify::new()), Log::default());
    let gated = Gated(gate.clone(), log.clone());
    let _registration = informer.subscribe().every_change(2, WhenFull::Drop).handler(gated).unwrap();
    until("the content was told", || log.len() == 3).await;
    settle().await;
    server.put_many("pods", (0..10).map(|number| format!("shop/{number}")));
    caught_up(&server, &informer).await;
    gate.notify_one();
    log.until("add shop/9@113 false").await;
    assert_eq!(log.lines()[3..], ["lagged 8", "add shop/8@112 false", "add shop/9@113 false"]);
}

#[tokio::test(start_paused = true)]
async fn f5_h8_a_stuck_handler_that_was_dropped_keeps_nothing_alive() {
    let (server, factory, informer) = live(&["shop/a"]).await;
    let (stuck, began) = Stuck::new();
    let registration = informer.add_handler(stuck).unwrap();
    until("it is stuck", || began.load(Ordering::SeqCst)).await;
    drop(informer);
    settle().await;
    assert_eq!(server.open(), 1, "the registration keeps the informer alive");
    drop(registration);
    until("the watch is closed", || server.open() == 0).await;
    drop(factory);
}

/// The version that the cache has now, to see later whether somebody holds it.
fn cached_version(informer: &Informer<Object>) -> Weak<Object> {
    Arc::downgrade(informer.lister().get("shop/a").unwrap().unwrap().object())
}

#[tokio::test(start_paused = true)]
async fn h5_h8_who_went_holds_nothing_of_what_comes_after() {
    let (server, _factory, informer) = live(&["shop/a"]).await;
    let (stuck, began) = Stuck::new();
    let registration = informer.add_handler(stuck).unwrap();
    until("it is stuck", || began.load(Ordering::SeqCst)).await;
    let unread = [informer.changes().unwrap(), informer.changes().unwrap()];
    let mut versions = vec![cached_version(&informer)];
    drop((registration, unread));
    for _ in 0..3 {
        server.put("pods", "shop/a", json!({}));
        caught_up(&server, &informer).await;
        versions.push(cached_version(&informer));
    }
    // The stuck call itself has the first one.
    let held: Vec<_> = versions.iter().map(|version| version.strong_count() > 0).collect();
    assert_eq!(held, [true, false, false, true]);
}

#[tokio::test(start_paused = true)]
async fn h15_a_removal_that_waits_for_a_stuck_handler_keeps_nothing_for_it() {
    let (server, _factory, informer) = live(&["shop/a"]).await;
    let (stuck, began) = Stuck::new();
    let registration = informer.add_handler(stuck).unwrap();
    until("it is stuck", || began.load(Ordering::SeqCst)).await;
    let mut removal = Box::pin(registration.remove());
    let mut versions = Vec::new();
    for _ in 0..100 {
        assert!(futures_util::poll!(&mut removal).is_pending());
        server.put("pods", "shop/a", json!({}));
        caught_up(&server, &informer).await;
        versions.push(cached_version(&informer));
    }
    let held = versions.iter().filter(|version| version.strong_count() > 0).count();
    assert_eq!(held, 1, "only the cache holds a version");
}

/// A backlog that takes long to read is read in turns with everybody else on the thread.
#[tokio::test(start_paused = true)]
async fn h8_a_long_backlog_does_not_keep_the_thread() {
    let keys: Vec<_> = (0..5_000).map(|number| format!("shop/{number}")).collect();
    let (_server, _factory, informer) = live(&keys.iter().map(String::as_str).collect::<Vec<_>>()).await;
    let turns = Arc::<AtomicUsize>::default();
    let counted = turns.clone();
    let other = tokio::spawn(async move {
        loop {
            counted.fetch_add(1, Ordering::Relaxed);
            tokio::task::yield_now().await;
        }
    });
    let mut changes = informer.subscribe().filter(|_| false).changes().unwrap();
    assert_eq!(until_synced(&mut changes).await.len(), 1);
    assert!(turns.load(Ordering::Relaxed) > 10, "{turns:?}");
    let (recorder, log) = Recorder::new();
    turns.store(0, Ordering::Relaxed);
    let registration = informer.add_handler(recorder).unwrap();
    assert!(soon(registration.synced()).await);
    assert!(turns.load(Ordering::Relaxed) > 10, "{turns:?}");
    assert_eq!(log.len(), 5_001);
    other.abort();
}

/// Counts how often one is read, and how many there are; each test its own.
struct Counted<const TEST: usize>;

static READ: [AtomicUsize; 5] = [const { AtomicUsize::new(0) }; 5];
static ALIVE: [AtomicUsize; 5] = [const { AtomicUsize::new(0) }; 5];

impl<const TEST: usize> Counted<TEST> {
    fn read() -> usize {
        READ[TEST].load(Ordering::SeqCst)
    }

    fn alive() -> usize {
        ALIVE[TEST].load(Ordering::SeqCst)
    }
}

impl<'de, const TEST: usize> Deserialize<'de> for Counted<TEST> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        IgnoredAny::deserialize(deserializer)?;
        READ[TEST].fetch_add(1, Ordering::SeqCst);
        ALIVE[TEST].fetch_add(1, Ordering::SeqCst);
        Ok(Self)
    }
}

impl<const TEST: usize> Drop for Counted<TEST> {
    fn drop(&mut self) {
        ALIVE[TEST].fetch_sub(1, Ordering::SeqCst);
    }
}

#[tokio::test(start_paused = true)]
async fn h8_with_a_backlog_each_object_is_read_once_for_all_who_are_told() {
    let keys: Vec<_> = (0..1_000).map(|number| format!("shop/{number}")).collect();
    let (server, factory, _informer) = live(&keys.iter().map(String::as_str).collect::<Vec<_>>()).await;
    let informer: Informer<Counted<0>> = factory.informer_of(super::support::pods());
    // One of them is not told anything, and looks at all the same.
    let subscriptions = [0, 1, 2].map(|wanted| informer.subscribe().filter(move |_| wanted > 0).changes());
    let readers = subscriptions.map(|changes| {
        let mut changes = changes.unwrap();
        tokio::spawn(async move {
            while !matches!(changes.next().await, Some(Change::Synced)) {}
            changes
        })
    });
    let mut told = Vec::new();
    for reader in readers {
        told.push(soon(reader).await.unwrap());
    }
    assert_eq!(Counted::<0>::read(), 1_000);
    // A subscription without a filter reads the deletions as well.
    let mut deletions = [informer.changes().unwrap(), informer.changes().unwrap()];
    for changes in &mut deletions {
        until_synced(changes).await;
    }
    drop(told);
    let before = Counted::<0>::read();
    for key in &keys {
        server.delete("pods", key);
    }
    caught_up(&server, &informer).await;
    let readers = deletions.map(|mut changes| {
        tokio::spawn(async move {
            for _ in 0..1_000 {
                assert!(matches!(changes.next().await, Some(Change::Deleted(_))));
            }
        })
    });
    for reader in readers {
        soon(reader).await.unwrap();
    }
    assert_eq!(Counted::<0>::read() - before, 1_000);
}

/// Counts its calls, and may never end the first.
struct Reads(Arc<AtomicUsize>, bool);

impl<const TEST: usize> Handler<Counted<TEST>> for Reads {
    async fn on_update(&mut self, _: Previous<Counted<TEST>>, _: Item<Counted<TEST>>) {
        self.0.fetch_add(1, Ordering::SeqCst);
        if self.1 {
            std::future::pending().await
        }
    }
}

#[tokio::test(start_paused = true)]
async fn h8_what_is_held_for_a_reader_that_does_not_read_is_bounded() {
    type Pod = Counted<2>;
    let (server, factory, _informer) = live(&["shop/a"]).await;
    let informer: Informer<Pod> = factory.informer_of(super::support::pods());
    let told = [(); 2].map(|()| Arc::<AtomicUsize>::default());
    let _stuck = informer.add_handler(Reads(told[0].clone(), true)).unwrap();
    let _other = informer.add_handler(Reads(told[1].clone(), false)).unwrap();
    let mut most = 0;
    for update in 1..=1_000 {
        server.put("pods", "shop/a", json!({}));
        until("it was told", || told[1].load(Ordering::SeqCst) == update).await;
        most = most.max(Pod::alive());
    }
    assert_eq!(told[0].load(Ordering::SeqCst), 1);
    // The stuck handler's last object, its pending one, and the current one.
    assert!(most < 5, "{most}");
}

#[tokio::test(start_paused = true)]
async fn h5_h8_nothing_is_held_for_a_stuck_reader_that_was_removed() {
    type Pod = Counted<3>;
    let (server, factory, _informer) = live(&["shop/a"]).await;
    let informer: Informer<Pod> = factory.informer_of(super::support::pods());
    let told = [(); 2].map(|()| Arc::<AtomicUsize>::default());
    let all = informer.subscribe().every_change(1_000, WhenFull::Coalesce);
    let stuck = all.handler(Reads(told[0].clone(), true)).unwrap();
    let _other = informer.add_handler(Reads(told[1].clone(), false)).unwrap();
    for update in 1..=20 {
        server.put("pods", "shop/a", json!({}));
        until("it was told", || told[1].load(Ordering::SeqCst) == update).await;
    }
    settle().await;
    assert!(Pod::alive() >= 19, "{}", Pod::alive());
    drop(stuck);
    settle().await;
    // The two states of the call that never ends, and what is current.
    assert!(Pod::alive() <= 3, "{} are held for nobody", Pod::alive());
}

/// A handler that has read everything is no longer stuck.
#[tokio::test(start_paused = true)]
async fn h8_while_one_catches_up_the_others_share_what_is_read() {
    let keys: Vec<_> = (0..1_000).map(|number| format!("shop/{number}")).collect();
    let (server, factory, raw) = live(&keys.iter().map(String::as_str).collect::<Vec<_>>()).await;
    let informer: Informer<Counted<4>> = factory.informer_of(super::support::pods());
    let mut told = [informer.changes().unwrap(), informer.changes().unwrap()];
    for changes in &mut told {
        until_synced(changes).await;
        settle_on(changes).await;
    }
    let mut late = informer.changes().unwrap();
    for _ in 0..600 {
        next(&mut late).await;
    }
    let before = Counted::<4>::read();
    server.put("pods", "shop/0", json!({}));
    caught_up(&server, &raw).await;
    for changes in &mut told {
        next(changes).await;
    }
    assert_eq!(Counted::<4>::read() - before, 1);
}

#[tokio::test(start_paused = true)]
async fn c12_what_nobody_has_used_for_ten_seconds_is_not_hot() {
    let keys: Vec<_> = (0..100).map(|number| format!("shop/{number}")).collect();
    let (server, factory, raw) = live(&keys.iter().map(String::as_str).collect::<Vec<_>>()).await;
    let informer: Informer<Counted<1>> = factory.informer_of(super::support::pods());
    let mut changes = informer.changes().unwrap();
    until_synced(&mut changes).await;
    assert_eq!(Counted::<1>::alive(), 100);
    for _ in 0..6 {
        tokio::time::advance(Duration::from_secs(3)).await;
        settle().await;
        informer.lister().get("shop/7").unwrap().unwrap();
    }
    assert_eq!(Counted::<1>::alive(), 1, "one is used");
    assert_eq!(Counted::<1>::read(), 100);
    for key in &keys {
        server.put("pods", key, json!({}));
    }
    caught_up(&server, &raw).await;
    let told = informer.metrics().hot_bytes;
    assert!(told > 0, "events are hot on arrival");
    settle_on_all(&mut changes, &keys).await;
    assert_eq!((Counted::<1>::alive(), Counted::<1>::read()), (100, 200));
    for _ in 0..3 {
        tokio::time::advance(Duration::from_secs(5)).await;
        settle().await;
    }
    assert_eq!((Counted::<1>::alive(), informer.metrics().hot_bytes), (0, 0));
    assert_eq!(informer.lister().list().len(), 100);
}

async fn settle_on_all<T: View>(changes: &mut Changes<T>, keys: &[String]) {
    for _ in keys {
        next(changes).await;
    }
    settle_on(changes).await;
}

/// Looks whether there is more to be told; there is not.
async fn settle_on<T: View>(changes: &mut Changes<T>) {
    assert!(futures_util::poll!(changes.next()).is_pending());
}
