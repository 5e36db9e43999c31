//! Which crate may depend on which: the invariants of the architecture, checked in each `Cargo.toml`.

use super::Finding;
use crate::metadata::{Dependency, Metadata, Package};

/// `of` has no dependency whose name is in `on`, where a final `*` matches any rest.
struct Rule {
    of: &'static str,
    on: &'static [&'static str],
    unless: Unless,
    because: &'static str,
}

/// The exceptions of a rule.
#[derive(PartialEq, Eq)]
enum Unless {
    /// No exceptions, not even for tests and build scripts.
    Never,
    /// Tests may depend on it.
    Tests,
    /// Tests may depend on it, and so may a feature.
    TestsAndFeatures,
}

impl Rule {
    fn forbids(&self, dependency: &Dependency) -> bool {
        let tests = dependency.kind.as_deref() == Some("dev");
        let excused = match self.unless {
            Unless::Never => false,
            Unless::Tests => tests,
            Unless::TestsAndFeatures => tests || dependency.optional,
        };
        !excused && self.on.iter().any(|pattern| matches(pattern, &dependency.name))
    }
}

const RULES: &[Rule] = &[
    Rule {
        of: "informer-core",
        on: &[
            "tokio*",
            "futures*",
            "http*",
            "hyper*",
            "kube-c*",
            "kube-d*",
            "kube-r*",
            "k8s-*",
            "informer",
            "control-plane",
        ],
        unless: Unless::Never,
        because: "the core does no I/O, has no clock and knows no runtime",
    },
    Rule {
        of: "informer",
        on: &[
            "kube",
            "kube-runtime",
            "kubectl-changes",
            "testapi-serve",
            "conformance",
            "informer-controller*",
            "informer-shards",
        ],
        unless: Unless::Never,
        because: "kube is transport and types for us, and controllers and tools build on the library",
    },
    Rule {
        of: "informer-controller",
        on: &["kube", "kube-runtime", "testapi-serve"],
        unless: Unless::Never,
        because: "kube is transport and types for us",
    },
    Rule {
        of: "informer-controller",
        on: &["informer-shards"],
        unless: Unless::Never,
        because: "an ordinary controller has nothing of shards",
    },
    Rule {
        of: "informer-shards",
        on: &["kube", "kube-*", "informer-core", "testapi-serve"],
        unless: Unless::Never,
        because: "shards use what every controller has",
    },
    Rule {
        of: "informer-shards",
        on: &["testapi"],
        unless: Unless::Tests,
        because: "only its tests and examples need a server",
    },
    Rule {
        of: "informer-controller",
        on: &["testapi", "informer-controller-test"],
        unless: Unless::Tests,
        because: "only its tests and examples need a server",
    },
    Rule {
        of: "informer",
        on: &["testapi"],
        unless: Unless::Tests,
        because: "only its tests and examples need a server",
    },
    Rule {
        of: "kubectl-changes",
        on: &["informer-core"],
        unless: Unless::Never,
        because: "the tool uses what every user has: the crate informer",
    },
    Rule {
        of: "kubectl-changes",
        on: &["testapi"],
        unless: Unless::TestsAndFeatures,
        because: "only the demo needs a server of its own",
    },
    Rule {
        of: "kube-table",
        on: &["testapi*", "informer*", "tokio*", "http*", "hyper*", "kube-*"],
        unless: Unless::Never,
        because: "tables are data in, cells out",
    },
    Rule {
        of: "kube-selector",
        on: &["testapi*", "informer*", "serde*", "tokio*", "http*", "hyper*", "kube-*"],
        unless: Unless::Never,
        because: "client and server have one grammar, and nothing else, in common",
    },
    Rule {
        of: "kubectl-changes-history",
        on: &["informer*", "kubectl-changes", "kube-*"],
        unless: Unless::Never,
        because: "the history knows no server and no diff",
    },
    Rule {
        of: "kubectl-changes-history",
        on: &["tokio*"],
        unless: Unless::TestsAndFeatures,
        because: "only a connection to PostgreSQL has a runtime",
    },
    Rule {
        of: "testapi-serve",
        on: &["informer*"],
        unless: Unless::Never,
        because: "server and informer must be able to be wrong independently",
    },
    Rule {
        of: "testapi",
        on: &["informer*"],
        unless: Unless::Never,
        because: "server and informer must be able to be wrong independently",
    },
    Rule {
        of: "testapi",
        on: &["clap", "kube-client"],
        unless: Unless::TestsAndFeatures,
        because: "a library of tests is quick to build: its program and kube are features",
    },
    Rule {
        of: "control-plane",
        on: &["informer*"],
        unless: Unless::Never,
        because: "it starts real servers and knows no informer",
    },
    Rule {
        of: "*",
        on: &["xtask"],
        unless: Unless::Never,
        because: "automation points in, nothing points at it",
    },
];

