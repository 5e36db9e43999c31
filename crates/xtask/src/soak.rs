//! `cargo xtask soak`: plays the stories of processes many times: on a real server, killed while they write, or rehearsed. The
//! suite plays each of them a few times.

use tooling::{Error, process};

use crate::test_run::real_server;
use crate::tree::Tree;

/// How often, for the tests.
const TIMES: &str = "INFORMER_SOAK";
/// How many seeds, for the rehearsals.
const SEEDS: &str = "REHEARSAL_SEEDS";
/// A rehearsal plays so many seeds where another story is played once.
const SEEDS_EACH: u32 = 100;

/// A story is a test.
struct Story {
    package: &'static str,
    target: Target,
    /// The start of its name, if it is a rehearsal: then it may be several.
    test: &'static str,
    kind: Kind,
}

enum Target {
    Test(&'static str),
    Example(&'static str),
}

#[derive(PartialEq)]
enum Kind {
    OnRealServer,
    Killed,
    Rehearsed,
}

const STORIES: &[Story] = &[
    Story {
        package: "conformance",
        target: Target::Test("leaders"),
        test: "q8_leaders_write_one_after_another",
        kind: Kind::OnRealServer,
    },
    Story {
        package: "conformance",
        target: Target::Test("shards"),
        test: "q9_members_share_all_objects_whatever_happens_to_them",
        kind: Kind::OnRealServer,
    },
    Story {
        package: "kubectl-changes-history",
        target: Target::Test("it"),
        test: "kill::acknowledged_changes_survive_sigkill",
        kind: Kind::Killed,
    },
    Story {
        package: "kubectl-changes-history",
        target: Target::Test("postgres"),
        test: "faults::what_was_committed_survives_the_end_of_the_server",
        kind: Kind::Killed,
    },
    Story {
        package: "kubectl-changes-history",
        target: Target::Test("postgres"),
        test: "faults::a_batch_whose_answer_is_lost_is_stored_once",
        kind: Kind::Killed,
    },
    Story {
        package: "kubectl-changes-history",
        target: Target::Test("postgres"),
        test: "archive::a_day_as_a_file_is_what_a_history_of_that_day_would_be",
        kind: Kind::Killed,
    },
    Story {
        package: "kubectl-changes",
        target: Target::Test("watch"),
        test: "network::a_database_that_falls_silent_is_waited_for_and_nothing_is_lost",
        kind: Kind::Killed,
    },
    Story {
        package: "kubectl-changes-delivery",
        target: Target::Test("it"),
        test: "jetstream::whatever_is_killed_or_cut_a_consumer_gets_the_log",
        kind: Kind::Killed,
    },
    Story {
        package: "kubectl-changes",
        target: Target::Test("watch"),
        test: "kills::k1_k6_a_daemon_that_is_killed_again_and_again_loses_and_doubles_nothing",
        kind: Kind::Killed,
    },
    Story {
        package: "kubectl-changes",
        target: Target::Test("watch"),
        test: "takeover::k11_a_takeover_loses_nothing_and_records_nothing_twice",
        kind: Kind::Killed,
    },
    Story {
        package: "kubectl-changes",
        target: Target::Test("it"),
        test: "stories::random::batches_and_ends_of_the_process_change_no_story",
        kind: Kind::Killed,
    },
    Story {
        package: "kubectl-changes",
        target: Target::Test("watch"),
        test: "stories::stories_are_what_happened",
        kind: Kind::OnRealServer,
    },
    Story {
        package: "kubectl-changes",
        target: Target::Test("watch"),
        test: "past::equality::the_past_equals_what_the_server_answered",
        kind: Kind::OnRealServer,
    },
    Story {
        package: "informer-controller-test",
        target: Target::Test("it"),
        test: "pages::",
        kind: Kind::Rehearsed,
    },
    rehearsed_example("copy_maps"),
    rehearsed_example("copy_secrets"),
    rehearsed_example("operator"),
    rehearsed_example("sample_controller"),
];

const fn rehearsed_example(name: &'static str) -> Story {
    Story {
        package: "informer-controller",
        target: Target::Example(name),
        test: "tests::it_survives_what_a_cluster_does",
        kind: Kind::Rehearsed,
    }
}

impl Target {
    fn name(&self) -> &'static str {
        match self {
            Self::Test(name) | Self::Example(name) => name,
        }
    }

    fn option(&self) -> &'static str {
        match self {
            Self::Test(_) => "--test",
            Self::Example(_) => "--example",
        }
    }
}

/// Plays the stories with one of these in their name; all if there are none. Stops at the first failure.
pub(crate) fn run(tree: &Tree, only: &[String], times: u32) -> Result<(), Error> {
    let is_wanted = |name: &str| only.is_empty() || only.iter().any(|part| name.contains(part.as_str()));
    let stories: Vec<_> =
        STORIES.iter().filter(|story| is_wanted(story.target.name()) || is_wanted(story.test)).collect();
    if stories.is_empty() {
        let names: Vec<_> = STORIES.iter().map(|story| story.test).collect();
        return Err(Error::Found(format!("no story has such a name; there are: {}", names.join(", "))));
    }
    if stories.iter().any(|story| story.kind == Kind::OnRealServer) && !real_server(false)? {
        return Err(Error::missing("a real server", "the stories need Go to build one"));
    }
    for Story { package, target, test, kind } in stories {
        println!("{} {test}, {times} times", target.name());
        let mut cargo = process::cargo(tree.root());
        cargo.args(["test", "--package", package, target.option(), target.name()]);
        cargo.args(["--", "--nocapture", test]);
        if *kind == Kind::Rehearsed {
            cargo.env(SEEDS, times.saturating_mul(SEEDS_EACH).to_string());
        } else {
            cargo.arg("--exact");
        }
        process::run(cargo.env(TIMES, times.to_string()))?;
    }
    Ok(())
}
