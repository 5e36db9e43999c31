//! Makes what people download of kubediff, from the built program: an archive with completions and manual, a krew
//! manifest, an image, the chart, checksums. `cargo xtask dist` builds the program and runs this.
//!
//! The same program gives the same files, byte by byte: all times in them are 0.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a tool talks to its terminal")]

mod archive;
mod chart;
mod digest;
mod documents;
mod image;
mod krew;
mod linkage;
mod output;
mod roots;
mod target;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;

use archive::Archive;
use output::Output;
use target::Target;

/// Makes what people download of kubediff, from the built program.
#[derive(Parser)]
struct Options {
    /// The built program
    #[arg(long, value_name = "FILE")]
    program: PathBuf,
    /// The target of the build: `x86_64-unknown-linux-gnu`
    #[arg(long, value_name = "TRIPLE")]
    target: Target,
    /// The folder to write to
    #[arg(long, value_name = "FOLDER")]
    output: PathBuf,
    /// Refuse a program with more bytes
    #[arg(long, value_name = "BYTES")]
    at_most: Option<usize>,
}

/// Why nothing was made, or not everything.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error("failed to access {path}: {source}")]
    File { path: PathBuf, source: std::io::Error },
    #[error("an archive cannot be made: {0}")]
    Archive(#[from] std::io::Error),
    #[error("JSON cannot be written: {0}")]
    Json(#[from] serde_json::Error),
    #[error("the program has {0} bytes, more than {1}")]
    Large(usize, usize),
    #[error(
        "the program needs a dynamic linker, which an empty image does not have; build it with `-C target-feature=+crt-static`"
    )]
    Dynamic,
}

impl Error {
    /// For `map_err` of operations on `path`.
    fn file(path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        move |source| Self::File { path: path.to_owned(), source }
    }
}

/// The facts that every file here states.
struct Release {
    name: &'static str,
    version: &'static str,
    repository: &'static str,
}

const RELEASE: Release = Release {
    name: "kubectl-changes",
    version: env!("CARGO_PKG_VERSION"),
    repository: env!("CARGO_PKG_REPOSITORY"),
};

const LICENSE: &str = include_str!("../../LICENSE");
const README: &str = include_str!("../../crates/kubediff/README.md");

fn main() -> ExitCode {
    match make(&Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn make(options: &Options) -> Result<(), Error> {
    let program = fs::read(&options.program).map_err(Error::file(&options.program))?;
    if let Some(most) = options.at_most.filter(|most| program.len() > *most) {
        return Err(Error::Large(program.len(), most));
    }
    if options.target.is_linux() && linkage::needs_a_linker(&program) {
        return Err(Error::Dynamic);
    }
    let output = Output::new(&options.output, &RELEASE)?;
    output.write(&output.archive_name(&options.target), &archive(&program, &options.target)?)?;
    output.write("changes.yaml", krew::manifest(&RELEASE, &output.archives()?)?.as_bytes())?;
    let (name, chart) = chart::package(&RELEASE)?;
    output.write(&name, &chart)?;
    if options.target.is_linux() {
        let image = image::Image::new(&RELEASE, &options.target, &program)?;
        let name = format!("image-{}", options.target.architecture);
        image.write(&options.output.join(&name))?;
        output.write(&format!("{}-{}-{name}.tar", RELEASE.name, RELEASE.version), &image.archive()?)?;
    }
    println!("{:>10} bytes  the program", program.len());
    for (path, bytes) in output.sum()? {
        println!("{bytes:>10} bytes  {}", path.display());
    }
    Ok(())
}

/// The program with everything that a package of a distribution wants.
fn archive(program: &[u8], target: &Target) -> Result<Vec<u8>, Error> {
    let mut archive = Archive::default();
    archive.file(&target.executable("kubediff"), 0o755, program)?;
    for (path, text) in documents::completions().into_iter().chain(documents::manual()?) {
        archive.file(&path, 0o644, &text)?;
    }
    archive.file("LICENSE", 0o644, LICENSE.as_bytes())?;
    archive.file("README.md", 0o644, README.as_bytes())?;
    archive.compressed()
}
