//! Keeps a copy of each config map with the label `copy-to=all` in every namespace.
//!
//! `cargo run -p informer-controller --example copy_maps`
//!
//! A copy has the label `copied=true` and names its source in an annotation. Config maps without both are never touched. If
//! a source is deleted or loses its label, its copies are deleted, also if that happened while the program did not run.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use informer::kube::Config;
use informer::{Index, Informer, InvalidSelector, Item, ObjectKey, SharedInformerFactory};
use informer_controller::{Context, Controller, Failure, Outcome, Program, Reconcile, with};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

const SOURCE: &str = "copy-maps.example.com/source";

/// No informer sees when a config map of somebody else gives a name free.
const NAME_IS_TAKEN: Duration = Duration::from_secs(300);

struct CopyMaps {
    copies: Informer<ConfigMap>,
    by_source: Index<ConfigMap, ObjectKey>,
    namespaces: Informer<Namespace>,
}

/// The source that a copy names.
fn source(copy: &Item<ConfigMap>) -> Option<ObjectKey> {
    copy.metadata.annotations.as_ref()?.get(SOURCE)?.parse().ok()
}

fn copy_of(source: &Item<ConfigMap>, namespace: &str) -> ConfigMap {
    let metadata = ObjectMeta {
        name: source.metadata.name.clone(),
        namespace: Some(namespace.to_owned()),
        labels: Some([("copied".to_owned(), "true".to_owned())].into()),
        annotations: Some([(SOURCE.to_owned(), source.key().to_string())].into()),
        ..ObjectMeta::default()
    };
    ConfigMap {
        metadata,
        data: source.data.clone(),
        binary_data: source.binary_data.clone(),
        immutable: None,
    }
}

fn is_current(copy: &ConfigMap, source: &ConfigMap) -> bool {
    copy.data == source.data && copy.binary_data == source.binary_data
}

/// Brings the copies of one source up to date. The source is `None` once it is deleted or has lost its label.
///
/// A namespace that refuses its copy holds up no other: the reconciliation goes on, and fails in the end.
async fn reconcile(this: Arc<CopyMaps>, context: Context<ConfigMap>) -> Result<Outcome, Failure> {
    let copies = context.snapshot(&this.copies);
    let mut result = Ok(Outcome::Done);
    for copy in this.by_source.lookup(&copies, context.key()) {
        let is_wanted = context.object().is_some() && copy.key().name() == context.key().name();
        if !is_wanted && let Err(error) = context.writer().delete(&copy).await {
            result = Err(error.into());
        }
    }
    let Some(source) = context.object() else { return result };
    for namespace in context.snapshot(&this.namespaces).iter() {
        let is_going = namespace.metadata.deletion_timestamp.is_some();
        if is_going || Some(namespace.key().name()) == source.key().namespace() {
            continue;
        }
        let copy = copy_of(source, namespace.key().name());
        let key = ObjectKey::new(Some(namespace.key().name()), source.key().name())?;
        let written = match copies.get(&key)?.filter(|it| self::source(it).as_ref() == Some(source.key())) {
            Some(existing) if is_current(&existing, source) => continue,
            Some(_) => context.writer().replace(&copy).await,
            None => context.writer().create(&copy).await,
        };
        match written {
            Ok(_) => {}
            // Somebody else's config map has the name.
            Err(error) if error.is_already_exists() => {
                result = result.map(|_| Outcome::After(NAME_IS_TAKEN));
            }
            Err(error) => result = Err(error.into()),
        }
    }
    result
}

/// The controller, which is to run, and its reconciler.
fn copy_maps(
    factory: &SharedInformerFactory,
) -> Result<(Controller<ConfigMap>, impl Reconcile<ConfigMap> + use<>), InvalidSelector> {
    let sources = factory.with_labels("copy-to=all")?.informer::<ConfigMap>();
    let copies = factory.with_labels("copied=true")?.informer::<ConfigMap>();
    let namespaces = factory.informer::<Namespace>();
    let by_source = copies.add_index(source);
    let all = sources.lister();
    let controller = Controller::new("copy-maps", &sources)
        // Copies that somebody changes are mended. Those whose source is gone after a restart are deleted.
        .watches(&copies, source)
        .watches(&namespaces, move |_| {
            all.list().into_iter().map(|source| source.key().clone()).collect::<Vec<_>>()
        })
        .workers(4);
    Ok((controller, with(CopyMaps { copies, by_source, namespaces }, reconcile)))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let config = Config::infer().await?;
    let (controller, reconciler) = copy_maps(&SharedInformerFactory::new(config.clone())?)?;
    Ok(Program::new(config).run([controller.with(reconciler)]).await?)
}

