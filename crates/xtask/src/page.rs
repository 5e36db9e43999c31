//! The page of kubediff in a real browser, with Playwright: what people do there, with a keyboard, by other clocks, on paper, accessibility,
//! hostile content.

use std::path::PathBuf;
use std::process::Command;

use tooling::{Error, process};

use crate::test_run;
use crate::tree::Tree;

/// Chromium by its names in distributions.
const BROWSERS: [&str; 3] = ["chromium-headless-shell", "chromium", "google-chrome"];
const REMEDY: &str = "install it: on Debian, `apt-get install chromium-headless-shell`, and Node with npm from https://nodejs.org";

/// The path of a program. Playwright wants the whole of it.
fn found(program: &str) -> Option<PathBuf> {
    let folders = std::env::var_os("PATH")?;
    std::env::split_paths(&folders).map(|folder| folder.join(program)).find(|path| path.is_file())
}

/// Tests the page. On a machine without a browser it is left out, but for CI.
pub(crate) fn run(tree: &Tree) -> Result<(), Error> {
    let browser = BROWSERS.into_iter().find_map(found);
    let node = ["node", "npm"].iter().all(|program| process::is_installed(program, "--version"));
    let Some(browser) = browser.filter(|_| node) else {
        let what = "Chromium, or Node";
        return match std::env::var_os("CI") {
            Some(_) => Err(Error::missing(what, REMEDY)),
            None => {
                println!("left out: {what} is missing; {REMEDY}");
                Ok(())
            }
        };
    };
    let program =
        test_run::build(tree)?.into_iter().find(|it| it.target.name == "kubediff" && !it.profile.test);
    let program = program.filter(|it| it.target.kind == ["bin"]);
    let program = program.ok_or_else(|| Error::missing("kubediff", "cargo has not built it"))?;
    let folder = tree.root().join("crates/kubediff/page/tests");
    let in_folder = |program: &str, arguments: &[&str]| {
        let mut command = Command::new(program);
        command.current_dir(&folder).args(arguments);
        command
    };
    process::run(&mut in_folder("npm", &["ci", "--no-audit", "--no-fund", "--loglevel", "error"]))?;
    process::run(&mut in_folder("npx", &["tsc", "--project", "."]))?;
    let mut tests = in_folder("node", &["--test"]);
    process::run(tests.env("KUBEDIFF", &program.executable).env("CHROMIUM", browser))
}
