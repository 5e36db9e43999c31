//! `cargo xtask soak`: plays the stories of processes on a real server many times. The suite plays each of them once.

use tooling::{Error, process};

use crate::test_run::real_server;
use crate::tree::Tree;

/// How often, for the tests.
const TIMES: &str = "INFORMER_SOAK";

/// The test target of conformance and the test of each story.
const STORIES: &[(&str, &str)] = &[
    ("leaders", "q8_leaders_write_one_after_another"),
    ("shards", "q9_members_share_all_objects_whatever_happens_to_them"),
];

/// Plays the stories with one of these in their name; all if there are none. Stops at the first failure.
pub(crate) fn run(tree: &Tree, only: &[String], times: u32) -> Result<(), Error> {
    if !real_server(false)? {
        return Err(Error::missing("a real server", "the stories need Go to build one"));
    }
    let is_wanted = |name: &str| only.is_empty() || only.iter().any(|part| name.contains(part.as_str()));
    let stories: Vec<_> =
        STORIES.iter().filter(|(target, test)| is_wanted(target) || is_wanted(test)).collect();
    if stories.is_empty() {
        let names: Vec<_> = STORIES.iter().map(|(target, _)| *target).collect();
        return Err(Error::Found(format!("no story has such a name; there are: {}", names.join(", "))));
    }
    for (target, test) in stories {
        println!("{target}, {times} times");
        let mut cargo = process::cargo(tree.root());
        cargo.args(["test", "--package", "conformance", "--test", target]);
        cargo.args(["--", "--exact", "--nocapture", test]);
        process::run(cargo.env(TIMES, times.to_string()))?;
    }
    Ok(())
}
