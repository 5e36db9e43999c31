//! The first steps of a new user, with the packages: the README's program, and the two programs that can be installed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tooling::{Error, process};

use super::{Outside, readme};
use crate::metadata::Package;
use crate::running::{Running, Stream};
use crate::tree::Tree;

const LIBRARY: &str = "informer";
const TOOL: &str = "kubectl-changes";
const SERVER: &str = "testapi";

/// How many pods the server has. They are spread over few namespaces, of which none is `default`.
const PODS: &str = "10";

pub(super) fn run(tree: &Tree, outside: &Outside, published: &[&Package]) -> Result<(), Error> {
    let folder = |name: &str| {
        let package = published.iter().find(|package| package.name == name);
        package.map(|it| outside.folder(it)).ok_or_else(|| Error::Found(format!("{name} is not published")))
    };
    let (library, tool, server) = (folder(LIBRARY)?, folder(TOOL)?, folder(SERVER)?);
    let program = write_program(outside, &library)?;
    let installed = outside.root.join("installed");
    println!("\n--- cargo install {SERVER}, {TOOL}");
    for (package, features) in [(&server, "program"), (&tool, "")] {
        // Not as fast as in a release, but the same.
        let mut install = outside.cargo(&outside.root);
        install.args(["install", "--quiet", "--debug", "--no-track", "--features", features, "--path"]);
        process::run(install.arg(package).arg("--root").arg(&installed))?;
    }
    let installed = installed.join("bin");
    run_demo(&installed)?;
    run_program(outside, &program, &installed)?;
    try_features(tree, outside, &library, &program)
}

/// A program by the README of the package: its first block of dependencies, and its first block of code.
fn write_program(outside: &Outside, library: &Path) -> Result<PathBuf, Error> {
    let page = library.join("README.md");
    let text = fs::read_to_string(&page).map_err(Error::io(&page))?;
    let block = |language| {
        readme::block(&text, language)
            .ok_or_else(|| Error::format("the README", format!("no block of {language}")))
    };
    let (dependencies, code) = (block("toml")?, block("rust")?);
    let program = outside.root.join("program");
    let source = program.join("src");
    fs::create_dir_all(&source).map_err(Error::io(&source))?;
    let main = source.join("main.rs");
    fs::write(&main, code).map_err(Error::io(&main))?;
    write_manifest(&program, dependencies)?;
    Ok(program)
}

fn write_manifest(program: &Path, dependencies: &str) -> Result<(), Error> {
    let manifest = program.join("Cargo.toml");
    let package = "[package]\nname = \"program\"\nversion = \"0.0.0\"\nedition = \"2024\"\n";
    fs::write(&manifest, format!("{package}\n{dependencies}\n")).map_err(Error::io(&manifest))
}

/// Both names of the tool work, and the demo shows changes.
fn run_demo(installed: &Path) -> Result<(), Error> {
    let version = process::output(Command::new(installed.join("kubediff")).arg("--version"))?;
    let plugin = process::output(Command::new(installed.join("kubectl-changes")).arg("--help"))?;
    if !version.contains(TOOL) || !plugin.contains("kubectl changes") {
        return Err(Error::Found(format!("kubediff says of itself: {version}{plugin}")));
    }
    let mut demo = Command::new(installed.join("kubediff"));
    demo.args(["demo", "--speed", "100", "--output", "json"]);
    let (line, _demo) = Running::until(&mut demo, Stream::Output, |line| line.contains("\"change\":"))?;
    println!("{}kubediff demo: {} bytes for its first change", version, line.len());
    Ok(())
}

/// Runs the README's program against the embedded server.
fn run_program(outside: &Outside, program: &Path, installed: &Path) -> Result<(), Error> {
    println!("\n--- the program of the README, against {SERVER}");
    let kubeconfig = outside.root.join("kubeconfig");
    let mut server = Command::new(installed.join(SERVER));
    server.args(["--load", PODS, "--kubeconfig"]).arg(&kubeconfig);
    let (address, _server) = Running::until(&mut server, Stream::Output, |line| line.starts_with("http"))?;
    println!("{SERVER} is at {address}");
    let mut run = outside.cargo(program);
    let output = process::output(run.args(["run", "--quiet"]).env("KUBECONFIG", &kubeconfig))?;
    print!("{output}");
    if output.lines().count() == 2 {
        Ok(())
    } else {
        Err(Error::Found("it should print two lines".to_owned()))
    }
}

/// The dependency lines of the README's table: from the package, and from the repository by path.
fn try_features(tree: &Tree, outside: &Outside, library: &Path, program: &Path) -> Result<(), Error> {
    let page = library.join("README.md");
    let text = fs::read_to_string(&page).map_err(Error::io(&page))?;
    let default = fs::read_to_string(program.join("Cargo.toml")).map_err(Error::io(program))?;
    let path = tree.root().join("crates").join(LIBRARY).display().to_string();
    for line in readme::dependency_lines(&text, LIBRARY) {
        for line in [line.to_owned(), readme::by_path(line, &path)] {
            println!("{line}");
            let replace =
                |old: &str| if old.starts_with("informer = ") { line.clone() } else { old.to_owned() };
            let manifest: Vec<String> = default.lines().map(replace).collect();
            let file = program.join("Cargo.toml");
            fs::write(&file, manifest.join("\n")).map_err(Error::io(&file))?;
            process::run(outside.cargo(program).args(["check", "--quiet"]))?;
        }
    }
    Ok(())
}
