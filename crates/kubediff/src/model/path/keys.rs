//! The identity of list elements.
//!
//! The server's schemas say it (`x-kubernetes-list-map-keys`, `x-kubernetes-list-type`). Where they do not, the names of
//! fields tell of lists that Kubernetes has itself, also whether their order has a meaning. In other lists the order
//! always has one: their elements are only found again by the same keys, where each has one of its own.

use std::collections::HashSet;

use serde_json::Value;

use crate::model::glob::glob;
use crate::model::lists::Lists;
use crate::model::schema::{ListKey, ListType};

/// How the elements of a list are identified.
pub(crate) enum Identity {
    /// By a key, unique in each of the two lists.
    Keyed(Keyed),
    /// By their content alone, in any order.
    Set,
    /// By their content and order.
    Sequence,
}

pub(crate) struct Keyed {
    pub(crate) old: Vec<String>,
    pub(crate) new: Vec<String>,
    pub(crate) order_matters: bool,
}

/// Fields that make up a key: where they are in the element, and what is meant when they are absent.
type Key = &'static [(&'static str, Option<&'static str>)];

/// Lists of Kubernetes whose order is meaningless, and their keys. The first that fits all elements is taken.
const UNORDERED: &[(&str, &[Key])] = &[
    ("addresses", &[&[("/ip", None)], &[("/type", None), ("/address", None)]]),
    ("conditions", &[&[("/type", None)]]),
    ("containerStatuses", &[&[("/name", None)]]),
    ("endpoints", &[&[("/addresses/0", None)]]),
    ("ephemeralContainerStatuses", &[&[("/name", None)]]),
    ("hostAliases", &[&[("/ip", None)]]),
    ("hostIPs", &[&[("/ip", None)]]),
    ("imagePullSecrets", &[&[("/name", None)]]),
    ("ingress", &[&[("/ip", None)], &[("/hostname", None)]]),
    ("initContainerStatuses", &[&[("/name", None)]]),
    ("managedFields", &[&[("/manager", None), ("/operation", None), ("/subresource", Some(""))]]),
    ("notReadyAddresses", &[&[("/ip", None)]]),
    ("ownerReferences", &[&[("/uid", None)]]),
    ("podIPs", &[&[("/ip", None)]]),
    (
        "ports",
        &[
            &[("/containerPort", None), ("/protocol", Some("TCP"))],
            &[("/port", None), ("/protocol", Some("TCP"))],
        ],
    ),
    ("secrets", &[&[("/name", None)]]),
    ("subjects", &[&[("/kind", None), ("/namespace", Some("")), ("/name", None)]]),
    ("taints", &[&[("/key", None), ("/effect", None)]]),
    ("topologySpreadConstraints", &[&[("/topologyKey", None), ("/whenUnsatisfiable", None)]]),
    ("volumeDevices", &[&[("/devicePath", None)]]),
    ("volumeMounts", &[&[("/mountPath", None)]]),
    ("volumes", &[&[("/name", None)]]),
    ("volumesAttached", &[&[("/name", None)]]),
];

/// Default keys for lists without a schema, tried in order.
const COMMON: &[Key] = &[
    &[("/kind", None), ("/metadata/namespace", Some("")), ("/metadata/name", None)],
    &[("/name", None)],
    &[("/type", None)],
    &[("/key", None)],
    &[("/id", None)],
];

/// Lists of Kubernetes whose order is meaningless, and whose elements have no key.
const SETS: &[&str] = &[
    "accessModes",
    "apiGroups",
    "categories",
    "finalizers",
    "images",
    "nonResourceURLs",
    "podCIDRs",
    "policyTypes",
    "resourceNames",
    "resources",
    "shortNames",
    "tolerations",
    "verbs",
    "volumesInUse",
];

/// How the elements of the list in `field` are identified, of which `lists` knows more.
pub(crate) fn identify(field: Option<&str>, lists: Lists<'_>, old: &[Value], new: &[Value]) -> Identity {
    let field = field.unwrap_or("");
    let is_known = lists.are_known_by_name();
    let special = UNORDERED.iter().find(|(name, _)| *name == field);
    match lists.declared() {
        Some(ListType::Set) => return Identity::Set,
        Some(ListType::Map(keys)) => {
            let unique = |list| unique(list, |element| text_of(keys, element));
            if let (Some(old), Some(new)) = (unique(old), unique(new)) {
                // The schema does not say whether the order of a map has a meaning.
                let order_matters = !is_known || special.is_none();
                return Identity::Keyed(Keyed { old, new, order_matters });
            }
        }
        None => {}
    }
    let is_set = is_known && SETS.contains(&field);
    let unordered = special.map_or(&[][..], |(_, keys)| keys).iter().map(|key| (key, !is_known));
    let common = COMMON.iter().map(|key| (key, !is_set));
    for (key, order_matters) in unordered.chain(common) {
        let unique = |list| unique(list, |element| text(key, element));
        if let (Some(old), Some(new)) = (unique(old), unique(new)) {
            return Identity::Keyed(Keyed { old, new, order_matters });
        }
    }
    if is_set { Identity::Set } else { Identity::Sequence }
}

/// Every text by which an element of the list in `field` may be called in a path.
pub(crate) fn names(field: Option<&str>, element: &Value) -> Vec<String> {
    let special = UNORDERED.iter().filter(|(name, _)| Some(*name) == field).flat_map(|(_, keys)| keys.iter());
    special.chain(COMMON).filter_map(|key| text(key, element)).collect()
}

/// Whether the key may be that of the element, whichever fields the schema takes for it: each part is the value of one.
pub(crate) fn may_mean(key: &str, element: &Value) -> bool {
    let Some(fields) = element.as_object() else { return false };
    let texts: Vec<String> = fields.values().filter_map(part).collect();
    let has = |part: &str| texts.iter().any(|text| glob(part, text));
    has(key) || [',', '/'].iter().any(|sign| key.contains(*sign) && key.split(*sign).all(has))
}

/// The key of each element, when each has one and no two the same.
fn unique(list: &[Value], key: impl Fn(&Value) -> Option<String>) -> Option<Vec<String>> {
    let keys: Vec<String> = list.iter().map(key).collect::<Option<_>>()?;
    let distinct: HashSet<&str> = keys.iter().map(String::as_str).collect();
    (distinct.len() == keys.len()).then_some(keys)
}

fn text(key: Key, element: &Value) -> Option<String> {
    let parts = key.iter().map(|(pointer, absent)| match element.pointer(pointer) {
        None | Some(Value::Null) if element.is_object() => absent.map(str::to_owned),
        value => part(value?),
    });
    joined(parts.collect::<Option<_>>()?)
}

/// The same by the fields that the schema names. An absent one is a key, too, and so are empty ones.
fn text_of(keys: &[ListKey], element: &Value) -> Option<String> {
    let element = element.as_object()?;
    let parts = keys.iter().map(|ListKey { name, default }| {
        let value = element.get(name).filter(|value| !value.is_null()).or(default.as_ref());
        value.map_or_else(|| Some(String::new()), part)
    });
    Some(joined(parts.collect::<Option<_>>()?).unwrap_or_default())
}

fn part(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(_) | Value::Bool(_) => Some(value.to_string()),
        _ => None,
    }
}

/// `80/TCP`; `example.com,/cart` where a part has a slash itself.
fn joined(mut parts: Vec<String>) -> Option<String> {
    parts.retain(|part| !part.is_empty());
    let separator = if parts.iter().any(|part| part.contains('/')) { "," } else { "/" };
    (!parts.is_empty()).then(|| parts.join(separator))
}
