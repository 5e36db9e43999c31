//! Requests of a person or a supervisor: an end, or another configuration.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::config::{Config, Loaded};
use crate::signals::{Request, Signals};
use crate::text::terminal::say;

/// How often the file is looked at. A mounted ConfigMap changes by a link that no file watcher of a container sees reliably.
const LOOK: Duration = Duration::from_secs(5);

/// The next thing to do.
pub(super) enum Next {
    End,
    Reload(Box<Loaded>),
}

/// Signals, the file of the configuration, and those with secrets that it names.
pub(super) struct Control {
    signals: Signals,
    path: PathBuf,
    files: Vec<PathBuf>,
    /// The content of the files when they were read last, valid or not.
    seen: Content,
    /// The content at the last look: somebody may be writing the files.
    glimpsed: Content,
}

/// The bytes of files; `None` while one cannot be read.
type Content = Vec<Option<Vec<u8>>>;

impl Control {
    pub(super) fn new(signals: Signals, path: &Path, loaded: &Loaded) -> Self {
        let files = loaded.files();
        Self { signals, path: path.to_owned(), seen: content(&files), files, glimpsed: Vec::new() }
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
    ///
    /// A file that cannot be used changes nothing: its mistakes are said once.
    pub(super) async fn next(&mut self) -> Next {
        loop {
            let is_forced = tokio::select! {
                biased;
                told = self.signals.of_daemon() => match told {
                    Request::End => return Next::End,
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
                    return Next::Reload(Box::new(loaded));
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
