//! A history as kubediff writes it: of objects whose states are told one after the other.

use std::collections::BTreeMap;
use std::path::Path;

use jiff::Timestamp;
use kubediff::{Change, Compared, Noise, Origin, Profile, Schemas, Secrets, Sighting, Tally, Verb};
use kubediff_history::{
    Batch, Body, ChangeRecord, Cluster, History, Location, ObjectId, Observation, Settings, What,
};
use serde_json::{Value, json};

use crate::support;

/// The history so far, and the states that led to it.
pub(crate) struct World {
    history: History,
    profile: Profile,
    /// The last state of each object, as the cluster has it.
    states: BTreeMap<String, Value>,
    rv: u64,
    origin: Origin,
}

/// A time of the first of March.
pub(crate) fn at(time: &str) -> Timestamp {
    format!("2026-03-01T{time}Z").parse().unwrap()
}

impl World {
    pub(crate) fn open(path: &Path, key: [u8; 32]) -> Self {
        Self::with_schemas(path, key, Schemas::default())
    }

    pub(crate) fn with_schemas(path: &Path, key: [u8; 32], schemas: Schemas) -> Self {
        Self::of(&Location::File(path.to_owned()), ("1f3a", "prod"), key, schemas)
    }

    /// The history of a cluster with this uid and name.
    pub(crate) fn of(place: &Location, (uid, name): (&str, &str), key: [u8; 32], schemas: Schemas) -> Self {
        let cluster = Cluster { uid: uid.to_owned(), name: Some(name.to_owned()) };
        Self {
            history: History::at(place, &cluster, &Settings::default()).unwrap(),
            profile: Profile { noise: Noise::default(), secrets: Secrets::with_key(key), schemas },
            states: BTreeMap::new(),
            rv: 1_000,
            origin: Origin::Watch,
        }
    }

    /// Events are kept from now on.
    pub(crate) fn keeps_events(&mut self) {
        self.profile.noise.keep_events(true);
    }

    /// The object was there when the watch began.
    pub(crate) fn known(&mut self, time: &str, object: Value) {
        self.known_at(at(time), object);
    }

    pub(crate) fn known_at(&mut self, time: Timestamp, object: Value) {
        self.observe(time, object, true);
    }

    /// From now on, something else is hidden, or with another key.
    pub(crate) fn hides(&mut self, secrets: Secrets) {
        self.profile.secrets = secrets;
    }

    /// A restart finds the changes that follow. It hides something else, or with another key, and knows only the stored states.
    pub(crate) fn restarts(&mut self, secrets: Secrets) {
        let former = std::mem::replace(&mut self.profile.secrets, secrets);
        for state in self.states.values_mut() {
            *state = former.redact(&support::gvk(state).0, state.take()).into_inner();
        }
        self.origin = Origin::Restart;
    }

    pub(crate) fn secrets(&self) -> &Secrets {
        &self.profile.secrets
    }

    /// The last state of an object.
    pub(crate) fn state(&self, kind: &str, name: &str) -> &Value {
        &self.states[&format!("{kind} shop/{name}")]
    }

    /// Whether the object exists.
    pub(crate) fn has(&self, kind: &str, name: &str) -> bool {
        self.states.contains_key(&format!("{kind} shop/{name}"))
    }

    /// A manager has created or changed the object to this.
    pub(crate) fn wrote(&mut self, time: &str, manager: &str, object: Value) {
        self.wrote_at(at(time), manager, object);
    }

    pub(crate) fn wrote_at(&mut self, time: Timestamp, manager: &str, mut object: Value) {
        let old = self.states.get(&key(&object)).cloned();
        let is_same = |old: &&Value| old["metadata"]["uid"] == object["metadata"]["uid"];
        let entries = old
            .as_ref()
            .filter(is_same)
            .and_then(|old| old.pointer("/metadata/managedFields")?.as_array().cloned());
        let mut entries = entries.unwrap_or_default();
        let (manager, subresource) = manager.split_once('/').unwrap_or((manager, ""));
        entries.retain(|entry| entry["manager"] != manager);
        let mut entry = json!({
            "manager": manager, "operation": "Update", "apiVersion": "v1", "time": time.to_string(),
            "fieldsType": "FieldsV1", "fieldsV1": {},
        });
        if !subresource.is_empty() {
            entry["subresource"] = subresource.into();
        }
        entries.push(entry);
        object["metadata"]["managedFields"] = entries.into();
        self.observe(time, object, false);
    }

