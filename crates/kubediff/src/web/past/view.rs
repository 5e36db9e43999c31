//! The cluster at one moment, as somebody may see it.

use std::sync::Arc;
use std::time::SystemTime;

use kubediff_history::{Moment, Number, Reader};
use serve::CollectionError;

use super::keys::KeyCache;
use super::resources::Described;
use super::schemas::Schemas;
use super::status::{of_error, of_problem};
use crate::web::store::{Seen, Store};

/// The factor between the numbers of records and the versions of the past.
pub(super) const VERSIONS: u64 = 10;

/// The cluster at one moment, as somebody may see it.
pub(super) struct View {
    pub(super) store: Arc<Store>,
    pub(super) seen: Seen,
    pub(super) keys: Arc<KeyCache>,
    pub(super) at: Moment,
    /// Whether it follows the newest record.
    pub(super) is_now: bool,
    pub(super) known: Arc<Described>,
    pub(super) schemas: Schemas,
}

impl View {
    /// Asks the history. Errors are those of the request.
    pub(super) async fn ask<T: Send + 'static>(
        &self,
        question: impl FnOnce(&mut Reader) -> Result<T, CollectionError> + Send + 'static,
    ) -> Result<T, CollectionError> {
        let answer = self.store.ask(self.seen.clone(), |asked| Ok(question(asked.reader)));
        answer.await.map_err(|problem| CollectionError::Failed(of_problem(problem)))?
    }

    /// The time that ages are seen from.
    pub(super) fn now(&self) -> SystemTime {
        if self.is_now { SystemTime::now() } else { self.at.time.into() }
    }

    pub(super) fn revision(&self) -> u64 {
        self.at.number.0 * VERSIONS
    }
}

pub(super) fn failed(error: kubediff_history::Error) -> CollectionError {
    CollectionError::Failed(of_error(error))
}

/// The first record from which on the history has all of them.
pub(super) fn complete_from(reader: &mut Reader) -> Result<Number, CollectionError> {
    match reader.complete_since().map_err(failed)? {
        Some(since) => reader.first_since(since).map_err(failed),
        None => Ok(Number(u64::MAX / VERSIONS)),
    }
}
