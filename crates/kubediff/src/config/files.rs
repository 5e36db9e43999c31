//! The files of a configuration: each is for one thing, also if it has several names.

use std::path::{Path, PathBuf};

use super::place::FieldPath;
use super::value::Secret;
use super::{Config, Sink};

/// Beside a history, SQLite, the lock, orders of a scrub and the backup of a migration have files of these ends.
const BESIDE: &[&str] = &["-wal", "-shm", "-journal", "-lock", "-scrub", "-format-1", "-format-2"];

/// A pipe blocks, and nothing but a file can be synced to a disk.
const NOT_REGULAR: &str =
    "this is no regular file but a folder, a pipe, a socket or a device: choose another file";

/// A longer chain of symbolic links is none.
const LINKS: usize = 8;

/// A file that is written, or that has a secret.
struct Use {
    path: PathBuf,
    purpose: String,
    /// Older files of a sink have the numbers up to this one at their ends.
    older: u32,
}

/// The fields that name a file that is used otherwise: a sink's lines in the history would destroy it.
pub(super) fn shared(config: &Config, file: &Path) -> Vec<(FieldPath, String)> {
    let folder = file.parent().unwrap_or(Path::new(""));
    let history = folder.join(&config.history.path);
    let one = |path: PathBuf, purpose: &str| Use {
        path: resolved(&path, LINKS),
        purpose: purpose.to_owned(),
        older: 0,
    };
    let mut known = vec![one(file.to_owned(), "the configuration")];
    if let Some(Secret::File(token)) = &config.listen_token {
        known.push(one(folder.join(token), "the file of `listenToken`"));
    }
    if let Some(tls) = config.web.as_ref().and_then(|web| web.tls.as_ref()) {
        known.push(one(folder.join(&tls.certificate), "the file of `web.tls.certificate`"));
        known.push(one(folder.join(&tls.key), "the file of `web.tls.key`"));
    }
    if let Some(audit) = &config.audit {
        let of =
            |file: &PathBuf, field: &str| one(folder.join(file), &format!("the file of `audit.{field}`"));
        known.extend(audit.log.iter().map(|log| of(log, "log")));
        if let Some(webhook) = &audit.webhook {
            known.push(of(&webhook.tls.certificate, "webhook.tls.certificate"));
            known.push(of(&webhook.tls.key, "webhook.tls.key"));
            if let Secret::File(token) = &webhook.token {
                known.push(of(token, "webhook.token"));
            }
        }
    }
    for (name, sink) in &config.sinks {
        let files = sink.files().into_iter();
        known.extend(files.map(|file| one(folder.join(file), &format!("a file that the sink {name} reads"))));
    }
    let mut wrong = Vec::new();
    let root = FieldPath::default();
    let mut add = |field: FieldPath, new: Vec<Use>, or: &str| {
        let is_special = |new: &Use| new.path.metadata().is_ok_and(|found| !found.is_file());
        if new.first().is_some_and(is_special) {
            return wrong.push((field, format!("{NOT_REGULAR}{or}")));
        }
        let former = new
            .iter()
            .find_map(|new| known.iter().find(|known| known.is_hit_by(new) || new.is_hit_by(known)));
        if let Some(former) = former {
            wrong.push((
                field,
                format!("this is {}, which would be destroyed: choose another file", former.purpose),
            ));
        }
        known.extend(new);
    };
    let beside = BESIDE.iter().map(|end| {
        let mut name = resolved(&history, LINKS).into_os_string();
        name.push(end);
        one(name.into(), "a file of the history")
    });
    let of_history = std::iter::once(one(history.clone(), "the history")).chain(beside).collect();
    add(root.field("history").field("path"), of_history, "");
    add(root.field("keyFile"), vec![one(folder.join(config.key_file()), "the key")], "");
    for (name, sink) in &config.sinks {
        if let Sink::File(file) = sink {
            let sink = Use {
                older: file.max_files,
                ..one(folder.join(&file.path), &format!("the file of the sink {name}"))
            };
            let field = root.field("sinks").field(name).field("file").field("path");
            add(field, vec![sink], ", or the sink `stdout`");
        }
    }
    wrong
}

impl Use {
    /// Whether the other use writes to this file.
    fn is_hit_by(&self, other: &Self) -> bool {
        let older = || {
            let name = self.path.file_name()?.to_str()?;
            let number = name.strip_prefix(other.path.file_name()?.to_str()?)?.strip_prefix('.')?;
            Some(self.path.parent() == other.path.parent() && number.parse::<u32>().ok()? <= other.older)
        };
        self.path == other.path || is_one_file(&self.path, &other.path) || older().unwrap_or(false)
    }
}

/// The path without symbolic links and `..`, also of a file that does not exist yet.
fn resolved(path: &Path, links: usize) -> PathBuf {
    if let Ok(path) = path.canonicalize() {
        return path;
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    match (path.read_link(), links.checked_sub(1)) {
        (Ok(to), Some(links)) => resolved(&folder.join(to), links),
        _ => {
            let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
            path.file_name().map_or_else(|| path.to_owned(), |name| folder.join(name))
        }
    }
}

/// Whether two names are hard links to one file.
#[cfg(unix)]
fn is_one_file(one: &Path, other: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    let id = |path: &Path| path.metadata().ok().map(|file| (file.dev(), file.ino()));
    id(one).is_some_and(|one| id(other) == Some(one))
}

#[cfg(not(unix))]
fn is_one_file(_: &Path, _: &Path) -> bool {
    false
}
