//! `kubediff serve`: the daemon. It follows a cluster, records it, delivers the records, and says how it is.
//!
//! When the configuration changes, what runs ends gracefully, and the next begins where it ended: the history knows
//! what happened in between.

mod audit;
mod bearer;
mod control;
mod current;
mod deliveries;
mod documents;
mod endpoint;
mod folding;
mod listener;
mod log;
mod members;
mod memory;
mod metrics;
mod retention;
mod scrubbing;
mod term;

use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use informer::{Catalog, SharedInformerFactory};
use jiff::Timestamp;
use kubediff_history::{Cluster as Identity, History, Settings, Standby};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::args::ServeArgs;
use crate::capture::consumer::{ConsumeError, Consumer};
use crate::capture::held::Held;
use crate::cluster::{self, NoCluster};
use crate::config::{Config, ConfigError, Loaded, NotConnected, SecretError};
use crate::exit::Exit;
use crate::follow::{End, Follow, FollowOptions, Namespaces, Reach, WatchError};
use crate::history::shared::SharedHistory;
use crate::history::writer::{HistoryWriter, NOT_RUNNING};
use crate::route::Routes;
use crate::text::terminal::say;
use crate::text::words::Server;
use crate::{HashKey, InvalidNoise, InvalidTemplate, KeyFileError, Profile, Schemas, Secrets, Session, web};
use control::{Control, Next};
use current::{Current, Waits};
use deliveries::Deliveries;
use endpoint::{Endpoint, Part};
use term::Candidate;

/// How many bytes may wait for the disk before changes of one object are merged.
const BOUND: usize = 64 << 20;
/// Discovery is repeated this long after a failure.
const AGAIN: Duration = Duration::from_secs(5);
/// How long the server may take to say it.
const DISCOVERY: Duration = Duration::from_secs(30);

