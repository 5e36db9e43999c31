//! Bad files and their exact messages: file, line, column, field, remedy.

use expect_test::{Expect, expect};
use kubediff::config::Config;

#[test]
fn the_page_needs_tls_where_others_reach_it() {
    for fine in [
        "web: {listen: '127.0.0.1:8443'}\n",
        "web: {listen: ':8443', tls: {certificate: a.crt, key: a.key}}\n",
    ] {
        Config::of_text(fine, "kubediff.yaml").unwrap();
    }
    check(
        "web: {listen: ':8443'}\n",
        expect![[r#"
        kubediff.yaml:1:15: web.listen: others reach this address, and tokens would pass in plain text: give `tls`, or listen on 127.0.0.1
    "#]],
    );
    check(
        "web: {listen: ':8443', tls: {cert: a.crt}}\n",
        expect![[r#"
        kubediff.yaml:1:30: web.tls.cert: there is no such field; did you mean `certificate`?
    "#]],
    );
}

#[test]
fn a_body_is_a_template_that_makes_json() {
    check(
        "\
sinks:
  a: {webhook: {url: 'http://r', body: '{\"a\": {{ nmae }}}'}}
  b: {webhook: {url: 'http://r', body: '{\"a\": \"{{ text }}\"}'}}
  c: {webhook: {url: 'http://r', body: '{{ text', format: otlp}}
  d: {webhook: {url: 'http://r', secrets: {key: {env: KEY}}}}
  e: {webhook: {url: 'http://r', body: '[{% if change == \"gap\" %},{% endif %}]'}}
",
        expect![[r#"
            kubediff.yaml:2:40: sinks.a.webhook.body: the template names `nmae`, which does not exist; did you mean `name`?
            kubediff.yaml:3:40: sinks.b.webhook.body: the template fails for a change: it makes no JSON at line 1, column 9
            kubediff.yaml:4:59: sinks.c.webhook.format: a `body` has a form of its own: leave this out
            kubediff.yaml:5:43: sinks.d.webhook.secrets: they are for a `body`, and there is none
            kubediff.yaml:6:40: sinks.e.webhook.body: the template fails for a gap: it makes no JSON at line 1, column 2
        "#]],
    );
}

pub(super) fn check(text: &str, expected: Expect) {
    let error = Config::of_text(text, "kubediff.yaml").unwrap_err();
    let said: String = error.problems().iter().map(|problem| format!("{problem}\n")).collect();
    expected.assert_eq(&said);
}

#[test]
fn unknown_fields_are_named_all_at_once_and_with_what_may_be_meant() {
    check(
        "\
cluster: prod
watch:
  resource: [deployments]
  namspaces: [shop]
histroy:
  path: /data/history.db
history:
  retention: {days: 30}
resources:
  - deployments
",
        expect![[r#"
            kubediff.yaml:3:3: watch.resource: there is no such field; did you mean `resources`?
            kubediff.yaml:4:3: watch.namspaces: there is no such field; did you mean `namespaces`?
            kubediff.yaml:5:1: histroy: there is no such field; did you mean `history`?
            kubediff.yaml:8:15: history.retention.days: there is no such field; there are `age`, `size`, `changes`, `unsent`
            kubediff.yaml:9:1: resources: there is no such field here: it belongs in `watch`
        "#]],
    );
}

#[test]
fn values_of_another_type() {
    check(
        "\
cluster: 12
watch:
  resources: deployments
  namespaces: {shop: true}
noise: [status]
history:
  retention:
    changes: many
    unsent: -5
    age: 30
sinks:
  ops:
    webhook: https://example.com
routes:
  - sinks: ops
    continue: sometimes
",
        expect![[r#"
            kubediff.yaml:1:10: cluster: expected a text, found a number: put it in quotes
            kubediff.yaml:3:14: watch.resources: expected a list, found a text: put it in brackets, or after `- ` on a line of its own
            kubediff.yaml:4:15: watch.namespaces: expected a list, found a map: put `- ` before each element
            kubediff.yaml:5:8: noise: expected a map with fields, found a list
            kubediff.yaml:8:14: history.retention.changes: expected a whole number, found a text
            kubediff.yaml:9:13: history.retention.unsent: expected a whole number, found a number that is negative or has a fraction
            kubediff.yaml:10:10: history.retention.age: expected a text, found a number: put it in quotes
            kubediff.yaml:13:14: sinks.ops.webhook: expected a map with fields, found a text
            kubediff.yaml:15:12: routes[0].sinks: expected a list, found a text: put it in brackets, or after `- ` on a line of its own
            kubediff.yaml:16:15: routes[0].continue: expected true or false, found a text
        "#]],
    );
}

#[test]
fn values_out_of_bounds() {
    check(
        "\
history:
  path: /
  retention: {age: 10m, size: 1MiB, changes: 0}
sinks:
  a/b:
    stdout:
  hook:
    webhook: {url: example.com/hook, batch: 5000, timeout: 1h, headers: {\"X Y\": a}}
  otel:
    webhook: {url: 'http://otel:4318/v1/logs', format: otlp, method: PUT}
  audit:
    file: {path: /var/log/kubediff/changes.log, maxSize: 1kB, maxFiles: 100000}
",
        expect![[r#"
            kubediff.yaml:2:9: history.path: expected the path of a file
            kubediff.yaml:3:20: history.retention.age: expected at least 1h, or null for no limit
            kubediff.yaml:3:31: history.retention.size: expected at least 64MiB, or null for no limit
            kubediff.yaml:3:46: history.retention.changes: expected at least 1; leave it out for no limit
            kubediff.yaml:6:5: sinks.a/b: the name of a sink has letters, digits, `-` and `_`
            kubediff.yaml:8:20: sinks.hook.webhook.url: expected an address that begins with https:// or http://
            kubediff.yaml:8:45: sinks.hook.webhook.batch: expected a whole number from 1 to 1000
            kubediff.yaml:8:60: sinks.hook.webhook.timeout: expected a time from 1s to 5m
            kubediff.yaml:8:81: sinks.hook.webhook.headers["X Y"]: HTTP does not allow this name of a header
            kubediff.yaml:10:70: sinks.otel.webhook.method: receivers of OpenTelemetry take `POST` alone
            kubediff.yaml:12:58: sinks.audit.file.maxSize: expected at least 1MiB
            kubediff.yaml:12:73: sinks.audit.file.maxFiles: expected a whole number up to 1000
        "#]],
    );
}

#[test]
fn words_that_are_not_known() {
    check(
        "\
listen: eight
sinks:
  hook:
    webhook: {url: 'https://example.com', method: GET, format: cloudEvents}
  other:
    webhook: {url: 'https://example.com', method: post, format: json}
",
        expect![[r#"
            kubediff.yaml:1:9: listen: expected an address and a port, as in :8080, 127.0.0.1:8080 or "[::1]:8080"
            kubediff.yaml:4:51: sinks.hook.webhook.method: `GET` is not known here; there are `POST`, `PUT`, `PATCH`
            kubediff.yaml:4:64: sinks.hook.webhook.format: `cloudEvents` is not known here; did you mean `cloudevents`?
            kubediff.yaml:6:51: sinks.other.webhook.method: `post` is not known here; did you mean `POST`?
            kubediff.yaml:6:65: sinks.other.webhook.format: `json` is not known here; there are `plain`, `cloudevents`, `otlp`, `arriqaaq-watch`, `arriqaaq-diff`
        "#]],
    );
}

#[test]
fn names_that_nothing_has() {
    check(
        "\
watch:
  resources: [\"deploy,cm\", deploy/]
  namespaces: [Shop, kube-*]
noise:
  show: [event]
  hide: [spec.replicas]
  ignore:
    - paths: []
sinks:
  ops: stdout
routes:
  - sinks: [opps]
  - sinks: [pager]
  - template: \"{{ nam }}\"
    sinks: [ops]
  - template: \"{{ name\"
    sinks: [ops]
  - template: \"{{ name | uper }}\"
    sinks: [ops]
",
        expect![[r#"
            kubediff.yaml:2:15: watch.resources[0]: expected one resource in each element
            kubediff.yaml:2:28: watch.resources[1]: a name is missing in `deploy/`: name resources as in `deploy,cm` and objects as in `deploy/cart`, or leave the argument out to watch everything
            kubediff.yaml:3:16: watch.namespaces[0]: a namespace has lower-case letters, digits and `-` in its name
            kubediff.yaml:3:22: watch.namespaces[1]: namespaces to watch are named one by one: to leave some out, use watch.exclude.namespaces, which takes `*`
            kubediff.yaml:5:10: noise.show[0]: there is no noise rule `event`; did you mean `events`?
            kubediff.yaml:6:10: noise.hide[0]: there is no noise rule `spec.replicas`; a path belongs in `noise.ignore`
            kubediff.yaml:8:14: noise.ignore[0].paths: expected at least one path
            kubediff.yaml:12:13: routes[0].sinks[0]: there is no sink `opps`; did you mean `ops`?
            kubediff.yaml:13:13: routes[1].sinks[0]: there is no sink `pager`; there is `ops`
            kubediff.yaml:14:15: routes[2].template: the template names `nam`, which does not exist; did you mean `name`?
            kubediff.yaml:16:15: routes[3].template: line 1 of the template: unexpected end of input, expected end of variable block
            kubediff.yaml:18:15: routes[4].template: line 1 of the template: filter uper is unknown
        "#]],
    );
    check(
        "routes:\n  - sinks: [ops]\n",
        expect![[r#"
        kubediff.yaml:2:13: routes[0].sinks[0]: there is no sink `ops`: describe it in `sinks`
    "#]],
    );
}

#[test]
fn values_that_cannot_be_read() {
    check(
        "\
watch:
  labels: app in cart
  fields: status.phase
  exclude: {resources: [a b]}
history:
  retention: {age: a month, size: big}
hide:
  - path: spec..token
noise:
  ignore:
    - paths: [\"spec.containers[\"]
    - resource: nodes
",
        expect![[r#"
            kubediff.yaml:2:11: watch.labels: invalid label selector `app in cart` at character 7: unable to parse requirement: found 'cart' expected: '('; write requirements like `a=b`, `a!=b`, `a in (b,c)`, `a notin (b,c)`, `a` or `!a`, parted by commas
            kubediff.yaml:3:11: watch.fields: invalid field selector `status.phase` at character 12: invalid selector: 'status.phase'; can't understand 'status.phase'; write requirements like `a=b` or `a!=b`, parted by commas
            kubediff.yaml:4:25: watch.exclude.resources[0]: `a b` cannot be a resource: expected a name that kubectl takes, such as deployments.apps, Secret or apps/v1/deployments
            kubediff.yaml:6:20: history.retention.age: expected a time with its unit, as in 30d, 12h, 90s, 500ms or 1h30m
            kubediff.yaml:6:35: history.retention.size: expected a size with its unit, as in 10GiB, 512MiB or 10Gi
            kubediff.yaml:8:11: hide[0].path: `spec..token` is not a path: expected a name at character 6 (expected for example `spec.containers[*].image`)
            kubediff.yaml:11:15: noise.ignore[0].paths[0]: `spec.containers[` is not a path: the bracket does not end at character 16 (expected for example `spec.containers[*].image`)
            kubediff.yaml:12:7: noise.ignore[1]: `paths` is missing
        "#]],
    );
}

/// The third attack: paths in other notations hide nothing, and an object without its name is none.
#[test]
fn k3_paths_that_hide_nothing_or_what_an_object_is_are_refused() {
    check(
        "\
hide:
  - path: $.spec.token
  - path: /spec/containers/0/env
  - path: /metadata/annotations/example.com~1team
  - path: \"{.spec.token}\"
noise:
  ignore:
    - paths: [spec/replicas]
",
        expect![[r#"
            kubediff.yaml:2:11: hide[0].path: `$.spec.token` is not a path: expected `spec.token` at character 1 (expected for example `spec.containers[*].image`)
            kubediff.yaml:3:11: hide[1].path: `/spec/containers/0/env` is not a path: expected `spec.containers[0].env` at character 1 (expected for example `spec.containers[*].image`)
            kubediff.yaml:4:11: hide[2].path: `/metadata/annotations/example.com~1team` is not a path: expected `metadata.annotations["example.com/team"]` at character 1 (expected for example `spec.containers[*].image`)
            kubediff.yaml:5:11: hide[3].path: `{.spec.token}` is not a path: expected `spec.token` at character 1 (expected for example `spec.containers[*].image`)
            kubediff.yaml:8:15: noise.ignore[0].paths[0]: `spec/replicas` is not a path: expected `spec.replicas` at character 1 (expected for example `spec.containers[*].image`)
        "#]],
    );
    check(
        "\
hide:
  - path: metadata
  - path: '*'
  - path: meta*.n*
  - {resource: cm, path: kind}
  - path: .metadata.uid
",
        expect![[r#"
            kubediff.yaml:2:11: hide[0].path: `metadata` would hide `metadata.name`, which tells objects apart: name the field with the value, such as `metadata.annotations`
            kubediff.yaml:3:11: hide[1].path: `*` would hide `apiVersion`, which tells objects apart: name the field with the value, such as `metadata.annotations`
            kubediff.yaml:4:11: hide[2].path: `meta*.n*` would hide `metadata.name`, which tells objects apart: name the field with the value, such as `metadata.annotations`
            kubediff.yaml:5:26: hide[3].path: `kind` would hide `kind`, which tells objects apart: name the field with the value, such as `metadata.annotations`
            kubediff.yaml:6:11: hide[4].path: `.metadata.uid` would hide `metadata.uid`, which tells objects apart: name the field with the value, such as `metadata.annotations`
        "#]],
    );
    let text =
        "hide: [{path: metadata.annotations}, {path: '*.token'}, {path: metadata.ownerReferences.uid}]";
    assert!(Config::of_text(text, "kubediff.yaml").is_ok());
}

/// The third attack: `config check` said valid, and `serve` ended at once.
#[test]
fn k6_literals_that_no_request_can_have_are_refused() {
    check(
        "\
sinks:
  a: {webhook: {url: \"https://user:S3KRET@host:99999/\"}}
  b: {webhook: {url: \"https://host:8443/\", headers: {X-Team: \"S3KRET\\r\\nY: z\", X-Other: fine}}}
  c: {slack: {webhook: \"https://host:port/S3KRET\"}}
",
        expect![[r#"
            kubediff.yaml:2:22: sinks.a.webhook.url: expected an address: its host or its port is none
            kubediff.yaml:3:62: sinks.b.webhook.headers.X-Team: HTTP does not allow this value of a header
            kubediff.yaml:4:24: sinks.c.slack.webhook: expected an address: its host or its port is none
        "#]],
    );
}

#[test]
fn sinks_that_lack_something() {
    check(
        "\
sinks:
  a:
    slack: {channel: C012345}
  b:
    slack: {token: {env: TOKEN}}
  c:
    slack:
  d:
    slack: {webhook: {env: URL}, token: {env: TOKEN}}
  e:
    slack:
      token: {env: TOKEN}
      channel: #ops
",
        expect![[r##"
            kubediff.yaml:3:12: sinks.a.slack: `token` is missing: {env: NAME}, a variable with the bot's token
            kubediff.yaml:5:12: sinks.b.slack: `channel` is missing: the id of a channel, or its name in quotes, as in "#ops"
            kubediff.yaml:7:10: sinks.c.slack: expected `token` and `channel`, or `webhook`
            kubediff.yaml:9:22: sinks.d.slack.webhook: an incoming webhook has its channel, and takes no `token`
            kubediff.yaml:12:7: sinks.e.slack: `channel` is missing: the id of a channel, or its name in quotes, as in "#ops"
        "##]],
    );
}

#[test]
fn sinks_that_are_none() {
    check(
        "\
sinks:
  a:
    webhook: {method: PUT}
  b:
  c:
    slak: {}
  d:
    file: {}
  e: [stdout]
  f:
    stdout:
    file: {path: x.log}
  g: webhook
",
        expect![[r#"
            kubediff.yaml:3:14: sinks.a.webhook: `url` is missing
            kubediff.yaml:4:4: sinks.b: expected one of `slack`, `webhook`, `jetstream`, `file`, `stdout`
            kubediff.yaml:6:5: sinks.c: `slak` is not known here; did you mean `slack`?
            kubediff.yaml:8:11: sinks.d.file: `path` is missing
            kubediff.yaml:9:6: sinks.e: expected a map with one of `slack`, `webhook`, `jetstream`, `file`, `stdout`
            kubediff.yaml:12:5: sinks.f: expected one of `slack`, `webhook`, `jetstream`, `file`, `stdout` alone
            kubediff.yaml:13:6: sinks.g.webhook: `url` is missing
        "#]],
    );
}

#[test]
fn secrets_are_not_repeated() {
    check(
        "\
sinks:
  a:
    slack: xoxb-not-for-logs
  b:
    slack: {token: {envv: xoxb-not-for-logs}, channel: C1}
  c:
    slack: {token: {env: A, file: xoxb-not-for-logs}, channel: C1}
  d:
    slack: {token: [xoxb-not-for-logs], channel: C1}
  e:
    webhook: {url: \"hooks.example.com/not-for-logs\", signingKey: 7, timeout: not-for-logs}
",
        expect![[r#"
            kubediff.yaml:3:12: sinks.a.slack: expected a map with fields, found a text
            kubediff.yaml:5:21: sinks.b.slack.token.envv: there is no such field; did you mean `env`?
            kubediff.yaml:7:20: sinks.c.slack.token: expected the place of a secret: {env: NAME} or {file: PATH}
            kubediff.yaml:9:20: sinks.d.slack.token: expected the place of a secret, {env: NAME} or {file: PATH}, found a list
            kubediff.yaml:11:66: sinks.e.webhook.signingKey: expected the place of a secret, {env: NAME} or {file: PATH}, found a number
            kubediff.yaml:11:78: sinks.e.webhook.timeout: expected a time with its unit, as in 30d, 12h, 90s, 500ms or 1h30m
        "#]],
    );
}

#[test]
fn routes_that_are_malformed() {
    check(
        "\
sinks:
  ops: {stdout: }
routes:
  - match:
      change: [added]
    sinks: [ops]
  - match:
      changes: [created]
      sources: [wacth]
      paths: [.spec, \"spec..x\"]
    sinks: [ops]
  - severity: fatal
    sinks: [ops]
  - match: {}
",
        expect![[r#"
            kubediff.yaml:5:7: routes[0].match.change: there is no such field; did you mean `changes`?
            kubediff.yaml:8:17: routes[1].match.changes[0]: `created` is not known here; there are `added`, `updated`, `deleted`, `recreated`
            kubediff.yaml:9:17: routes[1].match.sources[0]: `wacth` is not known here; did you mean `watch`?
            kubediff.yaml:10:22: routes[1].match.paths[1]: `spec..x` is not a path: expected a name at character 6 (expected for example `spec.containers[*].image`)
            kubediff.yaml:12:15: routes[2].severity: `fatal` is not known here; there are `info`, `warning`, `critical`
            kubediff.yaml:14:5: routes[3]: `sinks` is missing
        "#]],
    );
}

#[test]
fn text_that_is_not_yaml() {
    for (text, expected) in [
        (
            "watch:\n  resources: [deployments\nsinks: {}\n",
            expect![[r#"
                kubediff.yaml:3:6: this is not YAML: illegal placement of ':' indicator
            "#]],
        ),
        (
            "watch:\n\tresources: []\n",
            expect![[r#"
                kubediff.yaml:2:2: this is not YAML: tabs disallowed within this context (block indentation)
            "#]],
        ),
        (
            "cluster: a\ncluster: b\n",
            expect![[r#"
                kubediff.yaml:2:1: `cluster` is there twice
            "#]],
        ),
        (
            "cluster: *name\n",
            expect![[r#"
                kubediff.yaml:1:10: this is not YAML: alias references unknown anchor
            "#]],
        ),
        (
            "cluster: a\n---\ncluster: b\n",
            expect![[r#"
                kubediff.yaml:3:1: expected one document: take out the `---` and what follows it
            "#]],
        ),
        (
            "- cluster\n",
            expect![[r#"
            kubediff.yaml:1:1: expected a map with fields, found a list
        "#]],
        ),
        (
            "cluster: \"a\n",
            expect![[r#"
                kubediff.yaml:2:1: this is not YAML: invalid indentation in multiline quoted scalar
            "#]],
        ),
        (
            "sinks: {a: {slack: {channel: #ops}}}\n",
            expect![[r#"
            kubediff.yaml:1:20: this is not YAML: unclosed bracket '{': a `#` begins a comment, so that a text with it needs quotes
        "#]],
        ),
        (
            "sinks:\n  a:\n    slack: {token: 'xoxb-not-for-logs\n",
            expect![[r#"
                kubediff.yaml:3:20: this is not YAML: unclosed quote
            "#]],
        ),
    ] {
        check(text, expected);
    }
}

#[test]
fn depth_and_repetition_are_bounded() {
    let laughs: String = (1..40).map(|at| format!("k{at}: &a{at} [*a{0}, *a{0}, *a{0}]\n", at - 1)).collect();
    for text in
        ["[".repeat(100_000), "a: ".repeat(10) + &"{b: ".repeat(100_000), format!("k0: &a0 x\n{laughs}")]
    {
        assert_eq!(Config::of_text(&text, "kubediff.yaml").unwrap_err().problems().len(), 1);
    }
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let error = Config::read("/nope/kubediff.yaml".as_ref()).unwrap_err();
    expect!["the configuration /nope/kubediff.yaml cannot be read"].assert_eq(&error.to_string());
}

#[test]
fn in_one_line_the_first_mistake_counts_the_others() {
    let error = Config::of_text("a: 1\nb: 2\nc: 3\n", "kubediff.yaml").unwrap_err();
    expect!["kubediff.yaml:1:1: a: there is no such field; there are `cluster`, `clusters`, `watch`, `history`, `noise`, `hide`, `secrets`, `keyFile`, `sinks`, `routes`, `listen`, `listenToken`, `web`, `audit` (and 2 more, which `kubediff config check` shows)"].assert_eq(&error.to_string());
}

/// The second attack: each of these destroyed the history or the key, and was valid.
#[cfg(unix)]
#[test]
fn k1_a_file_has_one_purpose_whatever_its_name_is() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    std::fs::write(at("history.db"), "").unwrap();
    std::fs::create_dir(at("logs")).unwrap();
    std::os::unix::fs::symlink("history.db", at("soft")).unwrap();
    std::os::unix::fs::symlink("history.db-wal", at("dangling")).unwrap();
    std::fs::hard_link(at("history.db"), at("hard")).unwrap();
    assert!(std::process::Command::new("mkfifo").arg(at("pipe")).status().unwrap().success());
    let said = |settings: &str, sink: &str| {
        let text = format!(
            "history: {{path: history.db}}\n{settings}\nsinks:\n  a: {{file: {{path: {sink}}}}}\n  b: {{file: {{path: b.log}}}}\n"
        );
        match Config::of_text(&text, at("kubediff.yaml")) {
            Ok(_) => "valid".to_owned(),
            Err(error) => {
                let said: Vec<String> =
                    error.problems().iter().map(|it| format!("{}: {}", it.place.field, it.message)).collect();
                said.join("; ")
            }
        }
    };
    let mut all = String::new();
    for (settings, sink) in [
        ("", "changes.log"),
        ("", "history.db"),
        ("", "logs/../history.db-shm"),
        ("", "history.db-lock"),
        ("", "soft"),
        ("", "dangling"),
        ("", "hard"),
        ("", "kubediff.key"),
        ("", "kubediff.yaml"),
        ("", "b.log"),
        ("", "b.log.3"),
        ("", "b.log.30"),
        ("keyFile: soft", "changes.log"),
        ("keyFile: own.key", "own.key"),
        ("listenToken: {file: token}", "logs/../token"),
        ("", "history.db-format-1"),
        ("", "logs"),
        ("", "pipe"),
        ("", "/dev/null"),
        ("keyFile: logs", "changes.log"),
    ] {
        all += &format!("{settings} {sink}: {}\n", said(settings, sink));
    }
    expect![[r#"
         changes.log: valid
         history.db: sinks.a.file.path: this is the history, which would be destroyed: choose another file
         logs/../history.db-shm: sinks.a.file.path: this is a file of the history, which would be destroyed: choose another file
         history.db-lock: sinks.a.file.path: this is a file of the history, which would be destroyed: choose another file
         soft: sinks.a.file.path: this is the history, which would be destroyed: choose another file
         dangling: sinks.a.file.path: this is a file of the history, which would be destroyed: choose another file
         hard: sinks.a.file.path: this is the history, which would be destroyed: choose another file
         kubediff.key: sinks.a.file.path: this is the key, which would be destroyed: choose another file
         kubediff.yaml: sinks.a.file.path: this is the configuration, which would be destroyed: choose another file
         b.log: sinks.b.file.path: this is the file of the sink a, which would be destroyed: choose another file
         b.log.3: sinks.b.file.path: this is the file of the sink a, which would be destroyed: choose another file
         b.log.30: valid
        keyFile: soft changes.log: keyFile: this is the history, which would be destroyed: choose another file
        keyFile: own.key own.key: sinks.a.file.path: this is the key, which would be destroyed: choose another file
        listenToken: {file: token} logs/../token: sinks.a.file.path: this is the file of `listenToken`, which would be destroyed: choose another file
         history.db-format-1: sinks.a.file.path: this is a file of the history, which would be destroyed: choose another file
         logs: sinks.a.file.path: this is no regular file but a folder, a pipe, a socket or a device: choose another file, or the sink `stdout`
         pipe: sinks.a.file.path: this is no regular file but a folder, a pipe, a socket or a device: choose another file, or the sink `stdout`
         /dev/null: sinks.a.file.path: this is no regular file but a folder, a pipe, a socket or a device: choose another file, or the sink `stdout`
        keyFile: logs changes.log: keyFile: this is no regular file but a folder, a pipe, a socket or a device: choose another file
    "#]].assert_eq(&all);
}

#[test]
fn a_folder_is_no_history() {
    let text = format!("history: {{path: {}}}\n", std::env::temp_dir().display());
    check(
        &text,
        expect![[r#"
        kubediff.yaml:1:17: history.path: this is no regular file but a folder, a pipe, a socket or a device: choose another file
    "#]],
    );
}

#[test]
fn k6_headers_that_kubediff_sets_and_short_keys_are_refused() {
    check(
        "\
sinks:
  hook:
    webhook:
      url: {env: URL}
      headers: {Webhook-Id: x, content-length: '3', X-Team: a}
      signingKey: whsec_c2hvcnQ=
",
        expect![[r#"
            kubediff.yaml:5:29: sinks.hook.webhook.headers.Webhook-Id: kubediff sets this header itself: a receiver relies on it
            kubediff.yaml:5:48: sinks.hook.webhook.headers.content-length: kubediff sets this header itself: a receiver relies on it
            kubediff.yaml:6:19: sinks.hook.webhook.signingKey: a webhook's signing secret is whsec_ and 24 to 64 bytes in base64, for example whsec_ and the output of `openssl rand -base64 32`
        "#]],
    );
}

#[test]
fn a_folded_route_has_no_template_and_leads_to_no_envelopes() {
    check(
        "\
sinks:
  old: {webhook: {url: {env: URL}, format: arriqaaq-watch}}
  log: stdout
routes:
- {sinks: [log], fold: [trouble, ended], continue: true}
- {sinks: [log], fold: loud, continue: true}
- {sinks: [log], fold: [], continue: true}
",
        expect![[r#"
            kubediff.yaml:5:34: routes[0].fold[1]: `ended` is not known here; there are `opened`, `trouble`, `closed`
            kubediff.yaml:6:24: routes[1].fold: expected `true`, `false` or milestones of stories: `[opened, trouble, closed]`, found a text
            kubediff.yaml:7:24: routes[2].fold: name at least one of `opened`, `trouble` and `closed`, or write `false`
        "#]],
    );
    check(
        "\
sinks:
  old: {webhook: {url: {env: URL}, format: arriqaaq-watch}}
  log: stdout
routes:
- sinks: [log, old]
  fold: true
  template: '{{ text }}'
",
        expect![[r#"
            kubediff.yaml:5:16: routes[0].sinks[1]: the format of the sink `old` has no stories: `fold` cannot lead to it
            kubediff.yaml:7:13: routes[0].template: stories have texts of their own: a route with `fold` has no template
        "#]],
    );
}

#[test]
fn streams_that_cannot_be_reached_or_named() {
    check(
        "\
sinks:
  a: {jetstream: {servers: []}}
  b: {jetstream: {servers: ['https://n', 'nats://me:not-for-logs@n', 'nats://n:4222'], stream: a.b}}
  c: {jetstream: {servers: ['nats://n'], user: me, timeout: 1h}}
  d: {jetstream: {servers: ['nats://n'], token: {env: A}, credentials: {file: b}}}
",
        expect![[r#"
            kubediff.yaml:2:28: sinks.a.jetstream.servers: expected at least one server, as in nats://nats.example.com:4222
            kubediff.yaml:3:29: sinks.b.jetstream.servers[0]: expected an address that begins with nats:// or tls://
            kubediff.yaml:3:42: sinks.b.jetstream.servers[1]: an address has no credentials: give `credentials`, `token`, or `user` and `password`
            kubediff.yaml:3:96: sinks.b.jetstream.stream: the name of a stream has letters, digits, `-` and `_`
            kubediff.yaml:4:18: sinks.c.jetstream: `user` and `password` belong together
            kubediff.yaml:4:61: sinks.c.jetstream.timeout: expected a time from 1s to 5m
            kubediff.yaml:5:18: sinks.d.jetstream: expected one of `credentials`, `token`, and `user` with `password`
        "#]],
    );
}
