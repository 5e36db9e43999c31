//! Server-side apply.

use serde_json::{Value, json};
use serve::{Reason, Status};

use super::entries::{self, Entries, Entry, Kind, Owner};
use super::merge::merge;
use super::owned::Owned;
use super::prune::prune;
use super::set::FieldSet;
use super::typed::{compare, equal, fields};
use super::{STRIPPED, Writer, differences, forget, merge_oldest, take, track, without_entries};
use crate::schema::Mismatch;
use crate::schema::path::Element;

/// The annotation in which client-side `kubectl apply` keeps the applied configuration.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// A server-side apply.
#[derive(Debug, Clone, Copy)]
pub struct ApplyRequest<'a> {
    /// The current object; `None` if it does not exist.
    pub live: Option<&'a Value>,
    /// The applied configuration, with `apiVersion` and `kind`.
    pub config: &'a Value,
    /// The kind of the resource: `Deployment`.
    pub kind: &'a str,
    /// Whether to take fields from other managers.
    pub force: bool,
    /// The manager that applies.
    pub writer: Writer<'a>,
}

/// The object after the apply, with its `metadata.managedFields`.
///
/// # Errors
///
/// 409 with a cause for each field that would change and that another manager owns; 400 for another kind or version and
/// for a configuration with `managedFields`; 500, as from the API server, for a configuration that does not fit the
/// type.
pub fn apply(request: ApplyRequest<'_>) -> Result<Value, Status> {
    check(request)?;
    let writer = request.writer;
    let mut live = without_entries(request.live, request.config);
    if request.live.is_none() {
        live["metadata"] = json!({});
    }
    let mut owned = match request.live {
        Some(live) => entries::read(live)
            .ok_or_else(|| Status::new(Reason::Unknown, "failed to decode managed fields"))?,
        None => Entries::new(),
    };
    if owned.is_empty() && request.live.is_some() {
        // The object has no entries yet, so its fields belong to a manager `before-first-apply`.
        let before = Writer { manager: "before-first-apply", subresource: writer.subresource, ..writer };
        track(&without_entries(None, &live), &live, &mut owned, before);
        merge_oldest(&mut owned);
    }

    let (applied, mut owned) = match applied(request, &live, owned.clone(), request.force) {
        Err(conflicts) if are_of_kubectl_apply(request, &live, &conflicts) => {
            applied(request, &live, owned, true).map_err(|conflicts| refusal(&conflicts))?
        }
        Err(conflicts) => {
            let allowed = allowed_to_kubectl(request, &live);
            let conflicts: Vec<_> =
                conflicts.into_iter().filter(|conflict| !allowed.has(&conflict.path)).collect();
            return Err(refusal(&conflicts));
        }
        Ok(applied) => applied,
    };
    let mut object = match applied {
        Some(object) => {
            if let Some(entry) = owned.get_mut(&writer.owner(Kind::Apply)) {
                entry.time = Some(writer.now.to_owned());
            }
            object
        }
        None => live,
    };
    writer.schema.normalize(&mut object);
    if writer.manager == "kubectl" {
        renew_last_applied(&mut object, request.config);
    }
    entries::write(&mut object, owned);
    Ok(object)
}

fn check(request: ApplyRequest<'_>) -> Result<(), Status> {
    let ApplyRequest { config, writer, .. } = request;
    let text = |name: &str| config[name].as_str().unwrap_or_default();
    let (api_version, kind) = (text("apiVersion"), text("kind"));
    // Go prints the slash even if the group is empty.
    let printed = if api_version.contains('/') {
        format!("{api_version}, Kind={kind}")
    } else {
        format!("/{api_version}, Kind={kind}")
    };
    if api_version != writer.api_version || kind != request.kind {
        return Err(Status::bad_request(format!("invalid object type: {printed}")));
    }
    if !config["metadata"]["managedFields"].is_null() {
        return Err(Status::bad_request("metadata.managedFields must be nil"));
    }
    let mismatches = writer.schema.mismatches(config, false);
    if mismatches.is_empty() {
        return Ok(());
    }
    let name = |part: &str| config["metadata"][part].as_str().unwrap_or_default();
    Err(Status::new(
        Reason::Unknown,
        format!(
            "failed to create typed patch object ({}/{}; {printed}): {}",
            name("namespace"),
            name("name"),
            listed(&mismatches)
        ),
    ))
}

fn listed(mismatches: &[Mismatch]) -> String {
    let line = |mismatch: &Mismatch| match &*mismatch.path {
        "" => mismatch.message.clone(),
        path => format!("{path}: {}", mismatch.message),
    };
    match mismatches {
        [only] => line(only),
        all => {
            let lines: Vec<_> = all.iter().map(|mismatch| format!("  {}", line(mismatch))).collect();
            format!("errors:\n{}", lines.join("\n"))
        }
    }
}

/// A field that would change and that another manager owns.
#[derive(Debug)]
struct Conflict {
    owner: Owner,
    path: Vec<Element>,
}

