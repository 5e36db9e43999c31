//! Whether the image that `cargo xtask dist` has made runs: as the user, with the command and with the files that it says,
//! and nothing else but devices. No daemon of containers is needed: `unshare` shuts the program in.
//!
//! The server is `testapi`. That the files in the image suffice for TLS is shown by a sink at an address with `https`: a
//! daemon with one does not begin without certificates.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use tooling::{Error, process};

use crate::artifact;
use crate::metadata::Metadata;
use crate::running::{Running, Stream};
use crate::tree::Tree;

/// The pods that the server has.
const PODS: &str = "10";

/// On a free port. The sink gets nothing: it has no routes that match.
const CONFIG: &str = "listen: 127.0.0.1:0
sinks:
  unused:
    webhook: {url: \"https://localhost:1/\"}
routes:
  - match: {namespaces: [nowhere]}
    sinks: [unused]
";
const KUBECONFIG: &str = "/etc/kubeconfig";

/// Its arguments are the root, the user, the group and the command. It becomes the command, and so does its process.
const ENTER: &str = r#"root=$0 user=$1 group=$2; shift 2
mkdir -p "$root/dev"
for device in null random urandom; do
  touch "$root/dev/$device"
  mount --bind "/dev/$device" "$root/dev/$device"
done
exec unshare --user --map-user="$user" --map-group="$group" --root "$root" "$@""#;

/// The daemon's output.
const LISTENS: &str = "health and metrics are on http://";
const WATCHES: &str = "kubediff: watching ";

/// A blob of the layout, by its digest.
#[derive(Deserialize)]
struct Descriptor {
    digest: String,
}

#[derive(Deserialize)]
struct Index {
    manifests: Vec<Descriptor>,
}

#[derive(Deserialize)]
struct Manifest {
    config: Descriptor,
    layers: Vec<Descriptor>,
}

#[derive(Deserialize)]
struct Configuration {
    config: Settings,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Settings {
    entrypoint: Vec<String>,
    cmd: Vec<String>,
    user: String,
}

pub(crate) fn run(tree: &Tree) -> Result<(), Error> {
    if !cfg!(target_os = "linux") {
        println!("The image is left out: programs of Linux run on Linux only.");
        return Ok(());
    }
    let target = Metadata::workspace(tree.root())?.target_directory;
    let root = Root::new(&target)?;
    let settings = root.unpack(&target.join("dist").join(format!("image-{}", architecture())))?;

    let server = testapi(tree)?;
    let kubeconfig = root.path(KUBECONFIG);
    let mut server = Command::new(server);
    server.args(["--tls", "--token", "secret", "--load", PODS, "--kubeconfig"]).arg(&kubeconfig);
    let (address, _server) = Running::until(&mut server, Stream::Output, |line| line.starts_with("http"))?;
    println!("testapi is at {address}");

    let mut listens = None;
    let (line, daemon) = Running::until(&mut root.enter(&settings)?, Stream::Errors, |line| {
        println!("{line}");
        if let Some((_, address)) = line.split_once(LISTENS) {
            listens = Some(address.to_owned());
        }
        line.starts_with(WATCHES)
    })?;
    let listens = listens.ok_or_else(|| Error::Found(format!("no address before {line:?}")))?;
    for path in ["/healthz", "/readyz"] {
        let answer = get(&listens, path)?;
        println!("{path}: {answer}");
        if !answer.starts_with("HTTP/1.1 200") {
            return Err(Error::Found(format!("{path} should be answered with 200")));
        }
    }
    let ended = daemon.terminate()?;
    let history = root.path("/var/lib/kubediff/history.db");
    if !ended.success() || !history.exists() {
        return Err(Error::Found(format!("the daemon ended with {ended}, and should have left {history:?}")));
    }
    println!("image: the daemon ran in it as {}, answered, and ended when it was told to", settings.user);
    fs::remove_dir_all(&root.0).map_err(Error::io(&root.0))
}

/// This machine's, by its name in Go.
fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

/// The program, built from this repository.
fn testapi(tree: &Tree) -> Result<PathBuf, Error> {
    let mut build = process::cargo(tree.root());
    build.args(["build", "--package", "testapi", "--features", "program", "--bin", "testapi"]);
    let built = artifact::build(&mut build)?;
    let testapi = built.into_iter().find(|artifact| artifact.target.name == "testapi");
    testapi.map(|it| it.executable).ok_or_else(|| Error::format("cargo build", "no program `testapi`"))
}

/// The head of the answer: its first line.
fn get(address: &str, path: &str) -> Result<String, Error> {
    let failed = |error: std::io::Error| Error::Found(format!("{path} on {address}: {error}"));
    let mut stream = TcpStream::connect(address).map_err(failed)?;
    let request = format!("GET {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).map_err(failed)?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).map_err(failed)?;
    Ok(answer.lines().next().unwrap_or_default().to_owned())
}

/// The root of the file system in the container.
struct Root(PathBuf);

impl Root {
    fn new(target: &Path) -> Result<Self, Error> {
        let root = target.join("image");
        if root.exists() {
            fs::remove_dir_all(&root).map_err(Error::io(&root))?;
        }
        fs::create_dir_all(&root).map_err(Error::io(&root))?;
        Ok(Self(root))
    }

    /// Where a file of the container is outside of it.
    fn path(&self, inside: &str) -> PathBuf {
        self.0.join(inside.trim_start_matches('/'))
    }

    /// Unpacks the layers of a layout, adds the configuration, and returns what the image says about running it.
    fn unpack(&self, layout: &Path) -> Result<Settings, Error> {
        let index: Index = read(&layout.join("index.json"))?;
        let blob = |descriptor: &Descriptor| layout.join("blobs").join(descriptor.digest.replace(':', "/"));
        let manifest = index.manifests.first().ok_or_else(|| Error::format("the image", "no manifest"))?;
        let manifest: Manifest = read(&blob(manifest))?;
        for layer in &manifest.layers {
            let mut tar = Command::new("tar");
            // The files become ours, because we play the user of the image.
            tar.args(["-xz", "--no-same-owner", "-f"]).arg(blob(layer)).arg("-C").arg(&self.0);
            process::run(&mut tar)?;
        }
        let configuration: Configuration = read(&blob(&manifest.config))?;
        let folder = self.path("/etc/kubediff");
        fs::create_dir_all(&folder).map_err(Error::io(&folder))?;
        let config = folder.join("config.yaml");
        fs::write(&config, CONFIG).map_err(Error::io(&config))?;
        Ok(configuration.config)
    }

    /// The command of the image as its user, who sees nothing but this folder and the devices that every container has.
    fn enter(&self, settings: &Settings) -> Result<Command, Error> {
        let (user, group) = settings.user.split_once(':').unwrap_or((&settings.user, &settings.user));
        let mut probe = Command::new("unshare");
        process::output(probe.args(["--user", "--map-root-user", "--mount", "true"])).map_err(|_| {
            Error::missing(
                "`unshare` with user namespaces",
                "install util-linux 2.38, and allow them to users",
            )
        })?;
        let mut command = Command::new("unshare");
        // A user that may mount is no longer the user of the image, so there are two namespaces, one in the other.
        command.args(["--user", "--map-root-user", "--mount", "sh", "-ec", ENTER]).arg(&self.0);
        command.args([user, group]).args(&settings.entrypoint).args(&settings.cmd);
        let path = std::env::var_os("PATH").unwrap_or_default();
        command.env_clear().env("PATH", path).env("KUBECONFIG", KUBECONFIG);
        Ok(command)
    }
}

fn read<T: DeserializeOwned>(path: &Path) -> Result<T, Error> {
    let bytes = fs::read(path).map_err(Error::io(path))?;
    serde_json::from_slice(&bytes).map_err(|error| Error::format(path.display().to_string(), error))
}
