//! The resources of a time: those that were recorded, as discovery would have listed them.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use kube_table::{SelectableField, Subresource, builtin};
use kubediff_history::{Filter, Gvk, KindName, Moment, Number, Page, Reader, Scope};
use serde_json::Value;
use serve::{Resource, Resources};

use super::encoded::Encoded;
use crate::ask::resource;
use crate::model::position;
use crate::web::problem::Problem;

/// Times whose resources are remembered.
const MOST: usize = 8;
/// The group of Events besides the core.
pub(super) const NEW_EVENTS: &str = "events.k8s.io";
/// Definitions that are read at once. Each may have a schema of a megabyte.
const BATCH: usize = 16;

/// The resources of the times that were asked for lately.
#[derive(Default)]
pub(super) struct Known {
    times: Mutex<Vec<(Of, Arc<Described>)>>,
    /// The versions in which the history has objects, by group and plural.
    versions: Mutex<Recorded>,
}

/// The kinds of a resource in the history, the preferred version first.
type Recorded = BTreeMap<(String, String), Vec<Gvk>>;

/// The resources of a time.
pub(super) struct Described {
    pub(super) resources: Arc<Resources>,
    /// Of custom ones, the fields that are bytes.
    bytes: HashMap<[Box<str>; 3], Arc<Encoded>>,
}

/// A resource by its group, version and plural.
fn in_version(resource: &Resource) -> [Box<str>; 3] {
    [resource.group.clone(), resource.version.clone(), resource.plural.clone()]
}

impl Described {
    /// The fields of a custom resource that are bytes; `None` if there are none.
    pub(super) fn bytes(&self, resource: &Resource) -> Option<Arc<Encoded>> {
        self.bytes.get(&in_version(resource)).cloned()
    }
}

/// What resources depend on: the definitions, by how many there were and when one changed, and what was recorded.
#[derive(PartialEq, Eq)]
struct Of {
    definitions: usize,
    changed: Option<Number>,
    recorded: usize,
}

/// The definitions of custom resources.
pub(super) fn definitions() -> Scope {
    let kind = KindName {
        group: Some("apiextensions.k8s.io".to_owned()),
        resource: "customresourcedefinitions".to_owned(),
    };
    Scope { kinds: vec![kind], ..Scope::default() }
}

/// Visits the definitions of a moment.
pub(super) fn each_definition(
    reader: &mut Reader,
    at: Moment,
    mut visit: impl FnMut(Value),
) -> Result<(), Problem> {
    let keys = reader.keys(&definitions(), at)?;
    let count = keys.present().len();
    for start in (0..count).step_by(BATCH) {
        for version in reader.states(keys.present(), start..count.min(start + BATCH))? {
            visit(version.body.value());
        }
    }
    Ok(())
}

impl Known {
    /// The resources of a moment.
    pub(super) fn at(&self, reader: &mut Reader, at: Moment) -> Result<Arc<Described>, Problem> {
        let recorded = recorded(reader)?;
        let filter = Filter { scope: definitions(), in_words: true, ..Filter::default() };
        let last = Page::newest(1).after(Number(at.number.0 + 1));
        let of = Of {
            definitions: reader.keys(&definitions(), at)?.present().len(),
            changed: reader.records(&filter, &last)?.records.first().map(kubediff_history::Record::number),
            recorded: recorded.values().map(|gvks| 1 + gvks.len()).sum(),
        };
        let lock = || self.times.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, found)) = lock().iter().find(|(known, _)| *known == of) {
            return Ok(found.clone());
        }
        let found = Arc::new(read(reader, at, &recorded)?);
        *self.versions.lock().unwrap_or_else(PoisonError::into_inner) = recorded;
        let mut times = lock();
        times.push((of, found.clone()));
        if times.len() > MOST {
            times.remove(0);
        }
        Ok(found)
    }

    /// The versions in which objects of a resource were recorded.
    pub(super) fn versions(&self, resource: &Resource) -> Vec<String> {
        let versions = self.versions.lock().unwrap_or_else(PoisonError::into_inner);
        let of = (resource.group.to_string(), resource.plural.to_string());
        versions.get(&of).into_iter().flatten().map(|gvk| gvk.version.clone()).collect()
    }
}

/// What the history has objects of, and what is watched.
fn recorded(reader: &mut Reader) -> Result<Recorded, Problem> {
    let mut found = Recorded::new();
    for (gvk, plural) in reader.kinds()? {
        let gvks = found.entry((gvk.group.clone(), plural)).or_default();
        if !gvks.contains(&gvk) {
            gvks.push(gvk);
        }
    }
    for target in reader.positions()?.keys().filter(|name| position::is_target(name)) {
        // One of a namespace has its name after a slash.
        let target = target.split('/').next().unwrap_or_default();
        let (plural, group) = target.split_once('.').unwrap_or((target, ""));
        found.entry((group.to_owned(), plural.to_owned())).or_default();
    }
    for gvks in found.values_mut() {
        gvks.sort_by_key(|gvk| std::cmp::Reverse(kube_table::version_priority(&gvk.version)));
    }
    Ok(found)
}

