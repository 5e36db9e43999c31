//! Requests of a person or a supervisor: an end, or another configuration.

use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::sync::watch;

use crate::config::{Config, Loaded, Member};
use crate::signals::{Request, Signals};
use crate::text::terminal::say;

/// How often the file is looked at. A mounted ConfigMap changes by a link that no file watcher of a container sees reliably.
const LOOK: Duration = Duration::from_secs(5);

/// The next thing to do.
pub(super) enum Next {
    End,
    Reload(Box<Loaded>),
}

/// What was asked for last.
#[derive(Clone)]
enum Asked {
    Nothing,
    End,
    Reload(Box<Loaded>),
}

/// What is asked of the daemon, or of one of its clusters.
#[derive(Clone)]
pub(super) struct Control {
    asked: watch::Sender<Asked>,
    news: watch::Receiver<Asked>,
    /// The name of the cluster, where there are several.
    cluster: Option<String>,
}

/// Looks at signals, at the file of the configuration, and at those with secrets that it names.
struct Observer {
    signals: Signals,
    path: PathBuf,
    files: Vec<PathBuf>,
    /// The content of the files when they were read last, valid or not.
    seen: Content,
    /// The content at the last look: somebody may be writing the files.
    glimpsed: Content,
    /// The clusters that are followed.
    clusters: Option<Vec<Member>>,
}

/// The bytes of files; `None` while one cannot be read.
type Content = Vec<Option<Vec<u8>>>;

impl Control {
    /// Looks from now on, in a task of its own.
    pub(super) fn new(signals: Signals, path: &Path, loaded: &Loaded) -> Self {
        let files = loaded.files();
        let observer = Observer {
            signals,
            path: path.to_owned(),
            seen: content(&files),
            files,
            glimpsed: Vec::new(),
            clusters: loaded.config.clusters.clone(),
        };
        let (asked, news) = watch::channel(Asked::Nothing);
        tokio::spawn(observer.observe(asked.clone()));
        Self { asked, news, cluster: None }
    }

    /// The same for one of several clusters.
    pub(super) fn of(&self, cluster: &str) -> Self {
        Self { cluster: Some(cluster.to_owned()), ..self.clone() }
    }

    /// Asks all clusters to end.
    pub(super) fn end(&self) {
        self.asked.send_replace(Asked::End);
    }

    /// From now on, another signal ends the process, whatever it waits for.
    pub(super) fn end_at_once_on_the_next_signal(&self) {
        if let Ok(mut signals) = Signals::listen() {
            tokio::spawn(async move {
                while signals.of_daemon().await != Request::End {}
                std::process::exit(130);
            });
        }
    }

    /// Waits until something is to be done. Cancel safe.
    pub(super) async fn next(&mut self) -> Next {
        loop {
            // There is a sender as long as this is here.
            let _ = self.news.changed().await;
            match self.news.borrow_and_update().clone() {
                Asked::Nothing => {}
                Asked::End => return Next::End,
                Asked::Reload(loaded) if self.cluster.is_none() => return Next::Reload(loaded),
                Asked::Reload(loaded) => {
                    let mut members = loaded.members().into_iter();
                    let is_own = |(context, member): &(Option<String>, Loaded)| {
                        context.is_some() && member.config.cluster == self.cluster
                    };
                    if let Some((_, own)) = members.find(is_own) {
                        return Next::Reload(Box::new(own));
                    }
                }
            }
        }
    }
}

impl Observer {
    /// Until somebody asks for the end.
    async fn observe(mut self, asked: watch::Sender<Asked>) {
        loop {
            let next = self.next().await;
            let is_end = matches!(next, Asked::End);
            asked.send_replace(next);
            if is_end {
                return;
            }
        }
    }

    /// A file that cannot be used changes nothing: its mistakes are said once.
    async fn next(&mut self) -> Asked {
        loop {
            let is_forced = tokio::select! {
                biased;
                told = self.signals.of_daemon() => match told {
                    Request::End => return Asked::End,
                    Request::Reload => true,
                },
                () = tokio::time::sleep(LOOK) => false,
            };
            let found = content(&self.files);
            // A changed file is read when it has stayed the same from one look to the next.
            let is_whole = found == self.glimpsed;
            self.glimpsed.clone_from(&found);
            if !is_forced && (found == self.seen || !is_whole) {
                continue;
            }
            self.seen = found;
            match Config::read(&self.path).map_err(|error| error.to_string()).and_then(|loaded| {
                loaded.test().map_err(|error| error.to_string())?;
                Ok(loaded)
            }) {
                Ok(loaded) => {
                    self.files = loaded.files();
                    self.seen = content(&self.files);
                    say("the configuration has changed");
                    if loaded.config.clusters != self.clusters {
                        say("the clusters stay as they are until the next start");
                    }
                    return Asked::Reload(Box::new(loaded));
                }
                Err(error) => {
                    error.lines().for_each(say);
                    say("the former configuration stays in force");
                }
            }
        }
    }
}

fn content(files: &[PathBuf]) -> Content {
    files.iter().map(|file| std::fs::read(file).ok()).collect()
}
