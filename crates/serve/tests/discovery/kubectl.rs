//! kubectl, an independent client, against the fixed catalog.

use std::process::Stdio;

use serve::http::{ServerOptions, Serving};

use crate::fixture;

/// Whether kubectl is missing. Without it these tests show nothing, which CI does not accept.
fn kubectl_is_missing() -> bool {
    let missing = std::process::Command::new("kubectl")
        .args(["version", "--client"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_err();
    if missing {
        assert!(std::env::var("CI").as_deref() != Ok("true"), "CI=true, and there is no kubectl");
        eprintln!("skipped: there is no kubectl");
    }
    missing
}

async fn kubectl(serving: &Serving, arguments: &[&str]) -> String {
    let cache = std::env::temp_dir().join(format!("serve-kubectl-{}", serving.address().port()));
    let mut command = tokio::process::Command::new("kubectl");
    command
        .arg(format!("--server=http://{}", serving.address()))
        .arg(format!("--cache-dir={}", cache.display()))
        .args(arguments)
        // Ignore the kubeconfig of the user who runs the tests.
        .env("KUBECONFIG", cache.join("none"))
        .kill_on_drop(true);
    let output = command.output().await.unwrap();
    let _ = std::fs::remove_dir_all(&cache);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "kubectl {arguments:?}: {stderr}");
    assert_eq!(stderr, "", "kubectl {arguments:?}");
    String::from_utf8(output.stdout).unwrap()
}

fn words(line: &str) -> Vec<&str> {
    line.split_whitespace().collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kubectl_gets_tables_of_pods() {
    if kubectl_is_missing() {
        return;
    }
    let serving = fixture::serve(ServerOptions::default()).await;
    let text = kubectl(&serving, &["get", "pods"]).await;
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(words(lines[0]), ["NAME", "READY", "STATUS", "RESTARTS", "AGE"]);
    assert_eq!(words(lines[1])[..4], ["cart-1", "1/1", "Running", "0"]);
    assert_eq!(words(lines[2])[..4], ["cart-2", "0/1", "CrashLoopBackOff", "4"]);

    let text = kubectl(&serving, &["get", "po,deploy", "-A", "-o", "wide"]).await;
    assert!(text.contains("NOMINATED NODE   READINESS GATES"), "{text}");
    let pod = text.lines().find(|line| line.contains("cart-1")).unwrap();
    assert!(pod.contains("10.0.0.7   node-1"), "{text}");
    let deployment = text.lines().find(|line| line.contains("deployment.apps/cart")).unwrap();
    assert!(deployment.contains("1/2") && deployment.ends_with("app=cart"), "{text}");
    serving.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kubectl_finds_resources_and_explains_them() {
    if kubectl_is_missing() {
        return;
    }
    let serving = fixture::serve(ServerOptions::default()).await;
    let text = kubectl(&serving, &["api-resources"]).await;
    let widgets = text.lines().find(|line| line.starts_with("widgets")).unwrap();
    assert_eq!(words(widgets), ["widgets", "wd", "shop.example.com/v1", "true", "Widget"]);
    let text = kubectl(&serving, &["get", "wd", "w1"]).await;
    assert_eq!(words(text.lines().next().unwrap()), ["NAME", "COLOR"]);
    assert_eq!(words(text.lines().nth(1).unwrap()), ["w1", "blue"]);
    let text = kubectl(&serving, &["explain", "widgets.spec"]).await;
    assert!(text.contains("color\t<string>") && text.contains("Whatever people like."), "{text}");
    let text = kubectl(&serving, &["api-versions"]).await;
    assert_eq!(words(&text), ["apps/v1", "shop.example.com/v1", "shop.example.com/v1beta1", "v1"]);
    serving.stop().await;
}
