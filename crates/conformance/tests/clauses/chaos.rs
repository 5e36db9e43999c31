//! Everything at once: writers, handlers, restarts and a compaction. Whatever happens on the way, at the end all agree
//! with the server, and nobody was told a story that cannot have happened.

mod ledger;
mod writers;

use std::collections::BTreeMap;

use conformance::{Needs, Rig, Wire, within};
use informer::{Informer, Object, ObjectKey, ResourceType, ResourceVersion, WhenFull};
use k8s_openapi::api::core::v1::Pod;
use serde_json::Value;

use super::{json, sync};
use crate::SERVER;
use ledger::{Handlers, Pace};
use writers::{NAMESPACES, Progress};

/// Another one can be given by the environment variable `INFORMER_CHAOS_SEED`.
const SEED: u64 = 20_240_817;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c1_d2_h1_h2_h10_h11_h12_l2_w6_two_thousand_pods_through_restarts_and_a_compaction() {
    let seed = std::env::var("INFORMER_CHAOS_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(SEED);
    println!("seed {seed}");
    let Some(rig) = Rig::own(SERVER, "chaos", Needs::default()).await else { return };
    for namespace in NAMESPACES {
        rig.add_namespace(namespace).await;
    }
    let factory = rig.builder().build().unwrap();
    let pods: Informer<Object> = factory.informer_of(ResourceType::of::<Pod>());
    let every = |capacity| pods.subscribe().every_change(capacity, WhenFull::Coalesce);
    let mut handlers = Handlers::of(&pods);
    handlers.call("every change", every(1_000_000), Pace::Fast);
    handlers.call("every change, split", every(1_000_000).split_recreated(), Pace::Fast);
    handlers.call("up to 64 changes", every(64), Pace::Fast);
    handlers.call("latest", pods.subscribe().latest(), Pace::Fast);
    handlers.call("latest, slow", pods.subscribe().latest(), Pace::Slow);
    handlers.call("up to 64 changes, slow", every(64), Pace::Slow);
    handlers.stream_of_web("only tier web", every(1_000_000));
    sync(&factory, &pods).await;

    let progress = Progress::default();
    let writing = writers::start(&rig.client(), seed, &progress);
    progress.reached(1_000).await;
    rig.restart().await;
    progress.reached(2_200).await;
    handlers.call("from the middle on", every(1_000_000), Pace::Fast);
    handlers.call("latest, from the middle on", pods.subscribe(), Pace::Fast);

    // The informer is cut off while writing goes on, and the server forgets what it missed.
    progress.reached(3_000).await;
    rig.proxy.refuse();
    progress.reached(3_600).await;
    rig.compact().await;
    rig.kill_restart().await;
    rig.proxy.resume();
    let written = within("the end of writing", writing).await;

    handlers.hurry();
    let server = listed(&rig).await;
    let last = written.last.clone();
    pods.at_least(&last, conformance::DEADLINE).await.unwrap();
    let snapshot = pods.snapshot();
    let cached: BTreeMap<_, _> = snapshot.objects().map(|pod| (pod.key().clone(), json(pod))).collect();
    assert!(cached.keys().eq(server.keys()), "seed {seed}: {} cached, {} listed", cached.len(), server.len());
    for (key, pod) in &server {
        assert_eq!(&cached[key], pod, "seed {seed}, {key}");
    }
    handlers.agree_with_the_cache(seed).await;
    handlers.were_told_of_each_life(&written, &relisted_at(&rig.wire), seed);
    let relists = &rig.wire.lists()[1..];
    assert!(relists.iter().all(|list| !list.version().is_empty()), "seed {seed}: {relists:?}");
    println!("{written}\n{handlers}");
    factory.shutdown().await;
}

/// All pods as the server has them.
async fn listed(rig: &Rig) -> BTreeMap<ObjectKey, Value> {
    let request = http::Request::get("/api/v1/pods").body(Vec::new()).unwrap();
    let mut list: Value = rig.client().request(request).await.unwrap();
    let items = list["items"].as_array_mut().unwrap().drain(..);
    items
        .map(|mut pod| {
            // Lists leave these out of their items.
            pod["apiVersion"] = "v1".into();
            pod["kind"] = "Pod".into();
            let text = |name: &str| pod["metadata"][name].as_str().unwrap();
            (ObjectKey::new(Some(text("namespace")), text("name")).unwrap(), pod)
        })
        .collect()
}

/// The version of the last list: from there on nothing was missed.
fn relisted_at(wire: &Wire) -> ResourceVersion {
    let asked = wire.asked();
    let list = asked.iter().rposition(|asked| !asked.is_watch()).unwrap();
    let watch = asked[list..].iter().find(|asked| asked.is_watch()).unwrap();
    watch.version().into()
}
