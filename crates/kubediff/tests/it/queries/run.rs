//! The program, as a user runs it on a history.

use std::path::Path;
use std::process::Command;

/// Standard output, standard error after it, and the exit code where it is not 0.
pub(crate) fn run(path: &Path, arguments: &[&str]) -> String {
    let (out, err, code) = outputs(path, arguments);
    let code = if code == 0 { String::new() } else { format!("exit {code}\n") };
    format!("{out}{err}{code}")
}

pub(crate) fn outputs(path: &Path, arguments: &[&str]) -> (String, String, i32) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kubediff"));
    command.args(arguments).env("KUBEDIFF_HISTORY", path).env("TZ", "UTC").env("NO_COLOR", "1");
    let output = command.output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (text(output.stdout), text(output.stderr), output.status.code().unwrap())
}
