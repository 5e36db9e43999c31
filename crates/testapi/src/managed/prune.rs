//! Removes fields that a manager has applied before and no longer applies, unless another manager owns them.

use serde_json::Value;

use super::entries::Entries;
use super::merge::without;
use super::set::FieldSet;
use super::typed::fields;
use crate::schema::TypeRef;

/// `merged` without the fields that only `last`, the former set of the applying manager, contains. `owned` is its new
/// set.
pub(super) fn prune(of: &TypeRef, merged: Value, owned: &Entries, last: &FieldSet) -> Value {
    let named = |set: &FieldSet| set.with_named_fields(Some(of));
    let last = named(last);
    let all = named(&fields(of, &merged));
    let everybodys = owned.values().fold(FieldSet::default(), |all, entry| all.union(&entry.fields.set()));

    let pruned = without(of, &merged, &last);
    // Owned fields stay, with the fields around them.
    let kept = named(&fields(of, &pruned)).union(&named(&everybodys));
    let pruned = without(of, &merged, &all.difference(&kept));
    // Fields that nobody owns stay too, unless this manager owned them.
    let gone = all.difference(&named(&fields(of, &pruned))).intersection(&last);
    without(of, &merged, &gone)
}
