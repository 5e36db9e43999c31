//! `cargo xtask recording`: plays the demo of kubediff and writes what it prints, and when, as an SVG for the README.
//!
//! Nothing is edited: colours, texts and times are those of the program. Only the pause before the first line is cut.

mod picture;
mod styles;

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tooling::{Error, process};

use crate::metadata::Metadata;
use crate::tree::Tree;
use picture::Line;

const PICTURE: &str = "docs/demo.svg";
/// A command for the reader to type: a story that is always the same, at a speed that fits into a reader's patience.
const COMMAND: &str = "kubediff demo --seed 1 --speed 2";
/// When the demo is interrupted. Its summary follows.
const LINES: usize = 28;

pub(crate) fn run(tree: &Tree) -> Result<(), Error> {
    process::run(process::cargo(tree.root()).args(["build", "--quiet", "--package", "kubectl-changes"]))?;
    let program = Metadata::workspace(tree.root())?.target_directory.join("debug/kubediff");
    let (reader, writer) = std::io::pipe().map_err(Error::io(&program))?;
    let mut demo = Command::new(&program);
    // A terminal needs no such option, and here is none.
    demo.args(COMMAND.split(' ').skip(1))
        .args(["--color", "always"])
        .stdin(Stdio::null())
        .stderr(writer.try_clone().map_err(Error::io(&program))?)
        .stdout(writer);
    let child = demo.spawn().map_err(Error::io(&program))?;
    // The pipe ends only when nobody can write to it.
    drop(demo);
    let lines = record(child, BufReader::new(reader))?;
    let path = tree.root().join(PICTURE);
    std::fs::write(&path, picture::svg(COMMAND, &lines)).map_err(Error::io(&path))?;
    println!("{PICTURE}: {} lines", lines.len());
    Ok(())
}

fn record(mut demo: Child, output: impl BufRead) -> Result<Vec<Line>, Error> {
    let mut lines = Vec::new();
    let mut begin = None;
    for text in output.lines() {
        let text = text.map_err(|error| Error::format("the output of the demo", error.to_string()))?;
        let begin: &mut Instant = begin.get_or_insert_with(Instant::now);
        lines.push(Line { at: begin.elapsed() + Duration::from_millis(500), text });
        if lines.len() == LINES {
            process::run(Command::new("kill").arg("-INT").arg(demo.id().to_string()))?;
        }
    }
    let status = demo.wait().map_err(Error::io("kubediff".as_ref()))?;
    if status.success() && lines.len() > LINES {
        Ok(lines)
    } else {
        Err(Error::Found(format!("the demo ended early, after {} lines: {status}", lines.len())))
    }
}
