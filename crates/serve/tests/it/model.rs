//! A naive collection that remembers everything and searches it from the front: slow and plainly right.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use serve::{
    Batch, Catalog, Change, Collection, CollectionError, Columns, Event, Events, Listing, Object, Range,
    Resource, Resources, SelectableField, ServerVersion, Subresource,
};
use tokio::sync::watch;

/// A server with pods, nodes and widgets (custom resources), all in one sequence of revisions.
pub(crate) struct World {
    history: Mutex<History>,
    changed: watch::Sender<u64>,
}

#[derive(Default)]
struct History {
    /// The events of all resources, each with the plural name of its resource.
    events: Vec<(String, Event)>,
    revision: u64,
    oldest: u64,
    gone: Vec<String>,
}

impl World {
    pub(crate) fn new() -> Arc<Self> {
        let history = History { revision: 100, oldest: 100, ..History::default() };
        Arc::new(Self { history: Mutex::new(history), changed: watch::Sender::new(100) })
    }

    /// Creates or changes an object; `rest` are its members besides the metadata.
    pub(crate) fn put(&self, plural: &str, key: &str, labels: &[(&str, &str)], rest: Value) -> u64 {
        let (namespace, name) = split(key);
        let previous = self.now(plural).remove(key);
        self.happen(|revision| {
            let change = if previous.is_some() { Change::Modified } else { Change::Added };
            let object = object(namespace, name, revision, labels, &rest);
            (plural.to_string(), Event { change, object, previous })
        })
    }

    pub(crate) fn delete(&self, plural: &str, key: &str) -> u64 {
        let previous = self.now(plural).remove(key).expect("it is there");
        self.happen(|revision| {
            let mut last: Value = serde_json::from_slice(&[b"{", &previous.body[..]].concat()).unwrap();
            last["metadata"]["resourceVersion"] = revision.to_string().into();
            let body = last.to_string()[1..].to_string().into();
            let object = Arc::new(Object { revision, body, ..(*previous).clone() });
            (plural.to_string(), Event { change: Change::Deleted, object, previous: Some(previous) })
        })
    }

    /// Moves the revision on without an event in this collection.
    pub(crate) fn pass(&self, revisions: u64) -> u64 {
        let mut history = self.history.lock().unwrap();
        history.revision += revisions;
        let revision = history.revision;
        drop(history);
        self.changed.send_replace(revision);
        revision
    }

    /// Discards the history before a revision.
    pub(crate) fn compact(&self, oldest: u64) {
        self.history.lock().unwrap().oldest = oldest;
    }

    /// Removes a resource.
    pub(crate) fn remove(&self, plural: &str) {
        let mut history = self.history.lock().unwrap();
        history.gone.push(plural.to_string());
        let revision = history.revision;
        drop(history);
        self.changed.send_replace(revision);
    }

    pub(crate) fn revision(&self) -> u64 {
        self.history.lock().unwrap().revision
    }

    /// The objects of a resource at a revision by `namespace/name`.
    pub(crate) fn at(&self, plural: &str, revision: u64) -> BTreeMap<String, Arc<Object>> {
        let history = self.history.lock().unwrap();
        let mut objects = BTreeMap::new();
        for (of, event) in &history.events {
            if of == plural && event.object.revision <= revision {
                let key = format!("{}/{}", event.object.namespace, event.object.name);
                match event.change {
                    Change::Deleted => objects.remove(&key),
                    _ => objects.insert(key, Arc::clone(&event.object)),
                };
            }
        }
        objects
    }

    fn now(&self, plural: &str) -> BTreeMap<String, Arc<Object>> {
        self.at(plural, u64::MAX)
    }

    fn happen(&self, event: impl FnOnce(u64) -> (String, Event)) -> u64 {
        let mut history = self.history.lock().unwrap();
        history.revision += 1;
        let revision = history.revision;
        history.events.push(event(revision));
        drop(history);
        self.changed.send_replace(revision);
        revision
    }
}

fn split(key: &str) -> (&str, &str) {
    key.split_once('/').expect("namespace/name")
}

fn object(namespace: &str, name: &str, revision: u64, labels: &[(&str, &str)], rest: &Value) -> Arc<Object> {
    let mut metadata = json!({ "name": name, "uid": format!("uid-{namespace}-{name}"), "resourceVersion": revision.to_string() });
    if !namespace.is_empty() {
        metadata["namespace"] = namespace.into();
    }
    if !labels.is_empty() {
        metadata["labels"] = labels.iter().map(|(name, value)| ((*name).to_string(), json!(value))).collect();
    }
    let rest = rest.to_string();
    let separator = if rest == "{}" { "" } else { "," };
    Arc::new(Object {
        namespace: namespace.into(),
        name: name.into(),
        revision,
        labels: labels.iter().copied().collect(),
        body: format!("\"metadata\":{metadata}{separator}{}", &rest[1..]).into(),
    })
}

/// The objects of one resource of a world.
struct Of {
    world: Arc<World>,
    plural: String,
}

