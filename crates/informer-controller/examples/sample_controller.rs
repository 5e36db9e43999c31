//! The sample controller of Kubernetes: it keeps a Deployment for each Foo.
//!
//! `cargo run -p informer-controller --example sample_controller`, after `kubectl apply -f` of the definition that
//! `-- --definition` prints. Several processes may run: one leads.
//!
//! The original is <https://github.com/kubernetes/sample-controller>. `docs/controllers.md` compares both by function.

#![allow(clippy::print_stdout, clippy::disallowed_names, reason = "a program, and the original's name")]

use std::error::Error;
use std::sync::Arc;

use informer::kube::core::CustomResourceExt;
use informer::kube::{Config, Resource};
use informer::{Informer, Item, SharedInformerFactory};
use informer_controller::election::Election;
use informer_controller::recorder::Event;
use informer_controller::{Context, Controller, Failure, Outcome, Program, Reconcile, with};
use k8s_openapi::api::apps::v1::{Deployment, DeploymentSpec};
use k8s_openapi::api::core::v1::{Container, PodSpec, PodTemplateSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};
use kube_derive::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// A Deployment to keep.
#[derive(CustomResource, Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "samplecontroller.k8s.io",
    version = "v1alpha1",
    kind = "Foo",
    namespaced,
    status = "FooStatus",
    annotation("api-approved.kubernetes.io", "unapproved, experimental-only")
)]
#[kube(crates(kube_core = "informer::kube::core"))]
#[serde(rename_all = "camelCase")]
struct FooSpec {
    deployment_name: String,
    replicas: i32,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct FooStatus {
    available_replicas: i32,
}

struct Sample {
    deployments: Informer<Deployment>,
}

/// The Deployment that a Foo asks for.
fn deployment(foo: &Item<Foo>) -> Deployment {
    let labels =
        [("app".to_owned(), "nginx".to_owned()), ("controller".to_owned(), foo.key().name().to_owned())];
    let metadata = ObjectMeta {
        name: Some(foo.spec.deployment_name.clone()),
        namespace: foo.metadata.namespace.clone(),
        owner_references: foo.controller_owner_ref(&()).map(|owner| vec![owner]),
        ..ObjectMeta::default()
    };
    let nginx = Container {
        name: "nginx".to_owned(),
        image: Some("nginx:latest".to_owned()),
        ..Container::default()
    };
    let template = PodTemplateSpec {
        metadata: Some(ObjectMeta { labels: Some(labels.clone().into()), ..ObjectMeta::default() }),
        spec: Some(PodSpec { containers: vec![nginx], ..PodSpec::default() }),
    };
    let selector = LabelSelector { match_labels: Some(labels.into()), ..LabelSelector::default() };
    let spec =
        DeploymentSpec { replicas: Some(foo.spec.replicas), selector, template, ..DeploymentSpec::default() };
    Deployment { metadata, spec, status: None }
}

async fn reconcile(sample: Arc<Sample>, context: Context<Foo>) -> Result<Outcome, Failure> {
    // The Deployment of a deleted Foo is deleted by the garbage collector.
    let Some(foo) = context.object() else { return Ok(Outcome::Done) };
    if foo.spec.deployment_name.is_empty() {
        return Err(Failure::give_up("spec.deploymentName must not be empty"));
    }
    let namespace = foo.key().namespace().unwrap_or_default();
    let existing = context.get(&sample.deployments, format!("{namespace}/{}", foo.spec.deployment_name))?;
    let owned = context.owned(&sample.deployments);
    let deployment = match existing {
        None => context.writer().create(&deployment(foo)).await?,
        Some(existing) if owned.iter().all(|ours| ours.uid() != existing.uid()) => {
            let note = format!("Deployment {} exists and is not managed by Foo", existing.key());
            context.event(foo, Event::warning("ErrResourceExists", "Sync", &note));
            // Somebody may delete it: then there is work, and nothing says so.
            return Err(Failure::retry(note));
        }
        Some(existing) if existing.spec.replicas != Some(foo.spec.replicas) => {
            context.writer().patch(&existing, json!({ "spec": { "replicas": foo.spec.replicas } })).await?
        }
        Some(existing) => Deployment::clone(&existing),
    };
    let available_replicas = deployment.status.and_then(|status| status.available_replicas).unwrap_or(0);
    let status = FooStatus { available_replicas };
    if foo.status.as_ref() != Some(&status) {
        context.writer().patch_status(foo, json!({ "status": status })).await?;
    }
    context.event(foo, Event::normal("Synced", "Sync", "Foo synced successfully"));
    Ok(Outcome::Done)
}

/// The controller, which is to run, and its reconciler.
fn sample(factory: &SharedInformerFactory) -> (Controller<Foo>, impl Reconcile<Foo> + use<>) {
    let foos = factory.informer::<Foo>();
    let deployments = factory.informer::<Deployment>();
    // Each change counts, also of the status: if the cache was behind, the status may have been wrong.
    let controller = Controller::new("sample-controller", &foos).owns(&deployments).workers(2);
    (controller, with(Sample { deployments }, reconcile))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    if std::env::args().any(|argument| argument == "--definition") {
        println!("{}", serde_json::to_string_pretty(&Foo::crd())?);
        return Ok(());
    }
    let config = Config::infer().await?;
    let factory = SharedInformerFactory::new(config.clone())?;
    let election = Election::builder(config.clone(), "default", "sample-controller").build()?;
    let (controller, reconciler) = sample(&factory);
    Ok(Program::new(config).election(&election).run([controller.with(reconciler)]).await?)
}

#[cfg(test)]
mod process;

#[cfg(test)]
mod tests {
    use informer_controller_test::{Disturbance, Env, Rehearsal, Rule};
    use serde_json::Value;
    use testapi::{Gvr, Patch, TestApi};
    use tokio::sync::oneshot;

