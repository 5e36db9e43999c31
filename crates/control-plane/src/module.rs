//! The control plane's Go module for any release of Kubernetes.
//!
//! Kubernetes' own `go.mod` says what belongs to a release: the modules that it publishes beside `k8s.io/kubernetes`
//! (which it replaces by folders), and the versions of etcd and of everything else. So a module for a release is made
//! from it, and differs from that of another release in nothing but `go.mod` and `go.sum`.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::{Error, Release, toolchain};

/// `go mod edit -json`.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Module {
    go: String,
    #[serde(default)]
    require: Vec<Required>,
    #[serde(default)]
    replace: Vec<Replaced>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Required {
    path: String,
    version: String,
    #[serde(default)]
    indirect: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Replaced {
    old: Place,
    new: Place,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Place {
    path: String,
}

/// `go mod download -json`.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Download {
    #[serde(default)]
    go_mod: PathBuf,
    #[serde(default)]
    error: String,
}

/// Copies the Go sources to a new `directory`, as a module for `release`.
pub(crate) fn copy(source: &Path, release: Release, directory: &Path) -> Result<(), Error> {
    // An interrupted copy may have left files.
    if directory.exists() {
        fs::remove_dir_all(directory).map_err(Error::file("remove", directory))?;
    }
    fs::create_dir_all(directory).map_err(Error::file("make the directory", directory))?;
    for file in fs::read_dir(source).map_err(Error::file("read the directory", source))? {
        let file = file.map_err(Error::file("read the directory", source))?.path();
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        if name.ends_with(".go") && !name.ends_with("_test.go") {
            fs::copy(&file, directory.join(&*name)).map_err(Error::file("copy", &file))?;
        }
    }
    let go_mod = directory.join("go.mod");
    fs::write(&go_mod, text(source, release)?).map_err(Error::file("write", &go_mod))?;
    toolchain::tidy(directory)
}

/// The text of `go.mod` for `release`: the direct dependencies of the module in `source`. `go mod tidy` adds the others.
pub(crate) fn text(source: &Path, release: Release) -> Result<String, Error> {
    let ours = read(&source.join("go.mod"))?;
    let theirs = read(&download(release)?)?;
    Ok(write(&ours, &theirs, release))
}

/// Downloads a release and returns its `go.mod`.
fn download(release: Release) -> Result<PathBuf, Error> {
    let module = format!("k8s.io/kubernetes@v{release}");
    // Outside a module, so that no `go.mod` has a say.
    let json = toolchain::answer(&std::env::temp_dir(), &["mod", "download", "-json", &module])?;
    let answer: Download = parse("go mod download -json", &json)?;
    if answer.error.is_empty() {
        Ok(answer.go_mod)
    } else {
        Err(Error::NoSuchRelease { release, reason: answer.error })
    }
}

fn read(go_mod: &Path) -> Result<Module, Error> {
    let path = go_mod.display().to_string();
    parse("go mod edit -json", &toolchain::answer(&std::env::temp_dir(), &["mod", "edit", "-json", &path])?)
}

fn parse<T: DeserializeOwned>(command: &'static str, json: &str) -> Result<T, Error> {
    serde_json::from_str(json).map_err(|source| Error::GoAnswer { command, source })
}

fn write(ours: &Module, theirs: &Module, release: Release) -> String {
    let staged = theirs.replace.iter().filter(|replaced| replaced.new.path.starts_with("./staging/"));
    let staged: Vec<&str> = staged.map(|replaced| replaced.old.path.as_str()).collect();
    let versions = theirs.require.iter().map(|required| (required.path.as_str(), required.version.as_str()));
    let versions: HashMap<&str, &str> = versions.collect();
    let staging = release.staging();

    let mut text = format!("module control-plane\n\ngo {}\n\nrequire (\n", theirs.go);
    for Required { path, version, .. } in ours.require.iter().filter(|required| !required.indirect) {
        let version = match path.as_str() {
            "k8s.io/kubernetes" => format!("v{release}"),
            path if staged.contains(&path) => staging.clone(),
            path => (*versions.get(path).unwrap_or(&version.as_str())).to_owned(),
        };
        text.push_str(&format!("\t{path} {version}\n"));
    }
    text.push_str(")\n\nreplace (\n");
    for path in staged {
        text.push_str(&format!("\t{path} => {path} {staging}\n"));
    }
    text.push_str(")\n");
    text
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn module(json: &Value) -> Module {
        parse("a test", &json.to_string()).unwrap()
    }

    #[test]
    fn what_belongs_to_a_release_is_in_its_own_go_mod() {
        let ours = module(&json!({
            "Go": "1.26.0",
            "Require": [
                { "Path": "go.etcd.io/etcd/server/v3", "Version": "v3.7.0" },
                { "Path": "example.com/ours", "Version": "v1.0.0" },
                { "Path": "k8s.io/component-base", "Version": "v0.37.2" },
                { "Path": "k8s.io/kubernetes", "Version": "v1.37.2" },
                { "Path": "k8s.io/streaming", "Version": "v0.37.2", "Indirect": true },
            ],
        }));
        let folder = |name: &str| json!({ "Old": { "Path": format!("k8s.io/{name}") }, "New": { "Path": format!("./staging/src/k8s.io/{name}") } });
        let theirs = module(&json!({
            "Go": "1.24.0",
            "Require": [{ "Path": "go.etcd.io/etcd/server/v3", "Version": "v3.6.4" }],
            "Replace": [
                folder("api"),
                folder("component-base"),
                { "Old": { "Path": "example.com/theirs" }, "New": { "Path": "example.com/fork" } },
            ],
        }));
        let text = write(&ours, &theirs, Release { minor: 34, patch: 4 });
        let expected = "module control-plane\n\ngo 1.24.0\n\nrequire (\n\
            \tgo.etcd.io/etcd/server/v3 v3.6.4\n\texample.com/ours v1.0.0\n\
            \tk8s.io/component-base v0.34.4\n\tk8s.io/kubernetes v1.34.4\n)\n\nreplace (\n\
            \tk8s.io/api => k8s.io/api v0.34.4\n\
            \tk8s.io/component-base => k8s.io/component-base v0.34.4\n)\n";
        assert_eq!(text, expected);
    }
}
