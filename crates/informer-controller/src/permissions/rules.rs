//! Permissions as RBAC rules.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use serde_json::{Value, json};

use super::{Permission, Verb};

/// The RBAC rules that grant permissions: a ClusterRole for those that hold everywhere, and a Role for each namespace.
///
/// They have the controller's name. Bind them to its ServiceAccount.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rules {
    name: String,
    permissions: BTreeSet<Permission>,
}

/// A rule: resources of a group, and what may be done with all of them.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Rule {
    group: String,
    resources: Vec<String>,
    /// The only object, if not all.
    object: Option<String>,
    verbs: BTreeSet<Verb>,
}

impl Rules {
    /// A rule that holds everywhere holds in each namespace, and one for all objects for each name.
    pub(super) fn new(name: &str, permissions: BTreeSet<Permission>) -> Self {
        let permissions: BTreeSet<_> = permissions.into_iter().map(Permission::for_rules).collect();
        let is_covered = |one: &Permission| permissions.iter().any(|other| other != one && other.covers(one));
        let permissions = permissions.iter().filter(|one| !is_covered(one)).cloned().collect();
        Self { name: name.to_owned(), permissions }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.permissions.is_empty()
    }

    /// Each permission in words, such as `create secrets in namespace shop`, one after the other.
    pub fn summary(&self) -> String {
        self.permissions.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
    }

    /// The objects, for programs that create them.
    pub fn to_objects(&self) -> Vec<Value> {
        let objects = self.roles().into_iter().map(|(namespace, rules)| {
            let rules: Vec<_> = rules
                .iter()
                .map(|rule| {
                    let verbs: Vec<_> = rule.verbs.iter().map(|verb| verb.as_str()).collect();
                    let mut object =
                        json!({ "apiGroups": [rule.group], "resources": rule.resources, "verbs": verbs });
                    if let Some(name) = &rule.object {
                        object["resourceNames"] = json!([name]);
                    }
                    object
                })
                .collect();
            let mut metadata = json!({ "name": self.name });
            if let Some(namespace) = namespace {
                metadata["namespace"] = namespace.into();
            }
            json!({
                "apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind(namespace),
                "metadata": metadata, "rules": rules,
            })
        });
        objects.collect()
    }

    /// The objects as YAML, for `kubectl apply`.
    pub fn to_yaml(&self) -> String {
        let documents = self.roles().into_iter().map(|(namespace, rules)| {
            let mut yaml = format!(
                "apiVersion: rbac.authorization.k8s.io/v1\nkind: {}\nmetadata:\n  name: {}\n",
                kind(namespace),
                quoted(&self.name)
            );
            if let Some(namespace) = namespace {
                let _ = writeln!(yaml, "  namespace: {}", quoted(namespace));
            }
            yaml.push_str("rules:\n");
            for rule in rules {
                let resources: Vec<_> = rule.resources.iter().map(|resource| quoted(resource)).collect();
                let verbs: Vec<_> = rule.verbs.iter().map(|verb| verb.as_str()).collect();
                let _ = writeln!(yaml, "- apiGroups: [{}]", quoted(&rule.group));
                let _ = writeln!(yaml, "  resources: [{}]", resources.join(", "));
                if let Some(name) = &rule.object {
                    let _ = writeln!(yaml, "  resourceNames: [{}]", quoted(name));
                }
                let _ = writeln!(yaml, "  verbs: [{}]", verbs.join(", "));
            }
            yaml
        });
        documents.collect::<Vec<_>>().join("---\n")
    }

    fn roles(&self) -> BTreeMap<Option<&str>, Vec<Rule>> {
        let mut verbs: BTreeMap<_, BTreeSet<Verb>> = BTreeMap::new();
        for one in &self.permissions {
            let of = (one.namespace.as_deref(), one.group.as_str(), one.resource(), &one.selected.name);
            verbs.entry(of).or_default().insert(one.verb);
        }
        let mut roles: BTreeMap<_, Vec<Rule>> = BTreeMap::new();
        for ((namespace, group, resource, object), verbs) in verbs {
            let rules = roles.entry(namespace).or_default();
            let is_alike =
                |rule: &&mut Rule| rule.group == group && rule.verbs == verbs && rule.object == *object;
            match rules.iter_mut().find(is_alike) {
                Some(rule) => rule.resources.push(resource.into_owned()),
                None => rules.push(Rule {
                    group: group.to_owned(),
                    resources: vec![resource.into_owned()],
                    object: object.clone(),
                    verbs,
                }),
            }
        }
        roles
    }
}

fn kind(namespace: Option<&str>) -> &'static str {
    if namespace.is_some() { "Role" } else { "ClusterRole" }
}

/// JSON strings are YAML strings.
fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::apps::v1::Deployment;
    use k8s_openapi::api::core::v1::{ConfigMap, Secret};

    use super::super::Access;
    use super::*;

    fn rules(accesses: impl IntoIterator<Item = Access>) -> Rules {
        let all = accesses.into_iter();
        Rules::new("copier", all.flat_map(|access| access.permissions().collect::<Vec<_>>()).collect())
    }

    #[test]
    fn the_rules_are_a_cluster_role_and_a_role_per_namespace() {
        let rules = rules([
            Access::to::<ConfigMap>([Verb::Watch, Verb::List]),
            Access::to::<Secret>([Verb::List, Verb::Watch]),
            Access::to::<Deployment>([Verb::Patch]).subresource("status").within("shop"),
            Access::leases("shop"),
            Access::to::<Secret>([Verb::List, Verb::Create]).within("shop"),
        ]);
        assert_eq!(
            rules.to_yaml(),
            r#"apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: "copier"
rules:
- apiGroups: [""]
  resources: ["configmaps", "secrets"]
  verbs: [list, watch]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: "copier"
  namespace: "shop"
rules:
- apiGroups: [""]
  resources: ["secrets"]
  verbs: [create]
- apiGroups: ["apps"]
  resources: ["deployments/status"]
  verbs: [patch]
- apiGroups: ["coordination.k8s.io"]
  resources: ["leases"]
  verbs: [get, create, update]
"#
        );
        let objects = rules.to_objects();
        assert_eq!(objects.len(), 2);
        assert_eq!(
            objects[1]["rules"][0],
            json!({ "apiGroups": [""], "resources": ["secrets"], "verbs": ["create"] })
        );
    }

    #[test]
    fn a_permission_is_named_as_people_do() {
        let rules = rules([
            Access::to::<Deployment>([Verb::Get]),
            Access::to::<Secret>([Verb::Create]).within("shop"),
        ]);
        assert_eq!(rules.summary(), "get deployments.apps, create secrets in namespace shop");
    }
}