impl Of {
    fn state(&self, at: Option<u64>) -> Result<(u64, BTreeMap<String, Arc<Object>>), CollectionError> {
        let (revision, oldest, gone) = {
            let history = self.world.history.lock().unwrap();
            (at.unwrap_or(history.revision), history.oldest, history.gone.contains(&self.plural))
        };
        if gone {
            return Err(CollectionError::Gone);
        }
        if revision < oldest {
            return Err(CollectionError::Expired { oldest });
        }
        Ok((revision, self.world.at(&self.plural, revision)))
    }
}

impl Collection for Of {
    fn revision(&self) -> u64 {
        self.world.revision()
    }

    fn get<'a>(
        &'a self,
        namespace: &'a str,
        name: &'a str,
        at: Option<u64>,
    ) -> BoxFuture<'a, Result<Option<Arc<Object>>, CollectionError>> {
        Box::pin(async move { Ok(self.state(at)?.1.remove(&format!("{namespace}/{name}"))) })
    }

    fn list<'a>(
        &'a self,
        range: &'a Range,
        at: Option<u64>,
    ) -> BoxFuture<'a, Result<Listing, CollectionError>> {
        Box::pin(async move {
            let (revision, objects) = self.state(at)?;
            let after = range.after.as_ref().map(|(namespace, name)| format!("{namespace}/{name}"));
            let objects = objects
                .into_iter()
                .filter(|(key, _)| after.as_ref().is_none_or(|after| key > after))
                .map(|(_, object)| object)
                .filter(|object| range.namespace.as_ref().is_none_or(|only| *only == object.namespace))
                .collect();
            Ok(Listing::of(revision, objects))
        })
    }

    fn events(&self, after: u64) -> Result<Box<dyn Events>, CollectionError> {
        assert!(after <= self.revision(), "events after {after}, which is to come");
        self.state(Some(after))?;
        let changed = self.world.changed.subscribe();
        Ok(Box::new(Following {
            world: Arc::clone(&self.world),
            plural: self.plural.clone(),
            told: after,
            changed,
        }))
    }
}

struct Following {
    world: Arc<World>,
    plural: String,
    told: u64,
    changed: watch::Receiver<u64>,
}

impl Following {
    fn ready(&mut self) -> Result<Vec<Event>, CollectionError> {
        let history = self.world.history.lock().unwrap();
        if history.gone.contains(&self.plural) {
            return Err(CollectionError::Gone);
        }
        let new = |(of, event): &&(String, Event)| *of == self.plural && event.object.revision > self.told;
        let events: Vec<Event> = history.events.iter().filter(new).map(|(_, event)| event.clone()).collect();
        if !events.is_empty() && self.told < history.oldest {
            return Err(CollectionError::Expired { oldest: history.oldest });
        }
        self.told = history.revision;
        Ok(events)
    }
}

impl Events for Following {
    fn next(&mut self) -> BoxFuture<'_, Result<Batch, CollectionError>> {
        Box::pin(async move {
            loop {
                let events = self.ready()?;
                if !events.is_empty() {
                    return Ok(Batch { events });
                }
                self.changed.changed().await.expect("the world goes on");
            }
        })
    }

    fn revision(&self) -> u64 {
        self.told
    }
}

/// The catalog of a world.
pub(crate) struct Served(pub(crate) Arc<World>);

impl Catalog for Served {
    fn resources(&self) -> Arc<Resources> {
        Arc::new(resources().into_iter().map(Arc::new).collect())
    }

    fn collection(&self, resource: &Resource) -> Option<Arc<dyn Collection>> {
        Some(Arc::new(Of { world: Arc::clone(&self.0), plural: resource.plural.to_string() }))
    }

    fn version(&self) -> ServerVersion {
        ServerVersion { major: 1, minor: 36, git_version: "v1.36.3".to_string() }
    }
}

fn resources() -> Vec<Resource> {
    let built_in = |plural: &str, kind: &str, namespaced: bool| Resource {
        group: "".into(),
        version: "v1".into(),
        plural: plural.into(),
        singular: plural.trim_end_matches('s').into(),
        kind: kind.into(),
        list_kind: format!("{kind}List").into(),
        namespaced,
        short_names: Vec::new(),
        categories: Vec::new(),
        verbs: ["get", "list", "watch"].map(Box::from).to_vec(),
        subresources: Vec::new(),
        selectable: Vec::new(),
        columns: Columns::BuiltIn,
        typed_items: false,
        stored_version: None,
    };
    let field = |label: &str, missing: &str| SelectableField {
        label: label.into(),
        pointer: format!("/{}", label.replace('.', "/")).into(),
        missing: missing.into(),
    };
    let status = Subresource { name: "status".into(), group_version_kind: None, verbs: vec!["get".into()] };
    vec![
        Resource {
            selectable: vec![field("spec.nodeName", ""), field("status.phase", "")],
            subresources: vec![status.clone()],
            ..built_in("pods", "Pod", true)
        },
        built_in("configmaps", "ConfigMap", true),
        Resource {
            selectable: vec![field("spec.unschedulable", "false")],
            ..built_in("nodes", "Node", false)
        },
        Resource { verbs: vec!["create".into()], ..built_in("bindings", "Binding", true) },
        Resource {
            group: "example.com".into(),
            typed_items: true,
            stored_version: None,
            subresources: vec![status],
            selectable: vec![field("spec.color", "")],
            ..built_in("widgets", "Widget", true)
        },
    ]
}
