//! `cargo xtask contract`: shows which clauses of `docs/CONTRACT.md` have tests, and on which servers they ran.
//!
//! The name of a test begins with its clauses in lower case: `l3_expired_list_starts_over`, or `l2_l3_…` for two. Only
//! tests count that passed in the recorded run. The command fails if a clause in force has no test, if a test names a
//! clause that does not exist, or if a test for both servers passed on only one.

mod coverage;
mod page;

use std::time::{Duration, SystemTime};

use tooling::Error;

use crate::test_run::{TestRun, real_server};
use crate::tree::Tree;
use coverage::{Coverage, Place};
use page::Page;

pub(crate) fn run(tree: &Tree, run_tests: bool, names: bool) -> Result<(), Error> {
    let passed = !run_tests || TestRun::execute(tree, real_server(false)?)?;
    report(tree, names)?;
    if passed { Ok(()) } else { Err(Error::Found("tests failed".to_owned())) }
}

/// Reports on the last recorded run.
pub(crate) fn report(tree: &Tree, names: bool) -> Result<(), Error> {
    let page: Page = tree.read(page::PATH)?.parse()?;
    let run = TestRun::last(tree)?;
    let coverage = Coverage::new(&page, &run);
    print_table(&page, &coverage, names);
    println!();
    if let Some(path) = tree.changed_since(run.started)? {
        let age = SystemTime::now().duration_since(run.started).unwrap_or(Duration::ZERO).as_secs() / 60;
        println!(
            "note: this run is {age} min old and {path} is newer: `cargo xtask contract --run` runs again"
        );
    }
    if !run.real_server {
        println!("note: this run had no real server; tests that need one did not count");
    }
    conclude(&page, &coverage)
}

fn print_table(page: &Page, coverage: &Coverage<'_>, names: bool) {
    let mut group = ' ';
    for clause in &page.clauses {
        if clause.id.group != group {
            group = clause.id.group;
            let [core, testapi, real] = Place::ALL.map(Place::name);
            println!("\n{:62} {core:>5} {testapi:>8} {real:>5}", page.group_title(group));
        }
        let count = |place| match coverage.tests(clause.id, place).len() {
            0 => "-".to_owned(),
            count => count.to_string(),
        };
        let remark = if coverage.is_tested(clause.id) {
            ""
        } else if !page.is_in_force(clause.id) {
            "not yet in force"
        } else if coverage.is_left_out(clause.id) {
            "left out: no real server"
        } else {
            "NO TEST"
        };
        let line = format!(
            "{:>3}  {:57} {:>5} {:>8} {:>5}  {remark}",
            clause.id.to_string(),
            clause.title,
            count(Place::Core),
            count(Place::TestApi),
            count(Place::RealServer),
        );
        println!("{}", line.trim_end());
        if names {
            for test in Place::ALL.iter().flat_map(|&place| coverage.tests(clause.id, place)) {
                println!("       {} {}", test.binary.package, test.name);
            }
        }
    }
}

fn conclude(page: &Page, coverage: &Coverage<'_>) -> Result<(), Error> {
    let in_force: Vec<_> = page.clauses.iter().filter(|clause| page.is_in_force(clause.id)).collect();
    let tested = in_force.iter().filter(|clause| coverage.is_tested(clause.id)).count();
    println!(
        "contract: {} clauses, {} in force, {tested} of these tested by {} tests",
        page.clauses.len(),
        in_force.len(),
        coverage.test_count()
    );
    for (test, id) in coverage.strays() {
        println!(
            "refused: {} {} names {id}, which {} does not have",
            test.binary.package,
            test.name,
            page::PATH
        );
    }
    for (test, place) in coverage.halves() {
        println!("refused: {} is built for both servers and did not pass on {}", test.name, place.name());
    }
    let missing: Vec<String> = in_force
        .iter()
        .filter(|clause| !coverage.is_tested(clause.id) && !coverage.is_left_out(clause.id))
        .map(|clause| clause.id.to_string())
        .collect();
    if !missing.is_empty() {
        return Err(Error::Found(format!("no test that ran names {}", missing.join(", "))));
    }
    if coverage.strays().next().is_some() {
        return Err(Error::Found("tests name clauses that do not exist".to_owned()));
    }
    if !coverage.halves().is_empty() {
        return Err(Error::Found("tests that claim both servers were shown by one".to_owned()));
    }
    Ok(())
}
