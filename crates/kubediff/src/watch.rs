//! `kubediff watch`: one informer per resource, one loop that takes their changes, and one thread that shows them.

mod definitions;
mod denials;
mod error;
mod outages;
mod outbox;
mod printer;
mod schemas;
mod screen;
mod seen;
mod streams;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use informer::{Change as Told, EncodingChoice, Object, SharedInformerFactory, Status};
use jiff::{Timestamp, Zoned};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::args::{Hide, Output, ShowArgs, WatchArgs};
use crate::cluster;
use crate::signals::Signals;
use crate::targets::{Target, Wanted};
use crate::words::Server;
use crate::{Gap, Gvk, Noise, Profile, Schemas, Scope, Secrets, Session};
use definitions::Definitions;
use denials::Denials;
use outages::{Outages, Reason};
use outbox::Outbox;
use printer::Printer;
use schemas::SchemaLoader;
use screen::{Screen, say};
use seen::{Kind, Raw, Waiting};
use streams::{News, Streams};

pub use error::WatchError;

/// Watches until it is interrupted.
///
/// # Errors
///
/// When watching cannot begin, or the output cannot be written.
pub async fn run(args: &WatchArgs) -> Result<(), WatchError> {
    let profile = profile(&args.show)?;
    let mut screen = Screen::new(&args.show);
    if args.list_noise {
        return screen.noise_rules(&profile.noise).map_err(WatchError::Output);
    }
    // Before anything is asked of the server, which may never answer.
    let mut signals = Signals::listen().map_err(WatchError::Signals)?;
    end_at_once_on_the_second_signal()?;
    let mut watch = Watch::connect(args, &profile).await?;
    let cluster = watch.context.clone().filter(|_| args.show.output == Output::Json);
    let mut printer = Printer { screen, session: Session::default(), profile, cluster };
    let outbox = watch.outbox.clone();
    let mut printing: Printing = tokio::task::spawn_blocking(move || {
        let written = printer.run(&outbox);
        (printer, written)
    });
    let ended = watch.show(&mut signals, &mut printing).await;
    watch.factory.shutdown().await;
    watch.finish();
    let printed = match ended {
        Ok(End::Printed(printed)) => *printed,
        Ok(End::Interrupted) => finished(printing).await,
        Err(error) => finished(printing).await.and(Err(error)),
    };
    let (mut printer, written) = printed?;
    match written {
        // The reader of our output has closed it, as `head` does.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        Err(error) => Err(WatchError::Output(error)),
        Ok(()) => {
            printer.session.not_watched = watch.not_watched();
            let elapsed = watch.started.elapsed();
            if printer.session.merged > 0 {
                say(&printer.session.merged_text());
            }
            printer.screen.summary(&printer.session, elapsed).map_err(WatchError::Output)
        }
    }
}

/// The thread that shows changes; at its end, the printer, and whether all could be written.
type Printing = JoinHandle<Printed>;
type Printed = (Printer, io::Result<()>);

/// Why the loop ended.
enum End {
    Interrupted,
    Printed(Box<Result<Printed, WatchError>>),
}

/// Waits until everything is shown.
async fn finished(printing: Printing) -> Result<Printed, WatchError> {
    /// A reader that is just slow needs no explanation.
    const SLOW: Duration = Duration::from_secs(1);
    let mut printing = printing;
    if let Ok(printed) = tokio::time::timeout(SLOW, &mut printing).await {
        return printed.map_err(|error| WatchError::Output(error.into()));
    }
    say("the reader of the output has not taken everything yet; another Ctrl-C ends without it");
    printing.await.map_err(|error| WatchError::Output(error.into()))
}

/// What to leave out and to hide.
fn profile(args: &ShowArgs) -> Result<Profile, WatchError> {
    let mut noise = Noise::default();
    let mut secrets = Secrets::with_random_key()?;
    // `all` first, so that it can be combined with single rules.
    let (all, single): (Vec<_>, Vec<_>) = args.show.iter().partition(|rule| *rule == "all");
    for rule in all.into_iter().chain(single) {
        noise.adjust(&format!("-{rule}"))?;
    }
    for hide in &args.hide {
        match hide {
            Hide::Rule(rules) => noise.adjust(rules)?,
            Hide::Path(path) => secrets.hide(Scope::any(), path.parse()?),
        }
    }
    Ok(Profile { noise, secrets, schemas: Schemas::default() })
}