#[cfg(test)]
mod process;

#[cfg(test)]
mod tests {
    use informer::kube::Client;
    use informer_controller_test::{Author, Env, Rehearsal, Rule};
    use serde_json::{Value, json};
    use testapi::faults::{Fault, Refusal};
    use testapi::{Gvr, Patch, TestApi, Verb};
    use tokio::sync::oneshot;

    use super::process::Process;
    use super::*;

    fn map(namespace: &str, name: &str, labels: Value) -> Value {
        json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": { "namespace": namespace, "name": name, "labels": labels }, "data": { "price": "7" },
        })
    }

    /// The program, on a thread of its own so that a test can wait for its end.
    struct Running(oneshot::Sender<()>, std::thread::JoinHandle<()>);

    impl Running {
        fn start(server: &TestApi) -> Result<Self, Box<dyn Error>> {
            let (stop, stopped) = oneshot::channel::<()>();
            let config = server.config();
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            let thread = std::thread::spawn(move || {
                let program = async {
                    let client = Client::try_from(config.clone())?;
                    let (controller, reconciler) = copy_maps(&SharedInformerFactory::new(config)?)?;
                    let stop = async move { stopped.await.unwrap_or_default() };
                    Ok::<_, Box<dyn Error>>(controller.until(stop).run(client, reconciler).await?)
                };
                assert!(runtime.block_on(program).is_ok());
            });
            Ok(Self(stop, thread))
        }

        async fn stop(self) {
            let _ = self.0.send(());
            let ended = tokio::task::spawn_blocking(move || self.1.join().is_ok()).await;
            assert!(ended.is_ok_and(|ended| ended), "the program ends without an error");
        }
    }

    #[tokio::test]
    async fn copies_follow_their_source_also_across_restarts_and_lost_answers() -> Result<(), Box<dyn Error>>
    {
        let maps = Gvr::new("v1", "configmaps");
        let all = json!({ "copy-to": "all" });
        let server = TestApi::builder()
            .object(map("shop", "prices", all.clone()))
            .object(map("shop", "private", json!({})))
            .object(map("back", "private", json!({ "app": "other" })))
            .object(map("front", "other", json!({})))
            .start()
            .await?;
        // The server creates the first copy, and its answer is lost.
        let lost = server
            .faults()
            .on(Verb::Create.of("configmaps"))
            .once(Fault::CutAfter(testapi::faults::Bytes(0)));
        let program = Running::start(&server)?;
        for namespace in ["back", "front"] {
            server.api().wait_for(&maps, namespace, "prices", |copy| copy["data"]["price"] == "7").await?;
        }
        lost.hit().await;

        // The source changes, a copy is deleted by somebody, and a namespace is added.
        let price = Patch::Merge(json!({ "data": { "price": "8" } }));
        server.api().patch(&maps, "shop", "prices", &price)?;
        for namespace in ["back", "front"] {
            server.api().wait_for(&maps, namespace, "prices", |copy| copy["data"]["price"] == "8").await?;
        }
        server.api().delete(&maps, "front", "prices")?;
        server.api().wait_for(&maps, "front", "prices", |copy| copy["data"]["price"] == "8").await?;
        server.api().create(&Gvr::new("v1", "namespaces"), json!({ "metadata": { "name": "new" } }))?;
        server.api().wait_for(&maps, "new", "prices", |copy| copy["data"]["price"] == "8").await?;

        // While the program does not run, the source is deleted, and another one is added whose name is taken in `back`.
        program.stop().await;
        server.api().delete(&maps, "shop", "prices")?;
        server.api().patch(
            &maps,
            "shop",
            "private",
            &Patch::Merge(json!({ "metadata": { "labels": all } })),
        )?;
        let program = Running::start(&server)?;
        for namespace in ["back", "front", "new"] {
            server.api().wait_until_gone(&maps, namespace, "prices").await?;
        }
        server.api().wait_for(&maps, "front", "private", |copy| copy["data"]["price"] == "7").await?;
        program.stop().await;
        let untouched = server.api().get(&maps, "back", "private")?;
        assert_eq!(untouched["metadata"]["labels"], json!({ "app": "other" }));
        assert!(server.api().get(&maps, "front", "other").is_ok());
        Ok(())
    }

    /// `back` comes first, and takes no copy: by RBAC or a quota, for example.
    #[tokio::test]
    async fn a_namespace_that_refuses_its_copy_holds_up_no_other() -> Result<(), Box<dyn Error>> {
        let maps = Gvr::new("v1", "configmaps");
        let others = ["front", "left", "right", "top", "yard", "zoo"];
        let namespaces = others.map(|name| map(name, "other", json!({})));
        let server = TestApi::builder()
            .objects([map("back", "other", json!({})), map("shop", "prices", json!({ "copy-to": "all" }))])
            .objects(namespaces)
            .start()
            .await?;
        let into_back = Verb::Create.of("configmaps").in_namespace("back");
        let refused = server.faults().on(into_back).always(Fault::Refuse(Refusal::Forbidden));
        let program = Running::start(&server)?;
        for namespace in others {
            let copied = server.api().wait_for(&maps, namespace, "prices", |_| true);
            tokio::time::timeout(Duration::from_secs(10), copied).await??;
        }
        refused.hit().await;
        program.stop().await;
        Ok(())
    }

    async fn program(env: Env) -> Result<(), Box<dyn Error + Send + Sync>> {
        let (controller, reconciler) = copy_maps(&env.factory().build()?)?;
        Ok(controller.host(env.host()).run(env.client(), reconciler).await?)
    }

    /// The copies are right in the end, under every disturbance.
    #[test]
    fn it_survives_what_a_cluster_does() {
        let all = json!({ "copy-to": "all" });
        let namespace = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "back" } });
        Rehearsal::new(program)
            .objects([namespace, map("shop", "prices", all.clone()), map("front", "other", json!({}))])
            .script(move |world| {
                let all = all.clone();
                async move {
                    world.patch("ConfigMap", "shop/prices", json!({ "data": { "price": "8" } })).await;
                    world.create(map("shop", "other", all.clone())).await;
                    world.delete("ConfigMap", "back/prices").await;
                    world.delete("ConfigMap", "shop/prices").await;
                    world.create(map("shop", "prices", all)).await;
                    world.patch("ConfigMap", "shop/other", json!({ "metadata": { "labels": null } })).await;
                }
            })
            .rule(Rule::after_each_change("others' config maps stay as they are", |change, _| {
                match (change.by(), &*change.key()) {
                    (Author::Program(_), "front/other") => Err("the program changed front/other".to_owned()),
                    _ => Ok(()),
                }
            }))
            .run();
    }

    /// No test by itself: `Process::start` runs it.
    #[test]
    fn as_a_process() -> Result<(), Box<dyn Error>> {
        if Process::is_this() { main() } else { Ok(()) }
    }

    #[tokio::test]
    #[cfg(unix)]
    async fn sigterm_ends_it_without_an_error() -> Result<(), Box<dyn Error>> {
        let server = TestApi::builder()
            .objects([map("shop", "prices", json!({ "copy-to": "all" })), map("front", "other", json!({}))])
            .start()
            .await?;
        let process = Process::start(&server)?;
        server.api().wait_for(&Gvr::new("v1", "configmaps"), "front", "prices", |_| true).await?;
        assert_eq!(process.terminate().await?, Some(0));
        Ok(())
    }

    /// A copy that gets no answer may take the grace period.
    #[tokio::test]
    #[cfg(unix)]
    async fn a_second_signal_ends_it_at_once() -> Result<(), Box<dyn Error>> {
        let server = TestApi::builder()
            .objects([map("shop", "prices", json!({ "copy-to": "all" })), map("front", "other", json!({}))])
            .start()
            .await?;
        let hangs = server.faults().on(Verb::Create.of("configmaps")).always(Fault::Hang);
        let process = Process::start(&server)?;
        hangs.hit().await;
        process.signal("INT")?;
        assert_eq!(process.terminate().await?, Some(1));
        Ok(())
    }
}
