//! `cargo xtask package`: whether people outside of this repository can use what it publishes.
//!
//! Makes the packages, unpacks them in an empty folder outside of the repository, and builds each as its users and
//! docs.rs do. Then it does what the README of `informer` says, as a new user does. Nothing of this repository's
//! settings applies there; a list of patches stands in for a registry that has the packages.

mod readme;
mod try_out;

use std::collections::hash_map::DefaultHasher;
use std::fs;
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;

use tooling::{Error, process};

use crate::metadata::{Metadata, Package};
use crate::tree::Tree;

pub(crate) fn run(tree: &Tree) -> Result<(), Error> {
    let workspace = Metadata::workspace(tree.root())?;
    let published: Vec<&Package> = workspace.packages.iter().filter(|it| it.is_published()).collect();
    let archives = make(tree, &workspace, &published)?;
    let outside = Outside::new(tree, &workspace)?;
    for (package, archive) in published.iter().zip(&archives) {
        outside.unpack(archive)?;
        complain_about_files(package, &outside.folder(package))?;
    }
    outside.list(&published)?;
    for package in &published {
        println!("\n--- {}", package.file_name());
        outside.compile(package)?;
    }
    try_out::run(tree, &outside, &published)?;
    println!("packages: {} build outside of this repository", published.len());
    fs::remove_dir_all(&outside.root).map_err(Error::io(&outside.root))
}

/// Makes the packages and returns their files.
fn make(tree: &Tree, workspace: &Metadata, published: &[&Package]) -> Result<Vec<PathBuf>, Error> {
    let mut cargo = process::cargo(tree.root());
    // They are built below, and work in progress may be packaged to see whether it could be published.
    cargo.args(["package", "--quiet", "--no-verify", "--allow-dirty"]);
    for package in published {
        cargo.args(["--package", &package.name]);
    }
    process::run(&mut cargo)?;
    let made = workspace.target_directory.join("package");
    Ok(published.iter().map(|it| made.join(format!("{}.crate", it.file_name()))).collect())
}

/// The parts that a registry shows of a package have to be in it.
fn complain_about_files(package: &Package, folder: &Path) -> Result<(), Error> {
    for file in ["README.md", "LICENSE", "Cargo.toml", "src"] {
        if !folder.join(file).exists() {
            return Err(Error::Found(format!("the package {} has no {file}", package.name)));
        }
    }
    Ok(())
}

/// A folder that is not in the repository, and cargo in it.
struct Outside {
    root: PathBuf,
    /// Stays from run to run, because it has the builds of other people's crates.
    target: PathBuf,
}

impl Outside {
    fn new(tree: &Tree, workspace: &Metadata) -> Result<Self, Error> {
        // The same for each run in this work tree, so that the target directory does not grow with each.
        let mut hasher = DefaultHasher::new();
        tree.root().hash(&mut hasher);
        let root = std::env::temp_dir().join(format!("informer-packages-{:x}", hasher.finish()));
        if root.exists() {
            fs::remove_dir_all(&root).map_err(Error::io(&root))?;
        }
        fs::create_dir_all(&root).map_err(Error::io(&root))?;
        Ok(Self { root, target: workspace.target_directory.join("outside") })
    }

    fn folder(&self, package: &Package) -> PathBuf {
        self.root.join(package.file_name())
    }

    fn unpack(&self, archive: &Path) -> Result<(), Error> {
        // The files' times are those of the unpacking (`-m`): all files in packages are of the same old date, which
        // would hide changes from cargo.
        let mut tar = Command::new("tar");
        process::run(tar.arg("-xzmf").arg(archive).arg("-C").arg(&self.root))
    }

    /// Has cargo take these packages where others ask for them, as it would from a registry.
    fn list(&self, published: &[&Package]) -> Result<(), Error> {
        let line =
            |package: &&Package| format!("{} = {{ path = {:?} }}\n", package.name, self.folder(package));
        let lines: String = published.iter().map(line).collect();
        let settings = self.root.join(".cargo");
        fs::create_dir_all(&settings).map_err(Error::io(&settings))?;
        let path = settings.join("config.toml");
        fs::write(&path, format!("[patch.crates-io]\n{lines}")).map_err(Error::io(&path))
    }

    /// Cargo without the variables that this repository sets.
    fn cargo(&self, folder: &Path) -> Command {
        let mut cargo = process::cargo(folder);
        for ours in ["K8S_OPENAPI_ENABLED_VERSION", "RUSTFLAGS", "RUSTDOCFLAGS"] {
            cargo.env_remove(ours);
        }
        // Only whether it builds matters.
        cargo.env("CARGO_PROFILE_DEV_DEBUG", "0").env("CARGO_INCREMENTAL", "0");
        cargo.env("CARGO_TARGET_DIR", &self.target);
        cargo
    }

    /// Compiles the library or program, its page on docs.rs and its examples. Machine code is made of what is run later
    /// only: that takes most of the time, and finds nothing more.
    fn compile(&self, package: &Package) -> Result<(), Error> {
        let folder = self.folder(package);
        let features = package.docs_rs_features().join(",");
        process::run(self.cargo(&folder).args(["check", "--quiet", "--features", &features]))?;
        let mut doc = self.cargo(&folder);
        doc.args(["doc", "--quiet", "--no-deps", "--lib", "--features", &features]);
        process::run(doc.env("RUSTDOCFLAGS", "-D warnings"))?;
        if folder.join("examples").exists() {
            // Examples have the features of the dev-dependencies.
            process::run(self.cargo(&folder).args(["check", "--quiet", "--examples"]))?;
        }
        Ok(())
    }
}
