//! Deletes objects: preconditions, finalizers, grace periods.

use std::sync::Arc;
use std::time::SystemTime;

use serde_json::{Value, json};
use serve::{Object, Query, Status};

use crate::object::{Meta, metadata_mut, set_list};
use crate::refusal::{FieldError, conflict, forbidden, invalid_options};
use crate::store::{decode, encode};
use crate::turn::{Target, Turn};
use crate::{clock, definitions, kinds};

/// The options of a deletion.
#[derive(Debug, Clone, Default)]
pub(crate) struct DeleteOptions {
    pub(crate) dry_run: bool,
    pub(crate) grace_period: Option<i64>,
    pub(crate) propagation: Option<Propagation>,
    /// Whether the request has `orphanDependents: false`, the old form of propagation.
    pub(crate) accepted: bool,
    pub(crate) uid: Option<String>,
    pub(crate) resource_version: Option<String>,
}

/// The treatment of an object's dependents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Propagation {
    Orphan,
    Background,
    Foreground,
}

/// The result of a deletion.
#[derive(Debug, Clone)]
pub(crate) enum Deleted {
    /// The object was removed; this is its last state.
    Gone(Arc<Object>),
    /// The object stays until its finalizers, its grace period or its contents are done.
    Waiting(Arc<Object>),
}

pub(crate) const ORPHAN: &str = "orphan";
pub(crate) const FOREGROUND: &str = "foregroundDeletion";

impl DeleteOptions {
    /// Parses the body, or else the query.
    pub(crate) fn read(query: &Query, body: &[u8]) -> Result<Self, Status> {
        if body.is_empty() { Self::from_value(&from_query(query)?) } else { Self::from_body(body) }
    }

    /// Parses a body, which may be empty.
    pub(crate) fn from_body(body: &[u8]) -> Result<Self, Status> {
        if body.is_empty() {
            return Ok(Self::default());
        }
        let options = serde_json::from_slice(body).map_err(|error| Status::bad_request(error.to_string()))?;
        Self::from_value(&options)
    }

    /// Checks the preconditions on the object as it is.
    pub(crate) fn check(&self, target: &Target, object: &Value) -> Result<(), Status> {
        let resource = &target.resource;
        let refused = |why: String| Err(conflict(&resource.group, &resource.kind, &target.name, &why));
        let (uid, version) = (Meta(object).uid(), Meta(object).resource_version());
        if let Some(asked) = self.uid.as_deref().filter(|asked| *asked != uid) {
            return refused(format!(
                "the UID in the precondition ({asked}) does not match the UID in record ({uid}). The object might have \
                 been deleted and then recreated"
            ));
        }
        if let Some(asked) = self.resource_version.as_deref().filter(|asked| *asked != version) {
            return refused(format!(
                "the ResourceVersion in the precondition ({asked}) does not match the ResourceVersion in record \
                 ({version}). The object might have been modified"
            ));
        }
        Ok(())
    }

    fn from_value(options: &Value) -> Result<Self, Status> {
        let mut errors = Vec::new();
        let propagation = match options["propagationPolicy"].as_str() {
            None => None,
            Some("Orphan") => Some(Propagation::Orphan),
            Some("Background") => Some(Propagation::Background),
            Some("Foreground") => Some(Propagation::Foreground),
            Some(other) => {
                let valid = ["Foreground", "Background", "Orphan", "nil"];
                errors.push(FieldError::unsupported("propagationPolicy", json!(other), &valid));
                None
            }
        };
        let orphan = options["orphanDependents"].as_bool();
        if orphan.is_some() && options["propagationPolicy"].is_string() {
            let why = "orphanDependents and deletionPropagation cannot be both set";
            let value = &options["propagationPolicy"];
            errors.insert(0, FieldError::invalid("propagationPolicy", value, why));
        }
        let dry_run = options["dryRun"].as_array().map(Vec::as_slice).unwrap_or_default();
        if dry_run.iter().any(|value| value != "All") {
            errors.push(FieldError::unsupported("dryRun", json!(dry_run), &["All"]));
        }
        if !errors.is_empty() {
            return Err(invalid_options("DeleteOptions", &errors));
        }
        let orphaned =
            orphan.map(|orphan| if orphan { Propagation::Orphan } else { Propagation::Background });
        let precondition = |name: &str| options["preconditions"][name].as_str().map(ToOwned::to_owned);
        Ok(Self {
            dry_run: !dry_run.is_empty(),
            grace_period: options["gracePeriodSeconds"].as_i64(),
            propagation: propagation.or(orphaned),
            accepted: orphan == Some(false),
            uid: precondition("uid"),
            resource_version: precondition("resourceVersion"),
        })
    }
}

