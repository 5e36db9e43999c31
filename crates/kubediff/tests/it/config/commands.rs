//! `kubediff config`.

use std::process::Command;

use expect_test::{Expect, expect};
use kubediff::config::Config;

/// Runs the program in a folder with this file. Returns exit code, standard output and standard error.
fn run(arguments: &[&str], text: &str) -> (Option<i32>, String, String) {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("config.yaml"), text).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_kubediff"));
    let output = command.arg("config").args(arguments).current_dir(folder.path()).output().unwrap();
    // Systems have words and separators of their own.
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap().replace(".\\", "./");
    (output.status.code(), text(output.stdout), text(output.stderr))
}

fn check(arguments: &[&str], text: &str, expected: Expect) {
    let (code, out, err) = run(arguments, text);
    expected.assert_eq(&format!("{out}{err}exit {}\n", code.unwrap()));
}

const ARRIQAAQ: &str = "\
resources:
  - kind: v1/pods
notifier:
  slack: {enabled: true, token: xoxb-not-for-logs, channel: ops, title: kubediff event}
  webhook: {enabled: true, url: 'http://example.com/hook?key=not-for-logs'}
";

#[test]
fn check_says_what_is_wrong_and_ends_with_2() {
    check(
        &["check", "config.yaml"],
        "cluster: prod\n",
        expect![[r#"
        config.yaml is valid
        exit 0
    "#]],
    );
    check(
        &["check", "."],
        "clster: prod\nsink: {}\n",
        expect![[r#"
        ./config.yaml:1:1: clster: there is no such field; did you mean `cluster`?
        ./config.yaml:2:1: sink: there is no such field; did you mean `sinks`?
        kubediff: 2 mistakes in the configuration
        exit 2
    "#]],
    );
    check(
        &["check", "nope.yaml"],
        "",
        expect![[r#"
        kubediff: the configuration nope.yaml cannot be read: No such file or directory (os error 2)
        exit 1
    "#]],
    );
    check(
        &["check", "config.yaml"],
        ARRIQAAQ,
        expect![[r#"
        config.yaml is a valid configuration of arriqaaq/kubediff, with 1 warning
        warning: config.yaml:4:33: notifier.slack.token: a secret stands in the file, for all who may read it: put it into an environment variable or a file of its own, and write `{env: NAME}` or `{file: PATH}` here
        exit 0
    "#]],
    );
    check(
        &["check", "--strict", "config.yaml"],
        ARRIQAAQ,
        expect![[r#"
        warning: config.yaml:4:33: notifier.slack.token: a secret stands in the file, for all who may read it: put it into an environment variable or a file of its own, and write `{env: NAME}` or `{file: PATH}` here
        kubediff: 1 warning in the configuration
        exit 2
    "#]],
    );
}

#[test]
fn convert_writes_a_file_that_is_read_and_has_no_secret() {
    let (code, out, err) = run(&["convert", "config.yaml"], ARRIQAAQ);
    assert_eq!(code, Some(0), "{err}");
    assert!(!out.contains("not-for-logs") && !err.contains("not-for-logs"));
    expect![[r##"
        # Converted from config.yaml by kubediff VERSION.
        # Put the token of the sink `slack` into the environment variable SLACK_TOKEN.
        # Put the url of the sink `webhook` into the environment variable WEBHOOK_URL.
        watch:
          resources:
          - v1/pods
        history:
          path: /var/lib/kubediff/history.db
          retention:
            age: 30d
            size: 8GiB
            unsent: 1000000
          events:
            keep: true
            age: 3d
            share: 0.2
        noise: {}
        secrets:
          wait: 1s
        sinks:
          log:
            stdout: {}
          slack:
            slack:
              token:
                env: SLACK_TOKEN
              channel: ops
              thread: 10m
              timeout: 10s
          webhook:
            webhook:
              url:
                env: WEBHOOK_URL
              method: POST
              format: arriqaaq-watch
              batch: 1
              timeout: 10s
        routes:
        - sinks:
          - log
          continue: true
        - sinks:
          - slack
          template: "{{ \"kubediff event\" }}: {{ text }}"
          continue: true
        - sinks:
          - webhook
          continue: true
        listen: ":8080"
    "##]]
    .assert_eq(&out.replace(env!("CARGO_PKG_VERSION"), "VERSION"));
    let loaded = Config::of_text(&out, "kubediff.yaml").unwrap();
    assert_eq!(loaded.warnings, []);
    let before = Config::of_text(ARRIQAAQ, "config.yaml").unwrap().config;
    assert_eq!((loaded.config.watch, loaded.config.routes), (before.watch, before.routes));
    check(
        &["convert", "config.yaml"],
        "cluster: prod\n",
        expect![[r#"
        kubediff: config.yaml is a configuration of this kubediff already
        exit 2
    "#]],
    );
}

#[test]
fn the_schema_is_json() {
    let (code, out, _) = run(&["schema"], "");
    assert_eq!(code, Some(0));
    assert_eq!(serde_json::from_str::<serde_json::Value>(&out).unwrap()["title"], "Config");
}
