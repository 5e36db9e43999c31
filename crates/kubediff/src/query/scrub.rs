//! `kubediff history scrub`.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use jiff::Zoned;
use kubediff_history::{Batch, Details, History, Mask, ObjectId, Reader, Scope as Objects, Settings};
use serde_json::Value;

use super::args::ScrubArgs;
use super::error::QueryError;
use super::names::Target;
use super::output::{Output, say};
use crate::text::terminal::escape;
use crate::{HashKey, Scope, Secrets};

/// The objects in which something is masked.
struct Chosen {
    secrets: Secrets,
    objects: Objects,
}

impl Chosen {
    fn has(&self, object: &ObjectId) -> bool {
        let Objects { group, resource, namespace, name, .. } = &self.objects;
        let is = |wanted: &Option<String>, found: &str| wanted.as_ref().is_none_or(|wanted| wanted == found);
        is(group, &object.gvk.group)
            && is(resource, &object.resource)
            && is(namespace, object.namespace.as_deref().unwrap_or_default())
            && is(name, &object.name)
    }
}

impl Mask for Chosen {
    fn object(&self, object: &ObjectId, content: &mut Value) {
        if self.has(object) {
            self.secrets.object(object, content);
        }
    }

    fn change(&self, object: &ObjectId, details: Details<'_>) {
        if self.has(object) {
            self.secrets.change(object, details);
        }
    }

    fn text(&self, text: &mut String) {
        if self.objects == Objects::default() {
            Mask::text(&self.secrets, text);
        }
    }
}

pub(super) fn run(args: &ScrubArgs, now: &Zoned) -> Result<(), QueryError> {
    let mut reader = Reader::open(&args.file)?;
    let target = match &args.resource {
        Some(resource) => {
            let words: Vec<String> = std::iter::once(resource).chain(&args.name).cloned().collect();
            Target::read(&mut reader, &words, args.namespace.as_deref())?
        }
        None => Target {
            scope: Objects {
                namespace: args.namespace.clone(),
                name: args.name.clone(),
                ..Objects::default()
            },
        },
    };
    let cluster = reader.cluster()?;
    drop(reader);
    let key = HashKey::open(&HashKey::file_beside(&args.file)).map_err(QueryError::Key)?;
    let mut secrets = Secrets::new(key);
    secrets.news();
    if let Some(file) = &args.value {
        let value = read(file).map_err(|source| QueryError::Value { file: file.clone(), source })?;
        if !secrets.learn_value(args.namespace.as_deref(), &value) {
            return Err(QueryError::ShortValue);
        }
    }
    if let Some(path) = &args.path {
        secrets.hide(Scope::any(), path.parse()?);
    }
    // The daemon hides the value from its next start on, too.
    let news = secrets.news();
    let chosen = Chosen { secrets, objects: target.scope };

    let mut history = History::open(&args.file, &cluster, &Settings::default())?;
    let mut scrub = history.scrub_of_all();
    while history.scrub(&mut scrub, &chosen)? {}
    let mut batch = Batch::default();
    for (namespace, print) in news {
        batch.print(namespace, print);
    }
    let masked = scrub.masked();
    let is_clean = scrub.is_clean();
    batch.scrubbed(scrub, now.timestamp(), "by `kubediff history scrub`");
    history.commit(&batch)?;
    // A file that an older kubediff has written may have it in pages that are free.
    if let Err(error) = history.compact() {
        say(&format!("free pages of the file may still have what was masked: {error}"));
    }
    if !is_clean {
        say("a reader has the log beside the file; what was masked is in it until that one ends");
    }
    let name = escape(&args.file.display().to_string()).into_owned();
    let mut output = Output::whole();
    output.text(&format!("{masked} versions in {name} were masked\n"))?;
    output.finish()?;
    let copies = copies(&args.file);
    if !copies.is_empty() {
        say(&format!("these files beside it are not reached: {}", copies.join(", ")));
    }
    say(
        "backups, recordings, and what sinks have received are not reached: remove the value from them, and rotate it",
    );
    Ok(())
}

fn read(file: &Path) -> std::io::Result<Vec<u8>> {
    let mut value = Vec::new();
    match file == Path::new("-") {
        true => std::io::stdin().lock().read_to_end(&mut value),
        false => std::fs::File::open(file)?.read_to_end(&mut value),
    }?;
    Ok(value)
}

/// Files beside the history whose names begin as its own: backups before a migration, and copies.
fn copies(file: &Path) -> Vec<String> {
    const OWN: &[&str] = &["", "-wal", "-shm", "-lock", ".key"];
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let of = |file: PathBuf| file.file_name().map(|name| name.to_string_lossy().into_owned());
    let Some(own) = of(file.to_owned()) else { return Vec::new() };
    let stem = file.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    let beside = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut copies: Vec<String> = beside
        .filter_map(|entry| of(entry.path()))
        .filter(|name| name.starts_with(&stem))
        .filter(|name| !name.strip_prefix(&own).is_some_and(|end| OWN.contains(&end)))
        .collect();
    copies.sort_unstable();
    copies
}
