//! Several clusters of one daemon, and what cannot be.

use expect_test::expect;
use kubediff::config::Config;

use super::mistakes::check;

#[test]
fn clusters_have_contexts_and_names_of_their_own() {
    let fine = "clusters: [{context: a}, {context: 'arn:aws:eks:1:cluster/b', name: b}]\n";
    Config::of_text(fine, "kubediff.yaml").unwrap();
    check(
        "\
cluster: prod
clusters:
- {context: 'arn:aws:eks:1:cluster/b'}
- {context: a, name: 'a.b'}
- {context: b, name: c}
- {context: c}
- {context: b}
web: {listen: '127.0.0.1:8443'}
sinks: {s: {jetstream: {servers: ['nats://n:4222'], stream: all}}}
",
        expect![[r#"
            kubediff.yaml:1:10: cluster: each of `clusters` has a name of its own: leave this out
            kubediff.yaml:3:3: clusters[0]: a cluster has a `name` of letters, digits, `-` and `_`, or such a context
            kubediff.yaml:4:22: clusters[1].name: a cluster has a `name` of letters, digits, `-` and `_`, or such a context
            kubediff.yaml:6:3: clusters[3]: another cluster has the name `c`: give each a `name`
            kubediff.yaml:7:13: clusters[4].context: another cluster has this context
            kubediff.yaml:8:6: web: the page is of one cluster, and there are `clusters`
            kubediff.yaml:9:61: sinks.s.jetstream.stream: each of `clusters` has a stream, by its name: leave this out
        "#]],
    );
    let many: String = (0..21).map(|at| format!("- {{context: c{at}}}\n")).collect();
    check(
        &format!("clusters:\n{many}"),
        expect![[r#"
            kubediff.yaml:2:3: clusters: expected 1 to 20 clusters: a larger fleet has a daemon in each cluster, and one database
        "#]],
    );
    check(
        "clusters: []\n",
        expect![[r#"
        kubediff.yaml:1:11: clusters: expected 1 to 20 clusters: a larger fleet has a daemon in each cluster, and one database
    "#]],
    );
    check(
        "cluster: 'a,b'\n",
        expect![[r#"
        kubediff.yaml:1:10: cluster: expected a name without commas, and without spaces around it: `--cluster A,B` names two
    "#]],
    );
    // The file of a sink of one cluster is another file of it.
    check(
        "clusters: [{context: a}]\nhistory: {path: h.db}\nsinks: {s: {file: {path: h.db}}}\n",
        expect![[r#"
            kubediff.yaml:3:26: sinks.s.file.path: this is the history, which would be destroyed: choose another file
        "#]],
    );
}
