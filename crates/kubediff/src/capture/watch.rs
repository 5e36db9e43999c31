//! `kubediff watch`: shows what is followed on the terminal, and records it if it is asked to.

use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use kubediff_history::{Cluster, Settings};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::args::{Hide, Output, SessionArgs, WatchArgs, WhatArgs};
use crate::capture::consumer::{ConsumeError, Consumer};
use crate::capture::held::Held;
use crate::capture::screen::Screen;
use crate::cluster::ClusterArgs;
use crate::follow::{End, Follow, FollowOptions, Namespaces, Reach};
use crate::history::shared::SharedHistory;
use crate::history::writer::{HistoryWriter, NOT_RUNNING};
use crate::model::targets::Wanted;
use crate::signals::Signals;
use crate::text::terminal::say;
use crate::{HashKey, Noise, PathPattern, Profile, Schemas, Scope, Secrets, Session};

pub use crate::follow::WatchError;

/// A change that may mention a Secret waits so long for the Secret.
const SECRETS_WAIT: Duration = Duration::from_secs(1);
/// Bytes in a MiB.
const MIB: usize = 1024 * 1024;

/// Watches until it is interrupted.
///
/// # Errors
///
/// When watching cannot begin, or the output cannot be written.
pub async fn run(args: &WatchArgs) -> Result<(), WatchError> {
    let profile = profile(&args.session, args.history.as_deref())?;
    let mut screen = Screen::new(&args.show);
    if args.list_noise {
        return screen.noise_rules(&profile.noise).map_err(WatchError::Output);
    }
    let sitting = Sitting {
        what: &args.what,
        session: &args.session,
        cluster: &args.cluster,
        history: args.history.as_deref(),
        names_cluster: args.show.output == Output::Json,
    };
    sit(&sitting, profile, screen).await
}

/// Watching until it is interrupted.
pub(crate) struct Sitting<'a> {
    pub(crate) what: &'a WhatArgs,
    pub(crate) session: &'a SessionArgs,
    pub(crate) cluster: &'a ClusterArgs,
    pub(crate) history: Option<&'a Path>,
    /// Whether each change has the name of the cluster.
    pub(crate) names_cluster: bool,
}

