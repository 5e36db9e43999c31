//! The files that `packaging` makes of the programs of several targets. `cargo xtask release-check` shows how the image runs.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may stop at a surprise, its helpers too")]

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::{Command, Output};

use serde::Deserialize;
use serde_json::Value;
use sha2::{Digest, Sha256};

const VERSION: &str = env!("CARGO_PKG_VERSION");
const TARGETS: [&str; 3] = ["aarch64-apple-darwin", "x86_64-pc-windows-gnu", "x86_64-unknown-linux-gnu"];

/// The headers of a program of Linux that needs no dynamic linker.
fn program() -> Vec<u8> {
    let mut program = vec![0; 64];
    program[..6].copy_from_slice(b"\x7fELF\x02\x01");
    program
}

fn make(folder: &Path, target: &str, program: &[u8], options: &[&str]) -> Output {
    let file = folder.join("program");
    fs::write(&file, program).unwrap();
    let mut packaging = Command::new(env!("CARGO_BIN_EXE_packaging"));
    packaging.arg("--program").arg(&file).args(["--target", target]).args(options);
    packaging.arg("--output").arg(folder.join("dist")).output().unwrap()
}

/// The files of a compressed archive, with their modes and owners.
fn files(archive: &Path) -> BTreeMap<String, (u32, u64, Vec<u8>)> {
    let file = flate2::read::GzDecoder::new(fs::File::open(archive).unwrap());
    let read = |entry: std::io::Result<tar::Entry<'_, _>>| {
        let mut entry = entry.unwrap();
        let mut content = Vec::new();
        entry.read_to_end(&mut content).unwrap();
        let (path, header) = (entry.path().unwrap().display().to_string(), entry.header());
        (path, (header.mode().unwrap(), header.uid().unwrap(), content))
    };
    tar::Archive::new(file).entries().unwrap().map(read).collect()
}

