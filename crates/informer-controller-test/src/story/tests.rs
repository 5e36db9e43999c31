//! A story names as unseen only what no cache held.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use informer::Informer;
use informer_controller::{Context, Controller, Failure, Outcome};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use serde_json::{Value, json};

use super::Unseen;
use crate::env::{Env, identity};
use crate::history::{Author, Change, Instance, What};
use crate::plan::{Disturbance, Plan};
use crate::rehearsal::Rehearsal;
use crate::run::{Run, play};
use crate::world::World;

/// The versions in the caches when a reconciliation begins, by `Kind namespace/name`.
type Cached = BTreeMap<String, u64>;
/// Those of each process, by its identity.
type Looks = BTreeMap<String, Vec<Cached>>;

fn object(kind: &str, name: &str) -> Value {
    json!({ "apiVersion": "v1", "kind": kind, "metadata": { "namespace": "shop", "name": name } })
}

/// A controller that copies config maps into secrets, and notes what its caches hold. Its secrets come by two watches.
async fn copies(env: Env, looks: Arc<Mutex<Looks>>) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let process = env.identity();
    let factory = env.factory().build()?;
    let maps = factory.informer::<ConfigMap>();
    let secrets = factory.informer::<Secret>();
    let apart = factory.with_labels("of=nobody")?.informer::<Secret>();
    let (map_cache, secret_cache) = (maps.clone(), secrets.clone());
    let reconcile = move |context: Context<ConfigMap>| {
        let mut cached = Cached::new();
        add(&mut cached, "ConfigMap", &map_cache);
        add(&mut cached, "Secret", &secret_cache);
        looks.lock().unwrap().entry(process.clone()).or_default().push(cached);
        async move {
            if let Some(map) = context.object() {
                let mut secret = Secret::default();
                secret.metadata.namespace = map.metadata.namespace.clone();
                secret.metadata.name = map.metadata.name.clone();
                context.writer().apply(&secret).await?;
            }
            Ok::<_, Failure>(Outcome::Done)
        }
    };
    apart.start();
    Controller::new("copies", &maps)
        .watches(&secrets, |_| Vec::new())
        .host(env.host())
        .run(env.client(), reconcile)
        .await?;
    Ok(())
}

fn add<T: informer::View>(cached: &mut Cached, kind: &str, informer: &Informer<T>) {
    for item in informer.lister().list() {
        cached.insert(format!("{kind} {}", item.key()), item.resource_version().to_string().parse().unwrap());
    }
}

async fn script(world: World) {
    for round in 0..6 {
        world.create(object("ConfigMap", &format!("m{round}"))).await;
        let mut secret = object("Secret", &format!("other{round}"));
        secret["metadata"]["labels"] = json!({ "of": if round % 2 == 0 { "nobody" } else { "me" } });
        world.create(secret).await;
        world.patch("ConfigMap", "shop/m0", json!({ "data": { "round": round.to_string() } })).await;
        if round > 1 {
            world.delete("Secret", &format!("shop/other{}", round - 2)).await;
        }
    }
}

/// Changes that the caches held at the beginning of a reconciliation, although the story would say that nobody had shown them.
fn held<'a>(run: &'a Run, looks: &Looks) -> Vec<&'a Change> {
    let entries = &run.history.entries;
    let mut begun: BTreeMap<Instance, usize> = BTreeMap::new();
    let mut held = Vec::new();
    for (number, entry) in entries.iter().enumerate() {
        let Author::Program(instance) = entry.by else { continue };
        let What::Began { .. } = &entry.what else { continue };
        let nth = begun.entry(instance).or_default();
        *nth += 1;
        let Some(cached) = looks.get(&identity(instance)).and_then(|looks| looks.get(*nth - 1)) else {
            continue;
        };
        held.extend(Unseen::at(&run.history, number, instance).late.iter().filter(|change| {
            let name = format!("{} {}", change.kind(), change.key());
            change.after().is_some() && cached.get(&name).is_some_and(|version| *version >= change.revision)
        }));
    }
    held
}

#[test]
fn a_state_that_a_cache_held_is_not_told_as_unseen() {
    let looks = Arc::new(Mutex::new(Looks::new()));
    let noted = looks.clone();
    let rehearsal = Rehearsal::new(move |env| copies(env, noted.clone()))
        .objects([object("ConfigMap", "m")])
        .script(script)
        .disturbances(Disturbance::ALL);
    let case = rehearsal.case;
    let heartbeat = Arc::new(AtomicU64::new(0));
    let mut plan = Plan::undisturbed(400);
    let mut shape = None;
    // In one of these, a list ended the answer of another request (415).
    for seed in 400..440 {
        looks.lock().unwrap().clear();
        let run = play(&case, &plan, Duration::MAX, &heartbeat);
        assert!(run.problem.is_none(), "seed {seed}: {:?}", run.problem);
        let looks = looks.lock().unwrap();
        assert!(looks.values().flatten().count() > 6, "seed {seed}: too few reconciliations");
        let held = held(&run, &looks);
        assert!(held.is_empty(), "seed {seed}, {plan:?}: {held:?}");
        plan = Plan::draw(seed, &case.kinds, shape.get_or_insert(run.shape));
    }
}