pub(crate) async fn sit(args: &Sitting<'_>, profile: Profile, screen: Screen) -> Result<(), WatchError> {
    // Before anything is asked of the server, which may never answer.
    let mut signals = Signals::listen().map_err(WatchError::Signals)?;
    end_at_once_on_the_second_signal()?;
    let started = Instant::now();
    let bound = usize::try_from(args.session.buffer).unwrap_or(usize::MAX).saturating_mul(MIB);
    let options = FollowOptions {
        bound,
        with_first: args.history.is_some(),
        persistent: false,
        secrets_wait: SECRETS_WAIT,
    };
    let mut follow = Follow::connect(args.cluster, reach(args.what)?, options, &profile).await?;
    let cluster = follow.context().map(str::to_owned).filter(|_| args.names_cluster);
    let recorder = match args.history {
        Some(file) => Some(recorder(&follow, file, profile.secrets.clone()).await?),
        None => None,
    };
    let session = Arc::new(Mutex::new(Session::default()));
    let mut consumer = Consumer {
        screen: Some(screen),
        recorder,
        session: session.clone(),
        profile,
        cluster,
        unrecorded: Vec::new(),
        held: Held::new(SECRETS_WAIT),
    };
    let inbox = follow.inbox();
    let mut taking: Taking = tokio::task::spawn_blocking(move || {
        let taken = consumer.run(&inbox);
        (consumer, taken)
    });
    let ended = follow.run(signals.end(), &mut taking).await;
    follow.finish(true).await;
    let taken = match ended {
        Ok(End::Taken(taken)) => taken.map_err(|error| WatchError::Output(error.into())),
        Ok(End::Asked) => finished(taking).await,
        Err(error) => finished(taking).await.and(Err(error)),
    };
    let (mut consumer, taken) = taken?;
    match taken {
        // The reader of our output has closed it, as `head` does.
        Err(ConsumeError::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        Err(ConsumeError::Output(error)) => Err(WatchError::Output(error)),
        Err(ConsumeError::History(error)) => Err(WatchError::History(error)),
        Ok(()) => {
            let mut session = session.lock().unwrap_or_else(PoisonError::into_inner);
            session.not_watched = follow.not_watched();
            if session.merged > 0 {
                say(&session.merged_text());
            }
            let Some(screen) = &mut consumer.screen else { return Ok(()) };
            screen.summary(&session, started.elapsed()).map_err(WatchError::Output)
        }
    }
}

/// The thread that shows and records changes; at its end, what it did, and whether all could be written.
type Taking = JoinHandle<Taken>;
type Taken = (Consumer, Result<(), ConsumeError>);

/// Waits until everything is shown.
async fn finished(taking: Taking) -> Result<Taken, WatchError> {
    /// A reader that is just slow needs no explanation.
    const SLOW: Duration = Duration::from_secs(1);
    let mut taking = taking;
    if let Ok(taken) = tokio::time::timeout(SLOW, &mut taking).await {
        return taken.map_err(|error| WatchError::Output(error.into()));
    }
    say("the reader of the output has not taken everything yet; another signal ends without it");
    taking.await.map_err(|error| WatchError::Output(error.into()))
}

/// The targets of the arguments.
fn reach(args: &WhatArgs) -> Result<Reach, WatchError> {
    let namespaces = match (args.all_namespaces, &args.namespace) {
        (true, _) => Namespaces::All,
        (false, Some(namespace)) => Namespaces::Named(vec![namespace.clone()]),
        (false, None) => Namespaces::OfContext,
    };
    let wanted = Wanted::parse(&args.targets)?;
    let (everything, cluster_wide) = (wanted.is_everything(), namespaces == Namespaces::All);
    Ok(Reach {
        targets: Arc::new(move |catalog| wanted.among(catalog, cluster_wide)),
        everything,
        named: !everything,
        namespaces,
        excluded_namespaces: Vec::new(),
        labels: args.selector.clone(),
        fields: args.field_selector.clone(),
    })
}

/// Opens the history in this file, and makes it if there is none.
async fn recorder(follow: &Follow, file: &Path, secrets: Secrets) -> Result<HistoryWriter, WatchError> {
    let uid = follow.cluster_uid().await?;
    let name = follow.context().map(str::to_owned);
    let history = SharedHistory::open(file, &Cluster { uid, name: name.clone() }, &Settings::default())?;
    Ok(HistoryWriter::new(history, name, secrets, follow.within(), Timestamp::now(), NOT_RUNNING)?)
}

/// The noise to leave out and the values to hide. The key of hashes in a history is kept beside it.
pub(crate) fn profile(args: &SessionArgs, history: Option<&Path>) -> Result<Profile, WatchError> {
    let SessionArgs { show, hide, .. } = args;
    let mut noise = Noise::default();
    noise.keep_events(history.is_some());
    let mut secrets = match history {
        Some(file) => Secrets::new(HashKey::open(&HashKey::file_beside(file))?),
        None => Secrets::with_random_key()?,
    };
    noise.show(show)?;
    for hide in hide {
        match hide {
            Hide::Rule(rules) => noise.adjust(rules)?,
            Hide::Path(path) => {
                let path: PathPattern = path.parse()?;
                path.may_hide()?;
                secrets.hide(Scope::any(), path);
            }
        }
    }
    secrets.trust(noise.names());
    Ok(Profile { noise, secrets, schemas: Schemas::default() })
}

/// The reader of our output may have stopped: then what waits for it would keep the program from ending.
fn end_at_once_on_the_second_signal() -> Result<(), WatchError> {
    let mut signals = Signals::listen().map_err(WatchError::Signals)?;
    tokio::spawn(async move {
        signals.end().await;
        signals.end().await;
        std::process::exit(130);
    });
    Ok(())
}
