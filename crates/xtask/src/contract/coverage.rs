//! The tests of a run that show a clause, and the servers on which they ran.

use super::page::{ClauseId, Page};
use crate::test_run::{Outcome, TestResult, TestRun};

/// The counterpart of the code under test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// The crates' own tests: such as the state machine and the cache, driven by scripts.
    Core,
    /// The embedded API server.
    TestApi,
    /// A real kube-apiserver.
    RealServer,
}

impl Place {
    pub(super) const ALL: [Self; 3] = [Self::Core, Self::TestApi, Self::RealServer];

    /// The heading of its column.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Core => "core",
            Self::TestApi => "testapi",
            Self::RealServer => "real",
        }
    }

    /// `None` for tests in other places, which do not count.
    fn of(test: &TestResult) -> Option<Self> {
        match (test.binary.package.as_str(), test.binary.target.as_str()) {
            ("informer-core" | "informer" | "informer-controller" | "informer-shards", _) => Some(Self::Core),
            ("kubectl-changes", "watch") => Some(Self::RealServer),
            ("kubectl-changes" | "kubectl-changes-history", _) => Some(Self::Core),
            ("conformance", "testapi") => Some(Self::TestApi),
            ("conformance", "real" | "leaders") => Some(Self::RealServer),
            // Tests of memory are one binary, because they share a counting allocator.
            ("conformance", "memory") if test.name.starts_with("real::") => Some(Self::RealServer),
            ("conformance", "memory") => Some(Self::TestApi),
            _ => None,
        }
    }
}

pub(super) struct Coverage<'a> {
    /// One entry per clause that a test names.
    evidence: Vec<Evidence<'a>>,
    strays: Vec<(&'a TestResult, ClauseId)>,
    /// Tests of the shared modules that passed on one server only, with the other server.
    halves: Vec<(&'a TestResult, Place)>,
}

/// The modules of conformance that are built for both servers.
const SHARED: &str = "clauses::";

struct Evidence<'a> {
    clause: ClauseId,
    place: Place,
    /// The test needs a real server and there was none: it passed without doing anything.
    left_out: bool,
    test: &'a TestResult,
}

impl<'a> Coverage<'a> {
    pub(super) fn new(page: &Page, run: &'a TestRun) -> Self {
        let mut coverage = Self { evidence: Vec::new(), strays: Vec::new(), halves: halves(run) };
        for test in run.results.iter().filter(|test| test.outcome == Outcome::Passed) {
            let Some(place) = Place::of(test) else { continue };
            let left_out = place == Place::RealServer && !run.real_server;
            for clause in clauses(&test.name) {
                if page.has(clause) {
                    coverage.evidence.push(Evidence { clause, place, left_out, test });
                } else if page.has_group(clause.group) {
                    coverage.strays.push((test, clause));
                }
            }
        }
        coverage
    }

    /// The tests that passed at this place.
    pub(super) fn tests(&self, clause: ClauseId, place: Place) -> Vec<&'a TestResult> {
        let here = |it: &&Evidence<'_>| it.clause == clause && it.place == place && !it.left_out;
        self.evidence.iter().filter(here).map(|it| it.test).collect()
    }

    pub(super) fn is_tested(&self, clause: ClauseId) -> bool {
        self.evidence.iter().any(|it| it.clause == clause && !it.left_out)
    }

    /// Only tests that need a real server name the clause, and there was none.
    pub(super) fn is_left_out(&self, clause: ClauseId) -> bool {
        !self.is_tested(clause) && self.evidence.iter().any(|it| it.clause == clause)
    }

    /// Tests that passed and name at least one clause.
    pub(super) fn test_count(&self) -> usize {
        let mut tests: Vec<_> = self
            .evidence
            .iter()
            .filter(|it| !it.left_out)
            .map(|it| (&it.test.binary.target, &it.test.name))
            .collect();
        tests.dedup();
        tests.len()
    }

    /// Tests that should hold for both servers and passed on one only.
    pub(super) fn halves(&self) -> &[(&'a TestResult, Place)] {
        &self.halves
    }

    /// Tests that name a clause that the page does not have; most likely typing errors.
    pub(super) fn strays(&self) -> impl Iterator<Item = &(&'a TestResult, ClauseId)> {
        self.strays.iter()
    }
}

/// The tests of the shared modules that passed on one server and not on the other. Empty without a real server.
fn halves(run: &TestRun) -> Vec<(&TestResult, Place)> {
    let shared: Vec<_> = run
        .results
        .iter()
        .filter(|test| run.real_server && test.outcome == Outcome::Passed && test.name.starts_with(SHARED))
        .filter_map(|test| Some((test, Place::of(test)?)))
        // Other crates have modules of that name too.
        .filter(|(_, place)| *place != Place::Core)
        .collect();
    let missing = |&(test, place): &(&'_ TestResult, Place)| {
        let other = if place == Place::TestApi { Place::RealServer } else { Place::TestApi };
        let is_there = shared.iter().any(|(twin, at)| *at == other && twin.name == test.name);
        (!is_there).then_some(other)
    };
    shared.iter().filter_map(|half| Some((half.0, missing(half)?))).collect()
}

