//! `kubediff watch`: one informer per resource, one loop that shows their changes.

mod definitions;
mod schemas;
mod screen;
mod streams;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use informer::{
    Change as Told, DecodeError, EncodingChoice, Object, Origin as Seen, ResourceType, SharedInformerFactory,
    Status,
};
use jiff::Timestamp;
use tokio::time::Instant;

use crate::args::WatchArgs;
use crate::cluster::{self, NoCluster};
use crate::exit::Exit;
use crate::signals::Signals;
use crate::{
    Change, Gvk, InvalidNoise, NoRandomKey, Noise, Origin, Profile, Schemas, Secrets, Session, Sighting,
};
use definitions::Definitions;
use schemas::SchemaLoader;
use screen::Screen;
use streams::{News, Streams};

/// Watching could not begin, or had to end.
#[derive(Debug, thiserror::Error)]
pub enum WatchError {
    /// No cluster.
    #[error(transparent)]
    Cluster(#[from] NoCluster),
    /// The client cannot be made.
    #[error("the cluster cannot be reached with this configuration")]
    Client(#[source] Box<kube_client::Error>),
    /// The informers cannot be made.
    #[error(transparent)]
    Informer(#[from] informer::Error),
    /// Discovery failed, or a resource does not exist.
    #[error(transparent)]
    Discovery(#[from] informer::DiscoveryError),
    /// The same, without an end.
    #[error("the server does not say within {} s which resources it has", .0.as_secs())]
    Silent(Duration),
    /// The selector is malformed.
    #[error(transparent)]
    Selector(#[from] informer::InvalidSelector),
    /// There is no such noise rule.
    #[error(transparent)]
    Noise(#[from] InvalidNoise),
    /// Secrets could not be hidden.
    #[error(transparent)]
    Secrets(#[from] NoRandomKey),
    /// The output could not be written.
    #[error("the output cannot be written")]
    Output(#[source] std::io::Error),
    /// Signals cannot be listened for.
    #[error("signals cannot be listened for")]
    Signals(#[source] std::io::Error),
}

impl WatchError {
    /// How the program ends with this.
    pub fn exit(&self) -> Exit {
        match self {
            Self::Discovery(error) if error.is_unknown() => Exit::Usage,
            Self::Cluster(_) | Self::Client(_) | Self::Discovery(_) | Self::Silent(_) | Self::Informer(_) => {
                Exit::Cluster
            }
            Self::Selector(_) | Self::Noise(_) => Exit::Usage,
            Self::Secrets(_) | Self::Output(_) | Self::Signals(_) => Exit::Failure,
        }
    }
}

/// Watches until it is interrupted.
///
/// # Errors
///
/// When watching cannot begin, or the output cannot be written.
pub async fn run(args: &WatchArgs) -> Result<(), WatchError> {
    let mut noise = Noise::default();
    if let Some(rules) = &args.show.noise {
        noise.adjust(rules)?;
    }
    let profile = Profile { noise, secrets: Secrets::with_random_key()?, schemas: Schemas::default() };
    let mut screen = Screen::new(&args.show);
    if args.list_noise {
        return screen.noise_rules(&profile.noise).map_err(WatchError::Output);
    }
    let mut watch = Watch::connect(args, profile).await?;
    let ended = watch.show(&mut screen).await;
    watch.factory.shutdown().await;
    match ended {
        // The reader of our output has closed it, as `head` does.
        Err(WatchError::Output(error)) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        Err(error) => Err(error),
        Ok(()) => screen.summary(&watch.session, watch.started.elapsed()).map_err(WatchError::Output),
    }
}

/// A watch under way.
struct Watch<'a> {
    args: &'a WatchArgs,
    profile: Profile,
    context: Option<String>,
    factory: SharedInformerFactory,
    streams: Streams,
    definitions: Definitions,
    schemas: SchemaLoader,
    /// Whether the initial list of each watched resource is complete.
    first_content: BTreeMap<ResourceType, bool>,
    /// Whether it was announced that everything is synced.
    announced: bool,
    /// Groups and names that have been watched: another version of them is not new.
    followed: BTreeSet<(String, String)>,
    /// Resources whose connection is lost.
    lost: BTreeSet<ResourceType>,
    session: Session,
    started: Instant,
}

/// Everything that can happen.
enum Event {
    News(ResourceType, News),
    DefinitionsChanged,
    Rediscover,
    Discovered(Result<Vec<ResourceType>, WatchError>),
    Interrupted,
}

/// A discovery under way.
type Discovery<'a> = BoxFuture<'a, Result<Vec<ResourceType>, WatchError>>;

/// A custom resource is served a moment after its definition has changed.
const DEFINITIONS_SETTLE: Duration = Duration::from_millis(500);
/// Not every user may watch definitions: rediscover periodically.
const REDISCOVER: Duration = Duration::from_secs(60);
/// Other changes wait this long for the first list of Secrets.
const SECRETS_LIMIT: Duration = Duration::from_secs(10);
/// The limit of discovery.
const DISCOVERY_LIMIT: Duration = Duration::from_secs(30);

impl<'a> Watch<'a> {
    async fn connect(args: &'a WatchArgs, profile: Profile) -> Result<Self, WatchError> {
        let cluster = cluster::find(&args.cluster).await?;
        let default_namespace = cluster.config.default_namespace.clone();
        let client = kube_client::Client::try_from(cluster.config.clone())
            .map_err(|error| WatchError::Client(Box::new(error)))?;
        let schemas = SchemaLoader::new(client, profile.schemas.clone());
        // In JSON: whatever a server newer than us says of an object is shown.
        let mut builder =
            SharedInformerFactory::builder(cluster.config).start_at_once().encoding(EncodingChoice::Json);
        if let Some(selector) = &args.selector {
            builder = builder.labels(selector)?;
        }
        if let Some(selector) = &args.field_selector {
            builder = builder.fields(selector)?;
        }
        if !args.all_namespaces {
            builder = builder.namespace(args.namespace.as_deref().unwrap_or(&default_namespace));
        }
        let factory = builder.build()?;
        let definitions = Definitions::new(&factory)?;
        Ok(Self {
            args,
            profile,
            context: cluster.context,
            factory,
            streams: Streams::default(),
            definitions,
            schemas,
            first_content: BTreeMap::new(),
            announced: false,
            followed: BTreeSet::new(),
            lost: BTreeSet::new(),
            session: Session::default(),
            started: Instant::now(),
        })
    }

    async fn show(&mut self, screen: &mut Screen) -> Result<(), WatchError> {
        let mut signals = Signals::listen().map_err(WatchError::Signals)?;
        end_at_once_on_the_second_signal()?;
        let mut at_start = true;
        // Under way or not; begins with the first.
        let mut discovery: Option<Discovery<'a>> = Some(wanted(self.factory.clone(), self.args));
        let mut rediscover = Instant::now() + REDISCOVER;
        loop {
            self.announce(screen)?;
            let event = tokio::select! {
                biased;
                () = signals.end() => Event::Interrupted,
                wanted = in_flight(&mut discovery) => Event::Discovered(wanted),
                () = self.definitions.changed() => Event::DefinitionsChanged,
                () = tokio::time::sleep_until(rediscover) => Event::Rediscover,
                Some((resource, news)) = self.streams.next() => Event::News(resource, news),
            };
            match event {
                Event::Interrupted => return Ok(()),
                Event::DefinitionsChanged => {
                    self.schemas.outdated();
                    rediscover = Instant::now() + DEFINITIONS_SETTLE;
                }
                Event::Rediscover => {
                    discovery = Some(wanted(self.factory.clone(), self.args));
                    rediscover = Instant::now() + REDISCOVER;
                }
                Event::Discovered(wanted) => {
                    discovery = None;
                    match wanted {
                        Ok(wanted) => {
                            self.follow(wanted, at_start)?;
                            if at_start {
                                self.learn_secrets(screen).await;
                            }
                        }
                        Err(error) if at_start => return Err(error),
                        // What cannot be discovered now stays as it is until the next time.
                        Err(_) => {}
                    }
                    at_start = false;
                }
                Event::News(resource, news) => {
                    if matches!(news, News::Told { told: Told::Updated { .. }, .. }) {
                        self.schemas.need(&resource).await;
                    }
                    self.news(screen, &resource, news)?;
                }
            }
        }
    }

    /// Learns the values of all Secrets, if they are watched, before anything else is shown that may hold them.
    async fn learn_secrets(&self, screen: &Screen) {
        let Some(secrets) = self.streams.secrets() else { return };
        if secrets.wait_for_sync_or_denial(SECRETS_LIMIT).await.is_err_and(|error| !error.is_denied()) {
            screen.note(
                "the Secrets are not listed yet: until they are, their values in other objects are shown",
            );
        }
        for object in secrets.snapshot().objects() {
            self.learn(object);
        }
    }

    fn learn(&self, secret: &Object) {
        let object = secret.json().ok().and_then(|json| serde_json::from_slice(&json).ok());
        if let Some(object) = object {
            self.profile.secrets.learn(&Gvk::new("v1", "Secret"), &object);
        }
    }

    /// Starts to watch new resources, and stops watching those that are gone.
    fn follow(&mut self, wanted: Vec<ResourceType>, at_start: bool) -> Result<(), WatchError> {
        let gone: Vec<_> =
            self.first_content.keys().filter(|resource| !wanted.contains(resource)).cloned().collect();
        for resource in gone {
            self.first_content.remove(&resource);
            self.lost.remove(&resource);
            self.streams.remove(&resource);
            self.session.watched(&resource.qualified_name());
        }
        for resource in wanted {
            if !self.first_content.contains_key(&resource) {
                if resource.plural == "events" && !self.args.resources.is_empty() {
                    // An explicit request for events switches them on.
                    self.profile.noise.switch("events", false)?;
                }
                let known = !self.followed.insert((resource.group.clone(), resource.plural.clone()));
                self.streams.add(&self.factory, resource.clone(), at_start || known)?;
                self.first_content.insert(resource, false);
            }
        }
        // A definition that has come to life may have been asked for before.
        self.streams.retry_denied();
        Ok(())
    }

    fn news(&mut self, screen: &mut Screen, resource: &ResourceType, news: News) -> Result<(), WatchError> {
        match news {
            News::Told { told: Told::Synced, .. } => {
                self.first_content.insert(resource.clone(), true);
            }
            News::Told { told, announce_first } => {
                if let Some(change) = self.change(resource, told, announce_first) {
                    self.session.record(&change);
                    screen.change(&change).map_err(WatchError::Output)?;
                }
            }
            News::Status(status) => self.status(screen, resource, status),
        }
        Ok(())
    }

    /// Reports the state of connections that a user must know: each thing once, not once per resource or attempt.
    fn status(&mut self, screen: &mut Screen, resource: &ResourceType, status: Status) {
        let name = resource.qualified_name();
        match status {
            Status::Denied { status } => {
                self.lost.remove(resource);
                let reason = status.to_string();
                if self.session.not_watched.get(&name) != Some(&reason) {
                    self.session.not_watched(&name, &reason);
                    screen.note(&format!("{name} is not watched: {reason}"));
                }
            }
            Status::Live { .. } => {
                if self.session.not_watched.contains_key(&name) {
                    self.session.watched(&name);
                    screen.note(&format!("{name} is watched now"));
                }
                if self.lost.remove(resource) && self.lost.is_empty() {
                    screen.note("everything is watched again");
                }
            }
            Status::Retrying { cause, .. } => {
                if self.lost.is_empty() {
                    screen.note(&format!("{name}: {cause}; trying again"));
                }
                self.lost.insert(resource.clone());
            }
            _ => {}
        }
    }

    fn change(
        &mut self,
        resource: &ResourceType,
        told: Told<Object>,
        announce_first: bool,
    ) -> Option<Change> {
        let (old, new, seen) = match &told {
            Told::Added { initial: true, new, .. } if !announce_first => {
                if streams::is_secrets(resource) {
                    self.learn(new.object());
                }
                return None;
            }
            Told::Added { new: object, origin, .. } => (None, Some(object.object()), *origin),
            Told::Updated { old, new, origin } => (Some(old.object()), Some(new.object()), *origin),
            Told::Deleted(deleted) => (Some(deleted.last().object()), None, deleted.origin()),
            _ => return None,
        };
        let left_out = |error: &dyn std::fmt::Display| {
            screen::say(&format!("an object of {} is left out: {error}", resource.qualified_name()));
        };
        let json_of_both = || -> Result<_, DecodeError> {
            Ok((old.map(|old| old.json()).transpose()?, new.map(|new| new.json()).transpose()?))
        };
        let (old, new) = json_of_both().inspect_err(|error| left_out(error)).ok()?;
        let gvk = Gvk::new(&resource.api_version(), &resource.kind);
        let sighting = Sighting {
            cluster: self.context.as_deref().filter(|_| self.args.show.output == crate::args::Output::Json),
            gvk: &gvk,
            resource: &resource.plural,
            observed_at: Timestamp::now(),
            origin: match seen {
                Seen::Watch => Origin::Watch,
                Seen::List => Origin::List,
                // We do not look there any more: nothing has happened to it.
                Seen::Scope => return None,
            },
        };
        Change::between_json(
            &sighting,
            old.as_deref(),
            new.as_deref(),
            &self.profile,
            &mut self.session.tally,
        )
        .inspect_err(|error| left_out(error))
        .ok()
        .flatten()
    }

    /// Announces once that the initial list of everything is complete, or denied.
    fn announce(&mut self, screen: &mut Screen) -> Result<(), WatchError> {
        let denied =
            |resource: &ResourceType| self.session.not_watched.contains_key(&resource.qualified_name());
        let settled = self.first_content.iter().all(|(resource, synced)| *synced || denied(resource));
        if self.announced || !settled || self.first_content.is_empty() {
            return Ok(());
        }
        self.announced = true;
        let place = match (self.args.all_namespaces, &self.args.namespace) {
            (true, _) => "all namespaces".to_owned(),
            (false, Some(namespace)) => format!("namespace {namespace}"),
            (false, None) => "the context's namespace (-A for everything)".to_owned(),
        };
        let synced = self.first_content.values().filter(|synced| **synced).count();
        let resources = match self.first_content.len() {
            1 if synced == 1 => "1 resource".to_owned(),
            count if count == synced => format!("{count} resources"),
            count => format!("{synced} of {count} resources"),
        };
        let objects = self.streams.objects();
        screen.note(&format!("watching {resources} in {place}, {objects} objects; Ctrl-C ends"));
        Ok(())
    }
}

/// The resources to watch now.
fn wanted(factory: SharedInformerFactory, args: &WatchArgs) -> Discovery<'_> {
    let discovery = async move {
        let catalog = tokio::time::timeout(DISCOVERY_LIMIT, factory.catalog());
        let catalog = catalog.await.map_err(|_| WatchError::Silent(DISCOVERY_LIMIT))??;
        if !args.resources.is_empty() {
            return Ok(catalog.named(&args.resources.join(","))?);
        }
        let everything = catalog.resources().filter(|resource| resource.namespaced || args.all_namespaces);
        // The same objects under another name.
        let everything = everything.filter(|resource| resource.qualified_name() != "events.events.k8s.io");
        Ok(everything.cloned().collect())
    };
    discovery.boxed()
}

/// The result of the running work; pending without any.
async fn in_flight<T>(work: &mut Option<BoxFuture<'_, T>>) -> T {
    match work {
        Some(work) => work.await,
        None => std::future::pending().await,
    }
}

/// The reader of our output may have stopped; then every write blocks and no signal is handled.
fn end_at_once_on_the_second_signal() -> Result<(), WatchError> {
    let mut signals = Signals::listen().map_err(WatchError::Signals)?;
    tokio::spawn(async move {
        signals.interrupted().await;
        signals.interrupted().await;
        std::process::exit(130);
    });
    Ok(())
}
