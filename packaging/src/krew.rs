//! The manifest of the plugin `changes` for krew, the plugin manager of kubectl.
//!
//! krew unpacks the archive and links the program as `kubectl-changes`. The form is that of
//! <https://krew.sigs.k8s.io/docs/developer-guide/plugin-manifest/>; it is JSON, which YAML includes.

use serde_json::{Value, json};

use crate::output::Download;
use crate::{Error, Release};

const SHORT: &str = "Show what changes in a cluster, as diffs";
// krew shows this text in a list.
const _: () = assert!(SHORT.len() <= 50);
const LONG: &str = "Watches every resource of the cluster, custom ones included, and shows what changes as readable diffs. \
Values of Secrets are never shown. Noise such as managed fields and heartbeats is left out and counted.";

pub(crate) fn manifest(release: &Release, archives: &[Download]) -> Result<String, Error> {
    let Release { repository, version, .. } = release;
    let platform = |Download { target, name, sha256 }: &Download| -> Value {
        json!({
            "selector": { "matchLabels": {
                "os": target.os,
                "arch": target.architecture,
            }},
            "uri": format!("{repository}/releases/download/v{version}/{name}"),
            "sha256": sha256,
            "bin": target.executable("kubediff"),
        })
    };
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
            "platforms": archives.iter().map(platform).collect::<Vec<_>>(),
        },
    });
    Ok(serde_json::to_string_pretty(&manifest)? + "\n")
}
