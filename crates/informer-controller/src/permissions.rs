//! The permissions of a controller: a check when it starts, and the RBAC rules that it needs.
//!
//! ```no_run
//! use informer::Informer;
//! use informer_controller::Controller;
//! use informer_controller::permissions::{Access, Verb};
//! use k8s_openapi::api::core::v1::{ConfigMap, Secret};
//!
//! # fn example(maps: Informer<ConfigMap>) {
//! let controller = Controller::new("example", &maps)
//!     .needs(Access::to::<Secret>([Verb::Create, Verb::Patch]).within("shop"))
//!     .needs(Access::to::<ConfigMap>([Verb::Patch]).subresource("status"))
//!     .needs(Access::events());
//! println!("{}", controller.rules().to_yaml());
//! # }
//! ```
//!
//! At its start a controller asks the server for each of these permissions, and for those of its informers (`list` and
//! `watch`), by a
//! [SelfSubjectAccessReview](https://kubernetes.io/docs/reference/access-authn-authz/authorization/#checking-api-access). If
//! some are missing, [`Controller::run`](crate::Controller::run) ends with an error that names them all, with the rules that
//! grant them. If the server does not answer reviews, the log has a warning, and the controller goes on.
//!
//! The client of the writes asks for the permissions of [`needs`](crate::Controller::needs). Each informer asks for itself: with its own
//! credentials, at its own server, with its selectors, and with the name of its object if it selects one by `metadata.name`, so that
//! rules with `resourceNames` suffice. [`without_permission_check`](crate::Controller::without_permission_check) asks for nothing.
//! Permissions that change later are not noticed.

mod review;
mod rules;

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;

use informer::kube::Resource;
use informer::{Informer, Object, ResourceType, Selection};

pub(crate) use review::review;
pub use rules::Rules;

/// A verb, as authorization names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Verb {
    /// Reads one object.
    Get,
    /// Reads a collection.
    List,
    /// Watches a collection.
    Watch,
    /// Creates an object. Server-side apply of a new object needs it besides `Patch`.
    Create,
    /// Replaces an object.
    Update,
    /// Patches an object, server-side apply included.
    Patch,
    /// Deletes an object.
    Delete,
    /// Deletes a collection.
    DeleteCollection,
}

impl Verb {
    /// The verb in rules: `deletecollection`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::List => "list",
            Self::Watch => "watch",
            Self::Create => "create",
            Self::Update => "update",
            Self::Patch => "patch",
            Self::Delete => "delete",
            Self::DeleteCollection => "deletecollection",
        }
    }
}

/// Access to a resource: everywhere, or within namespaces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Access {
    group: String,
    plural: String,
    subresource: Option<String>,
    /// Empty for everywhere.
    namespaces: Vec<String>,
    selected: Selected,
    verbs: Vec<Verb>,
}

/// The objects that a permission is for, as an informer selects them.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Selected {
    /// The only one, if it is selected by `metadata.name`: a rule may name it.
    name: Option<String>,
    labels: String,
    fields: String,
}

impl Selected {
    fn of(selection: &Selection) -> Self {
        let (labels, fields) = (selection.labels().to_string(), selection.fields().to_string());
        let name = fields.split(',').find_map(|term| term.strip_prefix("metadata.name="));
        Self { name: name.map(str::to_owned), labels, fields }
    }
}

