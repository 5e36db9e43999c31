//! Follows a cluster: one informer per resource, and one loop that takes what they tell into an inbox.
//!
//! The consumer takes the inbox empty, on a thread of its own: `watch` shows its entries, `serve` records them.

mod agenda;
mod definitions;
mod denials;
mod discovery;
mod error;
mod identity;
mod inbox;
mod item;
mod missed;
pub(crate) mod openapi;
mod outages;
mod pending;
mod reach;
mod schemas;
mod secrets;
mod shadow;
mod standing;
mod streams;
mod takeover;
mod telling;
mod watermark;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures_util::FutureExt;
use informer::metrics::FactoryMetrics;
use informer::{Change as CacheChange, EncodingChoice, SharedInformerFactory, Status};
use jiff::{Timestamp, Zoned};
use kube_client::Client;
use tokio::sync::watch;
use tokio::task::{JoinError, JoinHandle};
use tokio::time::Instant;

use crate::cluster::ClusterArgs;
use crate::model::targets::Target;
use crate::text::terminal::say;
use crate::text::words::Server;
use crate::{Gap, Gvk, Profile, Secrets, cluster};
use agenda::{ALIVE, Agenda, REDISCOVER};
use definitions::Definitions;
use denials::Denials;
use discovery::{Discovered, Discovery};
use missed::Missed;
use outages::{Outages, Reason};
use pending::{at, in_flight};
use schemas::SchemaLoader;
use streams::{News, Streams};

pub use error::WatchError;
pub(crate) use inbox::{Inbox, Next};
pub(crate) use item::{InboxItem, Kind, RawChange, Resources, Synced};
pub(crate) use reach::{Namespaces, Reach, Within};
pub(crate) use shadow::Recorded;
pub(crate) use standing::Standing;
pub(crate) use watermark::{Watches, Watermark};

/// How to follow it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FollowOptions {
    /// How many bytes may wait in the inbox before changes of one object are merged.
    pub(crate) bound: usize,
    /// Whether the inbox gets the objects that are there at the start, and what else a history needs.
    pub(crate) with_first: bool,
    /// Whether a server that cannot be reached at the start, or lets nothing be watched, is tried again and again.
    pub(crate) persistent: bool,
    /// How long a change may wait for its Secret.
    pub(crate) secrets_wait: Duration,
}

/// Why the loop ended.
pub(crate) enum End<T> {
    /// The caller asked for the end, by a signal for example.
    Asked,
    /// The consumer of the inbox has ended.
    Taken(Result<T, JoinError>),
}

/// A cluster that is followed.
pub(crate) struct Follow {
    reach: Reach,
    options: FollowOptions,
    server: Server,
    /// For requests that are no lists and watches; `None` where none can be made.
    client: Option<Client>,
    /// The cluster's uid, once somebody has asked for it.
    identity: OnceLock<String>,
    /// Whether an outage has ended since the last discovery.
    was_away: bool,
    context: Option<String>,
    default_namespace: String,
    /// In words, for people.
    place: String,
    factory: SharedInformerFactory,
    discovery_limit: Duration,
    streams: Streams,
    definitions: Definitions,
    secrets: Secrets,
    /// Whether the values of all Secrets are known that there were at the start.
    learnt: watch::Sender<bool>,
    schemas: SchemaLoader,
    inbox: Arc<Inbox>,
    /// How many changes have been merged that the user knows of.
    merged: u64,
    targets: BTreeMap<Target, State>,
    /// The resources of the server.
    served: BTreeSet<String>,
    /// Parts of the API that the server does not describe at present.
    unavailable: Vec<String>,
    /// Whether it was announced that everything is synced.
    announced: bool,
    /// When a definition changed that has not led to a discovery yet.
    defined: Option<Timestamp>,
    /// Groups and names that have been watched: another version of them is not new.
    followed: BTreeSet<String>,
    outages: Outages,
    denials: Denials,
    /// Whether anything was ever watched.
    reached: bool,
    standing: watch::Sender<Standing>,
    /// Once the loop has begun.
    agenda: Option<Agenda>,
}

/// The known state of a target.
struct State {
    kind: Arc<Kind>,
    /// Whether the initial list is complete.
    is_synced: bool,
    missed: Missed,
    watches: Watches,
}

