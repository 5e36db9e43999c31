//! Members in one process, and what they do to the objects.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use informer::share::{Ranges, ShareBy, hash};
use informer::{BackoffConfig, SharedInformerFactory};
use informer_controller::{Clock, Context, Controller, Failure, Host, Outcome, SystemClock, with};
use informer_shards::{BoxError, Shards, ShardsError, ShardsHandle, ShardsStatus};
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::{Value, json};
use testapi::{Gvr, TestApi};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;

/// Nothing here takes that long unless it hangs.
pub(crate) const LONG: Duration = Duration::from_secs(60);

const SHORT: BackoffConfig = BackoffConfig {
    first: Duration::from_millis(5),
    longest: Duration::from_millis(50),
    jitter: 0.0,
    reset_after: Duration::from_secs(1),
};

/// The behaviour of all members of a test.
pub(crate) type Acting = Arc<watch::Sender<Doing>>;

#[derive(Default)]
pub(crate) struct Doing {
    /// Which member acts on an object now, by its key.
    now: BTreeMap<String, &'static str>,
    /// Which members have seen that an object is gone.
    gone: BTreeMap<String, Vec<&'static str>>,
}

/// Deletes all objects, which are divided by uid. The owner of each, and no other member, sees that it is gone.
pub(crate) async fn owners_see_deletions(
    server: &TestApi,
    acting: &Acting,
    members: &BTreeMap<String, Ranges>,
) {
    for object in server.api().list(&maps(), None).unwrap() {
        let metadata = &object["metadata"];
        let (namespace, name) = (metadata["namespace"].as_str().unwrap(), metadata["name"].as_str().unwrap());
        server.api().delete(&maps(), namespace, name).unwrap();
        let hash = hash(metadata["uid"].as_str().unwrap());
        let owner = members.iter().find(|(_, ranges)| ranges.contains(hash)).unwrap().0;
        let key = format!("{namespace}/{name}");
        let mut doing = acting.subscribe();
        let seen = doing.wait_for(|doing| doing.gone.contains_key(&key));
        let seen = tokio::time::timeout(LONG, seen).await.expect("somebody sees it").unwrap();
        assert_eq!(seen.gone[&key], [owner.as_str()], "{key}");
    }
}

/// Objects in several namespaces.
pub(crate) async fn server() -> TestApi {
    let namespaces = ["shop", "front", "back", "attic", "cellar", "yard"];
    let objects =
        namespaces.iter().flat_map(|namespace| ["a", "b", "c", "d"].map(|name| map(namespace, name)));
    TestApi::builder().objects(objects).start().await.unwrap()
}

pub(crate) struct Member {
    pub(crate) handle: ShardsHandle,
    stop: oneshot::Sender<()>,
    running: JoinHandle<Result<(), ShardsError>>,
}

struct Work {
    member: &'static str,
    acting: Acting,
}

/// Writes the member's name into each object.
async fn stamp(work: Arc<Work>, context: Context<ConfigMap>) -> Result<Outcome, Failure> {
    let key = context.key().to_string();
    let Some(map) = context.object() else {
        work.acting.send_modify(|doing| doing.gone.entry(key).or_default().push(work.member));
        return Ok(Outcome::Done);
    };
    let _acts = Acts::on(&work, &key);
    let by = json!({ "metadata": { "annotations": { "by": work.member } } });
    context.writer().unlocked().patch(map, by).await?;
    Ok(Outcome::Done)
}

/// One reconciliation, until it ends or is dropped.
struct Acts {
    acting: Acting,
    key: String,
}

impl Acts {
    /// Fails if another member acts on the object.
    fn on(work: &Work, key: &str) -> Self {
        let mut other = None;
        work.acting.send_modify(|doing| other = doing.now.insert(key.to_owned(), work.member));
        assert_eq!(other, None, "{key}: {} acts too", work.member);
        Self { acting: work.acting.clone(), key: key.to_owned() }
    }
}

impl Drop for Acts {
    fn drop(&mut self) {
        self.acting.send_modify(|doing| {
            doing.now.remove(&self.key);
        });
    }
}

