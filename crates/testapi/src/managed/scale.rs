//! The owner of the number of replicas after a write of the scale.

use serde_json::Value;

use super::entries::{self, Entry, Kind, Owner};
use super::owned::Owned;
use super::set::FieldSet;
use super::{Writer, take};

/// How a write of the scale changes the number of replicas.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scaling {
    Same,
    /// A scale omits 0, so nobody owns it.
    ToZero,
    To,
}

/// Makes the writer the only owner of the field `replicas` (`spec.replicas`). This follows the real server, which
/// translates the entries into those of the scale and back: translated entries have no time. If the number stays the
/// same, a manager that had updated the object gets a second entry, for the number alone.
pub(crate) fn scaled(object: &mut Value, replicas: &str, scaling: Scaling, writer: Writer<'_>) {
    let Some(mut owned) = entries::read(object) else { return };
    if owned.is_empty() {
        return;
    }
    let field = FieldSet::of(&[replicas]);
    let alone = |api_version: &str| Entry {
        api_version: api_version.to_owned(),
        fields: Owned::Set(field.clone()),
        time: None,
    };
    let mut apart: Vec<(Owner, Entry)> = Vec::new();
    match scaling {
        Scaling::Same => {
            for (owner, entry) in owned.iter_mut() {
                if owner.kind == Kind::Update && entry.fields.has_any(&field) {
                    entry.fields = Owned::Set(entry.fields.set().difference(&field));
                    apart.push((owner.clone(), alone(&entry.api_version)));
                }
            }
            owned.retain(|_, entry| !entry.fields.is_empty());
        }
        Scaling::ToZero => take(&mut owned, &field, None),
        // If nobody owned it, for example in an object without entries, it stays so.
        Scaling::To if owned.values().all(|entry| !entry.fields.has_any(&field)) => {}
        Scaling::To => {
            let owner = writer.owner(Kind::Update);
            take(&mut owned, &field, Some(&owner));
            owned.entry(owner).or_insert_with(|| alone(writer.api_version));
        }
    }
    entries::write(object, owned.into_iter().chain(apart));
}
