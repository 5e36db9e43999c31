//! `cargo xtask soak`: plays the stories of processes many times: on a real server, or killed while they write. The suite
//! plays each of them a few times.

use tooling::{Error, process};

use crate::test_run::real_server;
use crate::tree::Tree;

/// How often, for the tests.
const TIMES: &str = "INFORMER_SOAK";

/// A story is a test.
struct Story {
    package: &'static str,
    target: &'static str,
    test: &'static str,
    on_real_server: bool,
}

const STORIES: &[Story] = &[
    Story {
        package: "conformance",
        target: "leaders",
        test: "q8_leaders_write_one_after_another",
        on_real_server: true,
    },
    Story {
        package: "conformance",
        target: "shards",
        test: "q9_members_share_all_objects_whatever_happens_to_them",
        on_real_server: true,
    },
    Story {
        package: "kubectl-changes-history",
        target: "it",
        test: "kill::acknowledged_changes_survive_sigkill",
        on_real_server: false,
    },
    Story {
        package: "kubectl-changes",
        target: "watch",
        test: "kills::k1_k6_a_daemon_that_is_killed_again_and_again_loses_and_doubles_nothing",
        on_real_server: false,
    },
];

/// Plays the stories with one of these in their name; all if there are none. Stops at the first failure.
pub(crate) fn run(tree: &Tree, only: &[String], times: u32) -> Result<(), Error> {
    let is_wanted = |name: &str| only.is_empty() || only.iter().any(|part| name.contains(part.as_str()));
    let stories: Vec<_> =
        STORIES.iter().filter(|story| is_wanted(story.target) || is_wanted(story.test)).collect();
    if stories.is_empty() {
        let names: Vec<_> = STORIES.iter().map(|story| story.test).collect();
        return Err(Error::Found(format!("no story has such a name; there are: {}", names.join(", "))));
    }
    if stories.iter().any(|story| story.on_real_server) && !real_server(false)? {
        return Err(Error::missing("a real server", "the stories need Go to build one"));
    }
    for Story { package, target, test, .. } in stories {
        println!("{test}, {times} times");
        let mut cargo = process::cargo(tree.root());
        cargo.args(["test", "--package", package, "--test", target]);
        cargo.args(["--", "--exact", "--nocapture", test]);
        process::run(cargo.env(TIMES, times.to_string()))?;
    }
    Ok(())
}
