//! Fields that somebody has applied before and applies no more go, unless somebody else owns them.

use serde_json::Value;

use super::entries::Entries;
use super::merge::without;
use super::set::FieldSet;
use super::typed::fields;
use crate::schema::TypeRef;

/// `merged` without what is only in `last`, what the applying manager owned before. `owned` has what it owns now.
pub(super) fn prune(of: &TypeRef, merged: Value, owned: &Entries, last: &FieldSet) -> Value {
    let named = |set: &FieldSet| set.with_named_fields(Some(of));
    let last = named(last);
    let all = named(&fields(of, &merged));
    let everybodys = owned.values().fold(FieldSet::default(), |all, entry| all.union(&entry.fields.set()));

    let pruned = without(of, &merged, &last);
    // What is owned stays, with what it is in.
    let kept = named(&fields(of, &pruned)).union(&named(&everybodys));
    let pruned = without(of, &merged, &all.difference(&kept));
    // What nobody owns stays too, if it was not this manager's.
    let gone = all.difference(&named(&fields(of, &pruned))).intersection(&last);
    without(of, &merged, &gone)
}