fn sha256(path: &Path) -> String {
    Sha256::digest(fs::read(path).unwrap()).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The fields that krew knows, by its `pkg/index/types.go`; it refuses others.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Plugin {
    api_version: String,
    kind: String,
    metadata: Metadata,
    spec: Spec,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Metadata {
    name: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Spec {
    version: String,
    homepage: String,
    short_description: String,
    description: String,
    caveats: String,
    platforms: Vec<Platform>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Platform {
    selector: Value,
    uri: String,
    sha256: String,
    bin: String,
}

/// The rules of krew's `internal/index/validation`, and that each archive is there and has the program.
fn check_krew(dist: &Path) {
    let text = fs::read_to_string(dist.join("changes.yaml")).unwrap();
    let plugin: Plugin = serde_saphyr::from_str(&text).unwrap();
    assert_eq!(plugin.api_version, "krew.googlecontainertools.github.com/v1alpha2");
    assert_eq!((&*plugin.kind, &*plugin.metadata.name), ("Plugin", "changes"));
    let Spec { version, homepage, short_description, description, caveats, platforms } = plugin.spec;
    assert_eq!(version, format!("v{VERSION}"));
    assert!(homepage.starts_with("https://") && !description.is_empty() && !caveats.is_empty());
    assert!(!short_description.is_empty() && !short_description.contains(['\r', '\n']));
    let selected: Vec<String> =
        platforms.iter().map(|platform| platform.selector["matchLabels"].to_string()).collect();
    let wanted = [
        r#"{"arch":"arm64","os":"darwin"}"#,
        r#"{"arch":"amd64","os":"windows"}"#,
        r#"{"arch":"amd64","os":"linux"}"#,
    ];
    assert_eq!(selected, wanted);
    for platform in platforms {
        assert_eq!(platform.selector.as_object().unwrap().len(), 1);
        let (_, name) = platform.uri.rsplit_once('/').unwrap();
        assert_eq!(platform.sha256, sha256(&dist.join(name)));
        let files = files(&dist.join(name));
        assert_eq!(files[&platform.bin].0, 0o755);
        assert!(files.contains_key("LICENSE"));
    }
}

#[test]
fn the_targets_of_a_release_are_made_one_after_the_other() {
    let folder = tempfile::tempdir().unwrap();
    for target in TARGETS {
        let made = make(folder.path(), target, &program(), &[]);
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    }
    let dist = folder.path().join("dist");
    check_krew(&dist);

    let sums = fs::read_to_string(dist.join("SHA256SUMS")).unwrap();
    let sums: Vec<(&str, &str)> = sums.lines().map(|line| line.split_once("  ").unwrap()).collect();
    let names: Vec<&str> = sums.iter().map(|(_, name)| *name).collect();
    let start = format!("kubectl-changes-{VERSION}");
    let mut wanted: Vec<String> = TARGETS.map(|target| format!("{start}-{target}.tar.gz")).into();
    wanted.extend([
        "changes.yaml".to_owned(),
        format!("{start}-image-amd64.tar"),
        format!("kubediff-{VERSION}.tgz"),
    ]);
    wanted.sort();
    assert_eq!(names, wanted);
    sums.iter().for_each(|(sum, name)| assert_eq!(*sum, sha256(&dist.join(name)), "{name}"));

    let chart = files(&dist.join(format!("kubediff-{VERSION}.tgz")));
    let values = concat!(env!("CARGO_MANIFEST_DIR"), "/chart/values.yaml");
    assert_eq!(chart["kubediff/values.yaml"].2, fs::read(values).unwrap());
    assert!(
        chart.contains_key("kubediff/Chart.yaml") && chart.contains_key("kubediff/templates/_helpers.tpl")
    );
    assert!(!chart.keys().any(|name| name.contains("/.")), "{:?}", chart.keys());
}

/// The user, the command and the folders of the image are those of the chart.
#[test]
fn the_image_has_what_the_chart_expects() {
    let folder = tempfile::tempdir().unwrap();
    assert!(make(folder.path(), "x86_64-unknown-linux-gnu", &program(), &[]).status.success());
    let image = folder.path().join("dist/image-amd64");
    let json = |path: &Path| -> Value { serde_json::from_slice(&fs::read(path).unwrap()).unwrap() };
    let blob = |descriptor: &Value| {
        image.join("blobs").join(descriptor["digest"].as_str().unwrap().replace(':', "/"))
    };
    let manifest = json(&blob(&json(&image.join("index.json"))["manifests"][0]));
    let settings = &json(&blob(&manifest["config"]))["config"];
    let root = files(&blob(&manifest["layers"][0]));

    let read = |path: &str| fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap();
    let values: Value = serde_saphyr::from_str(&read("chart/values.yaml")).unwrap();
    let user = &values["podSecurityContext"];
    assert_eq!(settings["User"], format!("{}:{}", user["runAsUser"], user["runAsGroup"]));
    let deployment = read("chart/templates/deployment.yaml");
    let command: Vec<String> = serde_json::from_value(settings["Cmd"].clone()).unwrap();
    assert!(deployment.contains(&format!("args: [{}]", command.join(", "))), "{command:?}");
    for path in ["/var/lib/kubediff", "/tmp"] {
        assert!(deployment.contains(&format!("mountPath: {path}")), "{path}");
    }
    let (mode, owner, _) = &root["var/lib/kubediff/"];
    assert_eq!((*mode, Value::from(*owner)), (0o700, user["runAsUser"].clone()));
    assert_eq!(root["tmp/"].0, 0o1777);
    assert_eq!(root["kubediff"].0, 0o755);
    assert!(root["etc/ssl/certs/ca-certificates.crt"].2.starts_with(b"-----BEGIN CERTIFICATE-----\n"));
    assert!(root.contains_key("etc/ssl/certs/LICENSE"));
}

#[test]
fn a_program_that_is_large_or_needs_files_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let refused = |target: &str, program: &[u8], options: &[&str], because: &str| {
        let made = make(folder.path(), target, program, options);
        let error = String::from_utf8(made.stderr).unwrap();
        assert!(!made.status.success() && error.contains(because), "{error}");
        assert!(!folder.path().join("dist").exists());
    };
    refused(TARGETS[0], &program(), &["--at-most", "63"], "64 bytes, more than 63");
    refused(TARGETS[2], b"a script", &[], "needs a dynamic linker");
}
