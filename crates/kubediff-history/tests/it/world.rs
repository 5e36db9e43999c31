//! Objects for tests, from a seed.

use jiff::{SignedDuration, Timestamp};
use kubediff_history::*;
use serde_json::{Value, json};

pub(crate) fn cluster() -> Cluster {
    Cluster { uid: "cluster-1".to_owned(), name: Some("test".to_owned()) }
}

pub(crate) fn open(path: &std::path::Path) -> History {
    crate::store::open(path, &cluster())
}

/// Seconds after the beginning of the tests' time.
pub(crate) fn at(seconds: i64) -> Timestamp {
    "2026-11-23T14:00:00Z".parse::<Timestamp>().unwrap() + SignedDuration::from_secs(seconds)
}

pub(crate) fn object(resource: &str, namespace: Option<&str>, name: &str, uid: &str) -> ObjectId {
    let (group, kind) = match resource {
        "deployments" => ("apps", "Deployment"),
        "nodes" => ("", "Node"),
        _ => ("", "Pod"),
    };
    ObjectId {
        gvk: Gvk { group: group.to_owned(), version: "v1".to_owned(), kind: kind.to_owned() },
        resource: resource.to_owned(),
        namespace: namespace.map(str::to_owned),
        name: name.to_owned(),
        uid: uid.to_owned(),
    }
}

pub(crate) fn observation(
    object: &ObjectId,
    rv: u64,
    observed_at: Timestamp,
    body: &Value,
    (what, change): (What, ChangeRecord),
) -> Observation {
    let record = ChangeRecord { object: object.clone(), rv: Some(rv.to_string()), observed_at, ..change };
    Observation { record, body: Body::redacted(body.to_string()), what, replaces: None }
}

pub(crate) fn known() -> (What, ChangeRecord) {
    (What::Known, ChangeRecord::default())
}

pub(crate) fn noise() -> (What, ChangeRecord) {
    (What::Noise, ChangeRecord::default())
}

pub(crate) fn changed(change: ChangeRecord) -> (What, ChangeRecord) {
    (What::Change, change)
}

pub(crate) fn manager(name: &str) -> Manager {
    Manager { manager: name.to_owned(), operation: "Update".to_owned(), ..Manager::default() }
}

pub(crate) fn change(verb: Verb, managers: &[&str], paths: &[&str]) -> ChangeRecord {
    ChangeRecord {
        verb,
        managers: managers.iter().map(|name| manager(name)).collect(),
        paths: paths.iter().map(|&path| path.to_owned()).collect(),
        diff: json!(paths.iter().map(|path| json!({"path": path, "kind": "changed"})).collect::<Vec<_>>()),
        summary: paths.join(", "),
        dropped: [("generation".to_owned(), u32::try_from(paths.len()).unwrap())].into(),
        key: (!managers.is_empty()).then(|| "0badcafe".to_owned()),
        merged: u32::try_from(managers.len()).unwrap().max(1),
        ..ChangeRecord::default()
    }
}

/// An object of some kilobytes: most of it is the same in all versions, and in all objects of a shape.
pub(crate) fn body(random: &mut fastrand::Rng, object: &ObjectId, rv: u64) -> Value {
    let fixed = fastrand::Rng::with_seed(random.u64(..3)).u64(..);
    let env: Vec<Value> = (0..30)
        .map(|n| json!({"name": format!("VARIABLE_{n}"), "value": format!("{fixed:x}-{n}")}))
        .collect();
    json!({
        "metadata": {"name": object.name, "uid": object.uid, "resourceVersion": rv.to_string()},
        "spec": {"containers": [{"name": "web", "image": format!("web:{}", random.u8(..4)), "env": env}]},
        "status": {"phase": "Running", "restarts": random.u8(..), "token": format!("{:x}", random.u64(..))},
    })
}

/// Everything up to this record was taken.
pub(crate) fn settled(number: u64) -> Settled {
    Settled { position: Number(number), ..Settled::default() }
}

/// A whole run of retention. Its steps are prepared, or none of them, or every second one, as the time has it.
pub(crate) fn retain(history: &mut History, retention: &Retention, now: Timestamp) -> Retained {
    let mut reader = history.reader().unwrap();
    let mut plan = reader.plan(retention, now).unwrap();
    let mut all = Retained::default();
    for step in 0.. {
        if step % 2 < now.as_second() % 3 {
            reader.prepare(&mut plan).unwrap();
        }
        let step = history.retain(&plan).unwrap();
        all.versions += step.versions;
        all.gaps += step.gaps;
        all.rebased += step.rebased;
        all.complete_after = step.complete_after;
        for lost in step.lost {
            match all.lost.iter_mut().find(|it| it.sink == lost.sink) {
                Some(found) => (found.up_to, found.records) = (lost.up_to, found.records + lost.records),
                None => all.lost.push(lost),
            }
        }
        if !step.more {
            break;
        }
    }
    all
}

pub(crate) const MARK: &str = "<hmac:1f3a9c20 15 bytes>";

/// Masks this text wherever it is.
pub(crate) struct Replaced(pub(crate) &'static str);

impl Replaced {
    pub(crate) fn all_of(&self, value: &mut Value) {
        match value {
            Value::String(text) => *text = text.replace(self.0, MARK),
            Value::Array(list) => list.iter_mut().for_each(|part| self.all_of(part)),
            Value::Object(map) => {
                let renamed = std::mem::take(map).into_iter().map(|(name, mut value)| {
                    self.all_of(&mut value);
                    (name.replace(self.0, MARK), value)
                });
                *map = renamed.collect();
            }
            _ => {}
        }
    }
}

impl Mask for Replaced {
    fn object(&self, _: &ObjectId, content: &mut Value) {
        self.all_of(content);
    }

    fn change(&self, _: &ObjectId, details: Details<'_>) {
        self.all_of(details.diff);
        for text in details.paths.iter_mut().chain([details.summary]) {
            *text = text.replace(self.0, MARK);
        }
    }

    fn text(&self, text: &mut String) {
        *text = text.replace(self.0, MARK);
    }
}

pub(crate) fn commit(history: &mut History, observations: impl IntoIterator<Item = Observation>) {
    let mut batch = Batch::default();
    observations.into_iter().for_each(|it| batch.observe(it));
    history.commit(&batch).unwrap();
}
