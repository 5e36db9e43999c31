//! The objects that a request is about.

use kubediff_history::KindName;

use super::address;
use super::params::Params;

/// The objects that a request is about, as far as that decides about rights.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(super) struct Wanted {
    /// The one namespace.
    pub(super) namespace: Option<String>,
    /// The one object, by resource, namespace and name.
    pub(super) object: Option<(KindName, Option<String>, String)>,
    /// Nothing in any namespace.
    is_outside: bool,
    /// The one resource.
    pub(super) resource: Option<KindName>,
}

impl Wanted {
    /// The objects of an address.
    pub(super) fn of(segments: &[String], params: &Params) -> Self {
        let segments: Vec<&str> = segments.iter().map(String::as_str).collect();
        if let ["o", resource, namespace, name] | ["v1", "objects", resource, namespace, name, ..] =
            segments.as_slice()
        {
            let (plural, group) = resource.split_once('.').unwrap_or((resource, ""));
            let resource = KindName { group: Some(group.to_owned()), resource: plural.to_owned() };
            let namespace = Some((*namespace).to_owned()).filter(|name| name != address::NONE);
            let is_outside = namespace.is_none();
            return Self {
                namespace: namespace.clone(),
                object: Some((resource, namespace, (*name).to_owned())),
                is_outside,
                resource: None,
            };
        }
        let namespace = params.get("ns").filter(|name| *name != address::NONE).map(str::to_owned);
        Self { namespace, object: None, is_outside: segments == ["help"], resource: None }
    }

    /// The objects of a resource: all, those of a namespace, or one.
    pub(super) fn of_resource(resource: &KindName, namespace: Option<&str>, name: Option<&str>) -> Self {
        let namespace = namespace.map(str::to_owned);
        let object = name.map(|name| (resource.clone(), namespace.clone(), name.to_owned()));
        Self { namespace, object, is_outside: false, resource: Some(resource.clone()) }
    }

    /// Whether objects in namespaces are among them.
    pub(super) fn is_inside(&self) -> bool {
        !self.is_outside
    }

    /// Whether objects of this namespace are among them.
    pub(super) fn has(&self, namespace: &str) -> bool {
        !self.is_outside && self.namespace.as_ref().is_none_or(|wanted| wanted == namespace)
    }
}