impl Access {
    /// Access to the resource of a type, everywhere.
    pub fn to<K: Resource<DynamicType = (), Scope: 'static>>(verbs: impl IntoIterator<Item = Verb>) -> Self {
        Self::to_resource(&ResourceType::of::<K>(), verbs)
    }

    /// As [`Access::to`], for a resource that is known at run time only.
    pub fn to_resource(resource: &ResourceType, verbs: impl IntoIterator<Item = Verb>) -> Self {
        Self::to_plural(&resource.group, &resource.plural, verbs)
    }

    /// The permission that [`Context::event`](crate::Context::event) needs, everywhere: events of objects of the cluster
    /// are in the namespace `default`.
    pub fn events() -> Self {
        Self::to_plural("events.k8s.io", "events", [Verb::Create, Verb::Patch])
    }

    /// The permission that an [`Election`](crate::election::Election) needs in the namespace of its lease.
    pub fn leases(namespace: &str) -> Self {
        let verbs = [Verb::Get, Verb::Create, Verb::Update];
        Self::to_plural("coordination.k8s.io", "leases", verbs).within(namespace)
    }

    fn to_plural(group: &str, plural: &str, verbs: impl IntoIterator<Item = Verb>) -> Self {
        Self {
            group: group.to_owned(),
            plural: plural.to_owned(),
            subresource: None,
            namespaces: Vec::new(),
            selected: Selected::default(),
            verbs: verbs.into_iter().collect(),
        }
    }

    /// The permission that an informer needs: none if it selects no namespace now. Namespaces that are added later are not included.
    fn of_informer(informer: &Informer<Object>) -> Option<Self> {
        let selection = informer.selection();
        let access = Self::to_resource(&informer.resource(), [Verb::List, Verb::Watch]);
        let access = Self { selected: Selected::of(selection), ..access };
        match selection.namespaces() {
            None => Some(access),
            Some([]) => None,
            Some(namespaces) => Some(Self { namespaces: namespaces.to_vec(), ..access }),
        }
    }

    /// Access to a subresource, such as `status`.
    #[must_use]
    pub fn subresource(mut self, subresource: &str) -> Self {
        self.subresource = Some(subresource.to_owned());
        self
    }

    /// Access within a namespace only, and within those of earlier calls of this method.
    #[must_use]
    pub fn within(mut self, namespace: &str) -> Self {
        self.namespaces.push(namespace.to_owned());
        self
    }

    /// Each permission alone.
    fn permissions(&self) -> impl Iterator<Item = Permission> {
        let everywhere = self.namespaces.is_empty().then_some(None);
        let namespaces = everywhere.into_iter().chain(self.namespaces.iter().cloned().map(Some));
        namespaces.flat_map(move |namespace| {
            self.verbs.iter().map(move |verb| Permission {
                namespace: namespace.clone(),
                group: self.group.clone(),
                plural: self.plural.clone(),
                subresource: self.subresource.clone(),
                selected: self.selected.clone(),
                verb: *verb,
            })
        })
    }
}

/// One permission.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Permission {
    /// `None` for everywhere.
    namespace: Option<String>,
    group: String,
    plural: String,
    subresource: Option<String>,
    selected: Selected,
    verb: Verb,
}

impl Permission {
    /// The resource in rules: `deployments/status`.
    fn resource(&self) -> Cow<'_, str> {
        match &self.subresource {
            Some(subresource) => Cow::Owned(format!("{}/{subresource}", self.plural)),
            None => Cow::Borrowed(&self.plural),
        }
    }

    /// Without the selectors, of which rules know nothing.
    fn for_rules(mut self) -> Self {
        self.selected = Selected { name: self.selected.name, ..Selected::default() };
        self
    }

    /// Whether a rule for this permission grants the other one too.
    fn covers(&self, other: &Self) -> bool {
        let is_as_wide = |ours: &Option<String>, other: &Option<String>| ours.is_none() || ours == other;
        (&self.group, &self.plural, &self.subresource, self.verb)
            == (&other.group, &other.plural, &other.subresource, other.verb)
            && is_as_wide(&self.namespace, &other.namespace)
            && is_as_wide(&self.selected.name, &other.selected.name)
    }
}

/// As people name it: `create secrets in namespace shop`.
impl fmt::Display for Permission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { namespace, group, verb, selected, .. } = self;
        write!(f, "{} {}", verb.as_str(), self.resource())?;
        if !group.is_empty() {
            write!(f, ".{group}")?;
        }
        if let Some(name) = &selected.name {
            write!(f, " named {name}")?;
        }
        match namespace {
            Some(namespace) => write!(f, " in namespace {namespace}"),
            None => Ok(()),
        }
    }
}

/// The permissions that a controller needs.
#[derive(Debug, Default)]
pub(crate) struct Needs(Vec<Access>);

impl Needs {
    pub(crate) fn add(&mut self, access: Access) {
        self.0.push(access);
    }

    /// With what its informers need.
    pub(crate) fn rules(&self, name: &str, informers: &[Informer<Object>]) -> Rules {
        Rules::new(name, self.permissions().chain(informers.iter().flat_map(of_informer)).collect())
    }

    /// Without those of the informers.
    fn permissions(&self) -> impl Iterator<Item = Permission> {
        self.0.iter().flat_map(Access::permissions)
    }
}

/// The permissions of an informer.
fn of_informer(informer: &Informer<Object>) -> BTreeSet<Permission> {
    Access::of_informer(informer).iter().flat_map(Access::permissions).collect()
}
