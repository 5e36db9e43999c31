//! `cargo xtask dist`: kubediff as people download it.
//!
//! Builds the program for one target, stripped and, where that is possible, without need of anything else on the disk.
//! The crate `packaging` makes the rest of it.

use std::path::{Path, PathBuf};
use std::process::Command;

use tooling::{Error, process};

use crate::metadata::Metadata;
use crate::tree::Tree;

/// The most bytes of the program for [`FOLDED`] (docs/RELEASING.md).
const MOST_BYTES: &str = "18000000";

pub(crate) fn run(tree: &Tree, target: Option<&str>) -> Result<(), Error> {
    let host = host(tree.root())?;
    let target = target.unwrap_or(&host);
    let folder = Metadata::workspace(tree.root())?.target_directory;

    let mut build = process::cargo(tree.root());
    build.args(["rustc", "--locked", "--profile", "dist", "--package", "kubectl-changes"]);
    // With a target of its own, flags do not reach build scripts and macros.
    build.args(["--bin", "kubediff", "--target", target]);
    // The last crate decides how the code of all others is made, and has little of its own. If it were to be small, no
    // loop would be vectorised, not even in crates that are to be fast: the first list took three times the CPU.
    build.args(["--", "-Copt-level=3"]);
    if target == FOLDED {
        let tables = tree.root().join("crates/xtask/src/dist/tables.ld");
        build.arg(format!("-Clink-arg=-Wl,--no-eh-frame-hdr,--script={}", tables.display()));
    }
    set_flags(&mut build, tree.root(), target);
    process::run(&mut build)?;
    let extension = if target.contains("windows") { ".exe" } else { "" };
    let program = folder.join(target).join("dist").join(format!("kubediff{extension}"));

    let mut package = process::cargo(tree.root());
    package.args(["run", "--quiet", "--locked", "--package", "packaging", "--"]);
    package.args(["--target", target, "--program"]).arg(program);
    if target == FOLDED {
        package.args(["--at-most", MOST_BYTES]);
    }
    process::run(package.arg("--output").arg(folder.join("dist")))
}

/// The tests of the history with SQLite and zstd as [`run`] builds them.
pub(crate) fn test(tree: &Tree) -> Result<(), Error> {
    let target = host(tree.root())?;
    let mut test = process::cargo(tree.root());
    test.args(["test", "--locked", "--profile", "dist", "--package", "kubectl-changes-history"]);
    test.args(["--target", &target]);
    set_flags(&mut test, tree.root(), &target);
    process::run(&mut test)
}

fn set_flags(cargo: &mut Command, root: &Path, target: &str) {
    cargo.env("CARGO_ENCODED_RUSTFLAGS", rust_flags(root, target).join("\x1f"));
    cargo.env(format!("CFLAGS_{}", target.replace('-', "_")), c_flags(target));
    cargo.env("LIBSQLITE3_FLAGS", WITHOUT.join(" "));
}

/// Of SQLite, which packages build whole, what the history does without: indexes of texts and of rectangles, JSON in SQL,
/// statistics of indexes, checks of the arguments that rusqlite gives, and deprecated functions.
const WITHOUT: [&str; 10] = [
    "-USQLITE_ENABLE_FTS3",
    "-USQLITE_ENABLE_FTS3_PARENTHESIS",
    "-USQLITE_ENABLE_FTS5",
    "-USQLITE_ENABLE_RTREE",
    "-USQLITE_ENABLE_API_ARMOR",
    "-USQLITE_ENABLE_STAT4",
    "-USQLITE_ENABLE_DBSTAT_VTAB",
    "-DSQLITE_OMIT_JSON",
    "-DSQLITE_OMIT_SHARED_CACHE",
    "-DSQLITE_OMIT_DEPRECATED",
];

/// Of zstd, all ways to compress but the fastest: that of its level 1, the only level that is used here.
const FAST_ONLY: [&str; 7] = [
    "-DZSTD_EXCLUDE_DFAST_BLOCK_COMPRESSOR",
    "-DZSTD_EXCLUDE_GREEDY_BLOCK_COMPRESSOR",
    "-DZSTD_EXCLUDE_LAZY_BLOCK_COMPRESSOR",
    "-DZSTD_EXCLUDE_LAZY2_BLOCK_COMPRESSOR",
    "-DZSTD_EXCLUDE_BTLAZY2_BLOCK_COMPRESSOR",
    "-DZSTD_EXCLUDE_BTOPT_BLOCK_COMPRESSOR",
    "-DZSTD_EXCLUDE_BTULTRA_BLOCK_COMPRESSOR",
];

/// The target for which Rust's own linker is used. That makes functions with the same code into one, and leaves out what a script names.
const FOLDED: &str = "x86_64-unknown-linux-gnu";

fn c_flags(target: &str) -> String {
    let mut flags = FAST_ONLY.to_vec();
    if target.contains("linux") {
        // A panic that would pass through C ends the process with or without them.
        flags.push("-fno-asynchronous-unwind-tables");
    }
    if target == FOLDED {
        // SQLite compares the addresses of functions. The linker folds sections; C gets one for each file.
        flags.push("-fno-function-sections");
    }
    flags.join(" ")
}

fn rust_flags(root: &Path, target: &str) -> Vec<String> {
    // Panics name files; where they lay on this machine is nobody's business.
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| std::env::home_dir().map(|home| home.join(".cargo"))).unwrap_or_default();
    let mut flags: Vec<String> = [(root, "."), (&home.join("registry").join("src"), "")]
        .map(|(from, to)| format!("--remap-path-prefix={}={to}", from.display()))
        .into();
    if !target.contains("darwin") {
        flags.push("-Ctarget-feature=+crt-static".to_owned());
    }
    if target.contains("linux") {
        // Nothing unwinds, and there are no names for a backtrace.
        flags.push("-Cforce-unwind-tables=no".to_owned());
    }
    if target.contains("linux-gnu") {
        // A program that may lie anywhere in memory has a list of its addresses: nearly a megabyte, or nothing if packed.
        flags.push("-Clink-arg=-Wl,-z,pack-relative-relocs".to_owned());
    }
    if target == FOLDED {
        flags.push("-Clink-arg=-Wl,--icf=all".to_owned());
    }
    flags
}

/// The target of this machine's compiler.
fn host(root: &Path) -> Result<String, Error> {
    let mut rustc = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
    let text = process::output(rustc.arg("-vV").current_dir(root))?;
    let line = text.lines().find_map(|line| line.strip_prefix("host: "));
    line.map(str::to_owned).ok_or_else(|| Error::format("`rustc -vV`", "no line `host:`"))
}
