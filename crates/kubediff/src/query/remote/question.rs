//! The question as the pod's `kubediff` gets it. Nothing of the cluster goes with it: no address, no token.

use clap::ValueEnum;
use jiff::Zoned;

use super::relay::Shown;
use crate::query::args::{
    BlameArgs, DiffArgs, GetArgs, LogArgs, Maintain, NamespaceArgs, Query, ShowRevisionArgs,
};
use crate::query::output::say;

/// A command line.
pub(super) struct Question {
    options: Vec<String>,
    /// An argument without an option's name; it may begin with a hyphen.
    names: Vec<String>,
}

impl Question {
    /// The same question as `query`, of somebody with this clock, time zone and terminal.
    pub(super) fn new(query: &Query, now: &Zoned, shown: Option<Shown>) -> Self {
        let mut question = Self { options: vec!["kubediff".to_owned()], names: Vec::new() };
        // Each field is named, so that a new one is not forgotten. `screen` and `source` are of this side.
        match query {
            Query::Log(args) => question.log(args),
            Query::Show(args) => question.show(args),
            Query::Diff(args) => question.diff(args),
            Query::Blame(args) => question.blame(args),
            Query::Get(args) => question.get(args),
            Query::History(args) => question.history(args),
        }
        question.flag("of-this-daemon", true);
        question.option("now", Some(&now.to_string()));
        if let Some(shown) = shown {
            question.option("color", Some(if shown.coloured { "always" } else { "never" }));
            question.option("columns", shown.columns.map(|columns| columns.to_string()).as_deref());
        }
        question
    }

    /// The program and its arguments.
    pub(super) fn words(self) -> Vec<String> {
        let mut words = self.options;
        if !self.names.is_empty() {
            words.push("--".to_owned());
            words.extend(self.names);
        }
        words
    }

    fn log(&mut self, args: &LogArgs) {
        let LogArgs { target, namespaces, since, until, manager, path, change, limit, .. } = args;
        let LogArgs { reverse, patch, oneline, output, screen: _, source: _, .. } = args;
        self.command("log", target);
        self.namespaces(namespaces);
        self.option("since", since.as_deref());
        self.option("until", until.as_deref());
        self.option("manager", manager.as_deref());
        self.option("path", path.as_deref());
        for sort in change {
            self.choice("change", *sort);
        }
        self.option("limit", limit.map(|limit| limit.to_string()).as_deref());
        self.flag("reverse", *reverse);
        self.flag("patch", *patch);
        self.flag("oneline", *oneline);
        self.choice("output", *output);
    }

    fn show(&mut self, args: &ShowRevisionArgs) {
        let ShowRevisionArgs { object, namespace, output, show_managed_fields, screen: _, source: _ } = args;
        self.command("show", std::slice::from_ref(object));
        self.option("namespace", namespace.as_deref());
        self.choice("output", *output);
        self.flag("show-managed-fields", *show_managed_fields);
    }

    fn diff(&mut self, args: &DiffArgs) {
        let DiffArgs { target, namespaces, from, to, show, hide, output, screen: _, source: _ } = args;
        self.command("diff", target);
        self.namespaces(namespaces);
        self.option("from", Some(from));
        self.option("to", Some(to));
        for rule in show {
            self.option("show", Some(rule));
        }
        for rule in hide {
            self.option("hide", Some(rule));
        }
        self.choice("output", *output);
    }

    fn blame(&mut self, args: &BlameArgs) {
        let BlameArgs { target, namespace, path, output, screen: _, source: _ } = args;
        self.command("blame", target);
        self.option("namespace", namespace.as_deref());
        self.option("path", path.as_deref());
        self.choice("output", *output);
    }

    fn get(&mut self, args: &GetArgs) {
        let GetArgs { target, namespaces, at, output, show_managed_fields, no_headers, source: _ } = args;
        self.command("get", target);
        self.namespaces(namespaces);
        self.option("at", at.as_deref());
        self.choice("output", *output);
        self.flag("show-managed-fields", *show_managed_fields);
        self.flag("no-headers", *no_headers);
    }

