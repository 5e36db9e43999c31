//! Clients that keep a copy stay in sync under faults: client-go's shared informer and kube-rs' reflector, which know
//! nothing of our server, find in it what they expect of a server that has its troubles.
#![expect(clippy::print_stdout, reason = "shown when a test fails, or to who asks for it")]

use std::collections::BTreeMap;
use std::time::Duration;

use conformance::{Foreign, Kind, Needs, Replica, Rig, config_map};
use fastrand::Rng;
use k8s_openapi::api::core::v1::ConfigMap;
use kube_client::Api;
use kube_client::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use serde_json::json;
use testapi::Verb;
use testapi::faults::{Matcher, Mix};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn client_go_stays_in_sync() {
    let Some(program) = Foreign::ClientGo.build_or_skip("client_go") else { return };
    all_converge(|kubeconfig| Replica::start(&program, &[kubeconfig, "v1", "configmaps"])).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn client_go_stays_in_sync_in_protobuf() {
    const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
    let Some(program) = Foreign::ClientGo.build_or_skip("client_go_in_protobuf") else { return };
    all_converge(|kubeconfig| Replica::start(&program, &[kubeconfig, "v1", "configmaps", PROTOBUF])).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kube_rs_stays_in_sync_with_lists() {
    kube_rs("list").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kube_rs_stays_in_sync_with_streaming_lists() {
    kube_rs("stream").await;
}

async fn kube_rs(mode: &str) {
    let Some(program) = Foreign::KubeRs.build_or_skip("kube_rs") else { return };
    all_converge(|kubeconfig| Replica::start(&program, &[kubeconfig, mode])).await;
}

/// Each mix of faults has a server and a client of its own. All at once: most of the time they wait for a client that
/// waits before it tries again.
async fn all_converge(start: impl Fn(&str) -> Replica) {
    let mut runs = Vec::new();
    for (seed, mix) in mixes() {
        let run = Run::start("foreign").await;
        let kubeconfig = run.rig.kubeconfig();
        let replica = start(kubeconfig.to_str().unwrap());
        runs.push(tokio::spawn(run.converges(replica, seed, mix)));
    }
    for run in runs {
        run.await.expect("it converges");
    }
}

fn watches() -> Matcher {
    Verb::Watch.of("configmaps")
}

/// Longer than any client waits before it tries again.
const PATIENCE: Duration = Duration::from_secs(180);

/// The faults of lists and watches, for half of the replicas.
fn mixes() -> [(u64, Mix); 3] {
    let reads = || Matcher::of("configmaps").with_verbs([Verb::List, Verb::Watch]);
    [(1, Mix::network()), (2, Mix::refusals()), (3, Mix::default())]
        .map(|(seed, mix)| (seed, mix.share(0.5).on(reads())))
}

struct Run {
    rig: Rig,
    maps: Api<ConfigMap>,
}

impl Run {
    async fn start(test: &str) -> Self {
        let rig = Rig::own(Kind::TestApi, test, Needs::default()).await.expect("an embedded server");
        let maps = rig.config_maps();
        for number in 0..100 {
            rig.create(&format!("first-{number}")).await;
        }
        Self { rig, maps }
    }

    /// Changes things while reads meet faults; in the end the replica has what the server has.
    async fn converges(self, mut replica: Replica, seed: u64, mix: Mix) {
        let first = format!("{}/first-0", self.rig.namespace());
        (replica, ()) = asked(replica, move |replica| replica.until(&first)).await;
        let faults = self.rig.faults().random(seed, mix);
        let mut random = Rng::with_seed(seed);
        for round in 0..8 {
            for _ in 0..100 {
                self.change(&mut random).await;
            }
            match round {
                2 | 5 => self.rig.compact().await,
                3 => self.rig.restart().await,
                6 => self.rig.kill_restart().await,
                _ => drop(self.rig.faults().running(watches()).cut()),
            }
            // Else all of it would pass it by.
            let watching = async {
                while self.rig.faults().running(watches()).count() == 0 {
                    tokio::task::yield_now().await;
                }
            };
            // client-go waits for up to a minute when it was refused several times: then it is not waited for here.
            let _ = tokio::time::timeout(Duration::from_secs(10), watching).await;
        }
        let hits = faults.hits();
        faults.disarm();
        // A stalled stream would stay stalled for ever.
        self.rig.restart().await;
        self.rig.create("last").await;
        let key = format!("{}/last", self.rig.namespace());
        (replica, ()) = asked(replica, move |replica| replica.until(&key)).await;
        let truth = self.versions().await;
        let (_, known) = asked(replica, Replica::state).await;
        assert!(known == truth, "seed {seed}, {hits} faults: {:#?}", differences(&truth, &known));
        assert!(hits > 0, "seed {seed}: nothing went wrong");
        println!("seed {seed}: {hits} faults, {} objects agree", truth.len());
    }

    async fn change(&self, random: &mut Rng) {
        let name = format!("object-{}", random.u32(..200));
        // Some are not there, some are there already: both are answers.
        let _ = match random.u32(..10) {
            0..4 => self.maps.create(&PostParams::default(), &config_map(&name, "new")).await.map(drop),
            4..8 => {
                let patch = Patch::Merge(json!({ "data": { "value": random.u32(..).to_string() } }));
                self.maps.patch(&name, &PatchParams::default(), &patch).await.map(drop)
            }
            _ => self.maps.delete(&name, &DeleteParams::default()).await.map(drop),
        };
    }

    async fn versions(&self) -> BTreeMap<String, String> {
        let all =
            Api::<ConfigMap>::all(self.rig.client()).list(&ListParams::default()).await.expect("a list");
        let versions = all.items.into_iter().map(|map| {
            let metadata = map.metadata;
            let key =
                format!("{}/{}", metadata.namespace.unwrap_or_default(), metadata.name.unwrap_or_default());
            (key, metadata.resource_version.unwrap_or_default())
        });
        versions.collect()
    }
}

/// Asks, which blocks, where it may.
async fn asked<R: Send + 'static>(
    mut replica: Replica,
    question: impl FnOnce(&mut Replica) -> R + Send + 'static,
) -> (Replica, R) {
    let asking = tokio::task::spawn_blocking(move || {
        let answer = question(&mut replica);
        (replica, answer)
    });
    tokio::time::timeout(PATIENCE, asking).await.expect("an answer in time").expect("no panic")
}

fn differences(truth: &BTreeMap<String, String>, known: &BTreeMap<String, String>) -> Vec<String> {
    let keys: std::collections::BTreeSet<_> = truth.keys().chain(known.keys()).collect();
    keys.into_iter()
        .filter(|key| truth.get(*key) != known.get(*key))
        .map(|key| format!("{key}: server {:?}, client {:?}", truth.get(key), known.get(key)))
        .collect()
}
