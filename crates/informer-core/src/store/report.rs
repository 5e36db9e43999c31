//! Failures of index functions.

use std::any::Any;
use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, PoisonError};

use crate::sync::Mutex;
use crate::{Object, ObjectKey, ResourceVersion};

/// The number of reports that are kept. The oldest ones beyond it are dropped.
const KEPT: usize = 1024;

/// An index function failed on an object. The cache has the object, but that index does not.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct IndexReport {
    /// The index's name, if it has one.
    pub index: Option<Arc<str>>,
    /// The object.
    pub key: ObjectKey,
    /// Its version.
    pub resource_version: ResourceVersion,
    /// The failure.
    pub fault: IndexFault,
}

/// How an index function failed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum IndexFault {
    /// It returned this error.
    Failed(Arc<str>),
    /// It panicked with this message.
    Panicked(Arc<str>),
}

impl IndexFault {
    pub(super) fn from_panic(payload: &(dyn Any + Send)) -> Self {
        let text = payload.downcast_ref::<&str>().copied();
        let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
        Self::Panicked(text.unwrap_or("no message").into())
    }
}

impl fmt::Display for IndexFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed(reason) => write!(f, "failed: {reason}"),
            Self::Panicked(message) => write!(f, "panicked: {message}"),
        }
    }
}

impl fmt::Display for IndexReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.index.as_deref().unwrap_or("without a name");
        let Self { key, resource_version, fault, .. } = self;
        write!(
            f,
            "{key} at resourceVersion {resource_version} is left out of index {name}: its function {fault}"
        )
    }
}

/// The reports that no caller has taken yet.
#[derive(Default)]
pub(super) struct Reports(Mutex<VecDeque<IndexReport>>);

impl Reports {
    pub(super) fn add(&self, index: Option<Arc<str>>, object: &Object, fault: IndexFault) {
        let report = IndexReport {
            index,
            key: object.key().clone(),
            resource_version: object.resource_version().clone(),
            fault,
        };
        let mut reports = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if reports.len() >= KEPT {
            reports.pop_front();
        }
        reports.push_back(report);
    }

    pub(super) fn take(&self) -> Vec<IndexReport> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner)).into()
    }
}
