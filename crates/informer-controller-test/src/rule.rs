//! Rules: what must hold at every moment, whatever the end.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use serde_json::Value;

use crate::env::identity;
use crate::history::{Author, Change, History, Objects, What};
use crate::reconciliations;

/// A rule about what happens in a run. It is checked when the run is over.
///
/// ```
/// use informer_controller_test::Rule;
///
/// let rule = Rule::after_each_change("a ConfigMap keeps its data", |change, _| {
///     let data = |object: Option<&serde_json::Value>| object.map(|object| object["data"].clone());
///     match (change.kind(), data(change.before()), data(change.after())) {
///         ("ConfigMap", Some(before), Some(after)) if before != after => Err(format!("{} lost it", change.key())),
///         _ => Ok(()),
///     }
/// });
/// assert_eq!(rule.name(), "a ConfigMap keeps its data");
/// ```
#[derive(Clone)]
pub struct Rule {
    name: String,
    check: Check,
}

type Check = Arc<dyn Fn(&History) -> Result<(), Broken> + Send + Sync>;

/// Where and why a rule is broken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Broken {
    /// The number of the entry in the history that broke it.
    pub(crate) entry: Option<usize>,
    pub(crate) why: String,
}

impl Rule {
    /// A rule about the history as a whole. The error says in a sentence why it is broken.
    pub fn over(
        name: impl Into<String>,
        check: impl Fn(&History) -> Result<(), String> + Send + Sync + 'static,
    ) -> Self {
        let check = move |history: &History| check(history).map_err(|why| Broken { entry: None, why });
        Self { name: name.into(), check: Arc::new(check) }
    }

    /// A rule that is checked after each change, with the objects as they are then. The error says in a sentence why it is
    /// broken.
    pub fn after_each_change(
        name: impl Into<String>,
        check: impl Fn(&Change, &Objects) -> Result<(), String> + Send + Sync + 'static,
    ) -> Self {
        Self::replaying(name, move |(): &mut (), change, objects| check(change, objects))
    }

    /// As [`after_each_change`](Self::after_each_change), with a state of its own for each run.
    fn replaying<S: Default>(
        name: impl Into<String>,
        check: impl Fn(&mut S, &Change, &Objects) -> Result<(), String> + Send + Sync + 'static,
    ) -> Self {
        let check = move |history: &History| {
            let mut state = S::default();
            let mut objects = Objects::default();
            for (number, entry) in history.entries.iter().enumerate() {
                let What::Changed(change) = &entry.what else { continue };
                objects.apply(change);
                check(&mut state, change, &objects).map_err(|why| Broken { entry: Some(number), why })?;
            }
            Ok(())
        };
        Self { name: name.into(), check: Arc::new(check) }
    }

    /// No object controls more than `count` objects of a kind at any time.
    pub fn at_most_per_owner(count: usize, kind: &str) -> Self {
        let of_kind = kind.to_owned();
        Self::after_each_change(format!("at most {count} {kind} per owner"), move |change, objects| {
            if change.kind() != of_kind || change.after().is_none() {
                return Ok(());
            }
            let Some(owner) = controller(change.object()) else { return Ok(()) };
            let uid = &owner["uid"];
            let children: Vec<_> = objects
                .of_kind(&of_kind)
                .filter(|object| controller(object).is_some_and(|owner| owner["uid"] == *uid))
                .map(crate::history::key)
                .collect();
            if children.len() <= count {
                return Ok(());
            }
            let (kind, name) = (text(&owner["kind"]), text(&owner["name"]));
            Err(format!("{kind} {name} has {} {of_kind}s: {}", children.len(), children.join(", ")))
        })
    }

    /// The program deletes nothing that it did not create.
    pub fn deletes_only_its_own() -> Self {
        Self::deletes_only("the program deletes only what it created", |_| false)
    }

    /// The program deletes nothing except what it created, and what `allowed` returns `true` for.
    pub fn deletes_only(
        name: impl Into<String>,
        allowed: impl Fn(&Value) -> bool + Send + Sync + 'static,
    ) -> Self {
        Self::replaying(name, move |made: &mut BTreeSet<String>, change, _| {
            if change.creates() && change.by().is_program() {
                made.insert(change.uid().to_owned());
            }
            let is_wrong = change.deletes()
                    && change.by().is_program()
                    // The removal of its own finalizer completes a deletion that somebody else began.
                    && change.before().is_some_and(|before| before["metadata"]["deletionTimestamp"].is_null())
                    && !made.contains(change.uid())
                    && !allowed(change.object());
            match is_wrong {
                true => Err(format!(
                    "the program deletes {} {}, which it did not create",
                    change.kind(),
                    change.key()
                )),
                false => Ok(()),
            }
        })
    }