/// The new object, `None` if nothing changes, and the new owners.
fn applied(
    request: ApplyRequest<'_>,
    live: &Value,
    mut owned: Entries,
    force: bool,
) -> Result<(Option<Value>, Entries), Vec<Conflict>> {
    let writer = request.writer;
    let owner = writer.owner(Kind::Apply);
    let merged = merge(writer.schema, Some(live), Some(request.config)).unwrap_or(Value::Null);
    let wanted = fields(writer.schema, request.config).outside(&writer.ignored.fields);
    let last = owned.get(&owner).cloned();
    let time = last.as_ref().and_then(|entry| entry.time.clone());
    let api_version = writer.api_version.to_owned();
    owned.insert(owner.clone(), Entry { api_version, fields: Owned::Set(wanted), time });
    let new = match last {
        Some(last) if !last.fields.is_empty() => prune(writer.schema, merged, &owned, &last.fields.set()),
        _ => merged,
    };

    let found = differences(live, &new, writer);
    let changed = found.modified.clone().union(&found.added);
    let mut conflicts: Vec<Conflict> = owned
        .iter()
        .filter(|(other, entry)| **other != owner && entry.fields.has_any(&changed))
        .flat_map(|(other, entry)| {
            let paths = entry.fields.set().intersection(&changed).paths();
            paths.into_iter().map(|path| Conflict { owner: other.clone(), path })
        })
        .collect();
    if !conflicts.is_empty() && !force {
        // Sorted by the real server's keys of owners, in which the subresource comes after a comma.
        conflicts.sort_by_key(|conflict| {
            let Owner { manager, kind, api_version, subresource } = conflict.owner.clone();
            (manager, kind, api_version, subresource.is_empty(), subresource)
        });
        return Err(conflicts);
    }
    take(&mut owned, &found.all(), Some(&owner));
    if let Some(entry) = owned.get_mut(&owner) {
        entry.fields = Owned::Set(entry.fields.set().difference(&STRIPPED));
    }
    owned.retain(|_, entry| !entry.fields.is_empty());
    Ok(((!equal(live, &new)).then_some(new), owned))
}

fn refusal(conflicts: &[Conflict]) -> Status {
    let printed = |path: &[Element]| path.iter().map(Element::to_string).collect::<String>();
    let message = match conflicts {
        [only] => {
            format!("Apply failed with 1 conflict: conflict with {}: {}", only.owner, printed(&only.path))
        }
        all => {
            let mut lines = Vec::new();
            let mut last = None;
            for conflict in all {
                if last != Some(&conflict.owner) {
                    lines.push(format!("conflicts with {}:", conflict.owner));
                    last = Some(&conflict.owner);
                }
                lines.push(format!("- {}", printed(&conflict.path)));
            }
            format!("Apply failed with {} conflicts: {}", all.len(), lines.join("\n"))
        }
    };
    conflicts.iter().fold(Status::new(Reason::Conflict, message), |status, conflict| {
        let message = format!("conflict with {}", conflict.owner);
        status.cause("FieldManagerConflict", message, &printed(&conflict.path))
    })
}

/// Whether all conflicts are with an earlier client-side `kubectl apply`.
fn are_of_kubectl_apply(request: ApplyRequest<'_>, live: &Value, conflicts: &[Conflict]) -> bool {
    let allowed = allowed_to_kubectl(request, live);
    conflicts.iter().all(|conflict| allowed.has(&conflict.path))
}

/// The fields that client-side `kubectl apply` has set and that have not changed since.
fn allowed_to_kubectl(request: ApplyRequest<'_>, live: &Value) -> FieldSet {
    let writer = request.writer;
    let last_applied = live["metadata"]["annotations"][LAST_APPLIED].as_str();
    let Some(config) = last_applied.and_then(|text| serde_json::from_str::<Value>(text).ok()) else {
        return FieldSet::default();
    };
    if writer.manager != "kubectl" || config["apiVersion"] != writer.api_version {
        return FieldSet::default();
    }
    let found = compare(writer.schema, &config, live);
    let changed = found.modified.union(&found.added).union(&found.removed);
    fields(writer.schema, &config).difference(&changed)
}

/// Updates the annotation of client-side `kubectl apply`, if there is one.
fn renew_last_applied(object: &mut Value, config: &Value) {
    let Some(annotations) = object.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut) else {
        return;
    };
    if annotations.get(LAST_APPLIED).and_then(Value::as_str).is_none_or(str::is_empty) {
        return;
    }
    let mut config = config.clone();
    if let Some(annotations) = config.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut) {
        annotations.remove(LAST_APPLIED);
        if annotations.is_empty()
            && let Some(metadata) = config.get_mut("metadata").and_then(Value::as_object_mut)
        {
            metadata.remove("annotations");
        }
    }
    forget(&mut config);
    annotations.insert(LAST_APPLIED.to_owned(), format!("{config}\n").into());
}