/// The daemon could not begin, or had to end.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The configuration cannot be used.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A sink cannot be set up.
    #[error(transparent)]
    Sink(#[from] Box<NotConnected>),
    /// A route has an invalid template.
    #[error(transparent)]
    Template(#[from] InvalidTemplate),
    /// There is no such noise rule.
    #[error(transparent)]
    Noise(#[from] InvalidNoise),
    /// No cluster.
    #[error(transparent)]
    Cluster(#[from] NoCluster),
    /// Following the cluster failed.
    #[error(transparent)]
    Watch(#[from] WatchError),
    /// The history cannot be used.
    #[error(transparent)]
    History(#[from] kubediff_history::Error),
    /// The daemon could not write the last changes before its end.
    #[error(transparent)]
    Unwritten(kubediff_history::Error),
    /// The configuration does not say where it is.
    #[error(transparent)]
    Place(#[from] crate::config::PlaceError),
    /// The key of the hashes cannot be used.
    #[error(transparent)]
    Key(#[from] KeyFileError),
    /// The process that records has another key of the hashes.
    #[error(
        "the history has hashes by the key {recorded}, and this process has the key {own}: give both processes the same file as `keyFile`"
    )]
    OtherKey {
        /// The id of the key of the history.
        recorded: String,
        /// The id of the key of this process.
        own: String,
    },
    /// Health and metrics cannot be served.
    #[error("health and metrics cannot be served on {listen}; choose another address as `listen`")]
    Listen {
        /// The address.
        listen: String,
        /// Why.
        source: std::io::Error,
    },
    /// The page cannot be served.
    #[error(transparent)]
    Web(#[from] web::WebError),
    /// There is no client for the questions of the page.
    #[error("no client of the API server can be made for `web`")]
    NoClient,
    /// The token of a listener is not where the configuration says.
    #[error("`{field}` in the configuration")]
    Token {
        /// The field.
        field: &'static str,
        /// Why.
        source: SecretError,
    },
    /// An option names one cluster, and there are several.
    #[error("--{0} is for one cluster, and the configuration has `clusters`: leave it out")]
    OneCluster(&'static str),
    /// One of several clusters failed, after all others.
    #[error("{cluster}")]
    Member {
        /// Its name.
        cluster: String,
        /// Why.
        source: Box<ServeError>,
    },
    /// There are no threads for a cluster.
    #[error("the threads of a cluster cannot be started")]
    Threads(#[source] std::io::Error),
    /// A thread of the daemon has ended although it should not.
    #[error(
        "the thread that records has ended unexpectedly, which is a mistake in kubediff; start it again, and report the message above"
    )]
    Ended(#[source] tokio::task::JoinError),
}

impl ServeError {
    /// How the program ends with this.
    pub fn exit(&self) -> Exit {
        match self {
            Self::Config(_) | Self::Template(_) | Self::Noise(_) | Self::OneCluster(_) => Exit::Usage,
            Self::Cluster(_) => Exit::Cluster,
            Self::Watch(error) => error.exit(),
            Self::Member { source, .. } => source.exit(),
            _ => Exit::Failure,
        }
    }
}

/// Serves until it is asked to end.
///
/// # Errors
///
/// When it cannot begin, or a part of it fails.
pub async fn run(args: &ServeArgs) -> Result<(), ServeError> {
    let loaded = Config::read(&args.config)?;
    warn(&loaded);
    let given = &args.cluster;
    let of_one = [("context", &given.context), ("cluster", &given.cluster), ("server", &given.server)];
    let of_one = of_one.into_iter().chain([("user", &given.user), ("token", &given.token)]);
    let mut of_one = of_one.filter(|(_, value)| value.is_some() && loaded.config.clusters.is_some());
    if let Some((option, _)) = of_one.next() {
        return Err(ServeError::OneCluster(option));
    }
    open_more_files();
    let signals = crate::signals::Signals::listen().map_err(WatchError::Signals)?;
    let control = Control::new(signals, &args.config, &loaded);
    let endpoint = Endpoint::open(&loaded, loaded.names()).await?;
    members::run(args, loaded, &endpoint, control).await?;
    endpoint.close().await;
    Ok(())
}

/// Raises the limit of open files as far as this process may: each watch of a server without HTTP/2 is a connection.
fn open_more_files() {
    #[cfg(unix)]
    {
        use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
        let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
        // Where it is refused, the limit stays, and errors say so.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
    }
}

/// Keeps the history of a cluster until somebody asks for the end. What it takes from the configuration last is in `loaded`.
async fn keep(
    args: &ServeArgs,
    loaded: &mut Loaded,
    endpoint: &Part,
    control: &mut Control,
) -> Result<(), ServeError> {
    let mut begins = Begins { why: NOT_RUNNING.to_owned(), returns: true };
    let mut former: Option<Loaded> = None;
    let mut has_begun = false;
    let guests = web::Guests::default();
    loop {
        match (serve(args, loaded.clone(), endpoint, control, &guests, &begins).await, former.take()) {
            (Ok(Ended::Asked), _) => break,
            (Ok(Ended::Fenced(error)), _) => {
                say(&format!("{error}; this process stands by from now on"));
                endpoint.waits(error.to_string());
                // Whoever has its name has the term now.
                (begins, has_begun) =
                    (Begins { why: term::why_again(&error).to_owned(), returns: false }, true);
                continue;
            }
            (Ok(Ended::Reload(next)), _) => {
                if next.config.listen != loaded.config.listen {
                    say("health and metrics stay where they are until the next start");
                }
                warn(&next);
                former = Some(std::mem::replace(loaded, *next));
            }
            // A database may be away for a moment.
            (Err(ServeError::History(error)), before)
                if error.is_passing() && (has_begun || endpoint.is_running()) =>
            {
                say(&format!("{}; trying again", informer::error_chain(&error)));
                endpoint.waits(error.to_string());
                (former, has_begun) = (before, true);
                tokio::select! {
                    biased;
                    next = control.next() => match next {
                        Next::End => break,
                        Next::Reload(next) => *loaded = *next,
                    },
                    () = tokio::time::sleep(AGAIN) => {}
                }
                continue;
            }
            // The next configuration could not begin; the former one did.
            (Err(error), Some(worked)) if !endpoint.is_running() => {
                say(&informer::error_chain(&error));
                say("the former configuration stays in force");
                *loaded = worked;
            }
            (Err(error), _) => return Err(error),
        }
        has_begun = true;
        endpoint.waits("another configuration is taken".to_owned());
        begins = Begins { why: "another configuration was taken".to_owned(), returns: true };
    }
    Ok(())
}

/// How a run begins.
struct Begins {
    /// Why nothing was watched before.
    why: String,
    /// Whether the process that had the term under this name is over.
    returns: bool,
}

/// Why a run has ended.
enum Ended {
    /// Somebody asked for it.
    Asked,
    /// There is another configuration.
    Reload(Box<Loaded>),
    /// This process may not record any more.
    Fenced(kubediff_history::Error),
}

impl From<Next> for Ended {
    fn from(next: Next) -> Self {
        match next {
            Next::End => Self::Asked,
            Next::Reload(loaded) => Self::Reload(loaded),
        }
    }
}

/// Serves with one configuration.
async fn serve(
    args: &ServeArgs,
    mut loaded: Loaded,
    endpoint: &Part,
    control: &mut Control,
    guests: &web::Guests,
    begins: &Begins,
) -> Result<Ended, ServeError> {
    let catalog = match catalog(args, endpoint, control).await? {
        Ok(catalog) => catalog,
        Err(next) => return Ok(next.into()),
    };
    loaded.config.resolve(&catalog);
    loaded.unserved(&catalog).iter().for_each(|warning| say(&warning.to_string()));
    let config = &loaded.config;

    let path = loaded.folder().join(&config.history.path);
    let key = HashKey::open(&loaded.folder().join(config.key_file()))?;
    let profile = profile(config, &catalog, key)?;
    let options = FollowOptions {
        bound: BOUND,
        with_first: true,
        persistent: true,
        secrets_wait: config.secrets.wait.0.0,
    };
    let mut follow = Follow::connect(&args.cluster, reach(config), options, &profile).await?;
    let uid = match uid(&follow, endpoint, control).await {
        Ok(uid) => uid,
        Err(next) => return Ok(next.into()),
    };
    let name = config.cluster.clone().or_else(|| follow.context().map(str::to_owned));
    let identity = Identity { uid, name: name.clone() };
    let settings = Settings { holder: Some(holder(&path)), returns: begins.returns, ..Settings::default() };
    let location = config.history.location(loaded.folder())?;
    if location.file().is_some() {
        migrate(&path, &identity, endpoint).await?;
    }
    let opened = (location.clone(), identity.clone(), settings.clone());
    // A database answers by the network.
    let open = move || SharedHistory::at(&opened.0, &opened.1, &opened.2);
    let opened = tokio::task::spawn_blocking(open).await.map_err(ServeError::Ended)?;
    let page = match &config.web {
        Some(web) => {
            let client = follow.client().ok_or(ServeError::NoClient)?;
            let place = web::Place {
                location: location.clone(),
                cluster: Some(identity.uid.clone()),
                beside: Some(path.clone()),
            };
            Some(web::Listener::open(web, loaded.folder(), place, client, guests.clone()).await?)
        }
        None => None,
    };
    let stop = CancellationToken::new();
    let _stops = stop.clone().drop_guard();
    let memory = watch::Sender::default();
    let remembered = memory.subscribe();
    let caches: Arc<OnceLock<SharedHistory>> = Arc::default();
    let give_up = {
        let (cool, caches) = (follow.cool(), caches.clone());
        move || {
            cool();
            if let Some(Err(error)) = caches.get().map(|history| history.lock().give_up_caches()) {
                say(&error.to_string());
            }
        }
    };
    let remembering = tokio::spawn(memory::run(args.memory_limit, give_up, memory, stop.clone()));
    let (history, took_over, why) = match opened {
        Ok(history) => (history, None, begins.why.as_str()),
        Err(kubediff_history::Error::Held { holder, .. }) if location.file().is_none() => {
            let standby = {
                let (location, identity) = (location.clone(), identity.clone());
                let open = move || Standby::at(&location, &identity, &settings);
                tokio::task::spawn_blocking(open).await.map_err(ServeError::Ended)??
            };
            // Whoever stands by must be able to go on.
            loaded.test().map_err(Box::new)?;
            let key = profile.secrets.key_id().to_string();
            match stand_by(standby, holder, key, &mut follow, endpoint, control).await? {
                Ok(claimed) => claimed,
                Err(next) => {
                    if let Some(page) = page {
                        page.close().await;
                    }
                    follow.finish(false).await;
                    return Ok(next.into());
                }
            }
        }
        Err(error) => return Err(error.into()),
    };
    caches.get_or_init(|| history.clone());
    let now = Timestamp::now();
    let secrets = profile.secrets.clone();
    let mut recorder = HistoryWriter::new(history.clone(), name.clone(), secrets, follow.within(), now, why)?;
    if let Some(since) = took_over {
        recorder = recorder.taking_over(since)?;
    }

    let secrets = profile.secrets.clone();
    let (hidden, file) = (secrets.clone(), path.clone());
    let routes = Arc::new(Routes::new(config)?.with_secrets(secrets.clone()));
    let sources = match &config.audit {
        Some(audit) => Some(audit::Sources::open(audit, &loaded).await?),
        None => None,
    };
    let counts = sources.as_ref().map(audit::Sources::counts);
    let mut deliveries =
        Deliveries::start(&loaded, &history, &routes, &secrets, &follow.learnt(), &identity)?;
    let session = Arc::new(Mutex::new(Session::default()));
    let mut consumer = Consumer {
        screen: None,
        recorder: Some(recorder),
        session: session.clone(),
        profile,
        cluster: name,
        unrecorded: Vec::new(),
        held: Held::new(config.secrets.wait.0.0),
    };
    endpoint.show(Current {
        standing: follow.standing(),
        informers: Box::new(follow.metrics()),
        session,
        secrets,
        newest: history.newest(),
        decided: history.decided(),
        trouble: history.trouble(),
        memory: remembered,
        location,
        audit: counts,
        sinks: deliveries.statuses(),
        page: page.as_ref().map(web::Listener::answered),
    });
    let inbox = follow.inbox();
    let mut taking: JoinHandle<Result<(), ConsumeError>> =
        tokio::task::spawn_blocking(move || consumer.run(&inbox));
    let done = CancellationToken::new();
    let follows = CancellationToken::new();
    let scrubbing = scrubbing::run(history.clone(), file, hidden, done.clone(), follows.clone());
    let scrubbing = tokio::spawn(scrubbing);
    let folding = tokio::spawn(folding::run(history.clone(), stop.clone()));
    let documents = tokio::spawn(documents::run(follow.client(), history.clone(), stop.clone()));
    let naming = tokio::spawn(audit::run(sources, history.clone(), stop.clone()));
    let lending = tokio::spawn(term::lend(history.clone(), follow.standing(), stop.clone()));
    let retaining = tokio::spawn(retention::run(history.clone(), config.history.limits(), stop.clone()));

    let mut next = None;
    let asked = async {
        let mut asked = control.next().await;
        if let Next::Reload(_) = asked {
            // The watches go on while requests under way end.
            tokio::select! {
                biased;
                later = control.next() => asked = later,
                () = deliveries.stop() => {}
            }
        }
        next = Some(asked);
    };
    let ended = follow.run(asked, &mut taking).await;
    if matches!(next, Some(Next::End)) {
        control.end_at_once_on_the_next_signal();
    }
    let was_asked = next.is_some();
    let is_awaited = term::is_awaited(&history).await;
    // Whoever records next scrubs what is left to be.
    if matches!(next, Some(Next::Reload(_))) || is_awaited {
        follows.cancel();
    }
    if let Some(page) = page {
        page.close().await;
    }
    follow.finish(!is_awaited).await;
    stop.cancel();
    let taken = match ended {
        Ok(End::Taken(taken)) => taken,
        Ok(End::Asked) => taking.await,
        Err(error) => {
            done.cancel();
            // All changes seen until then are recorded all the same.
            let _ = taking.await;
            deliveries.stop().await;
            let _ = tokio::join!(retaining, lending, scrubbing, remembering, folding, naming, documents);
            return Err(error.into());
        }
    };
    done.cancel();
    deliveries.stop().await;
    // The file is closed when nobody has it any more.
    let _ = tokio::join!(retaining, lending, scrubbing, remembering, folding, naming, documents);
    let asked = next.map_or(Ended::Asked, Ended::from);
    match taken.map_err(ServeError::Ended)? {
        Ok(()) => Ok(asked),
        Err(ConsumeError::History(error)) if error.is_passing() && matches!(asked, Ended::Reload(_)) => {
            // The next start finds what could not be written.
            say(&error.to_string());
            Ok(asked)
        }
        Err(ConsumeError::History(error)) if error.ends_the_term() => match asked {
            Ended::Asked if !was_asked => Ok(Ended::Fenced(error)),
            asked => Ok(asked),
        },
        Err(ConsumeError::History(error)) if was_asked => Err(ServeError::Unwritten(error)),
        Err(ConsumeError::History(error)) => Err(error.into()),
        Err(ConsumeError::Output(error)) => Err(WatchError::Output(error).into()),
    }
}

/// Stands by until this process has the term, unless there is something else to do. Says since when it has kept what it records, if it goes on where the
/// process before it has ended, and why something was not watched if something was not.
async fn stand_by(
    standby: Standby,
    holder: String,
    key: String,
    follow: &mut Follow,
    endpoint: &Part,
    control: &mut Control,
) -> Result<Result<(SharedHistory, Option<Timestamp>, &'static str), Next>, ServeError> {
    let inbox = follow.inbox();
    inbox.stand_by();
    say(&format!("{holder} records this cluster; this process stands by"));
    let holder = watch::Sender::new(holder);
    let (standing, informers) = (follow.standing(), Box::new(follow.metrics()));
    endpoint.stands_by(Waits { standing, informers, of: holder.subscribe(), inbox: inbox.clone() });
    let (standing, within) = (follow.standing(), follow.within());
    let candidate = Candidate { standby, inbox, standing, within: within.clone(), key, holder };
    let mut claiming = tokio::spawn(candidate.claim());
    let mut next = None;
    let asked = async { next = Some(control.next().await) };
    let history = match follow.run(asked, &mut claiming).await? {
        End::Taken(claimed) => claimed.map_err(ServeError::Ended)??,
        End::Asked => {
            claiming.abort();
            return Ok(Err(next.unwrap_or(Next::End)));
        }
    };
    let (read, looks) = (history.clone(), within);
    let read = move || term::recorded(&mut read.lock().reader()?, &looks);
    let recorded = tokio::task::spawn_blocking(read).await.map_err(ServeError::Ended)??;
    let goes_on = !recorded.is_elsewhere;
    let (again, led) = follow.lead(&recorded).await?;
    say(&match again {
        0 => "this process records from now on".to_owned(),
        _ => format!("this process records from now on; {again} resources are listed again"),
    });
    let since = goes_on.then(|| led.since.unwrap_or_else(Timestamp::now));
    Ok(Ok((history, since, term::why_missed(led.went_back))))
}

/// The server's resources, however long it takes to reach it, unless there is something else to do first.
async fn catalog(
    args: &ServeArgs,
    endpoint: &Part,
    control: &mut Control,
) -> Result<Result<Catalog, Next>, ServeError> {
    let cluster = cluster::find(&args.cluster).await?;
    let server = Server { address: cluster.address(), credentials: cluster.credentials() };
    let factory = SharedInformerFactory::builder(cluster.config).build().map_err(WatchError::from)?;
    let attempt = async || match tokio::time::timeout(DISCOVERY, factory.catalog()).await {
        Ok(Ok(catalog)) => Ok(catalog),
        Ok(Err(error)) => Err(server.no_discovery(&error)),
        Err(_) => Err(format!("{}: no answer within {} s", server.address, DISCOVERY.as_secs())),
    };
    Ok(insist(endpoint, control, attempt).await)
}

/// The name of this daemon for others: after a restart it has its term at once. In a pod, the machine has the pod's name.
fn holder(path: &Path) -> String {
    let named = std::env::var("HOSTNAME").ok().filter(|name| !name.is_empty());
    let of_machine = || std::fs::read_to_string("/proc/sys/kernel/hostname").ok();
    let name = named.or_else(of_machine).unwrap_or_else(|| std::process::id().to_string());
    format!("{} ({})", name.trim(), path.display())
}

/// Migrates a history of an older format. The endpoint says how far it is.
async fn migrate(path: &Path, identity: &Identity, endpoint: &Part) -> Result<(), ServeError> {
    let (percent, mut done) = watch::channel(0);
    let (file, identity) = (path.to_owned(), identity.clone());
    let migrate = move || {
        let done = |done| {
            percent.send_replace(done);
        };
        History::migrate(&file, Some(&identity), done)
    };
    let mut migrating = tokio::task::spawn_blocking(migrate);
    loop {
        tokio::select! {
            Ok(()) = done.changed() => {
                let done = *done.borrow_and_update();
                endpoint.waits(format!("the history is migrated to the format of this version: {done} % is done"));
            }
            migrated = &mut migrating => {
                return match migrated.map_err(ServeError::Ended)? {
                    Ok(None) | Err(kubediff_history::Error::Missing { .. }) => Ok(()),
                    Ok(Some(backup)) => {
                        let backup = backup.display();
                        say(&format!("the history was migrated to the format of this version; {backup} is as it was before"));
                        Ok(())
                    }
                    Err(error) => Err(error.into()),
                };
            }
        }
    }
}

/// The cluster's identity, unless there is something else to do first.
async fn uid(follow: &Follow, endpoint: &Part, control: &mut Control) -> Result<String, Next> {
    let attempt = async || follow.cluster_uid().await.map_err(|error| error.to_string());
    insist(endpoint, control, attempt).await
}

/// Repeats an attempt until it succeeds, or there is something else to do. The endpoint says why it has failed.
async fn insist<T>(
    endpoint: &Part,
    control: &mut Control,
    attempt: impl AsyncFn() -> Result<T, String>,
) -> Result<T, Next> {
    let mut said = String::new();
    loop {
        let trouble = tokio::select! {
            biased;
            next = control.next() => return Err(next),
            attempted = attempt() => match attempted {
                Ok(result) => return Ok(result),
                Err(trouble) => trouble,
            },
        };
        if trouble != said {
            say(&format!("{trouble}; trying again"));
            said.clone_from(&trouble);
        }
        endpoint.waits(trouble);
        tokio::select! {
            biased;
            next = control.next() => return Err(next),
            () = tokio::time::sleep(AGAIN) => {}
        }
    }
}

fn warn(loaded: &Loaded) {
    loaded.warnings.iter().for_each(|warning| say(&warning.to_string()));
}

fn profile(config: &Config, catalog: &Catalog, key: HashKey) -> Result<Profile, ServeError> {
    let mut secrets = Secrets::new(key);
    for hide in &config.hide {
        let name = hide.resource.as_ref().map(|name| &name.0);
        if name.is_some_and(|name| !name.clone().resolve(catalog)) {
            // Its meaning may come later: until then it is hidden in every kind.
            secrets.hide(crate::Scope::any(), hide.path.0.clone());
        }
        for scope in hide.scopes() {
            secrets.hide(scope, hide.path.0.clone());
        }
    }
    let mut noise = config.noise.rules()?;
    noise.keep_events(config.history.events.keep);
    secrets.trust(noise.names());
    let routes = config.routes.iter().flatten();
    secrets.trust(routes.flat_map(|route| route.matches.names_of_fields()));
    Ok(Profile { noise, secrets, schemas: Schemas::default() })
}

/// The targets of the configuration.
fn reach(config: &Config) -> Reach {
    let watch = &config.watch;
    let namespaces = match watch.namespaces.as_slice() {
        [] => Namespaces::All,
        names => Namespaces::Named(names.to_vec()),
    };
    let named = !watch.resources.is_empty() && watch.resources.iter().all(|name| name != "*");
    let everything = !named && namespaces == Namespaces::All;
    let wanted = config.clone();
    Reach {
        targets: Arc::new(move |catalog| Ok(wanted.targets(catalog))),
        everything,
        named,
        namespaces,
        excluded_namespaces: watch.exclude.namespaces.clone(),
        labels: watch.labels.as_ref().map(|labels| labels.0.clone()),
        fields: watch.fields.as_ref().map(|fields| fields.0.clone()),
    }
}
