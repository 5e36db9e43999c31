//! Members that lose their leases, people who edit, and clocks that jump.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::StreamExt;
use informer::SharedInformerFactory;
use informer::share::ShareBy;
use informer_controller::{Clock, Context, Controller, Outcome};
use informer_shards::{BoxError, Shards, ShardsError, ShardsHandle};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::{Value, json};
use testapi::{Patch, TestApi};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::support::{
    Acting, LONG, Member, all_are_stamped, leases, map, maps, owners_see_deletions, server, stamped,
};

const MAP: &str = "shards.informer.dev/map";
const BY: ShareBy = ShareBy::Uid;

/// Two members that divide the objects.
async fn two() -> (TestApi, Acting, [Member; 2]) {
    let server = server().await;
    let acting = Acting::default();
    let members = ["one", "two"].map(|name| Member::join(&server, name, BY, &acting));
    for member in &members {
        member.settles(2).await;
    }
    (server, acting, members)
}

fn text_of(server: &TestApi) -> String {
    let lease = server.api().get(&leases(), "shop", "stamp").unwrap();
    lease["metadata"]["annotations"][MAP].as_str().unwrap().to_owned()
}

fn put(server: &TestApi, text: &str) {
    let annotations = json!({ "metadata": { "annotations": { MAP: text } } });
    server.api().patch(&leases(), "shop", "stamp", &Patch::Merge(annotations)).unwrap();
}

/// Both act on all again, with a later map than `generation`.
async fn both_settle(server: &TestApi, members: &[Member; 2], generation: u64) {
    for member in members {
        member
            .reaches(|status| {
                status.generation > Some(generation) && status.members.len() == 2 && status.is_settled()
            })
            .await;
    }
    let status = members[0].handle.status();
    all_are_stamped(server, BY, &status.members).await;
}

#[tokio::test]
async fn q9_a_map_that_somebody_deleted_or_broke_is_written_again_with_a_higher_generation() {
    let (server, _acting, members) = two().await;
    let before = members[0].handle.status();
    let good = text_of(&server);
    server.api().delete(&leases(), "shop", "stamp").unwrap();
    both_settle(&server, &members, before.generation.unwrap()).await;
    // Nothing has moved.
    assert_eq!(members[0].handle.status().members, before.members);
    let half = good.replace("0x0000000000000000", "0x0000000000000001");
    for broken in ["", "{", half.as_str()] {
        let generation = members[0].handle.status().generation.unwrap();
        put(&server, broken);
        both_settle(&server, &members, generation).await;
        assert_eq!(members[0].handle.status().members, before.members, "{broken}");
    }
}

#[tokio::test]
async fn q9_a_map_that_somebody_set_back_or_changed_in_place_gets_a_higher_generation() {
    let (server, _acting, members) = two().await;
    let first = text_of(&server);
    let generation = members[0].handle.status().generation.unwrap();
    // The two have each other's hashes.
    put(
        &server,
        &first.replace("\"one\"", "\"?\"").replace("\"two\"", "\"one\"").replace("\"?\"", "\"two\""),
    );
    both_settle(&server, &members, generation).await;
    let now = members[0].handle.status();
    put(&server, &first);
    both_settle(&server, &members, now.generation.unwrap()).await;
}

#[tokio::test]
async fn q9_a_map_of_a_newer_version_is_never_overwritten_and_nobody_acts() {
    let (server, _acting, members) = two().await;
    let good = text_of(&server);
    let newer = r#"{"version":2,"by":"a kind that nobody knows yet"}"#;
    for (foreign, reason) in [
        (newer.to_owned(), "the map has the format 2, and this program knows 1"),
        (good.replace("uid", "namespace"), "the map divides by namespace, and this program by uid"),
    ] {
        put(&server, &foreign);
        for member in &members {
            let status = member.reaches(|status| status.problem.is_some() && status.acts_on.is_empty()).await;
            assert_eq!(status.problem.as_deref(), Some(reason));
        }
        server.api().create(&maps(), map("shop", "late")).unwrap();
        // A member that comes now does not overwrite it either.
        let third = Member::join(&server, "three", BY, &Acting::default());
        third.reaches(|status| status.problem.is_some()).await;
        third.leave().await.unwrap();
        assert_eq!(text_of(&server), foreign);
        assert_eq!(stamped(&server.api().get(&maps(), "shop", "late").unwrap()), None);
        // Both still have their leases, and go on when the map is theirs again.
        for name in ["stamp-one", "stamp-two"] {
            let lease = server.api().get(&leases(), "shop", name).unwrap();
            assert_ne!(lease["spec"]["holderIdentity"], "", "{name}");
        }
        put(&server, &good);
        for member in &members {
            member.reaches(|status| status.problem.is_none() && status.is_settled()).await;
        }
        all_are_stamped(&server, BY, &members[0].handle.status().members).await;
        server.api().delete(&maps(), "shop", "late").unwrap();
    }
}