fn read(reader: &mut Reader, at: Moment, recorded: &Recorded) -> Result<Described, Problem> {
    let key = |resource: &Resource| (resource.group.to_string(), resource.plural.to_string());
    let (mut found, mut done) = (Vec::new(), BTreeSet::new());
    for resource in builtin::resources() {
        let Some(gvks) = recorded.get(&key(&resource)) else { continue };
        if done.insert(key(&resource)) {
            found.push(restricted(&resource, gvks));
        }
    }
    if let Some(events) = found.iter().find(|it| key(it) == (String::new(), "events".to_owned())) {
        let events = new_events(events);
        done.insert(key(&events));
        found.push(events);
    }
    let (mut defined, mut bytes) = (Vec::new(), HashMap::new());
    each_definition(reader, at, |definition| {
        let versions = definition["spec"]["versions"].as_array().into_iter().flatten();
        let of = |resource: &Resource| {
            let version = versions.clone().find(|version| version["name"] == *resource.version)?;
            Encoded::of(&version["schema"]["openAPIV3Schema"])
        };
        let resources = Resource::defined_by(&definition);
        for resource in &resources {
            bytes.extend(of(resource).map(|found| (in_version(resource), Arc::new(found))));
        }
        defined.extend(resources);
    })?;
    let has_definitions = recorded.keys().any(|(_, plural)| plural == "customresourcedefinitions");
    for (of, gvks) in recorded.iter().filter(|(of, _)| !done.contains(*of)) {
        let mut served = defined.iter().filter(|resource| key(resource) == *of);
        let wanted = gvks.first().map(|gvk| gvk.version.as_str());
        let first = served.clone().next();
        let resource = served.find(|resource| Some(&*resource.version) == wanted).or(first);
        match (resource, gvks.first()) {
            (Some(resource), _) => found.push(restricted(resource, gvks)),
            // Without definitions in the history, nobody knows since when there was such a resource.
            (None, Some(gvk)) if !has_definitions => {
                let mut resource = (*resource_of(reader, gvk, &of.1, at)?).clone();
                let kind = KindName { group: Some(of.0.clone()), resource: of.1.clone() };
                let keys = reader.keys(&Scope { kinds: vec![kind], ..Scope::default() }, at)?;
                resource.namespaced = keys.within(Some("")).is_empty();
                found.push(restricted(&resource, gvks));
            }
            (None, _) => {}
        }
    }
    Ok(Described { resources: Arc::new(found.into_iter().map(Arc::new).collect()), bytes })
}

fn resource_of(reader: &mut Reader, gvk: &Gvk, plural: &str, at: Moment) -> Result<Arc<Resource>, Problem> {
    Ok(resource(reader, gvk, plural, Some(at.time))?)
}

/// Events in their second group, from those of the core: API servers have one collection of both.
fn new_events(events: &Resource) -> Resource {
    let renamed = |field: &SelectableField| -> Option<SelectableField> {
        let label = match field.label.strip_prefix("involvedObject.") {
            Some(rest) => format!("regarding.{rest}"),
            None if &*field.label == "reportingComponent" => "reportingController".to_owned(),
            None if &*field.label == "source" => return None,
            None => field.label.to_string(),
        };
        let pointer = format!("/{}", label.replace('.', "/"));
        Some(SelectableField { label: label.into(), pointer: pointer.into(), missing: field.missing.clone() })
    };
    Resource {
        group: NEW_EVENTS.into(),
        stored_version: Some(events.version.clone()),
        selectable: events.selectable.iter().filter_map(renamed).collect(),
        ..events.clone()
    }
}

/// The resource as it can be read: in the version in which it was recorded.
fn restricted(resource: &Resource, gvks: &[Gvk]) -> Resource {
    let words = |words: &[&str]| words.iter().map(|word| Box::from(*word)).collect();
    let status = resource.subresources.iter().filter(|below| &*below.name == "status");
    Resource {
        version: gvks.first().map_or_else(|| resource.version.clone(), |gvk| gvk.version.as_str().into()),
        verbs: words(&["get", "list", "watch"]),
        subresources: status.map(|it| Subresource { verbs: words(&["get"]), ..it.clone() }).collect(),
        stored_version: None,
        ..resource.clone()
    }
}
