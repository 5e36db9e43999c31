//! What the server says about itself goes into the history: its release, and the schemas of its own kinds. Those of custom resources are in
//! their definitions.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use kube_client::Client;
use kube_table::builtin;
use kubediff_history::Document;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;

use crate::follow::openapi::{self, DocumentError};
use crate::history::documents;
use crate::history::shared::SharedHistory;
use crate::text::terminal::say;

/// How often the server is asked which documents it has: an upgrade changes them.
const OFTEN: Duration = Duration::from_secs(10 * 60);
/// Where nothing is recorded at the start, it is over after this time.
const BEGINS: Duration = Duration::from_secs(10);
/// The time after a failure.
const AGAIN: Duration = Duration::from_secs(60);
/// The time between two documents.
const PACE: Duration = Duration::from_millis(200);

/// The most documents, and the bytes of the name and address of one.
const MOST: usize = 64;
const LONGEST: usize = 512;
/// The most bytes of a release.
const RELEASE: usize = 16 << 10;

/// The release of a server.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Release {
    #[serde(rename = "major")]
    _major: String,
    #[serde(rename = "minor")]
    _minor: String,
    git_version: String,
}

/// The part of a document that the past needs.
#[derive(Deserialize)]
struct OpenApi<'a> {
    #[serde(borrow)]
    components: Components<'a>,
}

#[derive(Deserialize)]
struct Components<'a> {
    #[serde(borrow)]
    schemas: &'a RawValue,
}

/// Why a document is not stored.
#[derive(Debug, thiserror::Error)]
enum Failed {
    #[error(transparent)]
    Document(#[from] DocumentError),
    #[error(transparent)]
    History(#[from] kubediff_history::Error),
    #[error("the thread that writes the history has ended")]
    Thread(#[from] tokio::task::JoinError),
}

/// Stores documents as they change, until it is to stop. Of a time in which some cannot be had, the first reason is said.
pub(super) async fn run(client: Option<Client>, history: SharedHistory, stop: CancellationToken) {
    let Some(client) = client else { return };
    // The gap of a start is recorded first: in it, the documents are those of before.
    let mut newest = history.newest();
    let begins = tokio::time::timeout(BEGINS, newest.changed());
    if stop.run_until_cancelled(begins).await.is_none() {
        return;
    }
    let mut has_failed = false;
    loop {
        let Some(done) = stop.run_until_cancelled(round(&client, &history)).await else { return };
        if let Err((path, error)) = &done
            && !has_failed
        {
            say(&format!(
                "the past may show the server's release and schemas as they were before: {path}: {error}"
            ));
        }
        has_failed = done.is_err();
        let wait = if has_failed { AGAIN } else { OFTEN };
        if stop.run_until_cancelled(tokio::time::sleep(wait)).await.is_none() {
            return;
        }
    }
}

/// Asks for each document that is another one than before. A document that cannot be had keeps none of the others away, unless the server does
/// not answer at all.
async fn round(client: &Client, history: &SharedHistory) -> Result<(), (String, Failed)> {
    let at = |path: &str| {
        let path = path.to_owned();
        |error| (path, error)
    };
    let version = release(client, history).await.map_err(at("/version"));
    if matches!(&version, Err((_, Failed::Document(DocumentError::Late)))) {
        return version;
    }
    let index = openapi::index(client).await.map_err(|error| at("/openapi/v3")(error.into()))?;
    let mut done = version;
    for (name, url) in changed(&known(history).await.map_err(at("the history"))?, index) {
        let stored = schemas(client, history, name, url.as_deref()).await;
        let is_late = matches!(&stored, Err(Failed::Document(DocumentError::Late)));
        done = done.and(stored.map_err(at(url.as_deref().unwrap_or_default())));
        if is_late {
            break;
        }
        tokio::time::sleep(PACE).await;
    }
    done
}

async fn known(history: &SharedHistory) -> Result<BTreeMap<String, String>, Failed> {
    let history = history.clone();
    Ok(tokio::task::spawn_blocking(move || history.lock().reader()?.editions()).await??)
}

/// Stores the release.
async fn release(client: &Client, history: &SharedHistory) -> Result<(), Failed> {
    let content = openapi::document(client, "/version").await?;
    let release: Option<Release> = serde_json::from_slice(&content).ok().filter(|_| content.len() <= RELEASE);
    let Release { git_version, .. } = release.ok_or(DocumentError::Malformed)?;
    store(history, Document { name: documents::VERSION.to_owned(), edition: git_version, content }).await
}

/// Stores the schemas at an address; none, where the server has them no more.
async fn schemas(
    client: &Client,
    history: &SharedHistory,
    name: String,
    url: Option<&str>,
) -> Result<(), Failed> {
    let content = match url {
        Some(url) => {
            let document = openapi::document(client, url).await?;
            let OpenApi { components } =
                serde_json::from_slice(&document).map_err(|_| DocumentError::Malformed)?;
            components.schemas.get().as_bytes().to_vec()
        }
        None => Vec::new(),
    };
    store(history, Document { name, edition: url.unwrap_or_default().to_owned(), content }).await
}

/// The schemas of the server's own groups that are new or others than before, and where they are; nowhere if the server has them no more.
fn changed(
    known: &BTreeMap<String, String>,
    index: BTreeMap<String, String>,
) -> Vec<(String, Option<String>)> {
    let groups: BTreeSet<_> = builtin::resources().iter().map(|resource| resource.group.clone()).collect();
    let is_own = |path: &str| match path.split('/').collect::<Vec<_>>()[..] {
        ["api", _] => true,
        ["apis", group, _] => groups.contains(group),
        _ => false,
    };
    let is_short = |(path, url): &(String, String)| path.len() + url.len() <= LONGEST;
    let index = index.into_iter().filter(|it| is_own(&it.0) && is_short(it)).take(MOST);
    let index: BTreeMap<String, String> = index.map(|(path, url)| (documents::schemas(&path), url)).collect();
    let is_gone = |(name, edition): &(&String, &String)| {
        *name != documents::VERSION && !edition.is_empty() && !index.contains_key(*name)
    };
    let gone: Vec<_> = known.iter().filter(is_gone).map(|(name, _)| (name.clone(), None)).collect();
    let new = index.into_iter().filter(|(name, url)| known.get(name) != Some(url));
    new.map(|(name, url)| (name, Some(url))).chain(gone).collect()
}

async fn store(history: &SharedHistory, document: Document) -> Result<(), Failed> {
    let history = history.clone();
    Ok(tokio::task::spawn_blocking(move || history.lock().document(&document)).await??)
}