#[tokio::test]
async fn q9_a_member_whose_lease_is_taken_or_deleted_stops_and_joins_again() {
    let (server, _acting, members) = two().await;
    let taken = json!({ "spec": { "holderIdentity": "somebody", "leaseDurationSeconds": 1 } });
    server.api().patch(&leases(), "shop", "stamp-one", &Patch::Merge(taken)).unwrap();
    members[0].reaches(|status| status.losses == 1).await;
    both_settle(&server, &members, 0).await;
    server.api().delete(&leases(), "shop", "stamp-one").unwrap();
    members[0].reaches(|status| status.losses == 2).await;
    both_settle(&server, &members, 0).await;
}

#[tokio::test]
async fn q9_marks_that_somebody_removed_come_back() {
    let (server, _acting, members) = two().await;
    let bare = json!({ "metadata": { "labels": Value::Null, "annotations": Value::Null } });
    for name in ["stamp", "stamp-one"] {
        let before = members[0].handle.status().generation.unwrap();
        server.api().patch(&leases(), "shop", name, &Patch::Merge(bare.clone())).unwrap();
        let marked = |lease: &Value| lease["metadata"]["labels"]["shards.informer.dev/of"] == "stamp";
        server.api().wait_for(&leases(), "shop", name, marked).await.unwrap();
        both_settle(&server, &members, before - 1).await;
    }
}

#[tokio::test]
async fn q9_an_object_that_is_deleted_is_reconciled_by_the_member_that_had_it() {
    let (server, acting, members) = two().await;
    let status = members[0].handle.status();
    owners_see_deletions(&server, &acting, &status.members).await;
}

/// A wall clock that jumps by days, to and fro, with each look at it.
struct Jumping(AtomicUsize);

impl Clock for Jumping {
    fn now(&self) -> Timestamp {
        let days = [0, 3, -400, 20_000, -20_000][self.0.fetch_add(1, Ordering::Relaxed) % 5];
        Timestamp::from_second(1_800_000_000 + days * 86_400).unwrap()
    }
}

#[tokio::test]
async fn q9_a_wall_clock_that_jumps_changes_nothing() {
    let server = server().await;
    let acting = Acting::default();
    let jumping = Member::join_by_clock(&server, "one", BY, &acting, Jumping(AtomicUsize::new(0)));
    let other = Member::join(&server, "two", BY, &acting);
    jumping.settles(2).await;
    let before = other.settles(2).await;
    for _ in 0..15 {
        let renewed = |lease: &Value| lease["spec"]["renewTime"].as_str().map(str::to_owned);
        let last = renewed(&server.api().get(&leases(), "shop", "stamp-one").unwrap()).unwrap();
        // Each record differs from the one before, and looks newer.
        let is_newer = |lease: &Value| renewed(lease).is_some_and(|now| now > last);
        let renewal = async { server.api().wait_for(&leases(), "shop", "stamp-one", is_newer).await };
        tokio::time::timeout(LONG, renewal).await.expect("a renewal").unwrap();
    }
    for member in [&jumping, &other] {
        let status = member.handle.status();
        assert!(status.is_settled() && status.losses == 0, "{status:?}");
        assert_eq!(status.generation, before.generation, "nothing has moved");
    }
    all_are_stamped(&server, BY, &before.members).await;
    // Its crash is noticed as that of any other.
    jumping.crash();
    let status = other.settles(1).await;
    all_are_stamped(&server, BY, &status.members).await;
}

/// The reconciliations of one key, by code that blocks its thread.
#[derive(Default)]
struct Blocking {
    running: AtomicUsize,
    most: AtomicUsize,
}

