//! The format of a saved cache.
//!
//! ```text
//!   magic  format  | one zstd frame: description, note, key, sources, objects, their number |  crc32 of all before
//! ```
//!
//! A file holds the objects' bytes as the cache has them; everything else is decoded from them again. Nothing is trusted
//! before the end was read: a file that was truncated or changed anywhere is an error, never a different cache. No length in
//! the file reserves memory.

mod error;
mod input;
mod output;

use std::io::{BufRead, Write};
use std::sync::Arc;

pub use error::{LoadError, SaveError};

use super::Saved;
use crate::{Checkpoint, ContentKey, Object, Storage};
use input::Input;
use output::Output;

/// The first bytes of each file.
const MAGIC: &[u8; 8] = b"informer";
/// The format changes whenever a program that knows only the former one would misread the file.
const FORMAT: u32 = 3;
/// The compression window, as a power of two: 4 MiB. The reader needs as much memory for it.
const WINDOW_LOG: u32 = 22;
/// The maximum length of each string except objects.
const LONGEST_TEXT: usize = 64 * 1024;

/// The description of a cache, as names and values. A cache with another description is not loaded.
pub type Description = [(&'static str, String)];

/// Writes a cache. O(bytes), with a compression window of some MiB.
///
/// Objects that no source of the checkpoint covers are left out. Returns the number written.
///
/// ```
/// use informer_core::{Object, PlainStorage, ResourceVersion, Scope, Store, saved};
///
/// let pods = [("resource", "pods.v1".to_owned())];
/// let mut store = Store::new();
/// let source = store.add_source(Scope::All);
/// let mut list = store.begin_replace(source);
/// list.stage(Object::from_json(br#"{"kind":"Pod","metadata":{"name":"cart","resourceVersion":"7"}}"#)?.into());
/// store.commit(list, ResourceVersion::new("9"))?;
///
/// let mut file = Vec::new();
/// saved::save(&mut file, &pods, &store.checkpoint())?;
/// let loaded = saved::load(&file[..], &pods, 1 << 20, &PlainStorage)?;
/// assert_eq!(loaded.sources[0].resource_version, ResourceVersion::new("9"));
/// assert_eq!(loaded.objects[0].key().as_str(), "cart");
///
/// let others = [("resource", "nodes.v1".to_owned())];
/// assert!(saved::load(&file[..], &others, 1 << 20, &PlainStorage).is_err_and(|error| error.is_of_another()));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// When `output` fails, or an object's bytes are no longer available in its storage.
pub fn save(
    output: impl Write,
    description: &Description,
    checkpoint: &Checkpoint,
) -> Result<usize, SaveError> {
    save_with_note(output, description, "", checkpoint)
}

/// Like [`save`], with a note about the content ([`Saved::note`]). Unlike the description, the note is not compared.
///
/// # Errors
///
/// As [`save`].
pub fn save_with_note(
    output: impl Write,
    description: &Description,
    note: &str,
    checkpoint: &Checkpoint,
) -> Result<usize, SaveError> {
    let mut output = Output::begin(output)?;
    output.count(description.len())?;
    for (name, text) in description {
        output.text(name)?;
        output.text(text)?;
    }
    output.text(note)?;
    output.number(checkpoint.content_key.0)?;
    output.count(checkpoint.sources.len())?;
    for source in &checkpoint.sources {
        output.source(source)?;
    }
    let is_covered =
        |object: &&Arc<Object>| checkpoint.sources.iter().any(|source| source.scope.contains(object.key()));
    let mut written = 0;
    for object in checkpoint.snapshot.iter().filter(is_covered) {
        output.object(object)?;
        written += 1;
    }
    output.end(written)?;
    Ok(written)
}

/// Reads a cache with this description, and keeps its objects in `storage`. `longest` is the maximum size of an object in a
/// response, in bytes ([`Limits`](crate::wire::Limits)). O(bytes). It holds the objects, and a window of some MiB.
///
/// # Errors
///
/// When `input` fails, or is anything but the complete, unchanged output of [`save`] for that description (contract
/// P1).
pub fn load(
    input: impl BufRead,
    description: &Description,
    longest: usize,
    storage: &dyn Storage,
) -> Result<Saved, LoadError> {
    let mut input = Input::begin(input)?;
    let outcome = read(&mut input, description, longest, storage);
    // An implausible value in a damaged file is reported as damage.
    match outcome {
        Ok(saved) => input.end().map(|()| saved),
        Err(error) => Err(input.explain(error)),
    }
}

fn read<R: BufRead>(
    input: &mut Input<R>,
    description: &Description,
    longest: usize,
    storage: &dyn Storage,
) -> Result<Saved, LoadError> {
    let count = input.count()?;
    if count != description.len() {
        return Err(LoadError::damaged("its description has another form"));
    }
    for (name, wanted) in description {
        let (named, saved) = (input.text()?, input.text()?);
        if named != *name {
            return Err(LoadError::damaged("its description has another form"));
        }
        if saved != *wanted {
            return Err(LoadError::of_another(name, saved, wanted));
        }
    }
    let note = input.text()?;
    let content_key = ContentKey(input.number()?);
    let mut sources = Vec::new();
    for _ in 0..input.count()? {
        sources.push(input.source()?);
    }
    // The item in the list was at most `longest` bytes, but without `kind` and `apiVersion`, which were added to it.
    let longest = longest.saturating_add(LONGEST_TEXT);
    let mut objects = input::Objects::new(&sources);
    while let Some(object) = input.object(longest, storage)? {
        objects.add(object)?;
    }
    let objects = objects.into_vec();
    if input.count()? != objects.len() {
        return Err(LoadError::damaged("objects are missing"));
    }
    Ok(Saved { sources, objects, note, content_key })
}