const LICENSE: &str = "Apache-2.0";

pub(super) fn check(workspace: &Metadata) -> Vec<Finding> {
    workspace.packages.iter().flat_map(check_package).collect()
}

fn check_package(package: &Package) -> Vec<Finding> {
    let path = format!("crates/{}/Cargo.toml", package.folder());
    let mut findings = Vec::new();
    for rule in RULES.iter().filter(|rule| matches(rule.of, &package.name)) {
        for dependency in &package.dependencies {
            if rule.forbids(dependency) {
                let message = format!("depends on {}: {}", dependency.name, rule.because);
                findings.push(Finding::refused(&path, 0, message));
            }
        }
    }
    if package.license.as_deref() != Some(LICENSE) {
        findings.push(Finding::refused(&path, 0, format!("the licence is not {LICENSE}")));
    }
    findings
}

fn matches(pattern: &str, name: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(start) => name.starts_with(start),
        None => name == pattern,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(name: &str, dependencies: &[&str]) -> Vec<String> {
        let normal = |&name: &&str| Dependency { name: name.to_owned(), ..Dependency::default() };
        messages_for(name, dependencies.iter().map(normal).collect())
    }

    fn messages_for(name: &str, dependencies: Vec<Dependency>) -> Vec<String> {
        let package = Package {
            name: name.to_owned(),
            license: Some(LICENSE.to_owned()),
            dependencies,
            ..Package::default()
        };
        check_package(&package).into_iter().map(|finding| finding.message).collect()
    }

    #[test]
    fn tests_and_features_may_have_more() {
        let dependency = |name: &str, kind: Option<&str>, optional| Dependency {
            name: name.to_owned(),
            kind: kind.map(str::to_owned),
            optional,
        };
        for (of, on, for_tests, as_feature) in [
            ("informer", "testapi", 0, 1),
            ("informer", "kube-runtime", 1, 1),
            ("kubectl-changes", "testapi", 0, 0),
            ("testapi", "clap", 0, 0),
            ("testapi", "informer", 1, 1),
        ] {
            assert_eq!(messages_for(of, vec![dependency(on, None, false)]).len(), 1, "{of} on {on}");
            assert_eq!(
                messages_for(of, vec![dependency(on, Some("dev"), false)]).len(),
                for_tests,
                "{of} on {on}"
            );
            assert_eq!(messages_for(of, vec![dependency(on, None, true)]).len(), as_feature, "{of} on {on}");
        }
    }

    #[test]
    fn the_core_stays_without_runtime_and_network() {
        assert_eq!(messages("informer-core", &["memchr", "serde"]), [""; 0]);
        for name in ["tokio", "tokio-util", "http-body", "hyper", "kube-client", "futures-core", "informer"] {
            assert_eq!(messages("informer-core", &[name]).len(), 1, "{name}");
        }
    }

    #[test]
    fn dependencies_point_one_way() {
        assert_eq!(messages("informer", &["informer-core", "kube-client", "kube-core"]), [""; 0]);
        assert_eq!(messages("conformance", &["informer", "informer-core", "control-plane"]), [""; 0]);
        assert_eq!(messages("informer", &["kube-runtime"]).len(), 1);
        assert_eq!(messages("kubectl-changes", &["informer", "informer-core"]).len(), 1);
        assert_eq!(messages("kubectl-changes", &["xtask"]).len(), 1);
    }

    #[test]
    fn a_package_has_its_licence() {
        let findings = check_package(&Package { name: "informer".to_owned(), ..Package::default() });
        assert_eq!(findings.len(), 1);
    }
}