    use super::process::Process;
    use super::*;

    fn foos() -> Gvr {
        Gvr::new("samplecontroller.k8s.io/v1alpha1", "foos")
    }

    fn foo(name: &str, deployment: &str) -> Value {
        json!({
            "apiVersion": "samplecontroller.k8s.io/v1alpha1", "kind": "Foo",
            "metadata": { "namespace": "default", "name": name },
            "spec": { "deploymentName": deployment, "replicas": 1 },
        })
    }

    async fn program(
        config: Config,
        stop: impl Future<Output = ()> + Send + 'static,
    ) -> Result<(), Box<dyn Error + Send + Sync>> {
        let factory = SharedInformerFactory::new(config.clone())?;
        let election = Election::builder(config.clone(), "default", "sample-controller").build()?;
        let (controller, reconciler) = sample(&factory);
        Ok(controller.until(stop).run_elected(&election, config, reconciler).await?)
    }

    /// The requests about events. testapi does not serve their API: they are lost, which is no error.
    fn events(server: &TestApi) -> Vec<String> {
        let all = server.requests().all();
        all.iter().map(ToString::to_string).filter(|line| line.contains("/events.k8s.io/")).collect()
    }

    /// Waits for the first of them.
    async fn refused(server: &TestApi) -> Result<(), Box<dyn Error>> {
        let refused = async {
            while !events(server).iter().any(|line| line.contains("CREATE")) {
                tokio::task::yield_now().await;
            }
        };
        Ok(tokio::time::timeout(std::time::Duration::from_secs(10), refused).await?)
    }

    #[tokio::test]
    async fn a_deployment_and_its_status_follow_their_foo() -> Result<(), Box<dyn Error>> {
        let deployments = Gvr::new("apps/v1", "deployments");
        let definition = serde_json::to_value(Foo::crd())?;
        let server = TestApi::builder().object(definition).start().await?;
        let (stop, stopped) = oneshot::channel::<()>();
        let program = tokio::spawn(program(server.config(), async { stopped.await.unwrap_or_default() }));
        server.api().create(&foos(), foo("one", "nginx"))?;
        let made =
            server.api().wait_for(&deployments, "default", "nginx", |it| it["spec"]["replicas"] == 1).await?;
        assert_eq!(made["metadata"]["ownerReferences"][0]["name"], "one");

        // The Deployment becomes available, and the Foo's status says so.
        let mut made = made;
        made["status"] = json!({ "availableReplicas": 1 });
        server.api().update_status(&deployments, made)?;
        server.api().wait_for(&foos(), "default", "one", |it| it["status"]["availableReplicas"] == 1).await?;

        // Replicas follow, also after somebody else has changed them.
        let three = Patch::Merge(json!({ "spec": { "replicas": 3 } }));
        server.api().patch(&foos(), "default", "one", &three)?;
        server.api().wait_for(&deployments, "default", "nginx", |it| it["spec"]["replicas"] == 3).await?;
        let nine = Patch::Merge(json!({ "spec": { "replicas": 9 } }));
        server.api().patch(&deployments, "default", "nginx", &nine)?;
        server.api().wait_for(&deployments, "default", "nginx", |it| it["spec"]["replicas"] == 3).await?;

        refused(&server).await?;
        let _ = stop.send(());
        assert!(program.await?.is_ok());
        Ok(())
    }