/// A watch under way.
struct Watch<'a> {
    args: &'a WatchArgs,
    wanted: Wanted,
    server: Server,
    context: Option<String>,
    /// In words, for people.
    place: String,
    factory: SharedInformerFactory,
    discovery_limit: Duration,
    streams: Streams,
    definitions: Definitions,
    secrets: Secrets,
    schemas: SchemaLoader,
    outbox: Arc<Outbox>,
    /// How many changes have been merged that the user knows of.
    merged: u64,
    targets: BTreeMap<Target, State>,
    /// Parts of the API that the server does not describe at present.
    unavailable: Vec<String>,
    /// Whether it was announced that everything is synced.
    announced: bool,
    /// Groups and names that have been watched: another version of them is not new.
    followed: BTreeSet<(String, String)>,
    outages: Outages,
    denials: Denials,
    /// Whether anything was ever watched.
    reached: bool,
    started: Instant,
}

/// What is known of a target.
struct State {
    kind: Arc<Kind>,
    /// Whether the initial list is complete.
    is_synced: bool,
}

/// Everything that can happen.
enum Event {
    News(Target, News),
    DefinitionsChanged,
    Rediscover,
    Discovered(Result<Discovered, WatchError>),
    SayDenials,
    Interrupted,
    Printed(Result<Printed, tokio::task::JoinError>),
}

/// A discovery under way.
type Discovery<'a> = BoxFuture<'a, Result<Discovered, WatchError>>;

/// What the server has of what is wanted.
struct Discovered {
    targets: Vec<Target>,
    unavailable: Vec<String>,
}

/// Bytes in a MiB.
const MIB: usize = 1024 * 1024;
/// A custom resource is served a moment after its definition has changed.
const DEFINITIONS_SETTLE: Duration = Duration::from_millis(500);
/// Not every user may watch definitions: rediscover periodically.
const REDISCOVER: Duration = Duration::from_secs(60);
/// Other changes wait this long for the first list of Secrets.
const SECRETS_LIMIT: Duration = Duration::from_secs(10);
/// The limit of discovery.
const DISCOVERY_LIMIT: Duration = Duration::from_secs(30);
/// Denials come one by one; those of this time are told together.
const DENIALS_SETTLE: Duration = Duration::from_secs(1);

impl<'a> Watch<'a> {
    async fn connect(args: &'a WatchArgs, profile: &Profile) -> Result<Self, WatchError> {
        let wanted = Wanted::parse(&args.targets)?;
        let cluster = cluster::find(&args.cluster).await?;
        let server = Server { address: cluster.address(), credentials: cluster.credentials() };
        let default_namespace = cluster.config.default_namespace.clone();
        let config = cluster.config.clone();
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
        if let Some(limit) = cluster.request_timeout {
            builder = builder.response_timeout(limit);
        }
        let place = match (args.all_namespaces, &args.namespace) {
            (true, _) => "all namespaces".to_owned(),
            (false, Some(namespace)) => format!("namespace {namespace}"),
            (false, None) => format!("namespace {default_namespace} (the context's; -A for all)"),
        };
        let factory = builder.build()?;
        // What is wrong with the configuration has been said by now, in better words.
        let client = kube_client::Client::try_from(config).ok();
        let schemas = SchemaLoader::new(client, profile.schemas.clone());
        let definitions = Definitions::new(&factory)?;
        let bound = usize::try_from(args.show.buffer).unwrap_or(usize::MAX).saturating_mul(MIB);
        Ok(Self {
            args,
            wanted,
            server,
            context: cluster.context,
            place,
            factory,
            discovery_limit: cluster.request_timeout.unwrap_or(DISCOVERY_LIMIT),
            streams: Streams::default(),
            definitions,
            secrets: profile.secrets.clone(),
            schemas,
            outbox: Arc::new(Outbox::new(bound)),
            merged: 0,
            targets: BTreeMap::new(),
            unavailable: Vec::new(),
            announced: false,
            followed: BTreeSet::new(),
            outages: Outages::default(),
            denials: Denials::default(),
            reached: false,
            started: Instant::now(),
        })
    }