/// Everything that can happen.
enum Event<T> {
    News(Target, News),
    DefinitionsChanged,
    Rediscover,
    Discovered(Result<Discovered, WatchError>),
    SayDenials,
    Alive,
    Asked,
    Taken(Result<T, JoinError>),
}

/// A custom resource is served a moment after its definition has changed.
const DEFINITIONS_SETTLE: Duration = Duration::from_millis(500);
/// The time from a failed later discovery to the next one.
const AGAIN: Duration = Duration::from_secs(30);
/// The time from a failed first discovery to the next one.
const FIRST_AGAIN: Duration = Duration::from_secs(5);
/// The limit of discovery.
const DISCOVERY_LIMIT: Duration = Duration::from_secs(30);
/// Denials come one by one; those of this time are told together.
const DENIALS_SETTLE: Duration = Duration::from_secs(1);
/// At the end, the thread that takes changes needs this long beside their wait for a Secret, and all of it lasts this long at most.
const SETTLING: Duration = Duration::from_millis(500);
const MOST_SETTLING: Duration = Duration::from_secs(10);
/// How often is looked whether all changes are taken, while none comes.
const STILL: Duration = Duration::from_millis(20);

impl Follow {
    /// # Errors
    ///
    /// When there is no cluster, or informers for it cannot be made.
    pub(crate) async fn connect(
        args: &ClusterArgs,
        reach: Reach,
        options: FollowOptions,
        profile: &Profile,
    ) -> Result<Self, WatchError> {
        let cluster = cluster::find(args).await?;
        let server = Server { address: cluster.address(), credentials: cluster.credentials() };
        let default_namespace = cluster.config.default_namespace.clone();
        let config = cluster.config.clone();
        // In JSON: whatever a server newer than us says of an object is shown.
        let mut builder =
            SharedInformerFactory::builder(cluster.config).start_at_once().encoding(EncodingChoice::Json);
        if let Some(limit) = cluster.request_timeout {
            builder = builder.reflector(|reflector| reflector.response_timeout = limit);
        }
        let place = reach.namespaces.in_words(&default_namespace);
        let mut factory = builder.build()?;
        if let Some(selector) = &reach.labels {
            factory = factory.with_labels(selector)?;
        }
        if let Some(selector) = &reach.fields {
            factory = factory.with_fields(selector)?;
        }
        if let Some(namespaces) = reach.within(&default_namespace).namespaces {
            factory = factory.in_namespaces(namespaces);
        }
        // The mistakes of the configuration were reported before, in better words.
        let client = Client::try_from(config).ok();
        let schemas = SchemaLoader::new(client.clone(), profile.schemas.clone());
        let definitions = Definitions::new(&factory)?;
        Ok(Self {
            reach,
            options,
            server,
            client,
            identity: OnceLock::new(),
            was_away: false,
            context: cluster.context,
            default_namespace,
            place,
            factory,
            discovery_limit: cluster.request_timeout.unwrap_or(DISCOVERY_LIMIT),
            streams: Streams::default(),
            definitions,
            secrets: profile.secrets.clone(),
            learnt: watch::Sender::new(false),
            schemas,
            inbox: Arc::new(Inbox::new(options.bound)),
            merged: 0,
            targets: BTreeMap::new(),
            served: BTreeSet::new(),
            unavailable: Vec::new(),
            announced: false,
            defined: None,
            followed: BTreeSet::new(),
            outages: Outages::default(),
            denials: Denials::default(),
            reached: false,
            standing: watch::Sender::new(Standing::default()),
            agenda: None,
        })
    }

    /// Where everything that is seen waits to be taken.
    pub(crate) fn inbox(&self) -> Arc<Inbox> {
        self.inbox.clone()
    }

    /// The client for requests that are no lists and watches; `None` where none can be made.
    pub(crate) fn client(&self) -> Option<Client> {
        self.client.clone()
    }

    /// The name of the kubeconfig's context.
    pub(crate) fn context(&self) -> Option<&str> {
        self.context.as_deref()
    }

    /// Which objects can be seen.
    pub(crate) fn within(&self) -> Within {
        self.reach.within(&self.default_namespace)
    }