    /// Only the holder of a Lease writes. The program names itself in the Lease by
    /// [`Env::identity`](crate::Env::identity).
    ///
    /// A process is deposed when the Lease has another holder. Before the Lease exists, nobody may write anything else.
    pub fn only_the_leader_writes(lease: &str) -> Self {
        let lease = lease.to_owned();
        Self::after_each_change(
            format!("only the holder of the lease {lease} writes"),
            move |change, objects| {
                let Author::Program(instance) = change.by() else { return Ok(()) };
                if change.kind() == "Lease" {
                    return Ok(());
                }
                let holder = objects.get("Lease", &lease).map(|lease| text(&lease["spec"]["holderIdentity"]));
                let writer = identity(instance);
                if holder == Some(writer.as_str()) {
                    return Ok(());
                }
                let holder = holder.filter(|holder| !holder.is_empty()).unwrap_or("nobody");
                Err(format!("{writer} writes {} {} while {holder} leads", change.kind(), change.key()))
            },
        )
    }

    /// When the program makes a thing in the [external system](crate::External), the owner has this finalizer.
    pub fn finalizer_before_effect(finalizer: &str, owner_kind: &str) -> Self {
        let (finalizer, kind) = (finalizer.to_owned(), owner_kind.to_owned());
        let name = format!("{kind} has the finalizer {finalizer} before the external effect");
        let check = move |history: &History| {
            let mut objects = Objects::default();
            for (number, entry) in history.entries.iter().enumerate() {
                match &entry.what {
                    What::Changed(change) => objects.apply(change),
                    What::External(change) if change.exists => {
                        let owner = objects.get(&kind, &change.owner);
                        if !owner.is_some_and(|owner| has_finalizer(owner, &finalizer)) {
                            let (thing, owner) = (&change.name, &change.owner);
                            let why = format!("{thing} is made while {kind} {owner} lacks the finalizer");
                            return Err(Broken { entry: Some(number), why });
                        }
                    }
                    _ => {}
                }
            }
            Ok(())
        };
        Self { name, check: Arc::new(check) }
    }

    /// A field that the program writes does not return to an earlier value while the object's generation stays the same.
    /// `pointer` is a JSON pointer: `/status/phase`.
    pub fn does_not_flap(kind: &str, pointer: &str) -> Self {
        let (kind, pointer) = (kind.to_owned(), pointer.to_owned());
        // Per object and generation, the values in the order in which they were written.
        type Values = BTreeMap<(String, String), Vec<Value>>;
        Self::replaying(
            format!("{pointer} of {kind} does not flap"),
            move |values: &mut Values, change, _| {
                let Some(object) = change.after().filter(|_| change.kind() == kind) else { return Ok(()) };
                let value = object.pointer(&pointer).cloned().unwrap_or(Value::Null);
                let generation = object["metadata"]["generation"].to_string();
                let values = values.entry((change.uid().to_owned(), generation)).or_default();
                if values.last() == Some(&value) {
                    return Ok(());
                }
                let returns = values.contains(&value) && change.by().is_program();
                values.push(value);
                match returns {
                    true => Err(format!(
                        "{kind} {} had at {pointer}, with the same generation, one after the other: {}",
                        change.key(),
                        values.iter().map(Value::to_string).collect::<Vec<_>>().join(", ")
                    )),
                    false => Ok(()),
                }
            },
        )
    }

    /// No reconciliation goes on failing: at the end of a run, the last one of each key has not failed.
    ///
    /// Without this rule, a key that fails in the end of a disturbed run has to fail in undisturbed runs, too.
    pub fn no_endless_errors() -> Self {
        Self::over("no reconciliation goes on failing", |history| {
            let Some(failing) = reconciliations::failing(history).into_iter().next() else { return Ok(()) };
            let error = failing.end.and_then(|end| end.error).unwrap_or_default();
            Err(format!(
                "the last reconciliation of {} by {} failed: {error}",
                failing.key, failing.controller
            ))
        })
    }

    /// The sentence that names it.
    pub fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn check(&self, history: &History) -> Result<(), Broken> {
        (self.check)(history)
    }
}

impl fmt::Debug for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Rule({})", self.name)
    }
}

/// The owner reference with `controller: true`.
fn controller(object: &Value) -> Option<&Value> {
    let owners = object["metadata"]["ownerReferences"].as_array()?;
    owners.iter().find(|owner| owner["controller"] == true)
}

fn has_finalizer(object: &Value, finalizer: &str) -> bool {
    object["metadata"]["finalizers"].as_array().is_some_and(|all| all.iter().any(|one| one == finalizer))
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
