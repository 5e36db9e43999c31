//! `cargo xtask mutants`: puts deliberate bugs into the code, one at a time, and checks that the tests find them.
//!
//! Each bug is a patch in `crates/xtask/mutants`. It is applied to a copy of the work tree, which has a target
//! directory of its own.

mod catcher;
mod mutant;
mod scratch;

use std::time::Instant;

pub(crate) use catcher::Catcher;
use mutant::Mutant;
use scratch::Scratch;

use tooling::Error;

use crate::tree::Tree;

/// The mutants to run, and the catchers to run them against.
pub(crate) struct Options<'a> {
    /// Only mutants with one of these in their name; all if empty.
    pub(crate) only: &'a [String],
    pub(crate) by: &'a [Catcher],
    /// Run every catcher, even after one has found the bug.
    pub(crate) all: bool,
    /// The seeds of the simulation, `A..B`.
    pub(crate) seeds: &'a str,
}

pub(crate) fn run(tree: &Tree, options: &Options<'_>) -> Result<(), Error> {
    let mutants = wanted(Mutant::all(tree)?, options.only)?;
    let scratch = Scratch::of(tree)?;
    for mutant in &mutants {
        mutant.check(scratch.root())?;
    }
    let catchers: Vec<Catcher> =
        options.by.iter().copied().filter(|catcher| catcher.is_there(tree)).collect();
    for catcher in options.by.iter().filter(|catcher| !catchers.contains(catcher)) {
        println!("There is no {catcher} yet.");
    }
    let clauses: Vec<&str> = mutants.iter().map(|mutant| mutant.clause.as_str()).collect();
    for catcher in &catchers {
        println!("{catcher}, without any bug");
        if let Some(found) = catcher.catch(&scratch, options.seeds, &clauses)? {
            return Err(Error::Found(format!("{catcher} fails without any bug: {found}")));
        }
    }
    let mut survivors = Vec::new();
    for mutant in &mutants {
        let begin = Instant::now();
        mutant.apply(scratch.root())?;
        let mut caught = Vec::new();
        for catcher in &catchers {
            if options.all || caught.is_empty() {
                match catcher.catch(&scratch, options.seeds, &[&mutant.clause]) {
                    Ok(found) => caught.extend(found.map(|found| (catcher, found))),
                    // A mutant that no longer compiles hides nothing about the others.
                    Err(error) => println!("{:>10}  by {catcher}: {error}", "not run"),
                }
            }
        }
        mutant.revert(scratch.root())?;
        let verdict = if caught.is_empty() { "NOT CAUGHT" } else { "caught" };
        println!("{verdict:>10}  {}: {} ({:.0} s)", mutant.name, mutant.what, begin.elapsed().as_secs_f64());
        for (catcher, found) in &caught {
            println!("{:>10}  by {catcher}: {found}", "");
        }
        if caught.is_empty() {
            survivors.push(mutant.name.as_str());
        }
    }
    println!("{} passed, {} failed", mutants.len() - survivors.len(), survivors.len());
    match survivors.as_slice() {
        [] => Ok(()),
        names => Err(Error::Found(format!("no test found {}", names.join(", ")))),
    }
}

/// The mutants with one of `only` in their name. A part that is in no name is an error, because a typo would look like
/// success.
fn wanted(mut mutants: Vec<Mutant>, only: &[String]) -> Result<Vec<Mutant>, Error> {
    let is_in = |part: &String, mutant: &Mutant| mutant.name.contains(part);
    if let Some(part) = only.iter().find(|part| !mutants.iter().any(|mutant| is_in(part, mutant))) {
        let names: Vec<_> = mutants.iter().map(|mutant| mutant.name.as_str()).collect();
        return Err(Error::missing(format!("a mutant `{part}`"), format!("there are {}", names.join(", "))));
    }
    mutants.retain(|mutant| only.is_empty() || only.iter().any(|part| is_in(part, mutant)));
    Ok(mutants)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_mutants_that_there_are_can_be_asked_for() {
        let wanted = |only: &[&str]| {
            let only: Vec<_> = only.iter().map(|part| (*part).to_owned()).collect();
            let names =
                |mutants: Vec<Mutant>| mutants.into_iter().map(|mutant| mutant.name).collect::<Vec<_>>();
            wanted(Mutant::all(&Tree::here()).unwrap(), &only).map(names)
        };
        assert!(wanted(&[]).unwrap().len() >= 10);
        assert_eq!(wanted(&["text-is-cut"]).unwrap(), ["20-text-is-cut"]);
        let refused = wanted(&["text-is-cut", "typo"]).unwrap_err().to_string();
        assert!(refused.contains("`typo`") && refused.contains("20-text-is-cut"), "{refused}");
    }

    #[test]
    fn each_mutant_applies_to_the_tree_and_says_what_it_does() {
        let tree = Tree::here();
        let mutants = Mutant::all(&tree).unwrap();
        assert!(mutants.len() >= 10);
        for mutant in mutants {
            assert!(!mutant.what.is_empty(), "{}", mutant.name);
            mutant.check(tree.root()).unwrap_or_else(|error| panic!("{}: {error}", mutant.name));
        }
    }
}
