//! One of the informers of a run: its engine with the readers of its cache, and what the oracle knows of its sources.

use std::collections::HashSet;

use informer_core::Time;
use informer_core::engine::{QuestionId, Start};
use informer_core::upstream::Member;

use crate::client::Client;
use crate::content::Content;
use crate::controller::Controller;
use crate::saving::File;

/// The first list waits this long for the schemas.
pub(crate) const PATIENCE: std::time::Duration = std::time::Duration::from_secs(1);

pub(crate) struct Informer {
    pub(crate) content: Content,
    pub(crate) clients: Vec<Client>,
    /// The namespaces whose removal is under way, the oldest removal first, each with the schema of its content.
    pub(crate) removing: Vec<(u8, u64)>,
    /// The cache that was saved last.
    pub(crate) saved: Option<File>,
    pub(crate) controller: Option<Controller>,
    /// The engine commands to say that the cache is synced. The changes that made it so follow.
    pub(crate) is_told_synced: bool,
    /// Its place among the informers of the server; `None` after a stop.
    pub(crate) member: Option<Member>,
    /// The engine's start, which waits for the schemas, and since when.
    pub(crate) start: Option<(Time, Box<Start>)>,
    /// The version of the resource that it requests.
    pub(crate) version: u8,
    /// The version at its start. A cache of another one is not saved.
    pub(crate) first_version: u8,
    /// The server has not found the resource, and discovery has not found it again since.
    pub(crate) is_lost: bool,
    /// A wake waits for discovery: it did not know the lost resource, or a caller asked for a retry meanwhile.
    pub(crate) awaits_discovery: bool,
    /// The questions to the engine without an answer.
    pub(crate) asked: HashSet<QuestionId>,
}

impl Informer {
    pub(crate) fn new(content: Content) -> Self {
        Self {
            content,
            clients: Vec::new(),
            removing: Vec::new(),
            saved: None,
            controller: None,
            is_told_synced: false,
            member: None,
            start: None,
            version: 1,
            first_version: 1,
            is_lost: false,
            awaits_discovery: false,
            asked: HashSet::new(),
        }
    }

    /// An object has another content at an unchanged version.
    pub(crate) fn revised(&mut self, key: crate::truth::Key, version: u64) {
        for client in &mut self.clients {
            client.revised(&mut self.content, key, version);
        }
        if let Some(file) = &mut self.saved {
            file.revised(key, version);
        }
    }
}
