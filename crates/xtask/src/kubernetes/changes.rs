//! The changes of a release for users, by the generated tables.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use tooling::Error;

use crate::tree::Tree;
use crate::{messages, schema};

/// A release as the tables have it.
#[derive(Default)]
pub(super) struct Known {
    /// `apps/v1 deployments`, of a server with the default settings.
    resources: BTreeSet<String>,
    /// `resource.k8s.io/v1beta2 ResourceClaim`, whether or not it is on by default.
    kinds: BTreeSet<String>,
    /// The names of the fields in JSON, by message.
    fields: BTreeMap<String, BTreeSet<String>>,
}

impl Known {
    pub(super) fn read(tree: &Tree) -> Result<Self, Error> {
        Ok(Self::parse(&tree.read(schema::RESOURCES)?, &tree.read(messages::TABLE)?))
    }

    fn parse(resources: &str, messages: &str) -> Self {
        let mut known = Self::default();
        let mut group = "";
        for line in resources.lines().filter(|line| !line.starts_with('#') && !line.starts_with("   ")) {
            match line.strip_prefix("  ").and_then(|line| line.split(' ').next()) {
                Some(plural) => _ = known.resources.insert(format!("{group} {plural}")),
                None => group = line,
            }
        }
        // The comments beside the members name them, and the message above.
        let mut message = String::new();
        for line in messages.lines().map(str::trim) {
            if let Some(name) = line.strip_prefix("// k8s.io.") {
                message = name.to_owned();
                known.fields.entry(message.clone()).or_default();
            } else if let Some((_, field)) =
                line.strip_prefix("member(").and_then(|line| line.rsplit_once(", // "))
            {
                let name = field.split_once(' ').map_or(field, |(_, name)| name);
                known.fields.entry(message.clone()).or_default().insert(name.to_owned());
            }
        }
        let kinds = messages.split_once("static KIND_NAMES: &str = \"\\\n").map_or("", |(_, rest)| rest);
        let kinds = kinds.lines().map_while(|line| line.strip_suffix('\\'));
        known.kinds = kinds.filter(|kind| !kind.ends_with("List")).map(str::to_owned).collect();
        known
    }

    /// Additions and removals since another release, in lines.
    pub(super) fn since(&self, before: &Self) -> String {
        let mut text = String::new();
        let mut list = |title: &str, new: &BTreeSet<String>, old: &BTreeSet<String>| {
            let lines: Vec<_> = new.difference(old).collect();
            if !lines.is_empty() {
                _ = writeln!(text, "  {title}:");
                lines.iter().for_each(|line| _ = writeln!(text, "    {line}"));
            }
        };
        list("Resources that a server has by default", &self.resources, &before.resources);
        list("Resources that it no longer has", &before.resources, &self.resources);
        list("Kinds, by default or by a feature gate", &self.kinds, &before.kinds);
        list("Kinds and versions that are gone", &before.kinds, &self.kinds);
        let fields = |new: &Self, old: &Self| -> BTreeSet<String> {
            let both =
                new.fields.iter().filter_map(|(name, fields)| Some((name, fields, old.fields.get(name)?)));
            both.filter_map(|(name, new, old)| {
                let fields: Vec<_> = new.difference(old).map(String::as_str).collect();
                (!fields.is_empty()).then(|| format!("{name}: {}", fields.join(", ")))
            })
            .collect()
        };
        let none = BTreeSet::new();
        list("Fields", &fields(self, before), &none);
        list("Fields that are gone", &fields(before, self), &none);
        if text.is_empty() { "  nothing: the same resources, kinds and fields\n".to_owned() } else { text }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_new_and_what_is_gone_is_told() {
        let table = |kinds: &str, fields: &str| {
            format!(
                "    // k8s.io.api.core.v1.PodSpec\n{fields}];\n\npub(super) static KIND_NAMES: &str = \"\\\n{kinds}\";\n"
            )
        };
        let member =
            |name: &str| format!("    member(0, 1, Of::Bool, Many::One, Presence::Given), // 1 {name}\n");
        let old = Known::parse(
            "# head\nv1\n  pods pod Pod namespaced po all *\n    status Pod get\n",
            &table("v1 Pod\\\nv1 PodList\\\nx/v1alpha1 Y\\\n", &member("a")),
        );
        let new = Known::parse(
            "v1\n  pods pod Pod namespaced po all *\nx/v1\n  ys y Y cluster - - *\n",
            &table("v1 Pod\\\nx/v1 Y\\\nx/v1 YList\\\n", &(member("a") + &member("b"))),
        );
        let expected = "  Resources that a server has by default:\n    x/v1 ys\n  \
            Kinds, by default or by a feature gate:\n    x/v1 Y\n  \
            Kinds and versions that are gone:\n    x/v1alpha1 Y\n  \
            Fields:\n    api.core.v1.PodSpec: b\n";
        assert_eq!(new.since(&old), expected);
        assert!(old.since(&old).contains("nothing"));
    }

    #[test]
    fn the_tables_of_this_repository_are_understood() {
        let known = Known::read(&Tree::here()).unwrap();
        assert!(known.resources.contains("apps/v1 deployments"));
        assert!(known.kinds.contains("v1 Pod") && known.kinds.len() > 100);
        assert!(known.fields["api.core.v1.PodSpec"].contains("containers"));
    }
}