    /// The original tries again with a backoff.
    #[tokio::test]
    async fn a_foo_gets_its_deployment_once_its_name_is_free() -> Result<(), Box<dyn Error>> {
        let deployments = Gvr::new("apps/v1", "deployments");
        let taken = json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": { "namespace": "default", "name": "nginx" },
            "spec": {
                "selector": { "matchLabels": { "a": "b" } },
                "template": {
                    "metadata": { "labels": { "a": "b" } },
                    "spec": { "containers": [{ "name": "c", "image": "i" }] },
                },
            },
        });
        let server =
            TestApi::builder().object(serde_json::to_value(Foo::crd())?).object(taken).start().await?;
        let (stop, stopped) = oneshot::channel::<()>();
        let program = tokio::spawn(program(server.config(), async { stopped.await.unwrap_or_default() }));
        server.api().create(&foos(), foo("one", "nginx"))?;
        refused(&server).await?;
        server.api().delete(&deployments, "default", "nginx")?;
        let made = server.api().wait_for(&deployments, "default", "nginx", |it| it["spec"]["replicas"] == 1);
        tokio::time::timeout(std::time::Duration::from_secs(5), made).await??;
        let _ = stop.send(());
        assert!(program.await?.is_ok());
        Ok(())
    }

    async fn rehearsed(env: Env) -> Result<(), Box<dyn Error + Send + Sync>> {
        let election = env.election("default", "sample-controller").build()?;
        let (controller, reconciler) = sample(&env.factory().build()?);
        let controller = controller.host(env.host());
        Ok(controller.run_elected(&election, env.client(), reconciler).await?)
    }

    /// Under every disturbance, and with two candidates: the Deployments are right in the end, and only a leader wrote.
    #[test]
    fn it_survives_what_a_cluster_does() {
        Rehearsal::new(rehearsed)
            .objects([serde_json::to_value(Foo::crd()).unwrap_or_default(), foo("one", "nginx")])
            .workloads(std::time::Duration::from_millis(50))
            .script(|world| async move {
                world.create(foo("two", "other")).await;
                world.patch("Foo", "default/one", json!({ "spec": { "replicas": 3 } })).await;
                world.patch("Deployment", "default/nginx", json!({ "spec": { "replicas": 9 } })).await;
                world.delete("Foo", "default/two").await;
                world.create(foo("two", "other")).await;
                world.delete("Deployment", "default/nginx").await;
            })
            .disturbances(Disturbance::ALL)
            .rule(Rule::only_the_leader_writes("default/sample-controller"))
            .rule(Rule::at_most_per_owner(1, "Deployment"))
            .run();
    }

    /// No test by itself: `Process::start` runs it.
    #[test]
    fn as_a_process() -> Result<(), Box<dyn Error>> {
        if Process::is_this() { main() } else { Ok(()) }
    }

    #[tokio::test]
    #[cfg(unix)]
    async fn sigterm_releases_the_lease_and_the_next_process_leads_within_two_seconds()
    -> Result<(), Box<dyn Error>> {
        let (deployments, leases) =
            (Gvr::new("apps/v1", "deployments"), Gvr::new("coordination.k8s.io/v1", "leases"));
        let is_held =
            |lease: &Value| lease["spec"]["holderIdentity"].as_str().is_some_and(|holder| !holder.is_empty());
        let server = TestApi::builder()
            .objects([serde_json::to_value(Foo::crd())?, foo("one", "nginx")])
            .start()
            .await?;
        let one = Process::start(&server)?;
        server.api().wait_for(&deployments, "default", "nginx", |_| true).await?;
        assert_eq!(one.terminate().await?, Some(0));
        assert!(!is_held(&server.api().get(&leases, "default", "sample-controller")?));
        let two = Process::start(&server)?;
        let leads = server.api().wait_for(&leases, "default", "sample-controller", is_held);
        tokio::time::timeout(std::time::Duration::from_secs(2), leads).await??;
        assert_eq!(two.terminate().await?, Some(0));
        Ok(())
    }
}
