//! Ten questions of somebody on call, each checked against what the history itself says.

use std::path::Path;

use jiff::{SignedDuration, Timestamp};
use kubediff_history::{At, Filter, KindName, Location, Number, Page, Reader, Record, Scope, Verb, Version};
use serde_json::{Value, json};

use super::assistant::Assistant;
use crate::daemon::exec::forms;
use crate::page::browser::NOW;
use crate::queries::shop::Shop;
use crate::queries::world::at;
use crate::stories::cast::Cast;

/// The history, read without kubediff.
struct Truth(Reader);

impl Truth {
    fn of(path: &Path) -> Self {
        Self(Reader::at(&Location::File(path.to_owned()), None).unwrap())
    }

    fn records(&mut self, filter: Filter) -> Vec<Record> {
        self.0.records(&filter, &Page::newest(1_000)).unwrap().records
    }

    fn changes(&mut self, filter: Filter) -> Vec<Record> {
        let mut records = self.records(filter);
        records.retain(|record| matches!(record, Record::Change(_)));
        records
    }

    /// The last incarnation of an object that had a state then, and the state.
    fn version(&mut self, kind: &str, name: &str, when: At) -> Version {
        let scope = Scope { name: Some(name.to_owned()), ..shop(Some(kind)) };
        let lives = self.0.incarnations(&scope).unwrap();
        lives.iter().rev().find_map(|life| self.0.version(life, &when).unwrap()).unwrap()
    }
}

fn shop(kind: Option<&str>) -> Scope {
    let kinds = kind.map(|kind| KindName { group: None, resource: kind.to_owned() });
    Scope { kinds: kinds.into_iter().collect(), namespaces: vec!["shop".to_owned()], ..Scope::default() }
}

fn since(time: &str, scope: Scope) -> Filter {
    Filter { scope, from: Some(at(time)), ..Filter::default() }
}

/// The records as JSON, which is what an entry of an answer is.
fn entries(records: &[Record]) -> Vec<Value> {
    let entry = |record: &Record| match record {
        Record::Change(change) => serde_json::to_value(change).unwrap(),
        other => serde_json::to_value(other).unwrap(),
    };
    records.iter().map(entry).collect()
}

/// The entries that are changes.
fn changes(answer: &Value) -> Vec<Value> {
    let items = answer["answer"]["items"].as_array().unwrap();
    items.iter().filter(|item| item["change"] != "gap").cloned().collect()
}

/// The object as it is shown: without what other managers own of it.
fn plain(version: &Version) -> Value {
    let mut object: Value = version.body.value();
    object["metadata"].as_object_mut().unwrap().remove("managedFields");
    object
}

