//! Which kind a word means: what Kubernetes has built in, what the history has seen, and what the definitions in it say.

use std::collections::BTreeSet;

use jiff::Timestamp;
use kube_table::{Resource, builtin};
use kubediff_history::{Gvk, KindName, ObjectId, Reader, Scope};
use serde_json::Value;

use crate::ask::error::{AskError, UnknownName};
use crate::model::schema::{KindSchema, Schemas};

/// A kind, as the history looks for it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Kind {
    pub(crate) group: String,
    pub(crate) plural: String,
    pub(crate) namespaced: bool,
}

/// The kind that `word` means: a plural or singular name, a kind, or a short name, in upper or lower case. A built-in one
/// goes before a custom one, and one that the history has objects of before others.
pub(crate) fn kind(reader: &mut Reader, word: &str, group: Option<&str>) -> Result<Kind, AskError> {
    let resources = builtin::resources();
    if let Some(found) = resources.iter().find(|resource| is_called(resource, word, group)) {
        return Ok(Kind::of(found));
    }
    let seen = reader.kinds()?;
    let is_seen = |gvk: &Gvk, plural: &str| {
        let named = plural.eq_ignore_ascii_case(word) || gvk.kind.eq_ignore_ascii_case(word);
        named && group.is_none_or(|group| group == gvk.group)
    };
    let mut declared = definitions(reader)?;
    declared.retain(|resource| is_called(resource, word, group));
    let has_objects =
        |kind: &Kind| seen.iter().any(|(gvk, plural)| gvk.group == kind.group && *plural == kind.plural);
    let mut kinds: Vec<Kind> = declared.iter().map(Kind::of).collect();
    // The history may have objects of a kind whose definition it has not.
    let undefined = seen.iter().filter(|(gvk, plural)| is_seen(gvk, plural));
    kinds.extend(undefined.map(|(gvk, plural)| Kind {
        group: gvk.group.clone(),
        plural: plural.clone(),
        namespaced: true,
    }));
    let best = kinds.iter().position(has_objects).unwrap_or(0);
    if kinds.is_empty() {
        let kind = group.map_or_else(|| word.to_owned(), |group| format!("{word}.{group}"));
        return Err(UnknownName::Kind { kind, seen: names(&seen) }.into());
    }
    Ok(kinds.swap_remove(best))
}

impl Kind {
    fn of(resource: &Resource) -> Self {
        Self {
            group: resource.group.to_string(),
            plural: resource.plural.to_string(),
            namespaced: resource.namespaced,
        }
    }
}

fn is_called(resource: &Resource, word: &str, group: Option<&str>) -> bool {
    let own = [&resource.plural, &resource.singular, &resource.kind];
    let called = own.into_iter().chain(&resource.short_names).any(|name| name.eq_ignore_ascii_case(word));
    called && group.is_none_or(|group| group == &*resource.group)
}

/// The custom resources that the history has definitions of.
fn definitions(reader: &mut Reader) -> Result<Vec<Resource>, AskError> {
    let state = reader.state(&of_definitions(None), None)?;
    Ok(state.iter().flat_map(|version| Resource::defined_by(&version.body.value())).collect())
}

/// The definition of a custom resource at a time, if the history has it.
pub(crate) fn definition(
    reader: &mut Reader,
    gvk: &Gvk,
    plural: &str,
    at: Option<Timestamp>,
) -> Result<Option<Value>, AskError> {
    let name = format!("{plural}.{}", gvk.group);
    let state = reader.state(&of_definitions(Some(name)), at)?;
    Ok(state.first().map(|version| version.body.value()))
}

/// The schema of an object's kind, as its definition was at a time. Built-in kinds have none in a history.
pub(crate) fn schema(
    reader: &mut Reader,
    schemas: &Schemas,
    object: &ObjectId,
    at: Option<Timestamp>,
) -> Result<Option<KindSchema>, AskError> {
    let gvk = &object.gvk;
    if schemas.of(gvk).is_none()
        && let Some(definition) = definition(reader, gvk, &object.resource, at)?
    {
        schemas.define(gvk, &definition);
    }
    Ok(schemas.of(gvk))
}

fn of_definitions(name: Option<String>) -> Scope {
    let kind = KindName {
        group: Some("apiextensions.k8s.io".to_owned()),
        resource: "customresourcedefinitions".to_owned(),
    };
    Scope { kinds: vec![kind], name, ..Scope::default() }
}

/// `configmaps, deployments.apps`.
fn names(seen: &[(Gvk, String)]) -> String {
    let qualified = seen.iter().map(|(gvk, plural)| match gvk.group.as_str() {
        "" => plural.clone(),
        group => format!("{plural}.{group}"),
    });
    let names: BTreeSet<String> = qualified.collect();
    match names.is_empty() {
        true => "nothing yet".to_owned(),
        false => names.into_iter().collect::<Vec<_>>().join(", "),
    }
}