impl Member {
    /// Joins with short leases.
    pub(crate) fn join(server: &TestApi, name: &'static str, by: ShareBy, acting: &Acting) -> Self {
        Self::join_by_clock(server, name, by, acting, SystemClock)
    }

    /// The same, by this wall clock.
    pub(crate) fn join_by_clock(
        server: &TestApi,
        name: &'static str,
        by: ShareBy,
        acting: &Acting,
        clock: impl Clock,
    ) -> Self {
        let config = server.config();
        let shards = Shards::builder(config.clone(), "shop", "stamp")
            .by(by)
            .identity(name)
            .lease_duration(Duration::from_secs(6))
            .renew_deadline(Duration::from_secs(4))
            .retry_period(Duration::from_millis(200))
            .host(Host::default().with_clock(clock))
            .build()
            .unwrap();
        let (stop, stopped) = oneshot::channel::<()>();
        let shards = shards.until(async move { stopped.await.unwrap_or_default() });
        let handle = shards.handle();
        let acting = acting.clone();
        let running = tokio::spawn(shards.run(config.clone(), move |share| {
            let factory = SharedInformerFactory::builder(config.clone())
                .reflector(|reflector| reflector.backoff = SHORT)
                .build()?
                .with_share(share.clone());
            let maps = factory.informer::<ConfigMap>();
            let work = Work { member: name, acting: acting.clone() };
            Ok::<_, BoxError>((Controller::new("stamp", &maps).workers(2), with(work, stamp)))
        }));
        Self { handle, stop, running }
    }

    /// Waits for a status.
    pub(crate) async fn reaches(&self, what: impl Fn(&ShardsStatus) -> bool) -> ShardsStatus {
        let mut changes = std::pin::pin!(self.handle.status_changes());
        let reached = async {
            loop {
                let status = changes.next().await.unwrap();
                if what(&status) {
                    return status;
                }
            }
        };
        tokio::time::timeout(LONG, reached)
            .await
            .unwrap_or_else(|_| panic!("never reached: {:?}", self.handle.status()))
    }

    /// Waits until so many members divide the hashes, and this one acts on its part.
    pub(crate) async fn settles(&self, members: usize) -> ShardsStatus {
        self.reaches(|status| status.members.len() == members && status.is_settled()).await
    }

    pub(crate) async fn leave(self) -> Result<(), ShardsError> {
        let _ = self.stop.send(());
        tokio::time::timeout(LONG, self.running).await.expect("the member leaves").expect("it does not panic")
    }

    /// As a crash: nothing is released.
    pub(crate) fn crash(self) {
        self.running.abort();
    }
}

pub(crate) fn maps() -> Gvr {
    Gvr::new("v1", "configmaps")
}

pub(crate) fn leases() -> Gvr {
    Gvr::new("coordination.k8s.io/v1", "leases")
}

pub(crate) fn map(namespace: &str, name: &str) -> Value {
    json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "namespace": namespace, "name": name } })
}

/// The member that stamped an object last.
pub(crate) fn stamped(object: &Value) -> Option<&str> {
    object["metadata"]["annotations"]["by"].as_str()
}

/// Waits until each object has the stamp of its owner.
pub(crate) async fn all_are_stamped(server: &TestApi, by: ShareBy, members: &BTreeMap<String, Ranges>) {
    for object in server.api().list(&maps(), None).unwrap() {
        let metadata = &object["metadata"];
        let field = if by == ShareBy::Uid { "uid" } else { "namespace" };
        let hash = hash(metadata[field].as_str().unwrap());
        let owner = members.iter().find(|(_, ranges)| ranges.contains(hash)).unwrap().0;
        let (namespace, name) = (metadata["namespace"].as_str().unwrap(), metadata["name"].as_str().unwrap());
        let is_stamped = |object: &Value| stamped(object) == Some(owner);
        tokio::time::timeout(LONG, server.api().wait_for(&maps(), namespace, name, is_stamped))
            .await
            .unwrap_or_else(|_| panic!("{namespace}/{name} is not stamped by {owner}"))
            .unwrap();
    }
}
