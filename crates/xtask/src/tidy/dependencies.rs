//! Which crate may depend on which: the invariants of the architecture, shown by what a `Cargo.toml` lacks.

use super::Finding;
use crate::metadata::{Metadata, Package};

/// `of` has no dependency, not even for tests or builds, whose name is in `on`; a `*` stands for any end.
struct Rule {
    of: &'static str,
    on: &'static [&'static str],
    because: &'static str,
}

const RULES: &[Rule] = &[
    Rule {
        of: "informer-core",
        on: &["tokio*", "futures*", "http*", "hyper*", "kube-*", "k8s-*", "informer", "control-plane"],
        because: "the core does no I/O, has no clock and knows no runtime",
    },
    Rule {
        of: "informer",
        on: &["kube", "kube-runtime", "kubediff", "testapi", "serve", "conformance"],
        because: "kube is transport and types for us, and the tools build on the library",
    },
    Rule {
        of: "kubediff",
        on: &["informer-core"],
        because: "the tool uses what every user has: the crate informer",
    },
    Rule {
        of: "serve",
        on: &["informer*"],
        because: "server and informer must be able to be wrong independently",
    },
    Rule {
        of: "testapi",
        on: &["informer*"],
        because: "server and informer must be able to be wrong independently",
    },
    Rule { of: "control-plane", on: &["informer*"], because: "it starts the real thing and judges nobody" },
    Rule { of: "*", on: &["xtask"], because: "automation points in, nothing points at it" },
];

const LICENSE: &str = "Apache-2.0";

pub(super) fn check(workspace: &Metadata) -> Vec<Finding> {
    workspace.packages.iter().flat_map(check_package).collect()
}

fn check_package(package: &Package) -> Vec<Finding> {
    let path = format!("crates/{}/Cargo.toml", package.name);
    let mut findings = Vec::new();
    for rule in RULES.iter().filter(|rule| matches(rule.of, &package.name)) {
        for dependency in &package.dependencies {
            if rule.on.iter().any(|pattern| matches(pattern, &dependency.name)) {
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
    use crate::metadata::Dependency;

    fn messages(name: &str, dependencies: &[&str]) -> Vec<String> {
        let package = Package {
            name: name.to_owned(),
            license: Some(LICENSE.to_owned()),
            dependencies: dependencies.iter().map(|&name| Dependency { name: name.to_owned() }).collect(),
            ..Package::default()
        };
        check_package(&package).into_iter().map(|finding| finding.message).collect()
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
        assert_eq!(messages("kubediff", &["informer", "informer-core"]).len(), 1);
        assert_eq!(messages("kubediff", &["xtask"]).len(), 1);
    }

    #[test]
    fn a_package_has_its_licence() {
        let findings = check_package(&Package { name: "informer".to_owned(), ..Package::default() });
        assert_eq!(findings.len(), 1);
    }
}