fn from_query(query: &Query) -> Result<Value, Status> {
    let dry_run: Vec<&str> =
        query.iter().filter(|(name, _)| *name == "dryRun").map(|(_, value)| value).collect();
    let period = query.get("gracePeriodSeconds").map(|text| {
        let invalid = || Status::bad_request(format!("strconv.ParseInt: parsing {text:?}: invalid syntax"));
        text.parse::<i64>().map_err(|_| invalid())
    });
    Ok(json!({
        "dryRun": dry_run,
        "gracePeriodSeconds": period.transpose()?,
        "propagationPolicy": query.get("propagationPolicy"),
        "orphanDependents": query.get("orphanDependents").and_then(|value| value.parse::<bool>().ok()),
    }))
}

impl Turn<'_> {
    /// Deletes an object, or marks it as one to be deleted.
    pub(crate) fn delete(&self, target: &Target, options: &DeleteOptions) -> Result<Deleted, Status> {
        let existing = target.current().ok_or_else(|| target.not_found())?;
        let before = decode(&existing);
        if kinds::is_permanent(target) {
            return Err(forbidden(&target.resource, &target.name, "this namespace may not be deleted"));
        }
        options.check(target, &before)?;
        let mut object = before.clone();
        let mut waits = false;
        // A pod is marked first even if it is removed at once.
        let mut ends_at_once = false;
        if target.is("", "namespaces") {
            waits = kinds::terminate_namespace(&mut object, &self.now());
        } else if target.is("apiextensions.k8s.io", "customresourcedefinitions") {
            definitions::terminate(&mut object, &self.now());
            waits = true;
        } else if let Some(period) = self.grace_period(target, &before, options) {
            match graceful(&before, period, options.grace_period, self.time) {
                Grace::AlreadyDeleting => return Ok(Deleted::Waiting(existing)),
                Grace::Over => {}
                Grace::Lasts(end, period) => {
                    mark(&mut object, &clock::rfc3339(end), period);
                    ends_at_once = period == 0 || !self.core.options.graceful_pods;
                    waits = true;
                }
            }
        }
        set_propagation(&mut object, options.propagation);
        if !Meta(&object).finalizers().is_empty() {
            if !waits {
                let end = object["metadata"]["deletionTimestamp"].as_str().map(ToOwned::to_owned);
                mark(&mut object, &end.unwrap_or_else(|| self.now()), 0);
            }
            waits = true;
        }
        if waits {
            let marked = self.keep_waiting(target, &existing, &before, object, options);
            let marked_now = decode(&marked);
            if !ends_at_once || options.dry_run || !Meta(&marked_now).finalizers().is_empty() {
                return Ok(Deleted::Waiting(marked));
            }
            let last = self.remove(target, &mut marked_now.clone());
            self.after_removal(target, &marked_now);
            return Ok(Deleted::Gone(last));
        }
        if options.dry_run {
            return Ok(Deleted::Gone(existing));
        }
        let last = self.remove(target, &mut before.clone());
        self.after_removal(target, &before);
        Ok(Deleted::Gone(last))
    }

    fn keep_waiting(
        &self,
        target: &Target,
        existing: &Arc<Object>,
        before: &Value,
        mut object: Value,
        options: &DeleteOptions,
    ) -> Arc<Object> {
        let same = encode(&mut object, existing.revision, target.order());
        if same.body == existing.body {
            return Arc::clone(existing);
        }
        if options.dry_run {
            return Arc::new(same);
        }
        let marked = self.put(target, &mut object);
        self.after_change(target, Some(before), &object);
        marked
    }

    /// The grace period of a pod; `None` for other kinds.
    fn grace_period(&self, target: &Target, object: &Value, options: &DeleteOptions) -> Option<i64> {
        if !target.is("", "pods") {
            return None;
        }
        let asked = options.grace_period.map(|period| if period < 0 { 1 } else { period });
        let period = asked.or(object["spec"]["terminationGracePeriodSeconds"].as_i64()).unwrap_or(30);
        // A pod without a node, or one that has ended, needs no time.
        let runs = object["spec"]["nodeName"].as_str().is_some_and(|node| !node.is_empty());
        let ended = matches!(object["status"]["phase"].as_str(), Some("Succeeded" | "Failed"));
        Some(if runs && !ended { period } else { 0 })
    }
}