#[tokio::test]
async fn ten_questions_on_call_have_the_answers_of_the_history() {
    let opened = Shop::open();
    let mut truth = Truth::of(&opened.path);
    let on_call = Assistant::at(&opened.path, NOW).await;

    // 1. What changed in the namespace shop in the last hour?
    let log = on_call.ask("changes", json!({"ns": "shop", "since": "-1h"})).await;
    let told = truth.changes(since("14:00:00", shop(None)));
    assert_eq!(changes(&log), entries(&told));
    assert!(told.len() > 10 && log["next"].is_null(), "{log}");
    assert_eq!(log["coverage"]["from"], json!(truth.0.complete_since().unwrap()));

    // 2. Who changed the image of cart, before it was deleted?
    let path = "spec.template.spec.containers.image";
    let asked = json!({"kind": "deploy", "ns": "shop", "name": "cart", "path": path, "at": "14:06"});
    let blame = on_call.ask("blame", asked).await;
    let field = &blame["answer"]["fields"][0];
    let number = Number(field["number"].as_u64().unwrap());
    let change = truth.0.version_of(number).unwrap().unwrap().change.unwrap();
    assert_eq!(change.managers[0].manager, "kubectl-set");
    assert!(field.to_string().contains("kubectl-set"), "{field}");
    assert_eq!(change.observed_at, at("14:05:00"));

    // 3. What did cart look like at 14:05?
    let cart = json!({"kind": "deploy", "ns": "shop", "name": "cart", "at": "14:05"});
    let state = on_call.ask("object", cart).await;
    let version = truth.version("deployments", "cart", At::Time(at("14:05:00")));
    assert_eq!(state["answer"]["object"], plain(&version));
    assert_eq!(state["answer"]["number"], json!(version.number));

    // 4. What was not watched?
    let coverage = on_call.ask("coverage", json!({"since": "14:00"})).await;
    let gaps = truth.0.gaps(&Scope::default(), Some(at("14:00:00")), None, &Page::newest(100)).unwrap();
    assert_eq!(coverage["gaps"], json!(gaps));
    assert_eq!(gaps.len(), 2);
    assert_eq!(coverage["answer"]["cluster"], "prod");
    let covered = on_call.ask("coverage", json!({"since": "2026-01-01"})).await;
    assert!(covered["doubts"].to_string().contains("what happened before is not known"), "{covered}");
    let before = on_call.ask("changes", json!({"until": "2026-01-01"})).await;
    assert_eq!(before["answer"]["items"], json!([]));
    assert!(before["doubts"].to_string().contains("the history is complete since"), "{before}");

    // 5. What is different between two instants?
    let asked = json!({"from": "14:02", "to": "14:08", "kind": "cm", "ns": "shop"});
    let diff = on_call.ask("diff", asked).await;
    let [then, now] =
        ["14:02:00", "14:08:00"].map(|it| plain(&truth.version("configmaps", "app", At::Time(at(it)))));
    assert_ne!(then["data"], now["data"]);
    let items = diff["answer"]["items"].as_array().unwrap();
    assert!(items.len() == 1 && items[0]["name"] == "app" && items[0].get("new").is_none(), "{diff}");
    let whole = json!({"from": "14:02", "to": "14:08", "kind": "cm", "ns": "shop", "whole": true});
    let whole = on_call.ask("diff", whole).await;
    let item = &whole["answer"]["items"][0];
    assert_eq!((&item["old"]["data"], &item["new"]["data"]), (&then["data"], &now["data"]));

    // 6. Who deleted the pod, and when?
    let asked = json!({"kind": "pods", "ns": "shop", "name": "cart-a", "change": "deleted"});
    let gone = on_call.ask("changes", asked).await;
    let told = truth.changes(Filter { verbs: vec![Verb::Deleted], ..since("13:00:00", shop(Some("pods"))) });
    assert_eq!(changes(&gone), entries(&told));
    assert_eq!(told.len(), 1);
    assert_eq!(gone["gaps"].as_array().unwrap().len(), 1, "the gap of pods: {gone}");

    // 7. Go on with the cursor, until everything is told.
    let (all, parts) = on_call.all("changes", json!({"limit": 3}), "items").await;
    let told = truth.changes(Filter::default());
    let all: Vec<Value> = all.into_iter().filter(|item| item["change"] != "gap").collect();
    assert_eq!(all, entries(&told));
    assert!(parts >= 4, "{parts}");

    // 8. Which pods were there at 14:06?
    let pods = on_call.ask("objects", json!({"kind": "pods", "ns": "shop", "at": "14:06"})).await;
    let present = truth.0.present(&shop(Some("pods")), Some(at("14:06:00"))).unwrap();
    let states = truth.0.states(&present, 0..present.len()).unwrap();
    assert_eq!(pods["answer"]["total"], states.len());
    assert_eq!(pods["answer"]["items"][0]["object"], plain(&states[0]));

    // 9. What came of the rollout?
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("history.db");
    let mut cast = Cast::in_rollout(&path);
    cast.reports("cart", [2, 2, 2]);
    let now = format!("{}[UTC]", cast.now + SignedDuration::from_mins(5));
    drop(cast);
    let mut truth_of_it = Truth::of(&path);
    let of_rollout = Assistant::at(&path, &now).await;
    let folded = of_rollout.ask("changes", json!({"ns": "shop", "fold": true})).await;
    let items = folded["answer"]["items"].as_array().unwrap();
    let id = items.iter().find_map(|item| item["story"]["id"].as_u64()).unwrap();
    let story = of_rollout.ask("story", json!({"number": id})).await;
    assert_eq!(story["answer"]["story"]["object"]["name"], "cart");
    let records = story["answer"]["records"].as_array().unwrap();
    assert!(records.len() > 1, "{story}");
    for record in records {
        let number = Number(record["number"].as_u64().unwrap());
        let told = truth_of_it.0.version_of(number).unwrap().unwrap().change.unwrap();
        assert_eq!(*record, serde_json::to_value(&told).unwrap());
    }

    // 10. What was the configuration before it was set to debug?
    let edits =
        truth.changes(Filter { manager: Some("kubectl-edit".to_owned()), ..since("14:00:00", shop(None)) });
    let first = edits.last().unwrap().number();
    let before =
        on_call.ask("changes", json!({"kind": "cm", "by": "kubectl-*", "order": "oldest", "limit": 1})).await;
    assert_eq!(changes(&before)[0]["number"], json!(first));
    let asked = json!({"kind": "cm", "ns": "shop", "name": "app", "rev": first});
    let after = on_call.ask("object", asked).await;
    assert_eq!(after["answer"]["object"], plain(&truth.version("configmaps", "app", At::Number(first))));

    // The values of the Secret are in none of what is known about it.
    for (tool, arguments) in [
        ("changes", json!({"kind": "secrets"})),
        ("blame", json!({"kind": "secrets", "ns": "shop", "name": "db"})),
        ("object", json!({"kind": "secrets", "ns": "shop", "name": "db", "managed": true})),
        ("objects", json!({"kind": "secrets", "at": "14:45"})),
        ("diff", json!({"kind": "secrets", "from": "14:30", "to": "14:45", "whole": true})),
    ] {
        let text = on_call.text(tool, &arguments).await;
        assert!(text.contains("db") && text.contains("bytes"), "{tool}: {text}");
        for form in forms("hunter2hunter2") {
            assert!(!text.contains(&form), "{tool}: {text}");
        }
    }
    let times: Option<Timestamp> = log["now"].as_str().and_then(|now| now.split('[').next()?.parse().ok());
    assert_eq!(times, Some(at("15:00:00")));
    assert!(on_call.leave().await.success());
}