    /// The object has become this, managed fields included.
    pub(crate) fn became(&mut self, time: &str, object: Value) {
        self.became_at(at(time), object);
    }

    pub(crate) fn became_at(&mut self, time: Timestamp, object: Value) {
        self.observe(time, object, false);
    }

    pub(crate) fn gap(&mut self, from: &str, to: &str, resource: Option<&str>, reason: &str) {
        self.gap_at(at(from), at(to), resource, reason);
    }

    pub(crate) fn gap_at(&mut self, from: Timestamp, to: Timestamp, resource: Option<&str>, reason: &str) {
        let mut batch = Batch::default();
        batch.gap(from, to, resource, reason);
        self.history.commit(&batch).unwrap();
    }

    pub(crate) fn history(&mut self) -> &mut History {
        &mut self.history
    }

    fn observe(&mut self, time: Timestamp, mut object: Value, is_known: bool) {
        self.rv += 1;
        object["metadata"]["resourceVersion"] = self.rv.to_string().into();
        let old = self.states.insert(key(&object), object.clone());
        self.commit(time, old, Some(object), is_known);
    }

    /// The object is gone.
    pub(crate) fn deleted(&mut self, time: &str, kind: &str, name: &str) {
        self.deleted_at(at(time), kind, name);
    }

    pub(crate) fn deleted_at(&mut self, time: Timestamp, kind: &str, name: &str) {
        self.gone(time, &format!("{kind} shop/{name}"));
    }

    /// An object that is in no namespace is gone.
    pub(crate) fn cluster_deleted_at(&mut self, time: Timestamp, kind: &str, name: &str) {
        self.gone(time, &format!("{kind} {name}"));
    }

    /// `Deployment shop/cart`.
    pub(crate) fn key_of(&self, object: &Value) -> String {
        key(object)
    }

    pub(crate) fn deleted_key_at(&mut self, time: Timestamp, key: &str) {
        self.gone(time, key);
    }

    fn gone(&mut self, time: Timestamp, key: &str) {
        let old = self.states.remove(key);
        assert!(old.is_some(), "{key}");
        self.commit(time, old, None, false);
    }

    fn commit(&mut self, time: Timestamp, old: Option<Value>, new: Option<Value>, is_known: bool) {
        let last = new.as_ref().or(old.as_ref()).unwrap();
        let (gvk, resource) = support::gvk(last);
        let sighting = Sighting {
            cluster: Some("prod"),
            gvk: &gvk,
            resource: &resource,
            observed_at: time,
            origin: self.origin,
        };
        let text = |object: &Value, name: &str| object["metadata"][name].as_str().map(str::to_owned);
        let states = support::both(old.as_ref(), new.as_ref());
        let compared = Change::between(&sighting, states, 1, &self.profile, &mut Tally::default());
        let is_event = matches!(compared, Compared::Event(_));
        let change = compared.change();
        let uid = text(last, "uid").unwrap();
        let replaced = old.as_ref().and_then(|old| text(old, "uid")).filter(|before| *before != uid);
        let body = self.profile.secrets.redact(&gvk, last.clone());
        let mut batch = Batch::default();
        let what = match &change {
            _ if is_known => What::Known,
            Some(_) => What::Change,
            None if is_event => What::Event,
            None => What::Noise,
        };
        let object = ObjectId {
            gvk: gvk.clone(),
            resource: resource.clone(),
            namespace: text(last, "namespace"),
            name: text(last, "name").unwrap(),
            uid,
        };
        let rv = text(last, "resourceVersion");
        let record = match change {
            Some(change) => change.to_record().unwrap(),
            None => {
                let verb = if old.is_some() { Verb::Updated } else { Verb::Added };
                ChangeRecord { object, rv, verb, observed_at: time, ..ChangeRecord::default() }
            }
        };
        let body = Body::redacted(body.to_string());
        batch.observe(Observation { record, body, what, replaces: replaced });
        self.history.commit(&batch).unwrap();
    }
}

/// `Deployment shop/cart`.
fn key(object: &Value) -> String {
    let text = |name: &str| object["metadata"][name].as_str();
    let kind = object["kind"].as_str().unwrap();
    match text("namespace") {
        Some(namespace) => format!("{kind} {namespace}/{}", text("name").unwrap()),
        None => format!("{kind} {}", text("name").unwrap()),
    }
}
