//! client-go's types decode objects in protobuf and in JSON to the same values.

use std::path::PathBuf;
use std::process::Command;

use conformance::Foreign;
use serde_json::{Value, json};
use testapi::{Gvr, TestApi};

/// The objects that Kubernetes' own tests have: one of each kind, with every field set.
fn recorded() -> Vec<Value> {
    let module = concat!(env!("CARGO_MANIFEST_DIR"), "/../../foreign/go");
    let mut go = Command::new("go");
    go.args(["list", "-m", "-f", "{{.Dir}}", "k8s.io/api"]).current_dir(module);
    let directory = String::from_utf8(go.output().expect("Go").stdout).expect("a path");
    let files = std::fs::read_dir(PathBuf::from(directory.trim()).join("testdata/HEAD")).expect("the module");
    let files = files.map(|file| file.expect("a file").path());
    let texts = files.filter(|path| path.extension().is_some_and(|extension| extension == "json"));
    texts.map(|path| serde_json::from_slice(&std::fs::read(path).expect("a file")).expect("JSON")).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn client_go_reads_the_same_in_both_encodings() {
    let Some(program) = Foreign::Encodings.build_or_skip("encodings") else { return };
    let server = TestApi::builder().start().await.expect("a server");
    let recorded = recorded();
    let (mut full, mut bare) = (0, 0);
    for resource in server.api().catalog().resources().iter().filter(|resource| resource.allows("watch")) {
        let gvr = Gvr::new(&resource.api_version(), &resource.plural);
        let same = |object: &&Value| {
            object["kind"] == *resource.kind && object["apiVersion"] == resource.api_version().as_str()
        };
        full += server.api().load(&gvr, recorded.iter().find(same).cloned()).expect("it is loaded");
        let mut metadata = json!({ "name": "bare" });
        if resource.namespaced {
            metadata["namespace"] = "default".into();
        }
        bare += server.api().load(&gvr, [json!({ "metadata": metadata })]).expect("it is loaded");
    }
    let kubeconfig = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(kubeconfig.path(), server.kubeconfig()).expect("a file");
    let path = kubeconfig.path().to_owned();
    let run = tokio::task::spawn_blocking(move || Command::new(program).arg(path).output());
    let output = run.await.expect("no panic").expect("a process");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{}\n{said}", String::from_utf8_lossy(&output.stderr));
    println!("{full} objects with every field, {bare} with none:\n{said}");
    assert!(full >= 50 && bare >= full, "{full} and {bare}");
    assert_eq!(said.lines().count(), bare, "{said}");
}
