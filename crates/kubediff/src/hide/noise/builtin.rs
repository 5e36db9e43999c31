//! The default noise rules.

use super::{Noise, Rule, What};
use crate::model::gvk::Scope;
use crate::model::path::PathPattern;

struct Builtin {
    name: &'static str,
    about: &'static str,
    on: bool,
    scopes: &'static [&'static str],
    what: Kind,
}

enum Kind {
    Paths(&'static [&'static str]),
    Recreated(&'static [&'static str]),
    Objects,
    Order,
}

const fn rule(
    name: &'static str,
    about: &'static str,
    scopes: &'static [&'static str],
    what: Kind,
) -> Builtin {
    Builtin { name, about, on: true, scopes, what }
}

const fn off(rule: Builtin) -> Builtin {
    Builtin { on: false, ..rule }
}

/// Rules that explain least come last: every write changes the resourceVersion.
const RULES: &[Builtin] = &[
    off(rule("status", "the whole status", &["*"], Kind::Paths(&["status"]))),
    rule(
        "events",
        "Event objects: they report changes, and are none",
        &["Event.core", "Event.events.k8s.io"],
        Kind::Objects,
    ),
    rule(
        "event-counts",
        "how often an Event was seen, and when last",
        &["Event.core", "Event.events.k8s.io"],
        Kind::Paths(&["count", "lastTimestamp", "series", "deprecatedCount", "deprecatedLastTimestamp"]),
    ),
    rule(
        "lease-renewal",
        "a Lease that its holder renewed",
        &["Lease.coordination.k8s.io"],
        Kind::Paths(&["spec.renewTime", "spec.acquireTime"]),
    ),
    rule(
        "leader-election",
        "leader election by annotation",
        &["Endpoints.core", "ConfigMap.core", "Lease.coordination.k8s.io"],
        Kind::Paths(&[r#"metadata.annotations["control-plane.alpha.kubernetes.io/leader"]"#]),
    ),
    rule(
        "node-heartbeat",
        "conditions that a node's kubelet confirmed",
        &["Node.core"],
        Kind::Paths(&["status.conditions[*].lastHeartbeatTime"]),
    ),
    rule("node-images", "the images that a node has pulled", &["Node.core"], Kind::Paths(&["status.images"])),
    rule("endpoints", "Endpoints objects: EndpointSlices say the same", &["Endpoints.core"], Kind::Objects),
    rule(
        "endpoints-trigger",
        "when something last made endpoints change",
        &["Endpoints.core", "EndpointSlice.discovery.k8s.io"],
        Kind::Paths(&[r#"metadata.annotations["endpoints.kubernetes.io/last-change-trigger-time"]"#]),
    ),
    rule(
        "last-applied",
        "the annotation of kubectl apply; it repeats the change itself",
        &["*"],
        Kind::Paths(&[r#"metadata.annotations["kubectl.kubernetes.io/last-applied-configuration"]"#]),
    ),
    rule(
        "condition-times",
        "when conditions were last probed, updated or in transition",
        &["*"],
        Kind::Paths(&[
            "status.conditions[*].lastProbeTime",
            "status.conditions[*].lastUpdateTime",
            "status.conditions[*].lastTransitionTime",
        ]),
    ),
    rule("order", "elements that changed places in a list where places mean nothing", &["*"], Kind::Order),
    rule(
        "identity",
        "uid and creation time of an object that was deleted and created again",
        &["*"],
        Kind::Recreated(&["metadata.uid", "metadata.creationTimestamp"]),
    ),
    rule(
        "generation",
        "metadata.generation, and which one a controller has seen",
        &["*"],
        Kind::Paths(&[
            "metadata.generation",
            "status.observedGeneration",
            "status.conditions[*].observedGeneration",
        ]),
    ),
    rule(
        "managed-fields",
        "which manager owns which field",
        &["*"],
        Kind::Paths(&["metadata.managedFields"]),
    ),
    rule(
        "resource-version",
        "metadata.resourceVersion, which every write changes",
        &["*"],
        Kind::Paths(&["metadata.resourceVersion"]),
    ),
];

impl Default for Noise {
    /// The default rules, all switched on but `status`.
    fn default() -> Self {
        Self { rules: RULES.iter().map(Builtin::rule).collect(), keeps_events: false }
    }
}

impl Builtin {
    fn rule(&self) -> Rule {
        let Ok(scopes) = self.scopes.iter().map(|text| text.parse::<Scope>()).collect();
        Rule {
            name: self.name.into(),
            about: self.about.into(),
            on: self.on,
            scopes,
            namespaces: Vec::new(),
            what: match self.what {
                Kind::Paths(paths) => What::Paths(patterns(paths)),
                Kind::Recreated(paths) => What::Recreated(patterns(paths)),
                Kind::Objects => What::Objects,
                Kind::Order => What::Order,
            },
        }
    }
}

fn patterns(paths: &[&str]) -> Vec<PathPattern> {
    paths.iter().filter_map(|path| path.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::{Kind, RULES};
    use crate::model::path::PathPattern;

    #[test]
    fn every_path_can_be_read() {
        for rule in RULES {
            if let Kind::Paths(paths) | Kind::Recreated(paths) = rule.what {
                for path in paths {
                    assert!(path.parse::<PathPattern>().is_ok(), "{}: {path}", rule.name);
                }
            }
        }
    }
}