/// The clauses at the front of the name: `l2_l3_expired_list` names L2 and L3.
fn clauses(name: &str) -> impl Iterator<Item = ClauseId> {
    let function = name.rsplit("::").next().unwrap_or(name);
    function.split('_').map_while(ClauseId::from_test_name)
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;
    use crate::test_run::Binary;

    const PAGE: &str =
        "## L. Listing\n- <a id=\"l1\"></a>**L1. A.**\n- <a id=\"l2\"></a>**L2. B.**\n| L | in force |\n";

    fn result(package: &str, target: &str, name: &str, outcome: Outcome) -> TestResult {
        let binary = Binary { package: package.to_owned(), target: target.to_owned() };
        TestResult { binary, name: name.to_owned(), outcome }
    }

    fn id(text: &str) -> ClauseId {
        text.parse().unwrap()
    }

    #[test]
    fn names_carry_their_clauses() {
        let names = |name| clauses(name).map(|id| id.to_string()).collect::<Vec<_>>();
        assert_eq!(names("watch::w1_events_in_order"), ["W1"]);
        assert_eq!(names("l2_l3_expired_l4_list"), ["L2", "L3"]);
        assert_eq!(names("l1::orders"), [""; 0]);
        assert_eq!(names("list_items"), [""; 0]);
    }

    #[test]
    fn only_what_ran_and_passed_counts() {
        let page: Page = PAGE.parse().unwrap();
        let run = TestRun {
            started: SystemTime::UNIX_EPOCH,
            real_server: true,
            results: vec![
                result("informer-core", "reflector", "l1_a", Outcome::Passed),
                result("conformance", "real", "list::l1_b", Outcome::Passed),
                result("conformance", "real", "list::l2_c", Outcome::Ignored),
                result("conformance", "memory", "testapi::l1_g", Outcome::Passed),
                result("conformance", "memory", "real::l1_g", Outcome::Passed),
                result("serve", "serve", "l2_d", Outcome::Passed),
                result("kubectl-changes", "kubediff", "l1_h", Outcome::Passed),
                result("kubectl-changes", "watch", "l1_i", Outcome::Passed),
                result("kubectl-changes-history", "it", "l1_j", Outcome::Passed),
                result("informer", "informer", "l9_e", Outcome::Passed),
                result("informer", "informer", "z1_f", Outcome::Passed),
            ],
        };
        let coverage = Coverage::new(&page, &run);
        let counts = Place::ALL.map(|place| coverage.tests(id("L1"), place).len());
        assert_eq!(counts, [3, 1, 3]);
        assert!(coverage.is_tested(id("L1")) && !coverage.is_tested(id("L2")));
        assert_eq!(coverage.test_count(), 7);
        let strays: Vec<String> = coverage.strays().map(|(test, id)| format!("{} {id}", test.name)).collect();
        assert_eq!(strays, ["l9_e L9"]);
    }

    #[test]
    fn what_both_servers_are_to_show_is_shown_by_both() {
        let page: Page = PAGE.parse().unwrap();
        let mut run = TestRun {
            started: SystemTime::UNIX_EPOCH,
            real_server: true,
            results: vec![
                result("conformance", "real", "clauses::list::l1_a", Outcome::Passed),
                result("conformance", "testapi", "clauses::list::l1_a", Outcome::Passed),
                result("conformance", "real", "clauses::list::l2_b", Outcome::Ignored),
                result("conformance", "testapi", "clauses::list::l2_b", Outcome::Passed),
                result("conformance", "testapi", "faulty_lists::l2_c", Outcome::Passed),
                result("informer-core", "store", "clauses::l1_d", Outcome::Passed),
            ],
        };
        let halves: Vec<_> = Coverage::new(&page, &run)
            .halves()
            .iter()
            .map(|(test, place)| (test.name.clone(), *place))
            .collect();
        assert_eq!(halves, [("clauses::list::l2_b".to_owned(), Place::RealServer)]);
        run.real_server = false;
        assert_eq!(Coverage::new(&page, &run).halves(), []);
    }

    #[test]
    fn without_a_real_server_its_tests_are_left_out() {
        let page: Page = PAGE.parse().unwrap();
        let results = vec![result("conformance", "real", "list::l1_b", Outcome::Passed)];
        let run = TestRun { started: SystemTime::UNIX_EPOCH, real_server: false, results };
        let coverage = Coverage::new(&page, &run);
        assert!(!coverage.is_tested(id("L1")) && coverage.is_left_out(id("L1")));
        assert!(!coverage.is_left_out(id("L2")));
        assert!(coverage.tests(id("L1"), Place::RealServer).is_empty());
    }
}
