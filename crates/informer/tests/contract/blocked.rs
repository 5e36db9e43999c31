//! F9, in real time: a filter, a `Deserialize` or a handler that blocks holds a thread of the program's runtime, and nothing
//! of ours.

use std::sync::LazyLock;
use std::thread;
use std::time::Duration;

use informer::{Change, Changes, Informer, Object, Registration, SharedInformerFactory};
use serde::de::{Deserialize, Deserializer, IgnoredAny};
use serde_json::json;
use tokio::runtime::Builder;
use tokio::sync::oneshot;

use super::guests::{Gate, Opened};
use super::server::Server;
use super::support::{LONG, config_maps, factory, nodes, pods};

/// Only a failure takes so long: longer than a gate's patience.
async fn within<F: Future>(what: &str, future: F) -> F::Output {
    let limited = tokio::time::timeout(Duration::from_secs(100), future);
    limited.await.unwrap_or_else(|_| panic!("waited in vain: {what}"))
}

async fn is_blocked(gate: &Gate) {
    let blocked = async {
        while !gate.is_waited_at() {
            tokio::task::yield_now().await;
        }
    };
    within("user code runs", blocked).await;
}

async fn is_told(changes: &mut Changes<Object>, key: &str) {
    let told = async {
        while let Some(change) = changes.recv().await {
            if matches!(change, Change::Added { new, .. } if new.key().as_str() == key) {
                return;
            }
        }
        panic!("the changes have ended before {key}");
    };
    within(key, told).await;
}

fn server() -> Server {
    let server = Server::new();
    server.put("pods", "shop/a", json!({}));
    server.put("nodes", "one", json!({}));
    server.put("configmaps", "shop/settings", json!({}));
    server
}

/// A factory whose handler of pods is at the gate, and what must go on beside it.
struct Scene {
    server: Server,
    factory: SharedInformerFactory,
    pods: Informer<Object>,
    nodes: Informer<Object>,
    gate: Gate,
    _opened: Opened,
}

impl Scene {
    fn new(gate: Gate) -> Self {
        let server = server();
        let factory = factory(&server);
        let (pods, nodes) = (factory.informer_of(pods()), factory.informer_of(nodes()));
        Self { server, factory, pods, nodes, _opened: Opened(gate.clone()), gate }
    }

    /// The cache of the same informer, its other subscriptions, other informers and their beginnings and ends.
    async fn all_else_goes_on(&self) {
        let Self { server, factory, pods, nodes, gate, .. } = self;
        factory.start();
        is_blocked(gate).await;
        for informer in [pods, nodes] {
            within("the list", informer.wait_for_sync(LONG)).await.unwrap();
        }
        let (mut beside, mut others) = (pods.changes().unwrap(), nodes.changes().unwrap());
        // More than one, so that a wake-up that was lost would show.
        for number in 0..100 {
            server.put("pods", &format!("shop/{number}"), json!({}));
            server.put("nodes", &format!("{number}"), json!({}));
            is_told(&mut beside, &format!("shop/{number}")).await;
            is_told(&mut others, &format!("{number}")).await;
        }
        assert_eq!((pods.len(), nodes.len()), (101, 101));

        let late = factory.informer_of::<Object>(config_maps());
        factory.start();
        within("a new informer", late.wait_for_sync(LONG)).await.unwrap();
        within("the end of another informer", late.stop()).await;
        assert!(gate.is_waited_at(), "user code did not wait");
    }

    async fn ends(self, held: Registration) {
        assert!(!held.is_synced());
        self.gate.open();
        assert!(within("the handler", held.synced()).await);
        within("the end", self.factory.shutdown()).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f9_a_filter_that_blocks_holds_its_own_subscription_only() {
    let scene = Scene::new(Gate::default());
    let at = scene.gate.clone();
    let filtered = scene.pods.subscribe().filter(move |_| {
        at.pass();
        true
    });
    let held = filtered.on_change(async |_| {}).unwrap();
    scene.all_else_goes_on().await;
    scene.ends(held).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f9_a_deserialize_that_blocks_holds_its_own_subscription_only() {
    static GATE: LazyLock<Gate> = LazyLock::new(Gate::default);
    struct Slow;
    impl<'de> Deserialize<'de> for Slow {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            GATE.pass();
            IgnoredAny::deserialize(deserializer).map(|_| Self)
        }
    }
    let scene = Scene::new(GATE.clone());
    let typed = scene.factory.informer_of::<Slow>(pods());
    let held = typed.on_change(async |_| {}).unwrap();
    scene.all_else_goes_on().await;
    scene.ends(held).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f9_a_handler_that_blocks_holds_its_own_subscription_only() {
    let scene = Scene::new(Gate::default());
    let at = scene.gate.clone();
    let held = scene.pods.on_change(move |_| {
        at.pass();
        async {}
    });
    scene.all_else_goes_on().await;
    scene.ends(held.unwrap()).await;
}

/// The other extreme: the program's handlers have one thread, and a filter blocks all of it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f9_a_blocked_runtime_of_the_handlers_holds_neither_connections_nor_caches() {
    let scene = Scene::new(Gate::default());
    let (at, informer) = (scene.gate.clone(), scene.pods.clone());
    let (registered, registration) = oneshot::channel();
    let (end, ended) = oneshot::channel::<()>();
    let program = thread::spawn(move || {
        Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
            let filtered = informer.subscribe().filter(move |_| {
                at.pass();
                true
            });
            assert!(registered.send(filtered.on_change(async |_| {}).unwrap()).is_ok());
            let _ = ended.await;
        });
    });
    let held = registration.await.unwrap();
    scene.all_else_goes_on().await;
    scene.ends(held).await;
    drop(end);
    program.join().unwrap();
}
