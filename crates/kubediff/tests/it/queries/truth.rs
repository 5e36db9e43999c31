//! The history's answers are the server's states (issue 19, attack 5): random custom resources, with random schemas.

use fastrand::Rng;
use kubediff::Schemas;
use kubediff_history::{At, KindName, Reader, Scope};
use serde_json::{Value, json};

use super::world::World;
use crate::{random, support};

const LISTS: &[&str] = &["conditions", "env", "finalizers", "images", "ports", "tolerations", "verbs", "x"];

/// A schema that says something else of each list: nothing, that it is atomic, a set, or a map. And the names of the sets.
fn schemas(rng: &mut Rng) -> (Schemas, Vec<&'static str>) {
    let (mut lists, mut sets) = (json!({}), Vec::new());
    for name in LISTS {
        lists[*name] = match rng.u32(0..4) {
            0 => json!({"type": "array", "items": {"type": "object"}}),
            1 => json!({"type": "array", "x-kubernetes-list-type": "atomic"}),
            2 => {
                sets.push(*name);
                json!({"type": "array", "x-kubernetes-list-type": "set"})
            }
            _ => {
                json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]})
            }
        };
    }
    let document = json!({"components": {"schemas": {"Gate": {
        "x-kubernetes-group-version-kind": [{"group": "example.com", "version": "v1", "kind": "Gate"}],
        "properties": {"spec": {"properties": lists}},
    }}}});
    let schemas = Schemas::default();
    schemas.load("example.com", "v1", document.to_string().as_bytes()).unwrap();
    (schemas, sets)
}

/// The fields, with the elements of sets in the order of their texts.
fn in_one_order(spec: &Value, sets: &[&str]) -> Value {
    let mut spec = spec.clone();
    for name in sets {
        if let Some(list) = spec.get_mut(*name).and_then(Value::as_array_mut) {
            list.sort_by_key(Value::to_string);
        }
    }
    spec
}

fn spec(rng: &mut Rng) -> Value {
    let mut spec = json!({});
    for name in LISTS {
        spec[*name] = (0..rng.usize(0..5))
            .map(|at| match rng.bool() {
                true => json!(format!("text {at}")),
                false => json!({"name": format!("n{at}"), "v": random::value(rng, 2)}),
            })
            .collect();
    }
    spec
}

/// A list in another order, or any other edit.
fn edit(rng: &mut Rng, spec: &mut Value) {
    match spec[*rng.choice(LISTS).unwrap()].as_array_mut() {
        Some(list) if rng.bool() => rng.shuffle(list),
        _ => random::edit(rng, spec, 4),
    }
    if !spec.is_object() {
        *spec = json!({});
    }
}

#[test]
fn k1_k2_the_history_answers_what_the_server_had_but_for_named_noise() {
    let mut rng = support::seeded("truth");
    for round in 0..40 {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("history.db");
        let (schemas, sets) = schemas(&mut rng);
        let mut world = World::with_schemas(&path, [7; 32], schemas);
        let mut object = json!({"apiVersion": "example.com/v1", "kind": "Gate",
            "metadata": {"name": "g", "namespace": "shop", "uid": "1"}, "spec": spec(&mut rng)});
        let mut states = Vec::new();
        for second in 0..20 {
            let at = support::now() + std::time::Duration::from_secs(second);
            world.wrote_at(at, "editor", object.clone());
            states.push((at, world.state("Gate", "g").clone()));
            edit(&mut rng, &mut object["spec"]);
        }
        let mut reader = Reader::open(&path).unwrap();
        let gate =
            Scope { kinds: vec![KindName { group: None, resource: "gates".to_owned() }], ..Scope::default() };
        let (gvk, _) = support::gvk(&object);
        let incarnation = reader.incarnations(&gate).unwrap().remove(0);
        let last = states.last().unwrap().0;
        for (at, state) in states {
            let truth = world.secrets().redact(&gvk, state).into_inner();
            let mut answers = vec![
                reader.state(&gate, Some(at)).unwrap().remove(0),
                reader.version(&incarnation, &At::Time(at)).unwrap().unwrap(),
            ];
            if at == last {
                answers.push(reader.state(&gate, None).unwrap().remove(0));
                for answer in &answers {
                    assert_eq!(answer.body.value(), truth, "round {round}: the last state");
                }
            }
            // Only a set may be in another order: everything else would have been a change.
            for answer in answers.iter().map(|version| version.body.value()) {
                let same = in_one_order(&answer["spec"], &sets) == in_one_order(&truth["spec"], &sets);
                assert!(same, "round {round}, {at}:\n{answer}\n{truth}");
            }
        }
    }
}