/// A member whose reconciliations block until they may go on.
struct Blocker {
    handle: ShardsHandle,
    running: JoinHandle<Result<(), ShardsError>>,
    go_on: std::sync::mpsc::Sender<()>,
    has_begun: mpsc::UnboundedReceiver<()>,
    blocking: Arc<Blocking>,
}

impl Blocker {
    /// Objects whose hash is below `from` do not block.
    fn join(server: &TestApi, from: u64) -> Self {
        let config = server.config();
        let shards = Shards::builder(config.clone(), "shop", "stamp")
            .by(BY)
            .identity("one")
            .lease_duration(Duration::from_secs(6))
            .renew_deadline(Duration::from_secs(4))
            .retry_period(Duration::from_millis(200))
            .build()
            .unwrap();
        let handle = shards.handle();
        let (go_on, goes_on) = std::sync::mpsc::channel::<()>();
        let (begun, has_begun) = mpsc::unbounded_channel();
        let (goes_on, blocking) = (Arc::new(Mutex::new(goes_on)), Arc::new(Blocking::default()));
        let seen = blocking.clone();
        let running = tokio::spawn(shards.run(config.clone(), move |share| {
            let factory = SharedInformerFactory::builder(config.clone()).build()?.with_share(share.clone());
            let maps = factory.informer::<ConfigMap>();
            let (begun, goes_on, seen) = (begun.clone(), goes_on.clone(), seen.clone());
            let reconcile = move |context: Context<ConfigMap>| {
                let uid = context.object().map(|map| map.uid().to_string());
                if uid.is_none_or(|uid| informer::share::hash(&uid) < from) {
                    return std::future::ready(Ok(Outcome::Done));
                }
                let running = seen.running.fetch_add(1, Ordering::SeqCst) + 1;
                seen.most.fetch_max(running, Ordering::SeqCst);
                let _ = begun.send(());
                let _ = goes_on.lock().unwrap().recv();
                seen.running.fetch_sub(1, Ordering::SeqCst);
                std::future::ready(Ok(Outcome::Done))
            };
            let controller = Controller::new("stamp", &maps).grace(Duration::from_secs(1));
            Ok::<_, BoxError>((controller, reconcile))
        }));
        Self { handle, running, go_on, has_begun, blocking }
    }

    async fn begins(&mut self) {
        tokio::time::timeout(LONG, self.has_begun.recv()).await.unwrap().unwrap();
    }

    /// Lets go what blocks, for good.
    fn end(self) {
        self.running.abort();
    }
}

/// The lease goes while user code blocks, which nothing can abort. The member waits for it before it joins again.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn q6_a_key_has_one_worker_also_when_the_lease_is_lost_and_user_code_blocks() {
    let server = TestApi::builder().object(map("shop", "a")).start().await.unwrap();
    let mut one = Blocker::join(&server, 0);
    one.begins().await;
    server.api().delete(&leases(), "shop", "stamp-one").unwrap();
    let mut changes = std::pin::pin!(one.handle.status_changes());
    let waits = async {
        while !changes.next().await.unwrap().problem.is_some_and(|problem| problem.contains("still runs")) {}
    };
    tokio::select! {
        biased;
        () = one.begins() => panic!("the key is reconciled, and its last reconciliation runs"),
        waits = tokio::time::timeout(LONG, waits) => waits.expect("the member waits"),
    }
    one.go_on.send(()).unwrap();
    one.begins().await;
    assert_eq!(one.blocking.most.load(Ordering::SeqCst), 1);
    one.end();
}

/// Issue 20: it renewed its lease and acknowledged nothing, so that nobody got any hash.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn q9_a_member_that_blocks_leaves_its_hashes_to_the_others() {
    let server = server().await;
    // The upper half is what the second member gets.
    let mut one = Blocker::join(&server, 1 << 63);
    one.begins().await;
    let acting = Acting::default();
    let two = Member::join(&server, "two", BY, &acting);
    let status = two.reaches(|status| status.acts_on.is_all()).await;
    all_are_stamped(&server, BY, &status.members).await;
    assert_eq!(one.handle.status().losses, 0, "it still waits for what blocks");
    // It comes back when nothing blocks any more.
    let objects = server.api().list(&maps(), None).unwrap().len();
    (0..10 * objects).for_each(|_| one.go_on.send(()).unwrap());
    two.settles(2).await;
    one.end();
}
