//! The cost of a share beside that of everything: memory, and bytes received.

use std::time::Duration;

use conformance::{Kind, Needs, Rig, config_map};
use informer::SharedInformerFactory;
use informer::share::{HashRange, Share, ShareBy};
use k8s_openapi::api::core::v1::ConfigMap;

/// How many objects there are; the figures of the documentation are of 10,000.
fn count() -> usize {
    std::env::var("INFORMER_SHARE_OBJECTS").map_or(400, |count| count.parse().unwrap())
}

/// The memory of an informer, and the bytes that it received.
struct Cost {
    objects: usize,
    held: usize,
    received: u64,
}

async fn cost(rig: &Rig, share: Option<&Share>, asks: bool) -> Cost {
    let builder = SharedInformerFactory::builder(rig.config()).ask_for_share(asks);
    let factory = builder.build().unwrap().in_namespace(rig.namespace()).with_share(share.cloned());
    let maps = factory.informer::<ConfigMap>();
    factory.start();
    maps.wait_for_sync(Duration::from_secs(120)).await.unwrap();
    let cost = Cost { objects: maps.len(), held: maps.held_bytes(), received: maps.metrics().received_bytes };
    factory.shutdown().await;
    cost
}

#[tokio::test(flavor = "multi_thread")]
async fn q9_a_quarter_costs_a_quarter() {
    let needs = Needs { shards: true, ..Needs::default() };
    let Some(rig) = Rig::own(Kind::TestApi, "q9_cost", needs).await else { return };
    let random = |seed: usize| {
        let mut random = fastrand::Rng::with_seed(seed as u64);
        (0..4_000).map(|_| random.alphanumeric()).collect::<String>()
    };
    rig.at_once(
        (0..count()).map(|number| rig.create_with(config_map(&format!("m-{number}"), &random(number)))),
    )
    .await;
    let quarter = Share::new(ShareBy::Uid, HashRange::new(0, 1 << 62).unwrap());
    let all = cost(&rig, None, false).await;
    for asks in [false, true] {
        let part = cost(&rig, Some(&quarter), asks).await;
        let of = |part: f64, all: f64| part / all;
        let objects = of(part.objects as f64, all.objects as f64);
        let held = of(part.held as f64, all.held as f64);
        let received = of(part.received as f64, all.received as f64);
        eprintln!(
            "{} of {} objects: {} of {} bytes held ({held:.2}), {} of {} received ({received:.2}), asked: {asks}",
            part.objects, all.objects, part.held, all.held, part.received, all.received
        );
        assert!((held - objects).abs() < 0.1, "{held}");
        let expected = if asks { objects } else { 1.0 };
        assert!((received - expected).abs() < 0.1, "{received}");
    }
}
