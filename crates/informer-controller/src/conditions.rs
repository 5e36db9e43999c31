//! Status conditions: what a controller says about an object in `status.conditions`.
//!
//! ```
//! use informer_controller::conditions::{self, Condition};
//! use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition as Stored;
//!
//! # fn example() -> Result<(), conditions::Unfit> {
//! let mut stored: Vec<Stored> = Vec::new();
//! let ready = Condition::new("Ready", false, "Starting").message("2 of 3 pods run").observed(7);
//! let now = jiff::Timestamp::now();
//! assert!(conditions::set(&mut stored, &ready, now)?);
//! assert!(!conditions::set(&mut stored, &ready, now)?, "nothing has changed");
//! assert!(!conditions::is_true(&stored, "Ready"));
//! # Ok(())
//! # }
//! # example().unwrap();
//! ```
//!
//! A condition is stored as any type whose JSON has the fields `type`, `status`, `reason`, `message`, `lastTransitionTime` and,
//! if it likes, `observedGeneration`: `Condition` of k8s-openapi, `DeploymentCondition`, a type of your own, or
//! `serde_json::Value`. Further fields are kept.
//!
//! [`Writer::write_status`](crate::Writer::write_status) sends a status only if it differs from the one in the cache. For this
//! to be of use, a status must not change without a reason: [`set`] changes the time of a condition only with its status.

use std::fmt;

use jiff::Timestamp;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// The wanted content of a condition. ([API conventions](
/// https://github.com/kubernetes/community/blob/master/contributors/devel/sig-architecture/api-conventions.md#typical-status-properties))
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Condition {
    condition_type: String,
    status: ConditionStatus,
    reason: String,
    message: String,
    observed_generation: Option<i64>,
}

/// Whether a condition holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConditionStatus {
    /// It holds.
    True,
    /// It does not.
    False,
    /// The controller does not know.
    Unknown,
}

impl Condition {
    /// A condition of a type, in CamelCase, which holds or not, and a reason in CamelCase. The server demands a reason of at
    /// least one letter.
    pub fn new(condition_type: &str, status: impl Into<ConditionStatus>, reason: &str) -> Self {
        Self {
            condition_type: condition_type.to_owned(),
            status: status.into(),
            reason: reason.to_owned(),
            message: String::new(),
            observed_generation: None,
        }
    }

    /// A sentence for people. Empty by default.
    #[must_use]
    pub fn message(mut self, message: impl Into<String>) -> Self {
        self.message = message.into();
        self
    }

    /// The `metadata.generation` of the object that the condition is about. Without it, the condition has none.
    #[must_use]
    pub fn observed(mut self, generation: impl Into<Option<i64>>) -> Self {
        self.observed_generation = generation.into();
        self
    }
}

impl ConditionStatus {
    fn as_str(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        }
    }
}

impl From<bool> for ConditionStatus {
    fn from(holds: bool) -> Self {
        if holds { Self::True } else { Self::False }
    }
}

/// Sets a condition: replaces the one of its type, or adds it. Returns whether anything has changed.
///
/// `lastTransitionTime` becomes `now`, in whole seconds, if the condition is new or its status changes, and stays otherwise.
/// That is `meta.SetStatusCondition` of Kubernetes' apimachinery, except that an `observedGeneration` is removed if the new
/// condition has none.
///
/// # Errors
///
/// When `C` does not fit. The conditions are then unchanged.
pub fn set<C>(conditions: &mut Vec<C>, condition: &Condition, now: Timestamp) -> Result<bool, Unfit>
where
    C: Serialize + DeserializeOwned,
{
    let position = position(conditions, &condition.condition_type)?;
    let old = match position {
        Some(position) => fields(&conditions[position])?,
        None => Map::new(),
    };
    let mut new = old.clone();
    let is_same_status = old.get("status").and_then(Value::as_str) == Some(condition.status.as_str());
    let mut put = |field: &str, value: &str| new.insert(field.to_owned(), value.into());
    put("type", &condition.condition_type);
    put("status", condition.status.as_str());
    put("reason", &condition.reason);
    put("message", &condition.message);
    if !is_same_status || !old.get("lastTransitionTime").is_some_and(Value::is_string) {
        put("lastTransitionTime", &now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string());
    }
    match condition.observed_generation {
        Some(generation) => drop(new.insert("observedGeneration".to_owned(), generation.into())),
        None => drop(new.remove("observedGeneration")),
    }
    if new == old {
        return Ok(false);
    }
    let new: C = serde_json::from_value(Value::Object(new)).map_err(|_| Unfit::of::<C>(true))?;
    let Some(position) = position else {
        conditions.push(new);
        return Ok(true);
    };
    // A type without some of the fields cannot keep what was set: compare what it kept.
    let changes = fields(&new)? != old;
    conditions[position] = new;
    Ok(changes)
}

/// Removes the condition of a type. Returns whether there was one.
///
/// # Errors
///
/// When `C` does not fit.
pub fn remove<C: Serialize>(conditions: &mut Vec<C>, condition_type: &str) -> Result<bool, Unfit> {
    let position = position(conditions, condition_type)?;
    Ok(position.map(|position| conditions.remove(position)).is_some())
}

