//! The question as the pod's `kubediff` gets it. Nothing of the cluster goes with it: no address, no token.

use std::ffi::OsString;

use clap::parser::ValueSource;
use clap::{ArgMatches, Args as _, Command, Subcommand as _};
use jiff::Zoned;

use super::relay::Shown;
use crate::query::args::{Query, ScreenArgs, SourceArgs};
use crate::text::terminal::say;

/// The command line of the same question in the pod, of somebody with this clock, time zone and terminal: the arguments as
/// given, without those that are of this side.
///
/// # Errors
///
/// When `line` is no command line of this program.
pub(super) fn words(
    line: impl IntoIterator<Item = OsString>,
    now: &Zoned,
    shown: Option<Shown>,
) -> Result<Vec<String>, clap::Error> {
    let program = Query::augment_subcommands(Command::new("kubediff"));
    let all = program.clone().try_get_matches_from(line)?;
    let (mut words, mut options, mut names) = (vec!["kubediff".to_owned()], Vec::new(), Vec::new());
    let (mut command, mut given) = (&program, &all);
    while let Some((name, inner)) = given.subcommand() {
        let Some(found) = command.find_subcommand(name) else { break };
        (command, given) = (found, inner);
        words.push(name.to_owned());
    }
    let here = ScreenArgs::augment_args(SourceArgs::augment_args(Command::new("here")));
    for argument in command.get_arguments() {
        let id = argument.get_id();
        if here.get_arguments().any(|own| own.get_id() == id) || !is_typed(given, id.as_str()) {
            continue;
        }
        let values = given.get_raw(id.as_str()).into_iter().flatten();
        let values = values.map(|value| value.to_string_lossy().into_owned());
        match argument.get_long() {
            None => names.extend(values),
            Some(name) if argument.get_action().takes_values() => {
                options.extend(values.map(|value| format!("--{name}={value}")));
            }
            Some(name) => options.push(format!("--{name}")),
        }
    }
    words.append(&mut options);
    words.extend(["--of-this-daemon".to_owned(), format!("--now={now}")]);
    if let Some(Shown { coloured, columns }) = shown {
        words.push(format!("--color={}", if coloured { "always" } else { "never" }));
        words.extend(columns.map(|columns| format!("--columns={columns}")));
    }
    if !names.is_empty() {
        // A name may begin with a hyphen.
        words.push("--".to_owned());
        words.extend(names);
    }
    Ok(words)
}

fn is_typed(given: &ArgMatches, id: &str) -> bool {
    given.value_source(id) == Some(ValueSource::CommandLine)
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
    use super::*;

    const NOW: &str = "2026-11-23T16:30:00+01:00[Europe/Berlin]";

    fn words(line: &[&str]) -> Vec<String> {
        let is_shown = ["log", "show", "diff", "blame"].contains(&line[1]);
        let shown = is_shown.then_some(Shown { coloured: true, columns: Some(90) });
        super::words(line.iter().map(OsString::from), &NOW.parse().unwrap(), shown).unwrap()
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
            // Parsed again by the pod's program, the arguments are the same.
            assert_eq!(words(&there), there, "{line}");
            assert!(there.contains(&"--of-this-daemon") && there.contains(&format!("--now={NOW}").as_str()));
            // Nothing is lost on the way: neither an option nor a name.
            let is_option = |word: &&&str| word.starts_with('-') && !word.starts_with("-2");
            let typed = asked.iter().filter(is_option).count();
            let options = there.iter().filter(|word| word.starts_with("--") && word.len() > 2).count();
            assert!(options >= typed, "{line}: {there:?}");
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