    async fn show(&mut self, signals: &mut Signals, printing: &mut Printing) -> Result<End, WatchError> {
        let mut at_start = true;
        // Under way or not; begins with the first.
        let mut discovery: Option<Discovery<'a>> = Some(self.discover());
        let mut rediscover = Instant::now() + REDISCOVER;
        let mut say_denials: Option<Instant> = None;
        loop {
            self.announce()?;
            if say_denials.is_none() && self.denials.is_unsaid() {
                say_denials = Some(Instant::now() + DENIALS_SETTLE);
            }
            let event = tokio::select! {
                biased;
                () = signals.end() => Event::Interrupted,
                printed = &mut *printing => Event::Printed(printed),
                discovered = in_flight(&mut discovery) => Event::Discovered(discovered),
                () = self.definitions.changed() => Event::DefinitionsChanged,
                () = tokio::time::sleep_until(rediscover) => Event::Rediscover,
                () = at(say_denials) => Event::SayDenials,
                Some((target, news)) = self.streams.next() => Event::News(target, news),
            };
            match event {
                Event::Interrupted if self.reached => return Ok(End::Interrupted),
                Event::Interrupted => return Err(WatchError::Nothing(self.why_nothing())),
                Event::Printed(printed) => {
                    let printed = printed.map_err(|error| WatchError::Output(error.into()));
                    return Ok(End::Printed(Box::new(printed)));
                }
                Event::DefinitionsChanged => {
                    self.schemas.outdated();
                    rediscover = Instant::now() + DEFINITIONS_SETTLE;
                }
                Event::Rediscover => {
                    discovery = Some(self.discover());
                    rediscover = Instant::now() + REDISCOVER;
                }
                Event::Discovered(discovered) => {
                    discovery = None;
                    match discovered {
                        Ok(discovered) => {
                            self.follow(discovered, at_start)?;
                            if at_start {
                                self.learn_secrets().await;
                            }
                        }
                        Err(error) if at_start => return Err(error),
                        // What cannot be discovered now stays as it is until the next time.
                        Err(_) => {}
                    }
                    at_start = false;
                }
                Event::SayDenials => {
                    say_denials = None;
                    self.say_denials();
                }
                Event::News(target, news) => {
                    if matches!(news, News::Told { told: Told::Updated { .. }, .. }) {
                        self.schemas.need(&target.resource).await;
                    }
                    self.news(&target, news);
                }
            }
        }
    }

    /// Learns the values of all Secrets, if they are watched, before anything else is shown that may hold them.
    async fn learn_secrets(&self) {
        for secrets in self.streams.secrets() {
            if secrets.wait_for_sync_or_denial(SECRETS_LIMIT).await.is_err_and(|error| !error.is_denied()) {
                say(
                    "the Secrets are not listed yet: until they are, their values in other objects are shown",
                );
            }
            for object in secrets.snapshot().objects() {
                self.learn(object);
            }
        }
    }

    fn learn(&self, secret: &Object) {
        let object = secret.json().ok().and_then(|json| serde_json::from_slice(&json).ok());
        if let Some(object) = object {
            self.secrets.learn(&Gvk::new("v1", "Secret"), &object);
        }
    }

    /// Starts to watch new targets, and stops watching those that are gone.
    fn follow(&mut self, discovered: Discovered, at_start: bool) -> Result<(), WatchError> {
        let Discovered { targets, unavailable } = discovered;
        let gone: Vec<_> = self.targets.keys().filter(|target| !targets.contains(target)).cloned().collect();
        for target in gone {
            self.targets.remove(&target);
            self.streams.remove(&target);
            self.outages.forget(&target);
            self.denials.over(&target);
        }
        for target in targets {
            if !self.targets.contains_key(&target) {
                let kind = Arc::new(Kind::new(target.resource.clone()));
                if !self.wanted.is_everything() {
                    self.outbox.push(Waiting::Asked(kind.gvk.clone()));
                }
                let resource = (target.resource.group.clone(), target.resource.plural.clone());
                let known = !self.followed.insert(resource);
                self.streams.add(&self.factory, &target, at_start || known)?;
                self.targets.insert(target, State { kind, is_synced: false });
            }
        }
        if self.wanted.is_everything() && unavailable != self.unavailable {
            for part in unavailable.iter().filter(|part| !self.unavailable.contains(part)) {
                say(&format!("{part} is not watched: {NOT_DESCRIBED}"));
            }
            self.unavailable = unavailable;
        }
        // A definition that has come to life may have been asked for before.
        self.streams.retry_denied();
        Ok(())
    }

