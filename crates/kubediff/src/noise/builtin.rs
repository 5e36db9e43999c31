//! The default noise rules.

use super::{Noise, Rule, What};
use crate::gvk::Scope;
use crate::path::PathPattern;

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

/// Those that say least about why a change was no news come last: every write has a resourceVersion.
const RULES: &[Builtin] = &[
    Builtin {
        name: "status",
        about: "the whole status",
        on: false,
        scopes: &["*"],
        what: Kind::Paths(&["status"]),
    },
    Builtin {
        name: "events",
        about: "Event objects: they report changes, and are none",
        on: true,
        scopes: &["Event.core", "Event.events.k8s.io"],
        what: Kind::Objects,
    },
    Builtin {
        name: "event-counts",
        about: "how often an Event was seen, and when last",
        on: true,
        scopes: &["Event.core", "Event.events.k8s.io"],
        what: Kind::Paths(&[
            "count",
            "lastTimestamp",
            "series",
            "deprecatedCount",
            "deprecatedLastTimestamp",
        ]),
    },
    Builtin {
        name: "lease-renewal",
        about: "a Lease that its holder renewed",
        on: true,
        scopes: &["Lease.coordination.k8s.io"],
        what: Kind::Paths(&["spec.renewTime", "spec.acquireTime"]),
    },
    Builtin {
        name: "leader-election",
        about: "leader election by annotation",
        on: true,
        scopes: &["Endpoints.core", "ConfigMap.core", "Lease.coordination.k8s.io"],
        what: Kind::Paths(&[r#"metadata.annotations["control-plane.alpha.kubernetes.io/leader"]"#]),
    },
    Builtin {
        name: "node-heartbeat",
        about: "conditions that a node's kubelet confirmed",
        on: true,
        scopes: &["Node.core"],
        what: Kind::Paths(&["status.conditions[*].lastHeartbeatTime"]),
    },
    Builtin {
        name: "node-images",
        about: "the images that a node has pulled",
        on: true,
        scopes: &["Node.core"],
        what: Kind::Paths(&["status.images"]),
    },
    Builtin {
        name: "endpoints-trigger",
        about: "when something last made endpoints change",
        on: true,
        scopes: &["Endpoints.core", "EndpointSlice.discovery.k8s.io"],
        what: Kind::Paths(&[r#"metadata.annotations["endpoints.kubernetes.io/last-change-trigger-time"]"#]),
    },
    Builtin {
        name: "last-applied",
        about: "the annotation of kubectl apply; it repeats the change itself",
        on: true,
        scopes: &["*"],
        what: Kind::Paths(&[r#"metadata.annotations["kubectl.kubernetes.io/last-applied-configuration"]"#]),
    },
    Builtin {
        name: "condition-times",
        about: "when conditions were last probed, updated or in transition",
        on: true,
        scopes: &["*"],
        what: Kind::Paths(&[
            "status.conditions[*].lastProbeTime",
            "status.conditions[*].lastUpdateTime",
            "status.conditions[*].lastTransitionTime",
        ]),
    },
    Builtin {
        name: "order",
        about: "elements that changed places in a list where places mean nothing",
        on: true,
        scopes: &["*"],
        what: Kind::Order,
    },
    Builtin {
        name: "identity",
        about: "uid and creation time of an object that was deleted and created again",
        on: true,
        scopes: &["*"],
        what: Kind::Recreated(&["metadata.uid", "metadata.creationTimestamp"]),
    },
    Builtin {
        name: "generation",
        about: "metadata.generation, and which one a controller has seen",
        on: true,
        scopes: &["*"],
        what: Kind::Paths(&[
            "metadata.generation",
            "status.observedGeneration",
            "status.conditions[*].observedGeneration",
        ]),
    },
    Builtin {
        name: "managed-fields",
        about: "which manager owns which field",
        on: true,
        scopes: &["*"],
        what: Kind::Paths(&["metadata.managedFields"]),
    },
    Builtin {
        name: "resource-version",
        about: "metadata.resourceVersion, which every write changes",
        on: true,
        scopes: &["*"],
        what: Kind::Paths(&["metadata.resourceVersion"]),
    },
];

impl Default for Noise {
    /// The default rules, all switched on but `status`.
    fn default() -> Self {
        Self { rules: RULES.iter().map(Builtin::rule).collect() }
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
    use crate::path::PathPattern;

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
