//! What the server says about itself goes into the history: its release, and the schemas of its own kinds. Those of custom resources are in
//! their definitions.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use kube_client::{Client, Error};
use kube_table::builtin;
use kubediff_history::Document;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;

use crate::follow::openapi;
use crate::history::documents;
use crate::history::shared::SharedHistory;
use crate::text::terminal::say;

/// How often the server is asked which documents it has: an upgrade changes them.
const OFTEN: Duration = Duration::from_secs(10 * 60);
/// The time after a failure.
const AGAIN: Duration = Duration::from_secs(60);
/// The time between two documents, of a megabyte at most.
const PACE: Duration = Duration::from_millis(200);

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

/// Why a round of questions ended early.
#[derive(Debug, thiserror::Error)]
enum Failed {
    #[error(transparent)]
    Server(#[from] Error),
    #[error(transparent)]
    History(#[from] kubediff_history::Error),
    #[error("the thread that writes the history has ended")]
    Thread(#[from] tokio::task::JoinError),
}

/// Stores documents as they change, until it is to stop.
pub(super) async fn run(client: Option<Client>, history: SharedHistory, stop: CancellationToken) {
    let Some(client) = client else { return };
    let mut failed = None;
    loop {
        let Some(round) = stop.run_until_cancelled(round(&client, &history)).await else { return };
        failed = round.err().map(|error| error.to_string()).inspect(|error| {
            if failed.as_ref() != Some(error) {
                say(&format!("the past has the server's release and schemas as they were before: {error}"));
            }
        });
        let wait = if failed.is_some() { AGAIN } else { OFTEN };
        if stop.run_until_cancelled(tokio::time::sleep(wait)).await.is_none() {
            return;
        }
    }
}

/// Asks for each document that is another one than before.
async fn round(client: &Client, history: &SharedHistory) -> Result<(), Failed> {
    let shared = history.clone();
    let known = tokio::task::spawn_blocking(move || shared.lock().reader()?.editions()).await??;
    let version = openapi::document(client, "/version").await?;
    let (name, content) = (documents::VERSION.to_owned(), version.clone().into_bytes());
    store(history, Document { name, edition: version, content }).await?;
    for (name, url) in changed(&known, openapi::index(client).await?) {
        let content = match &url {
            Some(url) => schemas(&openapi::document(client, url).await?),
            None => Vec::new(),
        };
        store(history, Document { name, edition: url.unwrap_or_default(), content }).await?;
        tokio::time::sleep(PACE).await;
    }
    Ok(())
}

/// The schemas in a document; nothing, if it has none.
fn schemas(document: &str) -> Vec<u8> {
    let found = serde_json::from_str::<OpenApi<'_>>(document);
    found.map_or_else(|_| Vec::new(), |found| found.components.schemas.get().as_bytes().to_vec())
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
    let index: BTreeMap<String, String> = index
        .into_iter()
        .filter(|(path, _)| is_own(path))
        .map(|(path, url)| (documents::schemas(&path), url))
        .collect();
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
