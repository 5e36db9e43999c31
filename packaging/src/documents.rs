//! Completions for shells and pages of the manual, from the definition of the command line.

use clap::{Command, CommandFactory};
use clap_complete::Shell;
use clap_mangen::Man;
use kubediff::args::Cli;

use crate::Error;

const NAME: &str = "kubediff";

/// One file per shell, under the name that the shell looks for.
pub(crate) fn completions() -> Vec<(String, Vec<u8>)> {
    let shells = [
        (Shell::Bash, "kubediff.bash"),
        (Shell::Zsh, "_kubediff"),
        (Shell::Fish, "kubediff.fish"),
        (Shell::PowerShell, "_kubediff.ps1"),
    ];
    let script = |(shell, file)| {
        let mut text = Vec::new();
        clap_complete::generate(shell, &mut Cli::command(), NAME, &mut text);
        (format!("completions/{file}"), text)
    };
    shells.map(script).into()
}

/// A page for the program, and one for each of its commands.
pub(crate) fn manual() -> Result<Vec<(String, Vec<u8>)>, Error> {
    let mut program = Cli::command().disable_help_subcommand(true);
    // Gives the commands the names of their pages: `kubediff-watch`.
    program.build();
    let commands: Vec<Command> = program.get_subcommands().cloned().collect();
    std::iter::once(program).chain(commands).map(page).collect()
}

fn page(command: Command) -> Result<(String, Vec<u8>), Error> {
    let page = Man::new(command);
    let mut text = Vec::new();
    page.render(&mut text)?;
    Ok((format!("man/{}", page.get_filename()), text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_shell_and_each_command_has_its_file() {
        let files: Vec<_> = completions().into_iter().chain(manual().unwrap()).collect();
        let names: Vec<&str> = files.iter().map(|(name, _)| &**name).collect();
        let wanted = [
            "completions/kubediff.bash",
            "completions/_kubediff",
            "completions/kubediff.fish",
            "completions/_kubediff.ps1",
            "man/kubediff.1",
            "man/kubediff-watch.1",
            "man/kubediff-record.1",
            "man/kubediff-replay.1",
            "man/kubediff-serve.1",
            "man/kubediff-status.1",
            "man/kubediff-config.1",
            "man/kubediff-ui.1",
            "man/kubediff-mcp.1",
            "man/kubediff-at.1",
            "man/kubediff-log.1",
            "man/kubediff-show.1",
            "man/kubediff-diff.1",
            "man/kubediff-blame.1",
            "man/kubediff-get.1",
            "man/kubediff-clusters.1",
            "man/kubediff-history.1",
            "man/kubediff-demo.1",
        ];
        assert_eq!(names, wanted);
        let watch = String::from_utf8(files[5].1.clone()).unwrap();
        assert!(watch.contains("all\\-namespaces"), "{watch}");
        for (name, text) in &files[..4] {
            assert!(String::from_utf8_lossy(text).contains("field-selector"), "{name}");
        }
    }
}
