//! Copies secrets to the namespaces that they select by label.
//!
//! `cargo run -p informer-controller --example copy_secrets`
//!
//! A secret with the label `copy-secrets.example.com/source=true` has a label selector in the annotation
//! `copy-secrets.example.com/namespaces`, `team=shop` for example: each namespace with these labels gets a copy. A copy has the
//! label `copy-secrets.example.com/copy=true` and names its source in an annotation. Secrets without both are never touched.
//! If a source or the label of a namespace goes, so do the copies, also if that happened while the program did not run.

use std::collections::BTreeSet;
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use informer::kube::Config;
use informer::{
    Index, Informer, InvalidSelector, Item, ObjectKey, Selector, SharedInformerFactory, Snapshot,
};
use informer_controller::permissions::{Access, Verb};
use informer_controller::{
    Context, Controller, Failure, Outcome, Program, Reconcile, Watched, changed, with,
};
use k8s_openapi::api::core::v1::{Namespace, Secret};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

const NAMESPACES: &str = "copy-secrets.example.com/namespaces";
const SOURCE: &str = "copy-secrets.example.com/source";
const COPY: &str = "copy-secrets.example.com/copy";

/// No informer sees when a secret of somebody else gives a name free.
const NAME_IS_TAKEN: Duration = Duration::from_secs(300);

struct CopySecrets {
    copies: Informer<Secret>,
    by_source: Index<Secret, ObjectKey>,
    namespaces: Informer<Namespace>,
}

fn annotation<'a>(secret: &'a Item<Secret>, name: &str) -> Option<&'a str> {
    secret.metadata.annotations.as_ref()?.get(name).map(String::as_str)
}

/// The source that a copy names.
fn source(copy: &Item<Secret>) -> Option<ObjectKey> {
    annotation(copy, SOURCE)?.parse().ok()
}

fn copy_of(source: &Item<Secret>, namespace: &str) -> Secret {
    let metadata = ObjectMeta {
        name: source.metadata.name.clone(),
        namespace: Some(namespace.to_owned()),
        labels: Some([(COPY.to_owned(), "true".to_owned())].into()),
        annotations: Some([(SOURCE.to_owned(), source.key().to_string())].into()),
        ..ObjectMeta::default()
    };
    Secret { metadata, data: source.data.clone(), type_: source.type_.clone(), ..Secret::default() }
}

/// The namespaces in which a source wants a copy. An empty selector, which matches everything, spreads no secret.
fn targets(
    source: &Item<Secret>,
    namespaces: &Snapshot<Namespace>,
) -> Result<BTreeSet<String>, InvalidSelector> {
    let selector: Selector = annotation(source, NAMESPACES).unwrap_or_default().parse()?;
    let wants = |namespace: &Item<Namespace>| {
        let is_going = namespace.metadata.deletion_timestamp.is_some();
        let is_own = Some(namespace.key().name()) == source.key().namespace();
        !selector.is_everything() && selector.matches(namespace.labels()) && !is_going && !is_own
    };
    let selected = namespaces.iter().filter(|namespace| wants(namespace));
    Ok(selected.map(|namespace| namespace.key().name().to_owned()).collect())
}

/// Brings the copies of one source up to date. The source is `None` once it is deleted or has lost its label.
///
/// A namespace that refuses its copy holds up no other: the reconciliation goes on, and fails in the end.
async fn reconcile(this: Arc<CopySecrets>, context: Context<Secret>) -> Result<Outcome, Failure> {
    let copies = context.snapshot(&this.copies);
    let targets = match context.object() {
        // Somebody has to correct the selector first, which is a change.
        Some(source) => targets(source, &context.snapshot(&this.namespaces)).map_err(Failure::give_up)?,
        None => BTreeSet::new(),
    };
    let mut missing = targets.clone();
    let mut result = Ok(Outcome::Done);
    for copy in this.by_source.lookup(&copies, context.key()) {
        let namespace = copy.key().namespace().unwrap_or_default();
        let has_its_name = copy.key().name() == context.key().name();
        let source = context.object().filter(|_| has_its_name && targets.contains(namespace));
        if source.is_some() {
            missing.remove(namespace);
        }
        let written = match source.filter(|source| source.type_ == copy.type_) {
            Some(source) if source.data == copy.data => Ok(()),
            Some(source) => context.writer().replace(&copy_of(source, namespace)).await.map(drop),
            // The type of a secret never changes: a new copy follows when this one is gone.
            None => context.writer().delete(&copy).await,
        };
        if let Err(error) = written {
            result = Err(error.into());
        }
    }
    if let Some(source) = context.object() {
        for namespace in missing {
            match context.writer().create(&copy_of(source, &namespace)).await {
                // Somebody else's secret has the name.
                Err(error) if error.is_already_exists() => {
                    result = result.map(|_| Outcome::After(NAME_IS_TAKEN));
                }
                Err(error) => result = Err(error.into()),
                Ok(_) => {}
            }
        }
    }
    result
}

