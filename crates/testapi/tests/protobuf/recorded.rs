//! The objects that the Kubernetes modules bring along for tests of their own: each kind with every field set, in JSON
//! and in protobuf.

use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;
use testapi::schema::{builtin, from_protobuf, to_protobuf};

/// The directory of a module of Go, unless tests are to do without.
fn module(name: &str) -> Option<PathBuf> {
    if std::env::var_os("INFORMER_NO_CONTROL_PLANE").is_some() {
        return None;
    }
    let here = concat!(env!("CARGO_MANIFEST_DIR"), "/../../control-plane");
    let go = |arguments: &[&str]| {
        let output = Command::new("go").args(arguments).arg(name).current_dir(here).output().ok()?;
        String::from_utf8(output.stdout).ok().filter(|_| output.status.success())
    };
    let found = go(&["mod", "download"]).and_then(|_| go(&["list", "-m", "-f", "{{.Dir}}"]));
    assert!(found.is_some() || std::env::var("CI").is_err(), "there is no Go, and nothing may be left out");
    Some(PathBuf::from(found?.trim()))
}

#[test]
fn every_field_of_every_kind_is_written_as_kubernetes_writes_it() {
    let Some(module) = module("k8s.io/api") else { return };
    let (mut objects, mut equal) = (0, 0);
    for entry in std::fs::read_dir(module.join("testdata/HEAD")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "json") {
            continue;
        }
        let json: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        let Some(ours) = to_protobuf(&json) else { continue };
        let theirs = std::fs::read(path.with_extension("pb")).unwrap();
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let [ours_read, theirs_read] = [&ours, &theirs].map(|message| from_protobuf(message).unwrap());
        same(&name, &ours_read, &theirs_read);
        let mut expected = json.clone();
        let (group, version) = json["apiVersion"].as_str().unwrap().rsplit_once('/').unwrap_or(("", "v1"));
        if let Some(schema) = builtin(group, version, json["kind"].as_str().unwrap()) {
            schema.normalize(&mut expected);
        }
        same(&name, &ours_read, &expected);
        objects += 1;
        if ours == theirs {
            equal += 1;
        } else {
            println!("{name}: other bytes");
        }
    }
    println!("{objects} kinds, {equal} of them with equal bytes");
    assert!(objects >= 60, "{objects}");
}

/// Where two documents differ, shortly.
fn same(path: &str, ours: &Value, theirs: &Value) {
    match (ours, theirs) {
        (Value::Object(ours), Value::Object(theirs)) => {
            for name in ours.keys().chain(theirs.keys()) {
                same(
                    &format!("{path}/{name}"),
                    ours.get(name).unwrap_or(&Value::Null),
                    theirs.get(name).unwrap_or(&Value::Null),
                );
            }
        }
        (Value::Array(ours), Value::Array(theirs)) if ours.len() == theirs.len() => {
            for (at, (ours, theirs)) in ours.iter().zip(theirs).enumerate() {
                same(&format!("{path}/{at}"), ours, theirs);
            }
        }
        _ => assert_eq!(ours, theirs, "{path}"),
    }
}
