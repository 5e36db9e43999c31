//! Small objects, and changes in short form: the vocabulary of the store's tests.

use std::borrow::Borrow;
use std::sync::Arc;

use informer_core::store::{Replace, SourceId};
use informer_core::{Change, Delta, Object, ObjectKey, Origin, ResourceVersion, Scope, Store};
use serde_json::json;

/// The fields of an object in these tests.
#[derive(Debug, Clone, Default)]
pub struct Pod<'a> {
    /// Namespace and name.
    pub key: &'a str,
    /// Its resourceVersion.
    pub version: &'a str,
    /// Its incarnation.
    pub uid: &'a str,
    /// Its labels.
    pub labels: &'a [(&'a str, &'a str)],
    /// The tags that [`tags`] returns for it.
    pub tags: &'a [&'a str],
    /// More, to make it as large as objects are.
    pub filler: &'a str,
}

impl Pod<'_> {
    /// The object, its bytes in memory as they are.
    pub fn object(&self) -> Arc<Object> {
        Arc::new(Object::from_json(self.json().as_bytes()).unwrap())
    }

    /// The object's JSON.
    pub fn json(&self) -> String {
        let key: ObjectKey = self.key.parse().unwrap();
        let labels: serde_json::Map<_, _> =
            self.labels.iter().map(|(key, value)| ((*key).to_owned(), json!(value))).collect();
        let json = json!({
            "metadata": {
                "name": key.name(), "namespace": key.namespace(), "resourceVersion": self.version, "uid": self.uid,
                "labels": labels,
            },
            "tags": self.tags,
            "filler": self.filler,
        });
        json.to_string()
    }
}

/// An object of which only key and version matter.
pub fn pod(key: &str, version: u64) -> Arc<Object> {
    Pod { key, version: &version.to_string(), ..Pod::default() }.object()
}

/// The version of this number.
pub fn version(number: u64) -> ResourceVersion {
    ResourceVersion::new(&number.to_string())
}

/// The index function of these tests: fails or panics where a tag asks for it.
pub fn tags(object: &Object) -> Result<Vec<String>, Box<dyn std::error::Error + Send + Sync>> {
    let object = object.decode::<serde_json::Value>()?;
    let tags: Vec<String> = serde_json::from_value(object["tags"].clone())?;
    assert!(!tags.iter().any(|tag| tag == "panic"), "a tag asks for it");
    if tags.iter().any(|tag| tag == "fail") {
        return Err("a tag asks for it".into());
    }
    Ok(tags)
}

/// A store with one source of everything, that has these objects.
pub fn synced(objects: impl IntoIterator<Item = Arc<Object>>, at: u64) -> (Store, SourceId) {
    let mut store = Store::new();
    let source = store.add_source(Scope::All);
    relist(&mut store, source, objects, at);
    (store, source)
}

/// Lists these objects.
pub fn relist(
    store: &mut Store,
    source: SourceId,
    objects: impl IntoIterator<Item = Arc<Object>>,
    at: u64,
) -> Vec<Change> {
    let list = staged(store.begin_replace(source), objects);
    let changes = store.commit(list, version(at)).unwrap().collect();
    store.validate();
    changes
}

/// Puts these objects into a list.
pub fn staged(mut list: Replace, objects: impl IntoIterator<Item = Arc<Object>>) -> Replace {
    objects.into_iter().for_each(|object| list.stage(object));
    list
}

/// `+key@new`, `~key@old>new`, `-key@old` or `-key@old>last`, each with `w`, `l` or `s` for its origin.
pub fn short(change: &Change) -> String {
    let source = match change.origin {
        Origin::Watch => 'w',
        Origin::List => 'l',
        Origin::Scope => 's',
    };
    let version = |object: &Object| object.resource_version().to_string();
    match &change.delta {
        Delta::Added(new) => format!("{source}+{}@{}", new.key(), version(new)),
        Delta::Updated { old, new } => format!("{source}~{}@{}>{}", new.key(), version(old), version(new)),
        Delta::Deleted { old, last } if Arc::ptr_eq(old, last) => {
            format!("{source}-{}@{}", old.key(), version(old))
        }
        Delta::Deleted { old, last } => format!("{source}-{}@{}>{}", old.key(), version(old), version(last)),
    }
}

/// Each as [`short`].
pub fn shorts(changes: impl IntoIterator<Item: Borrow<Change>>) -> Vec<String> {
    changes.into_iter().map(|change| short(change.borrow())).collect()
}

/// The objects as `key@version`, sorted.
pub fn names<'a>(objects: impl IntoIterator<Item = &'a Arc<Object>>) -> Vec<String> {
    let mut names: Vec<_> = objects.into_iter().map(|object| format!("{object:?}")).collect();
    names.sort();
    names
}
