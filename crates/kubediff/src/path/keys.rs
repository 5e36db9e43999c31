//! The identity of list elements.
//!
//! The API's schemas say it (`x-kubernetes-list-map-keys`, `x-kubernetes-list-type`); this is what they say of the
//! lists that everybody has, by the name of the field. Custom resources use the same names for the same things, and
//! where one does not, its elements lack the key or share it, and the list is compared by content.

use std::collections::HashSet;

use serde_json::Value;

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

/// Lists whose order is meaningless, and their keys. The first that fits all elements is taken.
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

/// What lists have in common that nobody described: the order may matter.
const COMMON: &[Key] = &[&[("/name", None)], &[("/type", None)], &[("/key", None)], &[("/id", None)]];

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

/// How the elements of the list in `field` are identified.
pub(crate) fn identify(field: Option<&str>, old: &[Value], new: &[Value]) -> Identity {
    let field = field.unwrap_or("");
    let special = UNORDERED.iter().find(|(name, _)| *name == field);
    let unordered = special.map_or(&[][..], |(_, keys)| keys).iter().map(|key| (key, false));
    let common = COMMON.iter().map(|key| (key, true));
    for (key, order_matters) in unordered.chain(common) {
        if let (Some(old), Some(new)) = (unique(key, old), unique(key, new)) {
            return Identity::Keyed(Keyed { old, new, order_matters });
        }
    }
    if SETS.contains(&field) { Identity::Set } else { Identity::Sequence }
}

/// Every text by which an element of the list in `field` may be called in a path.
pub(crate) fn names(field: Option<&str>, element: &Value) -> Vec<String> {
    let special = UNORDERED.iter().filter(|(name, _)| Some(*name) == field).flat_map(|(_, keys)| keys.iter());
    special.chain(COMMON).filter_map(|key| text(key, element)).collect()
}

/// The key of each element, when each has one and no two the same.
fn unique(key: Key, list: &[Value]) -> Option<Vec<String>> {
    let keys: Vec<String> = list.iter().map(|element| text(key, element)).collect::<Option<_>>()?;
    let distinct: HashSet<&str> = keys.iter().map(String::as_str).collect();
    (distinct.len() == keys.len()).then_some(keys)
}

fn text(key: Key, element: &Value) -> Option<String> {
    let mut text = String::new();
    for (pointer, absent) in key {
        let part = match element.pointer(pointer) {
            Some(Value::String(part)) => part.clone(),
            Some(Value::Number(part)) => part.to_string(),
            None | Some(Value::Null) if element.is_object() => absent.map(str::to_owned)?,
            _ => return None,
        };
        if !text.is_empty() && !part.is_empty() {
            text.push('/');
        }
        text.push_str(&part);
    }
    (!text.is_empty()).then_some(text)
}
