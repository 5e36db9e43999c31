//! `cargo xtask deny`: checks the licences, sources and names of all dependencies.
//!
//! `deny.toml` is the policy. If cargo-deny is installed, it checks the policy, and advisories too. `cargo xtask test`
//! must depend neither on an installed tool nor on a network. So this module checks licences, banned crates and sources
//! by the same file, with the licence parser of cargo-deny.

mod policy;

use tooling::{Error, process};

use crate::metadata::{Metadata, Package};
use crate::tree::Tree;
use policy::Policy;
use spdx::{Expression, LicenseItem, ParseMode};

/// Cargo's names of the public registry. They stay in `Cargo.lock` and in `cargo metadata` if a machine's configuration
/// replaces the registry by a mirror.
const PUBLIC_REGISTRY: [&str; 2] =
    ["registry+https://github.com/rust-lang/crates.io-index", "sparse+https://index.crates.io/"];

pub(crate) fn run(tree: &Tree) -> Result<(), Error> {
    if process::is_installed("cargo-deny", "--version") {
        return process::run(process::cargo(tree.root()).args(["deny", "--workspace", "check"]));
    }
    println!(
        "cargo-deny is not installed (`cargo install --locked cargo-deny`): advisories are not looked up."
    );
    check(tree)
}

/// Checks the policy without cargo-deny.
pub(crate) fn check(tree: &Tree) -> Result<(), Error> {
    let policy: Policy = tree.read("deny.toml")?.parse()?;
    let metadata = Metadata::all(tree.root())?;
    let users = metadata.users();
    let packages = &metadata.packages;
    let users = |package: &Package| users.get(package.id.as_str()).map_or(&[][..], Vec::as_slice);
    let judged = packages.iter().flat_map(|package| judge(package, users(package), &policy));
    let findings: Vec<String> = judged.chain(stale_locks(tree)?).collect();
    for finding in &findings {
        println!("{finding}");
    }
    println!("dependencies: {} packages, {} refused", packages.len(), findings.len());
    if findings.is_empty() { Ok(()) } else { Err(Error::Found("deny.toml refuses dependencies".to_owned())) }
}

/// The outdated lock files of other workspaces in this repository, whose builds use `--locked`.
fn stale_locks(tree: &Tree) -> Result<Vec<String>, Error> {
    let mut stale = Vec::new();
    for lock in tree.paths()?.iter().filter(|path| path.ends_with("Cargo.lock")) {
        let workspace = lock.parent().unwrap_or(lock);
        let mut look = process::cargo(workspace);
        if process::output(look.args(["update", "--workspace", "--locked", "--quiet"])).is_err() {
            let lock = tree.below_root(lock);
            stale.push(format!("{lock} is stale: `cargo update --workspace` in its folder mends it"));
        }
    }
    Ok(stale)
}

/// Whether this is the public registry, and neither a git repository nor another registry.
fn is_public_registry(source: &str) -> bool {
    PUBLIC_REGISTRY.contains(&source)
}

/// `users` are the names of the packages that depend on it.
fn judge(package: &Package, users: &[&str], policy: &Policy) -> Vec<String> {
    let Package { name, version, .. } = package;
    let mut findings = Vec::new();
    let mut refuse = |why: String| findings.push(format!("{name} {version}: {why}"));
    if let Some(reason) = policy.ban(name, users) {
        refuse(format!("banned: {reason}"));
    }
    match &package.source {
        Some(source) if !is_public_registry(source) => {
            refuse(format!("comes from {source}, not from the public registry"));
        }
        _ => {}
    }
    // Old crates write `MIT/Apache-2.0` for `MIT OR Apache-2.0`.
    match package.license.as_deref().map(|text| (text, Expression::parse_mode(text, ParseMode::LAX))) {
        None => refuse("names no licence".to_owned()),
        Some((_, Err(error))) => refuse(format!("its licence is malformed: {}", error.reason)),
        Some((text, Ok(licence))) if !is_allowed(&licence, name, policy) => {
            refuse(format!("licence {text} is not on the list"));
        }
        Some(_) => {}
    }
    findings
}

/// Whether the allowed licences satisfy the expression. An exception only adds permissions, so the licence without it
/// is enough.
fn is_allowed(licence: &Expression, name: &str, policy: &Policy) -> bool {
    licence.evaluate(|wanted| match &wanted.license {
        LicenseItem::Spdx { id, .. } => policy.allows(name, id.name),
        LicenseItem::Other(_) => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_banned_crate_may_have_users_that_wrap_it() {
        let policy: Policy = POLICY.parse().unwrap();
        let wrapped = package("native", "MIT", PUBLIC_REGISTRY[0]);
        assert_eq!(judge(&wrapped, &["wrapper"], &policy), [""; 0]);
        assert_eq!(judge(&wrapped, &["wrapper", "other"], &policy).len(), 1);
    }

    const POLICY: &str = r#"
        [licenses]
        allow = ["MIT", "Zlib"]
        exceptions = [{ crate = "roots", allow = ["CDLA-Permissive-2.0"] }]

        [bans]
        deny = [
            { crate = "openssl", reason = "one TLS is enough" },
            { crate = "native", wrappers = ["wrapper"], reason = "only by way of it" },
        ]
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
    fn only_the_public_registry_itself_is_public() {
        for address in PUBLIC_REGISTRY {
            assert!(is_public_registry(address), "{address}");
        }
        for address in [
            "registry+https://example.com/crates.io-index",
            "registry+https://github.com/rust-lang/crates.io-index.example.com",
            "sparse+https://index.crates.io.example.com/",
            "sparse+https://example.com/index.crates.io/",
            "git+https://github.com/rust-lang/crates.io-index",
        ] {
            assert!(!is_public_registry(address), "{address}");
        }
    }

    #[test]
    fn packages_are_judged() {
        let policy: Policy = POLICY.parse().unwrap();
        let registry = PUBLIC_REGISTRY[0];
        let judge = |name, license, source| judge(&package(name, license, source), &["user"], &policy);
        for license in ["MIT OR GPL-3.0", "GPL-3.0/MIT", "MIT AND Zlib", "MIT WITH LLVM-exception"] {
            assert_eq!(judge("a", license, registry), [""; 0], "{license}");
        }
        for license in ["MIT AND GPL-3.0", "(MIT OR GPL-3.0) AND ISC", "MIT OR", "no licence"] {
            assert_eq!(judge("a", license, registry).len(), 1, "{license}");
        }
        assert_eq!(judge("roots", "CDLA-Permissive-2.0", registry), [""; 0]);
        assert_eq!(judge("a", "GPL-3.0", registry), ["a 1.0.0: licence GPL-3.0 is not on the list"]);
        assert_eq!(judge("openssl", "MIT", registry), ["openssl 1.0.0: banned: one TLS is enough"]);
        assert_eq!(judge("a", "MIT", "git+https://example.org/a").len(), 1);
        assert_eq!(super::judge(&Package::default(), &[], &policy), [" : names no licence"]);
    }
}