/// The status of a condition; `None` without such a condition, or if it is none of the three.
pub fn status<C: Serialize>(conditions: &[C], condition_type: &str) -> Option<ConditionStatus> {
    let position = position(conditions, condition_type).ok().flatten()?;
    let fields = fields(&conditions[position]).ok()?;
    let status = fields.get("status")?.as_str()?;
    [ConditionStatus::True, ConditionStatus::False, ConditionStatus::Unknown]
        .into_iter()
        .find(|one| one.as_str() == status)
}

/// Whether a condition holds. An unknown or missing one does not.
pub fn is_true<C: Serialize>(conditions: &[C], condition_type: &str) -> bool {
    status(conditions, condition_type) == Some(ConditionStatus::True)
}

fn position<C: Serialize>(conditions: &[C], condition_type: &str) -> Result<Option<usize>, Unfit> {
    for (position, condition) in conditions.iter().enumerate() {
        if fields(condition)?.get("type").and_then(Value::as_str) == Some(condition_type) {
            return Ok(Some(position));
        }
    }
    Ok(None)
}

fn fields<C: Serialize>(condition: &C) -> Result<Map<String, Value>, Unfit> {
    match serde_json::to_value(condition) {
        Ok(Value::Object(fields)) => Ok(fields),
        _ => Err(Unfit::of::<C>(false)),
    }
}

/// A type cannot hold a condition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unfit {
    type_name: &'static str,
    is_object: bool,
}

impl Unfit {
    fn of<C>(is_object: bool) -> Self {
        Self { type_name: std::any::type_name::<C>(), is_object }
    }
}

impl std::error::Error for Unfit {}

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { type_name, is_object } = self;
        // serde's own message may quote the object.
        let why = if *is_object { "lacks a field, or has one of another type" } else { "is not an object" };
        write!(f, "{type_name} does not hold a condition: its JSON {why}")
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::apps::v1::DeploymentCondition;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition as Stored;
    use serde_json::json;

    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::new(second, 500_000_000).unwrap()
    }

    #[test]
    fn the_time_of_a_transition_changes_only_with_the_status() {
        let mut stored: Vec<Stored> = Vec::new();
        let mut set = |condition: Condition, second| {
            let changed = super::set(&mut stored, &condition, at(second)).unwrap();
            (changed, stored[0].last_transition_time.0.as_second())
        };
        let ready = |status: bool, reason| Condition::new("Ready", status, reason);
        assert_eq!(set(ready(false, "A"), 10), (true, 10));
        assert_eq!(set(ready(false, "A"), 20), (false, 10));
        assert_eq!(set(ready(false, "B"), 30), (true, 10));
        assert_eq!(set(ready(false, "B").message("m"), 40), (true, 10));
        assert_eq!(set(ready(false, "B").message("m").observed(2), 50), (true, 10));
        assert_eq!(set(ready(true, "B").message("m").observed(2), 60), (true, 60));
        let first = &stored[0];
        assert_eq!(
            (first.status.as_str(), first.observed_generation, first.message.as_str()),
            ("True", Some(2), "m")
        );
        assert_eq!(first.last_transition_time.0.subsec_nanosecond(), 0, "metav1.Time has whole seconds");
    }

    #[test]
    fn conditions_of_other_types_and_unknown_fields_stay() {
        let mut stored: Vec<DeploymentCondition> = serde_json::from_value(json!([
            { "type": "Progressing", "status": "True" },
            { "type": "Available", "status": "False", "lastUpdateTime": "2026-01-01T00:00:00Z" },
        ]))
        .unwrap();
        assert!(set(&mut stored, &Condition::new("Available", true, "Up"), at(0)).unwrap());
        assert_eq!(stored.len(), 2);
        assert!(stored[1].last_update_time.is_some());
        assert!(is_true(&stored, "Available") && is_true(&stored, "Progressing"));
        assert_eq!(stored[1].last_transition_time.as_ref().unwrap().0, Timestamp::UNIX_EPOCH);
        // It has no observedGeneration, so setting one changes nothing.
        assert!(!set(&mut stored, &Condition::new("Available", true, "Up").observed(3), at(9)).unwrap());
        assert!(remove(&mut stored, "Progressing").unwrap());
        assert!(!remove(&mut stored, "Progressing").unwrap());
        assert_eq!(status(&stored, "Progressing"), None);
    }

    #[test]
    fn a_type_that_is_no_condition_is_an_error_and_stays_as_it_was() {
        let mut numbers = vec![7];
        let error = set(&mut numbers, &Condition::new("A", true, "B"), at(0)).unwrap_err();
        assert_eq!(error.to_string(), "i32 does not hold a condition: its JSON is not an object");
        assert_eq!(numbers, [7]);

        #[derive(Serialize, serde::Deserialize)]
        struct Strict {
            status: bool,
        }
        let mut strict: Vec<Strict> = Vec::new();
        let error = set(&mut strict, &Condition::new("A", ConditionStatus::Unknown, "B"), at(0)).unwrap_err();
        assert!(!error.to_string().contains("Unknown"), "{error}");
        assert!(strict.is_empty());
    }
}