/// The controller, which is to run, and its reconciler.
fn copy_secrets(
    factory: &SharedInformerFactory,
) -> Result<(Controller<Secret>, impl Reconcile<Secret> + use<>), InvalidSelector> {
    let sources = factory.with_labels(format!("{SOURCE}=true"))?.informer::<Secret>();
    let copies = factory.with_labels(format!("{COPY}=true"))?.informer::<Secret>();
    let namespaces = factory.informer::<Namespace>();
    let by_source = copies.add_index(source);
    let all = sources.lister();
    let controller = Controller::new("copy-secrets", &sources)
        // Copies that somebody changes are mended. Those whose source is gone after a restart are deleted.
        .watches(&copies, source)
        // Whichever sources select it now, or did before.
        .watches(Watched::of(&namespaces).when(changed::labels), move |_| {
            all.list().into_iter().map(|source| source.key().clone()).collect::<Vec<_>>()
        })
        .needs(Access::to::<Secret>([Verb::Create, Verb::Update, Verb::Delete]))
        .workers(4);
    Ok((controller, with(CopySecrets { copies, by_source, namespaces }, reconcile)))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let config = Config::infer().await?;
    let (controller, reconciler) = copy_secrets(&SharedInformerFactory::new(config.clone())?)?;
    Ok(Program::new(config).run([controller.with(reconciler)]).await?)
}

#[cfg(test)]
mod process;

#[cfg(test)]
mod tests {
    use informer::kube::Client;
    use informer_controller_test::{Author, Env, Rehearsal, Rule};
    use serde_json::{Value, json};
    use testapi::faults::{Bytes, Fault, Refusal};
    use testapi::{Gvr, Patch, TestApi};
    use tokio::sync::oneshot;

    use super::process::Process;
    use super::*;

    fn secrets() -> Gvr {
        Gvr::new("v1", "secrets")
    }

    fn namespace(name: &str, team: &str) -> Value {
        json!({
            "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name, "labels": { "team": team } },
        })
    }

