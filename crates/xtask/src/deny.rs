//! `cargo xtask deny`: are our dependencies' licences, sources and names such that we want them?
//!
//! `deny.toml` is the policy, and cargo-deny, where it is installed, its best reader: it also knows advisories. The test
//! command must not depend on an installed tool nor on a network, so it reads the same file itself: licences, banned
//! crates, sources.

mod licence;
mod policy;

use crate::error::Error;
use crate::metadata::{Metadata, Package};
use crate::process;
use crate::tree::Tree;
use licence::Expression;
use policy::Policy;

/// How cargo names the public registry, whichever of its protocols is in use: the name ends the path or begins it.
const PUBLIC_REGISTRY: &str = "crates.io";

pub(crate) fn run(tree: &Tree) -> Result<(), Error> {
    if process::is_installed("cargo-deny", "--version") {
        return process::run(process::cargo(tree.root()).args(["deny", "--workspace", "check"]));
    }
    println!(
        "cargo-deny is not installed (`cargo install --locked cargo-deny`): advisories are not looked up."
    );
    check(tree)
}

/// Our own reading of the policy.
pub(crate) fn check(tree: &Tree) -> Result<(), Error> {
    let policy: Policy = tree.read("deny.toml")?.parse()?;
    let packages = Metadata::all(tree.root())?.packages;
    let findings: Vec<String> = packages.iter().flat_map(|package| judge(package, &policy)).collect();
    for finding in &findings {
        println!("{finding}");
    }
    println!("dependencies: {} packages, {} refused", packages.len(), findings.len());
    if findings.is_empty() { Ok(()) } else { Err(Error::Found("deny.toml refuses dependencies".to_owned())) }
}

/// Neither a git repository nor a registry of somebody's own.
fn is_public_registry(source: &str) -> bool {
    let registry = source.strip_prefix("registry+").or_else(|| source.strip_prefix("sparse+"));
    registry.is_some_and(|address| address.contains(PUBLIC_REGISTRY))
}

fn judge(package: &Package, policy: &Policy) -> Vec<String> {
    let Package { name, version, .. } = package;
    let mut findings = Vec::new();
    let mut refuse = |why: String| findings.push(format!("{name} {version}: {why}"));
    if let Some(reason) = policy.ban(name) {
        refuse(format!("banned: {reason}"));
    }
    match &package.source {
        Some(source) if !is_public_registry(source) => {
            refuse(format!("comes from {source}, not from the public registry"));
        }
        _ => {}
    }
    match package.license.as_deref().map(str::parse::<Expression>) {
        None => refuse("names no licence".to_owned()),
        Some(Err(reason)) => refuse(format!("its licence cannot be read: {reason}")),
        Some(Ok(licence)) if !licence.is_met_by(|id| policy.allows(name, id)) => {
            refuse(format!("licence {} is not on the list", package.license.as_deref().unwrap_or_default()));
        }
        Some(Ok(_)) => {}
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    const POLICY: &str = r#"
        [licenses]
        allow = ["MIT", "Zlib"]
        exceptions = [{ crate = "roots", allow = ["CDLA-Permissive-2.0"] }]

        [bans]
        deny = [{ crate = "openssl", reason = "one TLS is enough" }]
    "#;

    fn package(name: &str, license: &str, source: &str) -> Package {
        Package {
            name: name.to_owned(),
            version: "1.0.0".to_owned(),
            license: Some(license.to_owned()),
            source: Some(source.to_owned()),
            ..Package::default()
        }
    }

    #[test]
    fn packages_are_judged() {
        let policy: Policy = POLICY.parse().unwrap();
        let registry = "registry+https://example.com/crates.io-index";
        let judge = |name, license, source| judge(&package(name, license, source), &policy);
        assert_eq!(judge("a", "MIT OR GPL-3.0", registry), [""; 0]);
        assert_eq!(judge("roots", "CDLA-Permissive-2.0", registry), [""; 0]);
        assert_eq!(judge("a", "GPL-3.0", registry), ["a 1.0.0: licence GPL-3.0 is not on the list"]);
        assert_eq!(judge("openssl", "MIT", registry), ["openssl 1.0.0: banned: one TLS is enough"]);
        assert_eq!(judge("a", "MIT", "git+https://example.org/a").len(), 1);
        assert_eq!(super::judge(&Package::default(), &policy), [" : names no licence"]);
    }
}
