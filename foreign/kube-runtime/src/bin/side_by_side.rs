//! The same controllers twice: as kube-rs makes them, and fed by one informer. Prints their watches and their memory.
//!
//!     cargo run --release --bin side_by_side [PODS]
//!
//! The pods, 10,000 by default and of about 9 KB each, are in an embedded API server in this process. Each row of the table is a
//! process of its own, whose resident memory the kernel reports. The second controller is made when the first one has
//! reconciled everything. Both reconcile every pod once, and read its containers to do so.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use foreign_kube_runtime::controller;
use futures::StreamExt;
use informer::{Lister, SharedInformerFactory};
use k8s_openapi::api::core::v1::Pod;
use kube::api::PartialObjectMeta;
use kube::runtime::Controller;
use kube::runtime::controller::Action;
use kube::runtime::watcher;
use kube::{Api, Client, Config, ResourceExt};
use serde_json::json;
use testapi::{Gvr, TestApi, Verb, sample};
use tokio::process::Command;
use tokio::sync::mpsc;

type Outcome<T> = Result<T, Box<dyn Error>>;

#[tokio::main]
async fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match &*arguments.iter().map(String::as_str).collect::<Vec<_>>() {
        [] => compare(10_000).await,
        [pods] => compare(pods.parse()?).await,
        [mode, controllers, pods] => run(mode, controllers.parse()?, pods.parse()?).await,
        _ => Err("usage: side_by_side [PODS]".into()),
    }
}

/// Runs each row in a process of its own.
async fn compare(pods: usize) -> Outcome<()> {
    let server = TestApi::builder().start().await?;
    let kubeconfig = std::env::temp_dir().join(format!("side-by-side-{}", std::process::id()));
    std::fs::write(&kubeconfig, server.kubeconfig())?;
    let namespaces = pods.div_ceil(1_000);
    let named = |index| json!({ "metadata": { "name": format!("shop-{index}") } });
    server.api().load(&Gvr::new("v1", "namespaces"), (0..namespaces).map(named))?;
    let texts = (0..pods).map(|index| sample::pod_text(7, index, namespaces));
    server.api().load_text(&Gvr::new("v1", "pods"), texts)?;

    println!("| {pods} pods | controllers | lists | watches | memory above base | peak above base |");
    println!("|---|--:|--:|--:|--:|--:|");
    for controllers in [1, 2] {
        for mode in ["kube-rs", "informer"] {
            server.requests().clear();
            let mut child = Command::new(std::env::current_exe()?);
            child.args([mode, &controllers.to_string(), &pods.to_string()]).env("KUBECONFIG", &kubeconfig);
            let output = child.output().await?;
            if !output.status.success() {
                return Err(format!("{mode}: {}", String::from_utf8_lossy(&output.stderr)).into());
            }
            let requests = |verb: Verb| server.requests().count(&verb.of("pods"));
            let (lists, watches) = (requests(Verb::List), requests(Verb::Watch));
            let memory = String::from_utf8(output.stdout)?;
            println!("| {mode} | {controllers} | {lists} | {watches} | {} |", memory.trim());
        }
    }
    std::fs::remove_file(kubeconfig)?;
    server.stop().await;
    Ok(())
}

async fn run(mode: &str, controllers: usize, pods: usize) -> Outcome<()> {
    let config = Config::infer().await?;
    let base = resident("VmRSS")?;
    let (reconciled, mut all) = mpsc::unbounded_channel();
    // Handles that keep an informer alive.
    let mut informers = Vec::new();
    for _ in 0..controllers {
        match mode {
            "informer" => {
                let pods = match informers.first() {
                    None => SharedInformerFactory::builder(config.clone())
                        .start_at_once()
                        .build()?
                        .informer::<Pod>(),
                    Some(pods) => Clone::clone(pods),
                };
                let context = Arc::new(OfInformer { pods: pods.lister(), reconciled: reconciled.clone() });
                let runs = controller(&pods)?.run(of_informer, |_, _, _| Action::await_change(), context);
                tokio::spawn(runs.for_each(async |_| {}));
                informers.push(pods);
            }
            _ => {
                let api = Api::<Pod>::all(Client::try_from(config.clone())?);
                let context = Arc::new(OfKube { reconciled: reconciled.clone() });
                let runs = Controller::new(api, watcher::Config::default());
                let runs = runs.run(of_kube, |_, _, _| Action::await_change(), context);
                tokio::spawn(runs.for_each(async |_| {}));
            }
        }
        for _ in 0..pods {
            all.recv().await.ok_or("the controller has ended")?;
        }
    }
    // What is left of the work of the last reconciliations.
    tokio::time::sleep(Duration::from_secs(1)).await;
    let peak = resident("VmHWM")?;
    trim();
    let rest = resident("VmRSS")?;
    let megabytes =
        |kilobytes: u64| format!("{:.1} MB", kilobytes.saturating_sub(base) as f64 * 1024.0 / 1e6);
    println!("{} | {}", megabytes(rest), megabytes(peak));
    Ok(())
}

struct OfKube {
    reconciled: mpsc::UnboundedSender<usize>,
}

async fn of_kube(pod: Arc<Pod>, context: Arc<OfKube>) -> Result<Action, std::io::Error> {
    let containers = pod.spec.as_ref().map_or(0, |spec| spec.containers.len());
    let _ = context.reconciled.send(containers);
    Ok(Action::await_change())
}

struct OfInformer {
    pods: Lister<Pod>,
    reconciled: mpsc::UnboundedSender<usize>,
}

async fn of_informer(
    name: Arc<PartialObjectMeta<Pod>>,
    context: Arc<OfInformer>,
) -> Result<Action, informer::DecodeError> {
    let pods = context.pods.namespace(&name.namespace().unwrap_or_default());
    let Some(pod) = pods.get(name.name_any())? else { return Ok(Action::await_change()) };
    let containers = pod.spec.as_ref().map_or(0, |spec| spec.containers.len());
    let _ = context.reconciled.send(containers);
    Ok(Action::await_change())
}

/// Kilobytes, as the kernel counts them.
fn resident(field: &str) -> Outcome<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
    Ok(line.ok_or("no such field")?.trim().trim_end_matches(" kB").parse()?)
}

/// Gives back what the allocator keeps, so that only what is used is measured.
fn trim() {
    // SAFETY: the function has no precondition.
    #[cfg(target_env = "gnu")]
    unsafe {
        libc::malloc_trim(0);
    }
}
