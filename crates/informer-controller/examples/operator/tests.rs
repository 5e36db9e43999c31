use informer_controller_test::{Disturbance, Env, External, Rehearsal, Rule};
use serde_json::Value;
use testapi::faults::{Bytes, Fault};
use testapi::{Gvr, Patch, TestApi, Verb, sample};
use tokio::sync::oneshot;

use super::*;

/// The simulated cloud of a rehearsal.
impl Cloud for External {
    async fn keep(&self, name: &str, _gigabytes: u32) -> Result<(), Failure> {
        Ok(self.make(name, name).await?)
    }

    async fn remove(&self, name: &str) -> Result<(), Failure> {
        Ok(External::remove(self, name).await?)
    }
}

fn bucket(name: &str, gigabytes: u32) -> Value {
    json!({
        "apiVersion": "shop.example.com/v1", "kind": "Bucket",
        "metadata": { "namespace": "shop", "name": name }, "spec": { "gigabytes": gigabytes },
    })
}

fn definitions() -> [Value; 2] {
    [json!(Bucket::crd()), sample::events()]
}

async fn rehearsed(env: Env) -> Result<(), BoxError> {
    let election = env.election("default", "buckets").build()?;
    let (controller, reconciler) = buckets(&env.factory().build()?, env.external());
    let controller = controller.host(env.host());
    let ended = controller.run_elected(&election, env.client(), reconciler);
    Ok(ended.await?)
}

#[test]
fn it_survives_what_a_cluster_does() {
    Rehearsal::new(rehearsed)
        .objects(definitions())
        .script(|world| async move {
            world.create(bucket("a", 1)).await;
            world.create(bucket("b", 500)).await;
            world.delete("Bucket", "shop/a").await;
            let smaller = json!({ "spec": { "gigabytes": 5 } });
            world.patch("Bucket", "shop/b", smaller).await;
            world.gone("Bucket", "shop/a").await;
            world.create(bucket("a", 2)).await;
            world.delete("Bucket", "shop/b").await;
        })
        .disturbances(Disturbance::ALL)
        .rule(Rule::only_the_leader_writes("default/buckets"))
        .rule(Rule::finalizer_before_effect(FINALIZER.name(), "Bucket"))
        .run();
}

#[tokio::test]
async fn a_bucket_comes_and_goes_although_answers_are_lost() -> Result<(), BoxError> {
    let server = TestApi::builder().objects(definitions()).start().await?;
    let (api, buckets) = (server.api(), Gvr::new("shop.example.com/v1", "buckets"));
    // The server carries out two writes, and their answers are lost.
    let writes = server.faults().on(Verb::Patch.of("buckets"));
    let lost = writes.times(2, Fault::CutAfter(Bytes(0)));
    let cloud = std::env::temp_dir().join(format!("buckets-{}", std::process::id()));
    let (program, controller) = program(server.config(), Folder(cloud.clone()))?;
    let (stop, stopped) = oneshot::channel::<()>();
    let program = program.until(async { drop(stopped.await) });
    let running = tokio::spawn(program.run([controller]));

    let is = |reason| move |it: &Value| it["status"]["conditions"][0]["reason"] == reason;
    api.create(&buckets, bucket("a", 500))?;
    api.wait_for(&buckets, "shop", "a", is("NotKept")).await?;
    let smaller = Patch::Merge(json!({ "spec": { "gigabytes": 5 } }));
    api.patch(&buckets, "shop", "a", &smaller)?;
    api.wait_for(&buckets, "shop", "a", is("Kept")).await?;
    assert_eq!(fs::read_to_string(cloud.join("shop/a/quota")).await?, "5");
    assert_eq!(lost.hits(), 2);
    api.delete(&buckets, "shop", "a")?;
    api.wait_until_gone(&buckets, "shop", "a").await?;
    assert!(!cloud.join("shop/a").exists());

    // An event for each change of the condition was sent before the end.
    drop(stop);
    running.await??;
    let events = api.list(&Gvr::new("events.k8s.io/v1", "events"), Some("shop"))?;
    assert_eq!(events.len(), 2, "{events:?}");
    Ok(())
}

// The page ends here; the rest is for this repository.

#[path = "../process/mod.rs"]
#[rustfmt::skip]
mod process;

/// No test by itself: `Process::start` runs it.
#[test]
fn as_a_process() -> Result<(), BoxError> {
    if process::Process::is_this() {
        main()
    } else {
        Ok(())
    }
}

#[tokio::test]
#[cfg(unix)]
async fn sigterm_releases_the_lease_for_the_next_process() -> Result<(), Box<dyn Error>> {
    let leases = Gvr::new("coordination.k8s.io/v1", "leases");
    let held_by = |lease: &Value| lease["spec"]["holderIdentity"].as_str().map(str::to_owned);
    let is_held = |lease: &Value| held_by(lease).is_some_and(|holder| !holder.is_empty());
    let server = TestApi::builder().objects(definitions()).start().await?;
    let api = server.api();
    let one = process::Process::start(&server)?;
    api.wait_for(&leases, "default", "buckets", is_held).await?;
    assert_eq!(one.terminate().await?, Some(0));
    assert!(!is_held(&api.get(&leases, "default", "buckets")?));
    let two = process::Process::start(&server)?;
    // This waits for 10 s at most, and a lease lasts for 15 s.
    api.wait_for(&leases, "default", "buckets", is_held).await?;
    assert_eq!(two.terminate().await?, Some(0));
    Ok(())
}
