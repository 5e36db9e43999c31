//! `kubediff at TIME -- COMMAND`: the command, its kubeconfig, and how it ends.

use std::process::Command;

use super::past::{Past, program};
use crate::queries::shop::Shop;

fn shell(history: &std::path::Path, time: &str, script: &str) -> (String, String, Option<i32>) {
    let output = program(history, time).args(["--", "sh", "-c", script]).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (text(output.stdout), text(output.stderr), output.status.code())
}

#[test]
fn a_command_has_a_kubeconfig_of_its_own_and_its_exit_code_counts() {
    let shop = Shop::open();
    let (out, err, code) = shell(&shop.path, "14:06:30", "cat $KUBECONFIG; stat -c %a $KUBECONFIG; exit 7");
    assert_eq!(code, Some(7), "{err}");
    assert!(out.contains(r#""current-context":"prod@2026-03-01T14:06:30Z""#), "{out}");
    assert!(out.trim_end().ends_with("600"), "{out}");
    assert!(err.contains("prod as of 2026-03-01 14:06:30 (record "), "{err}");
    let gap = shell(&shop.path, "14:11:30", "true");
    assert!(gap.1.contains("pods not watched from 2026-03-01 14:11:00"), "{}", gap.1);

    let (out, _, _) = shell(&shop.path, "14:06:30", "echo $KUBECONFIG");
    assert!(!std::path::Path::new(out.trim()).exists(), "{out} is left");
    let killed = shell(&shop.path, "14:06:30", "kill -KILL $$");
    assert_eq!(killed.2, Some(137));
    let missing = program(&shop.path, "14:06:30").args(["--", "no-such-program"]).output().unwrap();
    let said = String::from_utf8(missing.stderr).unwrap();
    assert_eq!(missing.status.code(), Some(127), "{said}");
    assert!(said.contains("`no-such-program` cannot be run"), "{said}");
}

#[test]
fn without_a_command_it_serves_until_it_is_interrupted() {
    let shop = Shop::open();
    let mut past = Past::open(&shop.path, "14:06:30");
    assert_eq!(past.get("/version").status, 200);
    let folder = past.kubeconfig.parent().unwrap().to_owned();
    let killed = Command::new("kill").args(["-INT", &past.id().to_string()]).status().unwrap();
    assert!(killed.success());
    assert_eq!(past.wait().code(), Some(0));
    assert!(!folder.exists());
}

#[test]
fn a_request_to_end_ends_the_command() {
    let shop = Shop::open();
    let mut command = program(&shop.path, "14:06:30");
    command.args(["--", "sh", "-c", "echo begun; exec sleep 600"]).stdout(std::process::Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut line = String::new();
    let mut out = std::io::BufReader::new(child.stdout.take().unwrap());
    std::io::BufRead::read_line(&mut out, &mut line).unwrap();
    assert!(Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap().success());
    assert_eq!(child.wait().unwrap().code(), Some(137));
}