    /// A secret of somebody, without labels.
    fn secret(namespace: &str, name: &str) -> Value {
        json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": { "namespace": namespace, "name": name },
            "type": "Opaque", "data": { "price": "Nw==" },
        })
    }

    /// The annotation that makes a secret a source.
    fn shop() -> Value {
        json!({ "labels": { SOURCE: "true" }, "annotations": { NAMESPACES: "team=shop" } })
    }

    fn shared(namespace: &str, name: &str) -> Value {
        let mut secret = secret(namespace, name);
        for (field, value) in shop().as_object().into_iter().flatten() {
            secret["metadata"][field] = value.clone();
        }
        secret
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
                    let (controller, reconciler) = copy_secrets(&SharedInformerFactory::new(config)?)?;
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
    async fn copies_are_where_the_labels_are_also_across_restarts_and_lost_answers()
    -> Result<(), Box<dyn Error>> {
        let namespaces = Gvr::new("v1", "namespaces");
        let server = TestApi::builder()
            .objects([namespace("one", "shop"), namespace("two", "shop"), namespace("three", "other")])
            .objects([shared("vault", "prices"), secret("two", "taken"), secret("vault", "taken")])
            .start()
            .await?;
        let api = server.api();
        // The server creates the first copy, and its answer is lost.
        let lost = server.faults().on(testapi::Verb::Create.of("secrets")).once(Fault::CutAfter(Bytes(0)));
        let program = Running::start(&server)?;
        for namespace in ["one", "two"] {
            let copy = api.wait_for(&secrets(), namespace, "prices", |_| true).await?;
            assert_eq!((&copy["data"]["price"], &copy["type"]), (&json!("Nw=="), &json!("Opaque")));
        }
        lost.hit().await;
        assert!(api.get(&secrets(), "three", "prices").is_err());

        // The source changes, a copy is deleted by somebody, and labels come and go.
        let changed = Patch::Merge(json!({ "data": { "price": "OA==" } }));
        api.patch(&secrets(), "vault", "prices", &changed)?;
        api.wait_for(&secrets(), "one", "prices", |copy| copy["data"]["price"] == "OA==").await?;
        api.delete(&secrets(), "one", "prices")?;
        api.wait_for(&secrets(), "one", "prices", |copy| copy["data"]["price"] == "OA==").await?;
        let of = |team: &str| Patch::Merge(json!({ "metadata": { "labels": { "team": team } } }));
        api.patch(&namespaces, "", "three", &of("shop"))?;
        api.wait_for(&secrets(), "three", "prices", |copy| copy["data"]["price"] == "OA==").await?;
        api.patch(&namespaces, "", "one", &of("other"))?;
        api.wait_until_gone(&secrets(), "one", "prices").await?;

        // While the program does not run, the source is deleted, and another one is added whose name is taken in `two`.
        program.stop().await;
        api.delete(&secrets(), "vault", "prices")?;
        api.patch(&secrets(), "vault", "taken", &Patch::Merge(json!({ "metadata": shop() })))?;
        let before = api.get(&secrets(), "two", "taken")?;
        let program = Running::start(&server)?;
        for namespace in ["two", "three"] {
            api.wait_until_gone(&secrets(), namespace, "prices").await?;
        }
        api.wait_for(&secrets(), "three", "taken", |_| true).await?;
        program.stop().await;
        assert_eq!(api.get(&secrets(), "two", "taken")?, before);
        Ok(())
    }

    #[tokio::test]
    async fn a_copy_whose_source_has_another_type_is_made_again() -> Result<(), Box<dyn Error>> {
        let server =
            TestApi::builder().objects([namespace("one", "shop"), shared("vault", "prices")]).start().await?;
        let program = Running::start(&server)?;
        server.api().wait_for(&secrets(), "one", "prices", |copy| copy["type"] == "Opaque").await?;
        server.api().delete(&secrets(), "vault", "prices")?;
        let mut other = shared("vault", "prices");
        other["type"] = json!("shop.example.com/price");
        server.api().create(&secrets(), other)?;
        server
            .api()
            .wait_for(&secrets(), "one", "prices", |copy| copy["type"] == "shop.example.com/price")
            .await?;
        program.stop().await;
        Ok(())
    }

    /// `one` comes first, and takes no copy: by RBAC or a quota, for example.
    #[tokio::test]
    async fn a_namespace_that_refuses_its_copy_holds_up_no_other() -> Result<(), Box<dyn Error>> {
        let server = TestApi::builder()
            .objects([namespace("one", "shop"), namespace("two", "shop"), shared("vault", "prices")])
            .start()
            .await?;
        let into_one = testapi::Verb::Create.of("secrets").in_namespace("one");
        let refused = server.faults().on(into_one).always(Fault::Refuse(Refusal::Forbidden));
        let program = Running::start(&server)?;
        let copies = secrets();
        let copied = server.api().wait_for(&copies, "two", "prices", |_| true);
        tokio::time::timeout(Duration::from_secs(10), copied).await??;
        refused.hit().await;
        program.stop().await;
        Ok(())
    }

    async fn program(env: Env) -> Result<(), Box<dyn Error + Send + Sync>> {
        let (controller, reconciler) = copy_secrets(&env.factory().build()?)?;
        Ok(controller.host(env.host()).run(env.client(), reconciler).await?)
    }

    /// The copies are right in the end, under every disturbance.
    #[test]
    fn it_survives_what_a_cluster_does() {
        let team = |name: &str| json!({ "metadata": { "labels": { "team": name } } });
        Rehearsal::new(program)
            .objects([namespace("one", "shop"), namespace("two", "shop"), namespace("three", "other")])
            .objects([shared("vault", "prices"), secret("two", "other")])
            .script(move |world| async move {
                world.patch("Secret", "vault/prices", json!({ "data": { "price": "OA==" } })).await;
                world.create(shared("vault", "other")).await;
                world.patch("Namespace", "three", team("shop")).await;
                world.patch("Namespace", "one", team("other")).await;
                world.delete("Secret", "two/prices").await;
                world.delete("Secret", "vault/prices").await;
                world.create(shared("vault", "prices")).await;
                world.patch("Secret", "vault/other", json!({ "metadata": { "labels": null } })).await;
            })
            .rule(Rule::after_each_change("others' secrets stay as they are", |change, _| {
                match (change.by(), &*change.key()) {
                    (Author::Program(_), "two/other") => Err("the program changed two/other".to_owned()),
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
        let server =
            TestApi::builder().objects([namespace("one", "shop"), shared("vault", "prices")]).start().await?;
        let process = Process::start(&server)?;
        server.api().wait_for(&secrets(), "one", "prices", |_| true).await?;
        assert_eq!(process.terminate().await?, Some(0));
        Ok(())
    }
}
