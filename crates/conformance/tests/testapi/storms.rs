//! Everything at once: many changes, faults at random from a seed, several informers. At the end each has what the
//! server has, and each subscription was told a legal story that leads there.

use std::collections::BTreeMap;
use std::time::Duration;

use conformance::{Needs, Rig, Told, config_map, within};
use fastrand::Rng;
use informer::{Informer, Object, StreamingListChoice};
use k8s_openapi::api::core::v1::ConfigMap;
use kube_client::Api;
use kube_client::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use serde_json::json;
use testapi::Verb;
use testapi::faults::{Kind, Matcher, Mix};
use tokio_util::sync::CancellationToken;

use crate::SERVER;
use crate::clauses::config_maps;

/// The faults from which an informer recovers by itself.
fn mix() -> Mix {
    Mix::default()
        .weight(Kind::Stall, 2)
        .weight(Kind::Hang, 1)
        .weight(Kind::Forbidden, 1)
        .weight(Kind::NotFound, 1)
        .weight(Kind::Unauthorized, 1)
        .weight(Kind::Invalid, 1)
        .weight(Kind::StoreRead, 1)
        .weight(Kind::Truncate, 1)
        .weight(Kind::WrongKind, 1)
        .weight(Kind::RevisionBack, 1)
        .weight(Kind::NoEndBookmark, 1)
        .share(0.5)
        .on(Matcher::of("configmaps").with_verbs([Verb::List, Verb::Watch]))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c1_d1_d2_h1_h3_h10_l2_w1_w11_informers_end_with_what_the_server_has_whatever_goes_wrong() {
    for seed in 1..=3 {
        println!("seed {seed}");
        let hits = storm(seed).await;
        println!("seed {seed}: {hits} faults");
    }
}

/// Returns how much has gone wrong.
async fn storm(seed: u64) -> u64 {
    let rig = Rig::own(SERVER, &format!("storm-{seed}"), Needs::default()).await.expect("a server");
    for number in 0..60 {
        rig.create(&format!("object-{number}")).await;
    }
    let patient = |choice| {
        let builder = rig.builder().reflector(|reflector| reflector.silence_limit = Duration::from_secs(1));
        let builder = builder.reflector(|reflector| {
            reflector.response_timeout = Duration::from_secs(2);
            reflector.streaming_list = choice;
        });
        builder
            .reflector(|reflector| reflector.initial_events_timeout = Duration::from_secs(2))
            .build()
            .expect("a factory")
            .in_namespace(rig.namespace())
    };
    let factories = [patient(StreamingListChoice::Never), patient(StreamingListChoice::Always)];
    let faults = rig.faults().random(seed, mix());
    let informers = factories.each_ref().map(|factory| factory.informer_of::<Object>(config_maps()));
    let quiet = CancellationToken::new();
    let told =
        informers.each_ref().map(|informer| tokio::spawn(listen(Told::every(informer), quiet.clone())));
    for factory in &factories {
        factory.start();
    }
    let mut random = Rng::with_seed(seed);
    let maps = rig.config_maps();
    for round in 0..30 {
        for _ in 0..30 {
            change(&maps, &mut random).await;
        }
        match round % 10 {
            2 => rig.compact().await,
            5 => rig.kill_restart().await,
            8 => rig.restart().await,
            _ => rig.proxy.cut(),
        }
        // Both have asked again, else all of it would pass them by.
        let asked = rig.wire.asked().len();
        rig.wire.until("requests", move |all| all.len() >= asked + 2).await;
    }
    let hits = faults.hits();
    faults.disarm();
    assert!(hits >= 20, "seed {seed}: only {hits} faults");
    // An unreadable object keeps its former state until its next version or list. This leads to a list, because the server
    // goes on while nobody looks, and forgets.
    rig.proxy.refuse();
    rig.create("unseen").await;
    rig.kill_restart().await;
    rig.proxy.resume();
    let last = rig.create("last").await;
    let truth = truth(&maps).await;
    for informer in &informers {
        let there = async {
            informer.at_least(&last, conformance::DEADLINE).await.unwrap();
            while known(informer) != truth {
                tokio::task::yield_now().await;
            }
        };
        within(&format!("seed {seed}: what the server has"), there).await;
    }
    quiet.cancel();
    for told in told {
        let story = within("the end of the story", told).await.expect("no panic");
        assert_eq!(story, truth, "seed {seed}: what was told");
    }
    hits
}

/// Reads until it is told that nothing more will happen; the reader checks each change.
async fn listen(mut told: Told, quiet: CancellationToken) -> BTreeMap<String, String> {
    while quiet.run_until_cancelled(told.change()).await.is_some() {}
    told.rest();
    let view = told.story().view().iter();
    view.map(|(key, (_, version))| (key.name().to_owned(), version.to_string())).collect()
}

async fn change(maps: &Api<ConfigMap>, random: &mut Rng) {
    let name = format!("object-{}", random.u32(..120));
    // Some are not there, some are there already: both are answers.
    let _ = match random.u32(..10) {
        0..4 => maps.create(&PostParams::default(), &config_map(&name, "new")).await.map(drop),
        4..8 => {
            let patch = Patch::Merge(json!({ "data": { "value": random.u32(..).to_string() } }));
            maps.patch(&name, &PatchParams::default(), &patch).await.map(drop)
        }
        _ => maps.delete(&name, &DeleteParams::default()).await.map(drop),
    };
}

async fn truth(maps: &Api<ConfigMap>) -> BTreeMap<String, String> {
    let all = maps.list(&ListParams::default()).await.expect("a list");
    let named = all.items.into_iter().map(|map| map.metadata);
    named.map(|map| (map.name.unwrap_or_default(), map.resource_version.unwrap_or_default())).collect()
}

fn known(informer: &Informer<Object>) -> BTreeMap<String, String> {
    let snapshot = informer.snapshot();
    let objects = snapshot.objects();
    objects.map(|object| (object.key().name().to_owned(), object.resource_version().to_string())).collect()
}
