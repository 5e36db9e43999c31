//! Which objects of a resource an informer has: the namespaces, the selectors by which the server filters, and the share by
//! which the informer does.

use std::fmt;

use informer_core::share::{Share, ShareBy};
use informer_core::{FieldSelector, Scope, Selector};

use crate::options::resource::ResourceType;

/// Which objects of a resource an informer has: those in these namespaces that match both selectors and are in the share.
///
/// Methods of a factory narrow its selection step by step: [`SharedInformerFactory::in_namespaces`], [`with_labels`],
/// [`with_fields`] and [`with_share`]. Informers of one resource with equal selections share one watch and one cache.
///
/// [`SharedInformerFactory::in_namespaces`]: crate::SharedInformerFactory::in_namespaces
/// [`with_labels`]: crate::SharedInformerFactory::with_labels
/// [`with_fields`]: crate::SharedInformerFactory::with_fields
/// [`with_share`]: crate::SharedInformerFactory::with_share
///
/// ```
/// # fn example(factory: informer::SharedInformerFactory) -> Result<(), informer::InvalidSelector> {
/// let shop = factory.in_namespaces(["shop", "front"]).with_labels("app=cart")?;
/// let selection = shop.in_namespace("shop").with_labels("tier!=db")?.selection().clone();
/// assert_eq!(selection.to_string(), "namespace shop, labels app=cart,tier!=db");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, PartialEq, Eq, Hash, Default)]
pub struct Selection {
    namespaces: Namespaces,
    labels: Selector,
    fields: FieldSelector,
    share: Option<Share>,
}

#[derive(Clone, PartialEq, Eq, Hash, Default)]
enum Namespaces {
    #[default]
    All,
    /// Sorted, without duplicates.
    Only(Vec<String>),
}

impl Selection {
    /// The namespaces, sorted. `None` stands for all of them, an empty slice for none.
    pub fn namespaces(&self) -> Option<&[String]> {
        match &self.namespaces {
            Namespaces::All => None,
            Namespaces::Only(namespaces) => Some(namespaces),
        }
    }

    /// The selector on labels.
    pub fn labels(&self) -> &Selector {
        &self.labels
    }

    /// The selector on fields.
    pub fn fields(&self) -> &FieldSelector {
        &self.fields
    }

    /// The share of the objects that the informer keeps, whatever the server sends. `None` stands for all of them.
    pub fn share(&self) -> Option<&Share> {
        self.share.as_ref()
    }

    /// Whether the selection is every object in every namespace.
    pub fn is_everything(&self) -> bool {
        self.namespaces == Namespaces::All && !self.has_selector()
    }

    /// Whether some objects of a namespace are left out.
    pub(crate) fn has_selector(&self) -> bool {
        !self.labels.is_everything() || !self.fields.is_everything() || self.share.is_some()
    }

    /// Whether an object may leave the selection while it exists: its name, its namespace and its uid never change.
    pub(crate) fn may_deselect(&self) -> bool {
        let is_fixed = |field: &str| field == "metadata.name" || field == "metadata.namespace";
        let may_lose_owner = self.share.as_ref().is_some_and(|share| share.by() == ShareBy::ControllerUid);
        !self.labels.is_everything() || !self.fields.fields().all(is_fixed) || may_lose_owner
    }

    pub(crate) fn in_namespaces(self, namespaces: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let mut namespaces: Vec<String> = namespaces.into_iter().map(Into::into).collect();
        // As client-go's `NamespaceAll`: the empty name covers all namespaces, so nothing is narrowed.
        if namespaces.iter().any(String::is_empty) {
            return self;
        }
        namespaces.sort();
        namespaces.dedup();
        if let Namespaces::Only(former) = &self.namespaces {
            namespaces.retain(|namespace| former.contains(namespace));
        }
        Self { namespaces: Namespaces::Only(namespaces), ..self }
    }

    pub(crate) fn with_labels(self, selector: &Selector) -> Self {
        let both = self.labels.requirements().iter().chain(selector.requirements());
        Self { labels: both.cloned().collect(), ..self }
    }

    pub(crate) fn with_fields(self, selector: &FieldSelector) -> Self {
        Self { fields: self.fields.and(selector), ..self }
    }

    pub(crate) fn with_share(self, share: Option<Share>) -> Self {
        Self { share, ..self }
    }

    /// The selection as it applies to a resource: a cluster-wide resource has no namespaces to select.
    pub(crate) fn of(&self, resource: &ResourceType) -> Self {
        let mut selection = self.clone();
        if !resource.namespaced {
            selection.namespaces = Namespaces::All;
        }
        selection
    }

    pub(crate) fn scopes(&self) -> Vec<Scope> {
        match &self.namespaces {
            Namespaces::All => vec![Scope::All],
            Namespaces::Only(namespaces) => {
                namespaces.iter().map(|namespace| Scope::of_namespace(namespace)).collect()
            }
        }
    }

    /// The query parameters of a list or watch.
    pub(crate) fn query(&self) -> impl Iterator<Item = (String, String)> {
        let labels = (!self.labels.is_everything()).then(|| ("labelSelector", self.labels.to_string()));
        let fields = (!self.fields.is_everything()).then(|| ("fieldSelector", self.fields.to_string()));
        labels.into_iter().chain(fields).map(|(name, selector)| (name.to_owned(), selector))
    }
}

impl fmt::Display for Selection {
    /// As in `namespaces front, shop, labels app=cart`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.namespaces() {
            None => write!(f, "all namespaces")?,
            Some([]) => write!(f, "no namespace")?,
            Some([one]) => write!(f, "namespace {one}")?,
            Some(several) => write!(f, "namespaces {}", several.join(", "))?,
        }
        if !self.labels.is_everything() {
            write!(f, ", labels {}", self.labels)?;
        }
        if !self.fields.is_everything() {
            write!(f, ", fields {}", self.fields)?;
        }
        if let Some(share) = &self.share {
            write!(f, ", share by {share}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Selection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Selection({self})")
    }
}
