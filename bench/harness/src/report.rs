//! The result of a run, as JSON and as a table on the terminal.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::Options;
use super::figures::{Figure, Figures};
use super::machine::Machine;
use super::targets::{self, Ratio, Results};
use tooling::Error;

/// The targets hold for at least this number of pods.
const TARGETS_FROM: usize = 10_000;

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Report {
    pub(crate) machine: Machine,
    /// The versions of everything that took part.
    pub(crate) versions: BTreeMap<String, String>,
    pub(crate) command: String,
    pub(crate) ratios: Vec<Ratio>,
    pub(crate) figures: Vec<Figure>,
    /// The run had fewer pods than the targets are stated for.
    #[serde(default)]
    pub(crate) is_small: bool,
}

impl Report {
    pub(crate) fn new() -> Self {
        Self { machine: Machine::this(), command: command(std::env::args().skip(1)), ..Self::default() }
    }

    pub(crate) fn read(file: &Path) -> Result<Self, Error> {
        let text = std::fs::read_to_string(file).map_err(Error::io(file))?;
        serde_json::from_str(&text).map_err(|error| Error::format(file.display().to_string(), error))
    }

    pub(crate) fn version(&mut self, who: &str, version: &str) {
        self.versions.insert(who.to_owned(), version.to_owned());
    }

    /// The result so far.
    pub(crate) fn finish(&mut self, figures: &Figures, options: &Options) {
        self.is_small = options.objects < TARGETS_FROM;
        self.ratios = targets::ratios(&Results { figures, server: options.server });
        self.figures = figures.rows().to_vec();
    }

    pub(crate) fn print(&self) {
        if self.ratios.is_empty() {
            return;
        }
        if self.is_small {
            println!("\nSo few objects show whether the answers are right; these ratios say nothing.");
        }
        println!(
            "\n{:>9} {:>19} {:>7} {:>7}  {:<6}  {:<7}",
            "median", "least to most", "must", "goal", "", "server"
        );
        for ratio in &self.ratios {
            let (least, most) = ratio.spread();
            println!(
                "{:>9.3} {:>9.3} {:>9.3} {:>7} {:>7}  {:<6}  {:<7}  {}",
                ratio.value,
                least,
                most,
                ratio.must,
                ratio.goal(),
                ratio.verdict(),
                ratio.server(),
                ratio.name
            );
        }
    }

    /// Writes the result to a file. Figures of other scenarios in the file stay, so that scenarios can run one by one.
    pub(crate) fn write(mut self, file: &Path) -> Result<(), Error> {
        if file.exists() {
            self.take_over(Self::read(file)?);
        }
        let text = serde_json::to_string_pretty(&self).map_err(|error| Error::format("the report", error))?;
        // A process that is killed in the middle of this leaves the old file.
        let beside = file.with_extension("new");
        std::fs::write(&beside, text + "\n").map_err(Error::io(&beside))?;
        std::fs::rename(&beside, file).map_err(Error::io(file))
    }

    fn take_over(&mut self, older: Self) {
        let figures = older.figures.into_iter();
        let mut all: Vec<Figure> =
            figures.filter(|old| !self.figures.iter().any(|new| new.is_same(old))).collect();
        all.append(&mut self.figures);
        self.figures = all;
        let mut ratios = std::mem::take(&mut self.ratios);
        ratios.extend(
            older
                .ratios
                .into_iter()
                .filter(|old| !ratios.iter().any(|new| new.name == old.name))
                .collect::<Vec<_>>(),
        );
        ratios.sort_by_key(|ratio| targets::names().position(|name| name == ratio.name));
        self.ratios = ratios;
        self.is_small |= older.is_small;
        let mut versions = older.versions;
        versions.append(&mut self.versions);
        self.versions = versions;
        self.command = if older.command.split("; ").any(|command| command == self.command) {
            older.command
        } else {
            format!("{}; {}", older.command, self.command)
        };
    }
}

/// The arguments without the path of the report, which depends on the machine.
fn command(mut arguments: impl Iterator<Item = String>) -> String {
    let mut command = String::from("cargo xtask bench");
    while let Some(argument) = arguments.next() {
        if argument == "--json" {
            arguments.next();
        } else if !argument.starts_with("--json=") {
            command.push(' ');
            command.push_str(&argument);
        }
    }
    command
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::Unit;
    use crate::library::Library;

    fn report(scenario: &str, value: f64) -> Report {
        let mut figures = Figures::default();
        figures.record(scenario, &Library::Informer.view("typed"), &[("CPU", Unit::Seconds, value)]);
        Report { figures: figures.rows().to_vec(), command: scenario.to_owned(), ..Report::default() }
    }

    #[test]
    fn the_command_does_not_say_where_the_report_goes() {
        let said = |line: &str| command(line.split(' ').map(str::to_owned));
        assert_eq!(said("sync --json there --runs 3"), "cargo xtask bench sync --runs 3");
        assert_eq!(said("--json=there"), "cargo xtask bench");
    }

    #[test]
    fn a_report_keeps_what_an_older_one_has_of_other_scenarios() {
        let mut new = report("b", 3.0);
        let mut old = report("a", 1.0);
        old.figures.extend(report("b", 2.0).figures);
        new.take_over(old);
        let values: Vec<_> = new.figures.iter().map(|row| (row.scenario.as_str(), row.median)).collect();
        assert_eq!(values, [("a", 1.0), ("b", 3.0)]);
        assert_eq!(new.command, "a; b");
        let mut again = report("b", 4.0);
        again.take_over(new);
        assert_eq!(again.command, "a; b");
    }
}
