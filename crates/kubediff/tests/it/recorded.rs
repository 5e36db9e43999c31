//! A change that went through a history is the same change.

use kubediff::render::Renderer;
use kubediff::{Change, Gvk, Noise, Origin, Path, Profile, Schemas, Secrets, Sighting, Tally, Verb};
use kubediff_history::{Batch, Body, Cluster, Filter, History, Observation, Page, Record, Settings, What};
use serde_json::{Value, json};

use crate::{random, support};

fn object(content: Value) -> Value {
    let mut object = json!({
        "apiVersion": "example.com/v1", "kind": "Thing",
        "metadata": {"name": "a", "namespace": "shop", "uid": "1", "resourceVersion": "7"},
    });
    object["spec"] = content;
    object
}

#[test]
fn a_recorded_change_is_the_same_change() {
    let mut rng = support::seeded("recorded");
    let folder = tempfile::tempdir().unwrap();
    let cluster = Cluster { uid: "1".to_owned(), name: Some("prod".to_owned()) };
    let mut history =
        History::open(folder.path().join("history.db"), &cluster, &Settings::default()).unwrap();
    let profile = Profile {
        noise: Noise::none(),
        secrets: Secrets::with_random_key().unwrap(),
        schemas: Schemas::default(),
    };
    let gvk = Gvk::new("example.com/v1", "Thing");
    let sighting = Sighting {
        cluster: Some("prod"),
        gvk: &gvk,
        resource: "things",
        observed_at: "2026-11-23T14:05:00Z".parse().unwrap(),
        origin: Origin::List,
    };
    let renderer = Renderer { width: 120, ..Renderer::default() };
    let mut compared = 0;
    while compared < 2_000 {
        let (old, new) = random::pair(&mut rng);
        let (old, new) = (object(old), object(new));
        let mut tally = Tally::default();
        let states = crate::support::both(Some(&old), Some(&new));
        let Some(change) = Change::between(&sighting, states, 1, &profile, &mut tally).change() else {
            continue;
        };
        let mut batch = Batch::default();
        batch.observe(Observation {
            record: change.to_record().unwrap(),
            body: Body::redacted(new.to_string()),
            what: What::Change,
            replaces: None,
        });
        let number = history.commit(&batch).unwrap();
        let records = history.reader().unwrap().records(&Filter::default(), &Page::newest(1)).unwrap();
        let [Record::Change(record)] = records.records.as_slice() else { panic!() };
        let json = serde_json::to_value(record).unwrap();
        let again = Change::of_record((**record).clone()).unwrap();
        assert_eq!(again.number, Some(number));
        assert_eq!(renderer.text(&again), renderer.text(&change));
        assert_eq!(renderer.line(&again, None), renderer.line(&change, None));
        assert_eq!(again.verb, Verb::Updated);
        let mut expected = change;
        expected.number = Some(number);
        assert_eq!(serde_json::to_value(&again).unwrap(), serde_json::to_value(&expected).unwrap());
        assert_eq!(json, serde_json::to_value(&expected).unwrap());
        compared += 1;
    }
}

#[test]
fn a_path_is_read_as_it_is_printed() {
    for text in [
        "spec.replicas",
        r#"metadata.annotations["example.com/team"]"#,
        "containers[web].image",
        "ports[80/TCP]",
        "args[2]",
        "args[was 2]",
        r#"env["8080"].value"#,
        "finalizers[]",
        r#"data["app.yaml"]#server.port"#,
        "data.text#[0].name",
        "",
    ] {
        assert_eq!(text.parse::<Path>().unwrap().to_string(), text);
    }
    for text in ["spec..replicas", "spec[", "a[b]c", ".spec", r#"a["b]"#] {
        assert_eq!(
            text.parse::<Path>().unwrap_err().to_string(),
            format!("`{text}` is not a path as kubediff prints it")
        );
    }
}
