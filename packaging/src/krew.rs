//! The manifest of the plugin `changes` for krew, the plugin manager of kubectl.
//!
//! krew unpacks the archive and links the program as `kubectl-changes`. The form is that of
//! <https://krew.sigs.k8s.io/docs/developer-guide/plugin-manifest/>; it is JSON, which YAML includes.

use serde_json::json;

use crate::target::Target;
use crate::{Error, Release};

const SHORT: &str = "Show what changes in a cluster, as diffs";
const LONG: &str = "Watches every resource of the cluster, custom ones included, and shows what changes as readable diffs. \
Values of Secrets are never shown. Noise such as managed fields and heartbeats is left out and counted.";

pub(crate) fn manifest(
    release: &Release,
    target: &Target,
    archive: &str,
    sha256: &str,
) -> Result<String, Error> {
    let Release { repository, version, .. } = release;
    let manifest = json!({
        "apiVersion": "krew.googlecontainertools.github.com/v1alpha2",
        "kind": "Plugin",
        "metadata": { "name": "changes" },
        "spec": {
            "version": format!("v{version}"),
            "homepage": repository,
            "shortDescription": SHORT,
            "description": LONG,
            "caveats": "Try `kubectl changes demo`: it needs no cluster.",
            "platforms": [{
                "selector": { "matchLabels": {
                    "os": target.os,
                    "arch": target.architecture,
                }},
                "uri": format!("{repository}/releases/download/v{version}/{archive}"),
                "sha256": sha256,
                "bin": target.executable("kubediff"),
            }],
        },
    });
    Ok(serde_json::to_string_pretty(&manifest)? + "\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_manifest_names_the_archive_and_the_program() {
        let release = Release { name: "a", version: "1.2.3", repository: "https://example.com/a" };
        let target = "x86_64-unknown-linux-gnu".parse().unwrap();
        let text = manifest(&release, &target, "a.tar.gz", "00ff").unwrap();
        let manifest: serde_json::Value = serde_json::from_str(&text).unwrap();
        let platform = &manifest["spec"]["platforms"][0];
        assert_eq!(platform["uri"], "https://example.com/a/releases/download/v1.2.3/a.tar.gz");
        assert_eq!(platform["selector"]["matchLabels"], json!({ "os": "linux", "arch": "amd64" }));
        assert_eq!((&platform["bin"], &platform["sha256"]), (&json!("kubediff"), &json!("00ff")));
        // krew's limit.
        assert!(SHORT.len() <= 50);
    }
}