    fn news(&mut self, target: &Target, news: News) {
        if let News::Told { told: Told::Added { new, .. } | Told::Updated { new, .. }, .. } = &news
            && streams::is_secrets(&target.resource)
        {
            // Before another change is shown that may hold its values.
            self.learn(new.object());
        }
        let Some(state) = self.targets.get_mut(target) else { return };
        match news {
            News::Told { told: Told::Synced, .. } => {
                state.is_synced = true;
                self.reached = true;
            }
            News::Told { told: Told::Added { initial: true, .. }, announce_first: false } => {}
            News::Told { told: Told::Undecodable(error), .. } => {
                say(&format!("an object of {} is left out: {error}", target.text()));
            }
            News::Told { told, .. } => {
                if let Some(raw) = Raw::of(&state.kind, told, Timestamp::now()) {
                    let merged = self.outbox.push(Waiting::Change(raw));
                    if merged > 0 && self.merged == 0 {
                        say("the reader of the output is slow: changes of one object are merged, and say so");
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
        match status {
            Status::Denied { status } => {
                let reason = Reason::Denied(status.code);
                if !self.outages.has(target, reason) {
                    let gaps = self.outages.back(target, now);
                    self.show_gaps(gaps);
                    self.outages.lost(target, reason, &self.server.status(&status), true, now);
                }
                self.denials.denied(target, status);
            }
            Status::Live { .. } => {
                let gaps = self.outages.back(target, now);
                if self.denials.over(target) {
                    say(&format!("{} is watched now", target.text()));
                }
                if gaps.iter().any(|gap| gap.resources.len() > 1) && self.outages.cause().is_none() {
                    say("everything is watched again");
                }
                self.show_gaps(gaps);
            }
            Status::Retrying { cause, .. } => {
                let cause = self.server.cause(&cause);
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
            self.outbox.push(Waiting::Gap(gap));
        });
    }

    fn say_denials(&mut self) {
        let all = self.targets.len();
        self.denials.lines(all, &self.server).iter().for_each(|line| say(line));
    }

    /// Announces once that the initial list of everything is complete, or denied.
    ///
    /// # Errors
    ///
    /// When everything is denied.
    fn announce(&mut self) -> Result<(), WatchError> {
        let settled = self.targets.iter().all(|(target, state)| state.is_synced || self.denials.has(target));
        if self.announced || !settled || self.targets.is_empty() {
            return Ok(());
        }
        if !self.targets.values().any(|state| state.is_synced) {
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
        say(&format!("watching {count} in {}{objects}; Ctrl-C ends", self.place));
        Ok(())
    }

    /// The gaps that last are shown too; then nothing more will come.
    fn finish(&mut self) {
        let was_watched = |target: &Target| self.targets.get(target).is_some_and(|state| state.is_synced);
        let gaps = self.outages.lasting(was_watched);
        self.show_gaps(gaps);
        self.outbox.close();
    }

    /// What could not be watched, and why.
    fn not_watched(&self) -> BTreeMap<String, String> {
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

    /// Asks the server what there is to watch now.
    fn discover(&self) -> Discovery<'a> {
        let (factory, wanted, server) = (self.factory.clone(), self.wanted.clone(), self.server.clone());
        let (limit, cluster_wide) = (self.discovery_limit, self.args.all_namespaces);
        let discovery = async move {
            let catalog = tokio::time::timeout(limit, factory.catalog()).await;
            let silent = |_| WatchError::Silent { address: server.address.clone(), limit };
            let catalog = catalog.map_err(silent)?;
            let catalog = catalog.map_err(|error| WatchError::Unreachable(server.no_discovery(&error)))?;
            let unknown = |error| WatchError::Unknown(Box::new(error));
            let targets = wanted.among(&catalog, cluster_wide).map_err(unknown)?;
            Ok(Discovered { targets, unavailable: catalog.unavailable().to_vec() })
        };
        discovery.boxed()
    }
}

/// Whatever ends it, the printer has to end too.
impl Drop for Watch<'_> {
    fn drop(&mut self) {
        self.outbox.close();
    }
}

const NOT_DESCRIBED: &str = "the server does not describe it; the API server behind it may be down";

/// The result of the running work; pending without any.
async fn in_flight<T>(work: &mut Option<BoxFuture<'_, T>>) -> T {
    match work {
        Some(work) => work.await,
        None => std::future::pending().await,
    }
}

/// At that time; never without one.
async fn at(time: Option<Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time).await,
        None => std::future::pending().await,
    }
}

/// The reader of our output may have stopped: then what waits for it would keep the program from ending.
fn end_at_once_on_the_second_signal() -> Result<(), WatchError> {
    let mut signals = Signals::listen().map_err(WatchError::Signals)?;
    tokio::spawn(async move {
        signals.interrupted().await;
        signals.interrupted().await;
        std::process::exit(130);
    });
    Ok(())
}