enum Grace {
    AlreadyDeleting,
    Over,
    Lasts(SystemTime, i64),
}

fn graceful(object: &Value, period: i64, asked: Option<i64>, now: SystemTime) -> Grace {
    let end = |period: i64| Grace::Lasts(clock::later(now, period.max(0)), period);
    if !Meta(object).is_being_deleted() {
        return end(period);
    }
    match (Meta(object).grace_period().unwrap_or(0), asked) {
        (0, _) => Grace::Over,
        (given, Some(asked)) if asked < given => end(asked),
        _ => Grace::AlreadyDeleting,
    }
}

/// Sets the deletion timestamp and the grace period.
fn mark(object: &mut Value, end: &str, period: i64) {
    let first = !Meta(object).is_being_deleted();
    let generation = Meta(object).generation().filter(|_| first);
    let metadata = metadata_mut(object);
    if let Some(generation) = generation {
        metadata.insert("generation".into(), (generation + 1).into());
    }
    metadata.insert("deletionTimestamp".into(), end.into());
    metadata.insert("deletionGracePeriodSeconds".into(), period.into());
}

/// Sets the finalizers of the garbage collector.
fn set_propagation(object: &mut Value, propagation: Option<Propagation>) {
    let has = |finalizer: &str| Meta(object).finalizers().contains(&finalizer);
    let (orphan, foreground) = match propagation {
        Some(Propagation::Orphan) => (true, false),
        Some(Propagation::Foreground) => (false, true),
        Some(Propagation::Background) => (false, false),
        None if has(ORPHAN) => (true, false),
        None => (false, has(FOREGROUND)),
    };
    let others = Meta(object).finalizers().into_iter().filter(|name| !matches!(*name, ORPHAN | FOREGROUND));
    let mut finalizers: Vec<String> = others.map(Into::into).collect();
    finalizers.extend(orphan.then(|| ORPHAN.into()));
    finalizers.extend(foreground.then(|| FOREGROUND.into()));
    set_list(metadata_mut(object), "finalizers", &finalizers);
}

impl Deleted {
    /// The response to a deletion that does not return the object.
    pub(crate) fn status(target: &Target, object: &Object) -> Value {
        let uid = Meta(&decode(object)).uid().to_owned();
        let mut details = json!({ "name": target.name, "kind": &*target.resource.plural, "uid": uid });
        if !target.resource.group.is_empty() {
            details["group"] = (&*target.resource.group).into();
        }
        json!({ "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details })
    }

    /// Whether the response to a deletion is the last state of the object.
    pub(crate) fn answers_object(target: &Target) -> bool {
        kinds::answers_deleted(target)
    }
}
