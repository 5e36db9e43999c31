//! The end of a controller: no reconciliation begins any more, and those that run may end within the grace period.

use std::sync::Arc;
use std::time::Duration;

use informer_controller::{Context, Controller, ControllerHandle, Failure, Outcome, RunError, with};
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::json;
use testapi::Patch;
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::support::{Stop, map, maps};
use crate::wireless::{Wireless, pass};

const GRACE: Duration = Duration::from_secs(30);
const SECOND: Duration = Duration::from_secs(1);

/// The behaviour of a reconciliation.
#[derive(Debug)]
enum Did {
    Begin(Context<ConfigMap>),
    /// Its future is dropped, whether it has ended or not.
    Drop(String),
}

/// Tells of the drop.
struct Dropped<'a>(&'a UnboundedSender<Did>, String);

impl Drop for Dropped<'_> {
    fn drop(&mut self) {
        let _ = self.0.send(Did::Drop(self.1.clone()));
    }
}

/// Takes as long as `data.of` says, then stamps its object and wants to come again.
async fn stamp(did: Arc<UnboundedSender<Did>>, context: Context<ConfigMap>) -> Result<Outcome, Failure> {
    let Some(map) = context.object() else { return Ok(Outcome::Done) };
    let _ = did.send(Did::Begin(context.clone()));
    let _dropped = Dropped(&did, map.key().name().to_owned());
    let seconds: u64 = map.data.as_ref().and_then(|data| data["of"].parse().ok()).unwrap_or_default();
    pass(SECOND * u32::try_from(seconds)?).await;
    context.writer().patch(map, json!({ "metadata": { "labels": { "stamped": "yes" } } })).await?;
    Ok(Outcome::After(SECOND))
}

struct Running {
    world: Wireless,
    handle: ControllerHandle,
    did: UnboundedReceiver<Did>,
    stop: Stop,
    running: JoinHandle<Result<(), RunError>>,
}

impl Running {
    /// Two workers for objects that take so many seconds; returns when both are busy, and a second later.
    async fn start(objects: &[(&str, u64)]) -> (Self, Vec<Context<ConfigMap>>) {
        let world = Wireless::with(
            &maps(),
            objects.iter().map(|(name, seconds)| {
                let mut map = map("shop", name);
                map["data"]["of"] = json!(seconds.to_string());
                map
            }),
        );
        let informer = world.factory().informer::<ConfigMap>();
        let (did, mut has) = mpsc::unbounded_channel();
        let (stop, stopped) = Stop::pair();
        let controller = Controller::new("test", &informer).workers(2).grace(GRACE).until(stopped);
        let handle = controller.handle();
        let running = tokio::spawn(controller.run(world.client(), with(did, stamp)));
        let mut begun = Vec::new();
        while begun.len() < 2 {
            match has.recv().await {
                Some(Did::Begin(context)) => begun.push(context),
                other => panic!("{other:?}"),
            }
        }
        pass(SECOND).await;
        (Self { world, handle, did: has, stop, running }, begun)
    }

    /// Stops the controller, gives it more to do, and waits for its end. Returns how long that took, and what the
    /// reconciliations did meanwhile.
    async fn end(self) -> (Duration, Wireless, Vec<String>) {
        let Self { world, handle, mut did, stop, running } = self;
        let stopped = Instant::now();
        let changing = world.clone();
        let meanwhile = async move {
            pass(SECOND).await;
            // While the others run: a change of an object, of one that waits, a new one, and a wish of the program.
            for name in ["a", "c"] {
                let patch = Patch::Merge(json!({ "metadata": { "annotations": { "changed": "yes" } } }));
                changing.0.patch(&maps(), "shop", name, &patch).unwrap();
            }
            changing.0.create(&maps(), map("shop", "late")).unwrap();
            handle.reconcile("shop/c".parse().unwrap());
        };
        let (ended, ()) = tokio::join!(stop.and_wait_for(running, 10 * GRACE), meanwhile);
        ended.unwrap();
        let took = stopped.elapsed();
        let mut all = Vec::new();
        while let Some(one) = did.recv().await {
            all.push(match one {
                Did::Begin(context) => format!("{} begins", context.key().name()),
                Did::Drop(name) => format!("{name} ends"),
            });
        }
        (took, world, all)
    }
}

fn is_stamped(world: &Wireless, name: &str) -> bool {
    world.0.get(&maps(), "shop", name).unwrap()["metadata"]["labels"]["stamped"] == "yes"
}

#[tokio::test(start_paused = true)]
async fn what_runs_at_the_end_may_end_and_write_and_nothing_else_begins() {
    let (running, _) = Running::start(&[("a", 11), ("b", 21), ("c", 0)]).await;
    let (took, world, did) = running.end().await;
    assert_eq!(did, ["a ends", "b ends"]);
    // As long as the longest needs, and no longer.
    assert_eq!(took.as_secs(), 20);
    // `a` was changed meanwhile: its write is a conflict, and is not tried again.
    assert_eq!(["a", "b", "c"].map(|name| is_stamped(&world, name)), [false, true, false]);
}

#[tokio::test(start_paused = true)]
async fn what_does_not_end_within_the_grace_period_is_cut_off_and_writes_no_more() {
    let (running, begun) = Running::start(&[("a", 100), ("b", 11), ("c", 0)]).await;
    let (took, world, did) = running.end().await;
    let cut = begun.iter().find(|context| context.key().name() == "a");
    assert_eq!(did, ["b ends", "a ends"]);
    assert_eq!(took, GRACE);
    assert_eq!(["a", "b", "c"].map(|name| is_stamped(&world, name)), [false, true, false]);
    // A holder of its context cannot write either.
    let context = cut.expect("it began");
    let late = json!({ "data": { "late": "yes" } });
    assert!(context.writer().unlocked().patch(context.object().unwrap(), late).await.is_err());
    assert!(world.0.get(&maps(), "shop", "a").unwrap()["data"]["late"].is_null());
}