    fn history(&mut self, args: &Maintain) {
        self.command("history", &[]);
        match args {
            Maintain::Check { source: _ } => self.options.push("check".to_owned()),
            Maintain::Stats { output, source: _ } => {
                self.options.push("stats".to_owned());
                self.choice("output", *output);
            }
            // A copy would lie in the pod.
            Maintain::Backup { to: _, source: _ } => self.options.push("backup".to_owned()),
            // It is never asked of a daemon, which migrates its own file when it starts.
            Maintain::Migrate { file: _ } => {}
        }
    }

    fn command(&mut self, command: &str, names: &[String]) {
        self.options.push(command.to_owned());
        self.names.extend_from_slice(names);
    }

    fn namespaces(&mut self, args: &NamespaceArgs) {
        let NamespaceArgs { namespace, all_namespaces } = args;
        self.option("namespace", namespace.as_deref());
        self.flag("all-namespaces", *all_namespaces);
    }

    fn option(&mut self, name: &str, value: Option<&str>) {
        self.options.extend(value.map(|value| format!("--{name}={value}")));
    }

    fn choice(&mut self, name: &str, value: impl ValueEnum) {
        self.option(name, value.to_possible_value().as_ref().map(|value| value.get_name()));
    }

    fn flag(&mut self, name: &str, on: bool) {
        if on {
            self.options.push(format!("--{name}"));
        }
    }
}

/// Says that the daemon cannot know when this time zone changes its clocks, where that is so.
pub(super) fn remark_on(now: &Zoned) {
    let zone = now.time_zone();
    if zone.iana_name().is_none() && zone.to_fixed_offset().is_err() && !zone.is_unknown() {
        say(&format!(
            "the time zone of this machine has no name that the daemon knows: times are shown at its present offset {}; TZ \
             names one, such as TZ=Europe/Berlin",
            now.offset()
        ));
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::args::{Cli, Command};

    const NOW: &str = "2026-11-23T16:30:00+01:00[Europe/Berlin]";

    fn query(line: &[&str]) -> Query {
        match Cli::try_parse_from(line).unwrap().command {
            Command::Query(query) => query,
            other => panic!("{other:?}"),
        }
    }

    fn words(line: &[&str]) -> Vec<String> {
        let shown = Shown { coloured: true, columns: Some(90) };
        let query = query(line);
        Question::new(&query, &NOW.parse().unwrap(), query.screen().map(|_| shown)).words()
    }

    #[test]
    fn a_question_is_the_same_in_the_pod() {
        for line in [
            "log",
            "log deploy cart -n shop --since -2h --until 14:05 --manager helm --path a.b --change added,deleted --limit 3 --reverse -p",
            "log -A --oneline -o oneline",
            "show deploy/cart@-2h -n shop -o yaml --show-managed-fields",
            "diff deploy -n shop --from -2h --to now --show all,status --hide status -o json",
            "blame deploy/cart -n shop --path spec -o json",
            "get deploy/cart -A --at -2h -o wide --show-managed-fields --no-headers",
            "history check",
            "history stats -o json",
        ] {
            let mut asked: Vec<&str> = vec!["kubediff"];
            asked.extend(line.split(' '));
            let there = words(&asked);
            let there: Vec<&str> = there.iter().map(String::as_str).collect();
            // Parsed again by the pod's program, the arguments are the same: nothing is lost on the way.
            assert_eq!(words(&there), there, "{line}");
            assert!(there.contains(&"--of-this-daemon") && there.contains(&format!("--now={NOW}").as_str()));
        }
    }

    #[test]
    fn nothing_of_the_cluster_goes_with_it() {
        let line = "kubediff blame deploy/cart --daemon a/b --container c --token sesame --context prod --as jane -s https://h";
        assert_eq!(
            words(&line.split(' ').collect::<Vec<_>>()),
            [
                "kubediff",
                "blame",
                "--output=text",
                "--of-this-daemon",
                &format!("--now={NOW}"),
                "--color=always",
                "--columns=90",
                "--",
                "deploy/cart",
            ]
        );
    }

    #[test]
    fn a_zone_without_a_name_is_sent_as_its_offset() {
        use jiff::tz::TimeZone;
        let zone = TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").unwrap();
        let now: Zoned = NOW.parse().unwrap();
        let sent = now.with_time_zone(zone).to_string();
        assert_eq!(sent, "2026-11-23T16:30:00+01:00[+01:00]");
        assert_eq!(sent.parse::<Zoned>().unwrap().timestamp(), now.timestamp());
    }
}
