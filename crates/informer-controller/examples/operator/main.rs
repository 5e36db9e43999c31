//! Keeps a bucket in a cloud for each object of the kind `Bucket`. The cloud is a folder, for a first try.
//!
//! `docs/controllers.md` writes it step by step, and says how to run it.

#![allow(clippy::print_stdout, reason = "a program")]

use std::{error::Error, net::SocketAddr, path::PathBuf, sync::Arc};

use informer::SharedInformerFactory;
use informer::kube::{Config, core::CustomResourceExt};
use informer_controller::conditions::{self, Condition};
use informer_controller::election::Election;
use informer_controller::finalizer::{Finalizer, Guarded};
use informer_controller::permissions::{Access, Verb};
use informer_controller::recorder::{Event, EventType};
use informer_controller::{Context, Controller, Failure, Outcome};
use informer_controller::{Program, Reconcile, Runnable, with};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition as Stored;
use kube_derive::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::fs;

/// A bucket to keep.
#[derive(CustomResource, Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[kube(group = "shop.example.com", version = "v1", kind = "Bucket")]
#[kube(namespaced, status = "BucketStatus")]
#[kube(crates(kube_core = "informer::kube::core"))]
struct BucketSpec {
    gigabytes: u32,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
struct BucketStatus {
    conditions: Vec<Stored>,
}

/// Where the buckets are. Both calls succeed if there is nothing to do.
trait Cloud: Send + Sync + 'static {
    fn keep(&self, name: &str, gigabytes: u32) -> impl Future<Output = Result<(), Failure>> + Send;
    fn remove(&self, name: &str) -> impl Future<Output = Result<(), Failure>> + Send;
}

/// A folder for each bucket.
struct Folder(PathBuf);

impl Cloud for Folder {
    async fn keep(&self, name: &str, gigabytes: u32) -> Result<(), Failure> {
        fs::create_dir_all(self.0.join(name)).await?;
        let quota = self.0.join(name).join("quota");
        Ok(fs::write(quota, gigabytes.to_string()).await?)
    }

    async fn remove(&self, name: &str) -> Result<(), Failure> {
        match fs::try_exists(self.0.join(name)).await? {
            true => Ok(fs::remove_dir_all(self.0.join(name)).await?),
            false => Ok(()),
        }
    }
}

const FINALIZER: Finalizer = Finalizer::new("shop.example.com/bucket");

async fn reconcile<C: Cloud>(cloud: Arc<C>, context: Context<Bucket>) -> Result<Outcome, Failure> {
    let Some(bucket) = context.object() else {
        return Ok(Outcome::Done);
    };
    let (name, gigabytes) = (bucket.key().as_str(), bucket.spec.gigabytes);
    let kept = match FINALIZER.guard(context.writer(), bucket).await? {
        Guarded::Held if gigabytes > 100 => Err(Failure::give_up("more than 100 GB")),
        Guarded::Held => cloud.keep(name, gigabytes).await,
        Guarded::Cleanup(cleanup) => {
            cloud.remove(name).await?;
            cleanup.done().await?;
            return Ok(Outcome::Done);
        }
        Guarded::Released => return Ok(Outcome::Done),
    };
    let (kind, reason, note) = match &kept {
        Ok(()) => (EventType::Normal, "Kept", format!("{gigabytes} GB")),
        Err(failure) => (EventType::Warning, "NotKept", failure.to_string()),
    };
    let ready = Condition::new("Ready", kept.is_ok(), reason).message(&note);
    let ready = ready.observed(bucket.metadata.generation);
    let mut status = bucket.status.clone().unwrap_or_default();
    if conditions::set(&mut status.conditions, &ready, context.now())? {
        context.event(bucket, Event::new(kind, reason, "Keep", note));
        context.writer().write_status(bucket, &status).await?;
    }
    kept.map(|()| Outcome::Done)
}

/// The controller, which is to run, and its reconciler.
fn buckets<C: Cloud>(
    factory: &SharedInformerFactory,
    cloud: C,
) -> (Controller<Bucket>, impl Reconcile<Bucket> + use<C>) {
    let controller = Controller::new("buckets", &factory.informer::<Bucket>())
        .needs(Access::to::<Bucket>([Verb::Patch]))
        .needs(Access::to::<Bucket>([Verb::Patch]).subresource("status"))
        .needs(Access::leases("default"))
        .needs(Access::events());
    (controller, with(cloud, reconcile))
}

type BoxError = Box<dyn Error + Send + Sync>;

/// A process of the cluster, and what it is to run.
fn program(config: Config, cloud: impl Cloud) -> Result<(Program, Runnable), BoxError> {
    let (controller, reconciler) = buckets(&SharedInformerFactory::new(config.clone())?, cloud);
    let election = Election::builder(config.clone(), "default", "buckets").build()?;
    let program = Program::new(config).election(&election);
    Ok((program, controller.with(reconciler)))
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    tracing_subscriber::fmt::init();
    let cloud = Folder("/tmp/buckets".into());
    if std::env::args().any(|argument| argument == "--manifests") {
        let nowhere = Config::new("http://localhost".parse()?);
        let (controller, _) = buckets(&SharedInformerFactory::new(nowhere)?, cloud);
        for object in [controller.rules().to_objects(), vec![json!(Bucket::crd())]].concat() {
            println!("{object:#}");
        }
        return Ok(());
    }
    let address = std::env::var("LISTEN").unwrap_or("0.0.0.0:8080".into());
    let (program, controller) = program(Config::infer().await?, cloud)?;
    let program = program.listen(address.parse::<SocketAddr>()?)?;
    Ok(program.run([controller]).await?)
}

#[cfg(test)]
mod tests;
