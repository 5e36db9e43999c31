//! The objects to follow, and where.

use std::sync::Arc;

use informer::{Catalog, DiscoveryError, FieldSelector, Selector};

use serde::{Deserialize, Serialize};

use crate::Glob;
use crate::model::targets::Target;

/// The objects to follow.
pub(crate) struct Reach {
    pub(crate) targets: Targets,
    /// Whether these are all resources that the server has.
    pub(crate) everything: bool,
    /// Whether kinds were named: a noise rule that leaves out a kind as a whole does not count then.
    pub(crate) named: bool,
    pub(crate) namespaces: Namespaces,
    /// Objects in these are not looked at.
    pub(crate) excluded_namespaces: Vec<Glob>,
    pub(crate) labels: Option<Selector>,
    pub(crate) fields: Option<FieldSelector>,
}

/// Finds what to follow among what the server has.
pub(crate) type Targets = Arc<dyn Fn(&Catalog) -> Result<Vec<Target>, DiscoveryError> + Send + Sync>;

/// In which namespaces.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum Namespaces {
    /// The one that the kubeconfig's context names.
    #[default]
    OfContext,
    /// All, and resources that have none.
    All,
    /// These.
    Named(Vec<String>),
}

/// Which objects can be seen: an object elsewhere may exist although it is not seen.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Within {
    /// All of them without a list.
    pub(crate) namespaces: Option<Vec<String>>,
    /// But not these.
    pub(crate) excluded: Vec<Glob>,
    /// Labels and fields; empty for all objects.
    pub(crate) selectors: String,
}

impl Within {
    /// Whether objects of this namespace are looked at. Cluster-scoped objects are, whatever the namespaces.
    pub(crate) fn has(&self, namespace: Option<&str>) -> bool {
        let Some(namespace) = namespace else { return true };
        let is_named = |names: &Vec<String>| names.iter().any(|name| name == namespace);
        self.namespaces.as_ref().is_none_or(is_named)
            && !self.excluded.iter().any(|glob| glob.matches(namespace))
    }

    /// Whether all objects that are looked at there are looked at here.
    pub(crate) fn covers(&self, other: &Self) -> bool {
        let namespaces = match (&self.namespaces, &other.namespaces) {
            (None, _) => true,
            (Some(names), Some(others)) => others.iter().all(|name| names.contains(name)),
            (Some(_), None) => false,
        };
        let selectors = self.selectors.is_empty() || self.selectors == other.selectors;
        namespaces && selectors && self.excluded.iter().all(|glob| other.excluded.contains(glob))
    }

    /// `objects of namespaces a, b with labels app=web`, for people.
    pub(crate) fn in_words(&self) -> String {
        let excluded: Vec<String> = self.excluded.iter().map(ToString::to_string).collect();
        let mut words = match &self.namespaces {
            None => "objects of all namespaces".to_owned(),
            Some(names) if names.len() == 1 => format!("objects of namespace {}", names.join("")),
            Some(names) => format!("objects of namespaces {}", names.join(", ")),
        };
        if !excluded.is_empty() {
            words += &format!(" but {}", excluded.join(", "));
        }
        if !self.selectors.is_empty() {
            words += &format!(" with {}", self.selectors);
        }
        words
    }
}

impl Reach {
    /// Which objects can be seen, if the kubeconfig's context names this namespace.
    pub(super) fn within(&self, of_context: &str) -> Within {
        let selectors = [
            self.labels.as_ref().map(|labels| format!("labels {labels}")),
            self.fields.as_ref().map(|fields| format!("fields {fields}")),
        ];
        let namespaces = match &self.namespaces {
            Namespaces::All => None,
            Namespaces::Named(names) => Some(names.clone()),
            Namespaces::OfContext => Some(vec![of_context.to_owned()]),
        };
        let selectors = selectors.into_iter().flatten().collect::<Vec<_>>().join("; ");
        Within { namespaces, excluded: self.excluded_namespaces.clone(), selectors }
    }
}

impl Namespaces {
    /// For people.
    pub(super) fn in_words(&self, of_context: &str) -> String {
        match self {
            Self::All => "all namespaces".to_owned(),
            Self::OfContext => format!("namespace {of_context} (the context's; -A for all)"),
            Self::Named(names) => match names.as_slice() {
                [one] => format!("namespace {one}"),
                several => format!("namespaces {}", several.join(", ")),
            },
        }
    }
}