    /// The metrics of all informers.
    pub(crate) fn metrics(&self) -> impl Fn() -> FactoryMetrics + Send + Sync + 'static {
        let factory = self.factory.clone();
        move || factory.metrics()
    }

    /// Gives up what the informers can decode again.
    pub(crate) fn cool(&self) -> impl Fn() + Clone + Send + Sync + 'static {
        let factory = self.factory.clone();
        move || factory.cool()
    }

    /// The state of each watch, as it changes.
    pub(crate) fn standing(&self) -> watch::Receiver<Standing> {
        self.standing.subscribe()
    }

    /// Follows until `asked` resolves, or the task that empties the inbox has ended. May be called again, with another task.
    ///
    /// # Errors
    ///
    /// When following cannot begin.
    pub(crate) async fn run<T>(
        &mut self,
        asked: impl Future<Output = ()>,
        taking: &mut JoinHandle<T>,
    ) -> Result<End<T>, WatchError> {
        let mut asked = std::pin::pin!(asked);
        let mut agenda = self.agenda.take().unwrap_or_else(|| Agenda::new(self.discover()));
        loop {
            self.announce()?;
            if agenda.say_denials.is_none() && self.denials.is_unsaid() {
                agenda.say_denials = Some(Instant::now() + DENIALS_SETTLE);
            }
            let event = tokio::select! {
                biased;
                () = &mut asked => Event::Asked,
                taken = &mut *taking => Event::Taken(taken),
                discovered = in_flight(&mut agenda.discovery) => Event::Discovered(discovered),
                () = self.definitions.changed() => Event::DefinitionsChanged,
                () = tokio::time::sleep_until(agenda.rediscover) => Event::Rediscover,
                () = at(agenda.say_denials) => Event::SayDenials,
                Some((target, news)) = self.streams.next() => Event::News(target, news),
                // After all that is there to be taken: it says that all of that was taken.
                () = tokio::time::sleep_until(agenda.alive) => Event::Alive,
            };
            match event {
                Event::Asked if self.reached || self.options.persistent => return Ok(End::Asked),
                Event::Asked => return Err(WatchError::Nothing(self.why_nothing())),
                Event::Taken(taken) => {
                    self.agenda = Some(agenda);
                    return Ok(End::Taken(taken));
                }
                Event::DefinitionsChanged => {
                    self.schemas.outdated();
                    self.defined.get_or_insert_with(Timestamp::now);
                    agenda.rediscover = Instant::now() + DEFINITIONS_SETTLE;
                }
                Event::Rediscover => {
                    agenda.discovery = Some(self.discover());
                    agenda.rediscover = Instant::now() + REDISCOVER;
                }
                Event::Discovered(discovered) => {
                    agenda.discovery = None;
                    match discovered {
                        Ok(discovered) => {
                            agenda.undiscovered = false;
                            self.follow(discovered, agenda.at_start)?;
                            if agenda.at_start {
                                tokio::select! {
                                    biased;
                                    () = &mut asked => return Ok(End::Asked),
                                    () = self.learn_secrets() => {}
                                }
                            }
                            agenda.at_start = false;
                        }
                        Err(error @ WatchError::OtherCluster { .. }) => return Err(error),
                        Err(error) if agenda.at_start && !self.options.persistent => return Err(error),
                        Err(error) if agenda.at_start => {
                            say(&format!("{error}; trying again"));
                            self.tell(|standing| standing.trouble = Some(error.to_string()));
                            agenda.rediscover = Instant::now() + FIRST_AGAIN;
                        }
                        // The resources that were discovered before stay as they are.
                        Err(error) => {
                            if !std::mem::replace(&mut agenda.undiscovered, true) {
                                say(&format!(
                                    "{error}; new kinds of resources are not noticed until discovery succeeds"
                                ));
                            }
                            agenda.rediscover = Instant::now() + AGAIN;
                        }
                    }
                }
                Event::SayDenials => {
                    agenda.say_denials = None;
                    self.say_denials();
                }
                Event::Alive => {
                    agenda.alive = Instant::now() + ALIVE;
                    self.tell_alive(Timestamp::now());
                }
                Event::News(target, news) => {
                    if matches!(news, News::CacheChange { told: CacheChange::Updated { .. }, .. }) {
                        self.schemas.need(&target.resource).await;
                    }
                    self.news(&target, news);
                    // It may be another server that has come back.
                    if std::mem::take(&mut self.was_away) {
                        agenda.rediscover = Instant::now();
                    }
                }
            }
        }
    }

    /// Stops following, and closes the inbox. If it `settles`, all seen changes are in it, and those that wait for a Secret have had their
    /// time: the Secret may come. Otherwise what waits is left to another process.
    pub(crate) async fn finish(&mut self, settles: bool) {
        let settled = Instant::now() + (self.options.secrets_wait + SETTLING).min(MOST_SETTLING);
        while settles && !self.inbox.is_settled() && Instant::now() < settled {
            if let Ok(Some((target, news))) = tokio::time::timeout(STILL, self.streams.next()).await {
                self.news(&target, news);
            }
        }
        while settles && let Some(Some((target, news))) = self.streams.next().now_or_never() {
            self.news(&target, news);
        }
        if !settles {
            self.inbox.leave();
        }
        let until = Timestamp::now();
        self.factory.shutdown().await;
        if settles {
            // The gaps that last are shown too; then nothing more will come.
            let was_watched = |target: &Target| self.targets.get(target).is_some_and(|state| state.is_synced);
            let gaps = self.outages.lasting(was_watched);
            self.show_gaps(gaps);
            self.tell_alive(until);
        }
        self.inbox.close();
    }

    /// Starts to watch new targets, and stops watching those that are gone.
    fn follow(&mut self, discovered: Discovered, at_start: bool) -> Result<(), WatchError> {
        let Discovered { targets, served, unavailable } = discovered;
        self.served = served;
        self.tell(|standing| standing.trouble = None);
        if unavailable.is_empty() {
            // A resource that comes again is new: all its objects are gone.
            self.followed.retain(|resource| self.served.contains(resource));
        }
        let gone: Vec<_> = self.targets.keys().filter(|target| !targets.contains(target)).cloned().collect();
        for target in gone {
            self.targets.remove(&target);
            self.streams.remove(&target);
            self.tell(|standing| standing.gone(&target));
            self.outages.forget(&target);
            self.denials.over(&target);
        }
        let defined = self.defined.take().unwrap_or_else(Timestamp::now);
        for target in targets {
            if !self.targets.contains_key(&target) {
                let kind = Gvk::new(&target.resource.api_version(), &target.resource.kind);
                if self.reach.named {
                    self.inbox.push(InboxItem::Asked(kind));
                }
                // A resource that the server did not describe before is no news.
                let of_group = |part: &String| part.split('/').next() == Some(&*target.resource.group);
                let known = !self.followed.insert(target.resource.qualified_name())
                    || self.unavailable.iter().any(of_group);
                self.watch(target, at_start || known, defined)?;
            }
        }
        if self.reach.everything {
            for part in unavailable.iter().filter(|part| !self.unavailable.contains(part)) {
                say(&format!("{part} is not watched: {NOT_DESCRIBED}"));
            }
        }
        self.unavailable = unavailable;
        // A definition that has come to life may have been asked for before.
        self.streams.retry_denied();
        if self.announced {
            self.tell_resources();
        }
        Ok(())
    }

    /// Watches a target from its first list on. Its objects are news unless it `is_known`; then it was defined at this time.
    fn watch(&mut self, target: Target, is_known: bool, defined: Timestamp) -> Result<(), WatchError> {
        self.streams.add(&self.factory, &target, is_known)?;
        if streams::is_secrets(&target.resource) {
            self.secrets.watches();
        }
        self.tell(|standing| standing.waits(&target));
        let kind = Arc::new(Kind::new(target.resource.clone()));
        let missed = Missed::since(defined);
        let watches = Watches::new(&target, self.within().namespaces.as_deref());
        self.targets.insert(target, State { kind, is_synced: false, missed, watches });
        Ok(())
    }

    fn news(&mut self, target: &Target, news: News) {
        if let News::CacheChange {
            told: CacheChange::Added { new, .. } | CacheChange::Updated { new, .. },
            ..
        } = &news
            && streams::is_secrets(&target.resource)
        {
            // Before another change is shown that may hold its values.
            self.learn(new.object());
        }
        if let News::CacheChange { told, .. } = &news
            && let Some(namespace) = told.key().and_then(|key| key.namespace())
            && self.reach.excluded_namespaces.iter().any(|glob| glob.matches(namespace))
        {
            return;
        }
        let Some(state) = self.targets.get_mut(target) else { return };
        if let News::CacheChange { told, .. } = &news
            && let Some(gap) = state.missed.told(told, target, Timestamp::now())
            && state.is_synced
        {
            self.inbox.push(InboxItem::Gap(gap));
        }
        match news {
            News::CacheChange { told: CacheChange::Synced, announce_first } => {
                state.is_synced = true;
                self.reached = true;
                if self.options.with_first {
                    if announce_first {
                        self.inbox.push(InboxItem::Gap(state.missed.begun(target, Timestamp::now())));
                    }
                    let synced = Synced {
                        kind: state.kind.clone(),
                        name: target.name.clone(),
                        at: Timestamp::now(),
                        watermarks: state.watches.synced(),
                        is_new: announce_first,
                        continues: false,
                    };
                    self.inbox.push(InboxItem::Synced(synced));
                }
                self.tell(|standing| standing.watched(target));
            }
            News::CacheChange {
                told: told @ CacheChange::Added { initial: true, .. },
                announce_first: false,
            } => {
                if self.options.with_first
                    && let Some(raw) =
                        RawChange::of(&state.kind, target.name.as_deref(), told, Timestamp::now())
                {
                    self.inbox.push(InboxItem::First(raw.listed(&state.watches)));
                }
            }
            News::CacheChange { told: CacheChange::Undecodable(error), .. } => {
                say(&format!("an object of {} is left out: {error}", target.text()));
            }
            News::CacheChange { told, .. } => {
                if let Some(raw) = RawChange::of(&state.kind, target.name.as_deref(), told, Timestamp::now())
                    .and_then(|raw| raw.holding(&state.watches))
                {
                    let merged = self.inbox.push(InboxItem::Change(raw));
                    if merged > 0 && self.merged == 0 {
                        let slow = if self.options.persistent { "disk" } else { "reader of the output" };
                        say(&format!("the {slow} is slow: changes of one object are merged, and say so"));
                    }
                    self.merged = merged;
                }
            }
            News::Status(status) => self.status(target, status),
        }
    }

    /// Reports the state of connections that a user must know: each thing once, not once per resource or attempt.
    fn status(&mut self, target: &Target, status: Status) {
        let now = Timestamp::now();
        let was_synced = self.targets.get(target).is_some_and(|state| state.is_synced);
        if let Some(state) = self.targets.get_mut(target) {
            state.missed.status(&status, now);
        }
        match status {
            Status::Denied { status } => {
                let reason = Reason::Denied(status.code);
                if !self.outages.has(target, reason) {
                    let (gaps, since) = self.outages.moved(target, now);
                    self.show_gaps(gaps);
                    // A target that was never watched is no gap, and must not keep one from ending.
                    if was_synced {
                        let cause = self.masked(&self.server.status(&status));
                        self.outages.lost(target, reason, &cause, true, since);
                        self.tell_lost(target, since, cause);
                    }
                }
                let reason = self.masked(&self.server.status(&status));
                self.tell(|standing| standing.not_watched(target, &reason, true, now));
                self.denials.denied(target, status);
            }
            Status::Live { .. } => {
                if was_synced {
                    self.tell(|standing| standing.watched(target));
                }
                let gaps = self.outages.back(target, now);
                self.was_away |= !gaps.is_empty();
                if self.denials.over(target) {
                    say(&format!("{} is watched now", target.text()));
                }
                if gaps.iter().any(|gap| gap.resources.len() > 1) && self.outages.cause().is_none() {
                    say("everything is watched again");
                }
                self.show_gaps(gaps);
            }
            Status::Retrying { cause, .. } => {
                let cause = self.masked(&self.server.cause(&cause));
                self.tell(|standing| standing.not_watched(target, &cause, false, now));
                if was_synced && !self.outages.has(target, Reason::Lost) {
                    self.tell_lost(target, now, cause.clone());
                }
                if self.outages.lost(target, Reason::Lost, &cause, was_synced, now) {
                    say(&format!(
                        "{}: not watched: {cause}; trying again",
                        Zoned::now().strftime("%H:%M:%S")
                    ));
                }
            }
            _ => {}
        }
    }

    fn show_gaps(&self, gaps: Vec<Gap>) {
        gaps.into_iter().for_each(|gap| {
            self.inbox.push(InboxItem::Gap(gap));
        });
    }

    fn say_denials(&mut self) {
        let all = self.targets.len();
        self.denials.lines(all, &self.server).iter().for_each(|line| say(&self.masked(line)));
    }

    /// A message of the server, which may quote content.
    fn masked(&self, message: &str) -> String {
        self.secrets.redact_text(message).into_inner()
    }

    /// Announces once that the initial list of everything is complete, or denied.
    ///
    /// # Errors
    ///
    /// When everything is denied.
    fn announce(&mut self) -> Result<(), WatchError> {
        let is_settled = |(target, state): (&Target, &State)| {
            // A target that cannot be listed must not keep a daemon from saying that all others are.
            let is_lost = self.options.persistent && self.reached && self.outages.has(target, Reason::Lost);
            state.is_synced || self.denials.has(target) || is_lost
        };
        let settled = self.targets.iter().all(is_settled);
        // A daemon waits for a resource that the server does not have yet; its status says so.
        let is_known = !self.targets.is_empty() || (self.options.persistent && !self.served.is_empty());
        if self.announced || !settled || !is_known {
            return Ok(());
        }
        if !self.targets.values().any(|state| state.is_synced) && !self.options.persistent {
            let text = self.denials.text(&self.server);
            let refused = self.denials.are_of_the_request();
            return Err(if refused { WatchError::Refused(text) } else { WatchError::Denied(text) });
        }
        self.announced = true;
        self.say_denials();
        for target in self.targets.keys().filter(|target| target.name.is_some()) {
            if self.streams.is_empty(target) && !self.denials.has(target) {
                say(&format!("{} does not exist in {}; waiting for it", target.text(), self.place));
            }
        }
        let synced = self.targets.values().filter(|state| state.is_synced).count();
        let what =
            if self.targets.keys().any(|target| target.name.is_some()) { "object" } else { "resource" };
        let count = match self.targets.len() {
            1 if synced == 1 => format!("1 {what}"),
            count if count == synced => format!("{count} {what}s"),
            count => format!("{synced} of {count} {what}s"),
        };
        let objects = match what {
            "object" => String::new(),
            _ => format!(", {} objects", self.streams.objects()),
        };
        let ends = if self.options.persistent { "" } else { "; Ctrl-C ends" };
        // `/readyz` is right as soon as somebody reads that.
        self.tell(Standing::settled);
        say(&format!("watching {count} in {}{objects}{ends}", self.place));
        self.tell_resources();
        self.tell_alive(Timestamp::now());
        Ok(())
    }

    /// The targets that could not be watched, and why.
    pub(crate) fn not_watched(&self) -> BTreeMap<String, String> {
        let mut reasons = self.denials.reasons();
        reasons.extend(self.unavailable.iter().map(|part| (part.clone(), NOT_DESCRIBED.to_owned())));
        reasons
    }

    /// Why nothing was watched until now.
    fn why_nothing(&self) -> String {
        match self.outages.cause() {
            Some(cause) => cause.to_owned(),
            None if self.denials.is_unsaid() => self.denials.text(&self.server),
            None => format!("{} has not answered yet", self.server.address),
        }
    }

    fn tell(&self, what: impl FnOnce(&mut Standing)) {
        self.standing.send_modify(what);
    }

    /// Asks the server what there is to watch now.
    fn discover(&self) -> Discovery {
        let (factory, server) = (self.factory.clone(), self.server.clone());
        let expected = self.client.clone().zip(self.identity.get().cloned());
        discovery::discover(factory, server, self.reach.targets.clone(), self.discovery_limit, expected)
    }
}

/// However it ends, the consumer of the inbox has to end too.
impl Drop for Follow {
    fn drop(&mut self) {
        self.inbox.close();
    }
}

const NOT_DESCRIBED: &str = "the server does not describe it; the API server behind it may be down";
