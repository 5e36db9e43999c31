//! The JSON Patch makes the new object of the old one, as another implementation applies it.

use kubediff::{diff, patch};
use serde_json::{Value, json};

use crate::{random, support};

#[track_caller]
fn applied(old: &Value, new: &Value) -> Value {
    let ops = serde_json::to_value(patch(old, new)).unwrap();
    let parsed: json_patch::Patch = serde_json::from_value(ops.clone()).unwrap();
    let mut object = old.clone();
    if let Err(error) = json_patch::patch(&mut object, &parsed) {
        panic!("{error}\nold {old}\nnew {new}\npatch {ops}");
    }
    object
}

#[test]
fn applied_to_the_old_object_it_gives_the_new_one() {
    let mut rng = support::seeded("patches");
    for _ in 0..10_000 {
        let (old, new) = random::pair(&mut rng);
        let result = applied(&old, &new);
        assert_eq!(result, new, "\nold {old}\nnew {new}\npatch {:?}", patch(&old, &new));
    }
}

#[test]
fn there_are_differences_exactly_when_the_objects_differ() {
    let mut rng = support::seeded("differences");
    for _ in 0..10_000 {
        let (old, new) = random::pair(&mut rng);
        let differences = diff(&old, &new);
        assert_eq!(differences.is_empty(), old == new, "\nold {old}\nnew {new}");
        assert_eq!(differences, diff(&old, &new));
    }
}

#[test]
fn elements_keep_their_identity() {
    let old = json!({"containers": [{"name": "a", "image": "1"}, {"name": "b"}, {"name": "c"}]});
    let new =
        json!({"containers": [{"name": "b"}, {"name": "d"}, {"name": "c"}, {"name": "a", "image": "2"}]});
    let ops: Vec<String> = patch(&old, &new).iter().map(|op| serde_json::to_string(op).unwrap()).collect();
    assert_eq!(
        ops,
        [
            r#"{"op":"move","from":"/containers/0","path":"/containers/2"}"#,
            r#"{"op":"add","path":"/containers/1","value":{"name":"d"}}"#,
            r#"{"op":"replace","path":"/containers/3/image","value":"2"}"#,
        ]
    );
    assert_eq!(applied(&old, &new), new);
}

#[test]
fn a_value_that_becomes_another_one_altogether_is_replaced() {
    for (old, new) in
        [(json!(1), json!({"a": 1})), (json!([1]), json!({"0": 1})), (json!({"": 1}), json!({"": null}))]
    {
        assert_eq!(applied(&old, &new), new);
    }
}

/// Every two versions in a row that objects of the demo had, and the first and last ones.
#[cfg(feature = "demo")]
#[tokio::test]
async fn versions_that_a_server_had() {
    use std::collections::BTreeMap;

    use kubediff::demo::Plot;
    use testapi::{Api, ApiOptions, Gvr};

    let api = Api::new(ApiOptions::default());
    let mut story = Plot::new(7);
    let mut acts = story.prologue();
    let mut versions: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for _ in 0..60 {
        for act in std::mem::replace(&mut acts, story.step().acts) {
            crate::support::perform(&api, &act).await;
            for (group, plural) in [
                ("v1", "pods"),
                ("v1", "configmaps"),
                ("v1", "secrets"),
                ("apps/v1", "deployments"),
                ("v1", "nodes"),
            ] {
                for object in api.list(&Gvr::new(group, plural), None).unwrap() {
                    let key = format!(
                        "{plural}/{}/{}",
                        object["metadata"]["namespace"], object["metadata"]["name"]
                    );
                    let seen = versions.entry(key).or_default();
                    if seen.last() != Some(&object) {
                        seen.push(object);
                    }
                }
            }
        }
    }
    let mut pairs = 0;
    for (key, versions) in &versions {
        let ends = versions.first().zip(versions.last());
        for (old, new) in versions.iter().zip(versions.iter().skip(1)).chain(ends) {
            assert_eq!(applied(old, new), *new, "{key}");
            assert_eq!(applied(new, old), *old, "{key}");
            assert_eq!(diff(old, new).is_empty(), old == new, "{key}");
            pairs += 1;
        }
    }
    assert!(pairs > 50, "{pairs}");
}
