//! docs/from-kube-rs.md: its programs do what it says.

use std::path::Path;

use conformance::Foreign;
use serde_json::json;
use testapi::TestApi;
use tokio::process::Command;

const PAGE: &str = include_str!("../../../../docs/from-kube-rs.md");

async fn output(program: &Path, arguments: &[&str], kubeconfig: &Path) -> String {
    let run = Command::new(program).args(arguments).env("KUBECONFIG", kubeconfig).output().await.unwrap();
    assert!(run.status.success(), "{}: {}", program.display(), String::from_utf8_lossy(&run.stderr));
    String::from_utf8(run.stdout).unwrap()
}

#[tokio::test]
async fn a_reflector_that_became_an_informer_prints_the_same() {
    let Some(program) = Foreign::KubeRuntime.build_or_skip("kube_runtime") else { return };
    let pod = |name: &str| {
        json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": { "name": name, "namespace": "shop" },
            "spec": { "containers": [{ "name": "web", "image": "nginx" }] },
            "status": { "phase": "Running" },
        })
    };
    let namespace = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "shop" } });
    let server =
        TestApi::builder().object(namespace).objects(["cart", "web", "db"].map(pod)).start().await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let kubeconfig = folder.path().join("kubeconfig");
    std::fs::write(&kubeconfig, server.kubeconfig()).unwrap();
    let mut printed = Vec::new();
    for name in ["reflector_before", "reflector_after"] {
        let text = output(&program.with_file_name(name), &[], &kubeconfig).await;
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines.sort();
        printed.push(lines);
    }
    assert_eq!(printed[0].len(), 4);
    assert_eq!(printed[0], printed[1]);
}

/// The kube-rs row and the informer's: each two controllers, the second of which comes late.
#[tokio::test]
async fn h2_late_controllers_of_kube_share_the_watch_of_an_informer() {
    let Some(program) = Foreign::KubeRuntime.build_or_skip("kube_runtime") else { return };
    let table = output(&program, &["50"], Path::new("")).await;
    let rows: Vec<Vec<&str>> =
        table.lines().skip(2).map(|line| line.split('|').skip(1).take(4).map(str::trim).collect()).collect();
    // A row has the library, and its numbers of controllers, lists and watches. Each program ends itself when each controller has reconciled each pod.
    assert_eq!(
        rows,
        [
            ["kube-rs", "1", "1", "1"],
            ["informer", "1", "1", "1"],
            ["kube-rs", "2", "2", "2"],
            ["informer", "2", "1", "1"],
        ]
    );
}

#[test]
fn the_diff_of_the_page_leads_from_one_program_to_the_other() {
    let (_, rest) = PAGE.split_once("```diff\n").unwrap();
    let (diff, _) = rest.split_once("\n```").unwrap();
    let side = |left_out: char| -> String {
        let lines = diff.lines().filter(|line| !line.starts_with(left_out));
        lines.map(|line| format!("{}\n", line.get(1..).unwrap_or_default())).collect()
    };
    let programs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../foreign/kube-runtime/src/bin");
    let read = |name: &str| std::fs::read_to_string(programs.join(name)).unwrap();
    assert_eq!(side('+'), read("reflector_before.rs"));
    assert_eq!(side('-'), read("reflector_after.rs"));
}
