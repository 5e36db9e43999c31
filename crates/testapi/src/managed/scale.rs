//! Who owns the number of replicas after it was written by way of the scale.

use serde_json::Value;

use super::entries::{self, Entry, Kind, Owner};
use super::owned::Owned;
use super::set::FieldSet;
use super::{Writer, take};

/// What a write of a scale makes of the number of replicas.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scaling {
    Same,
    /// Which is nothing in a scale, and so nobody's.
    ToZero,
    To,
}

/// Gives the field `replicas` (`spec.replicas`) to who has changed it, and takes it from all others. As in the real
/// server, which translates the entries into those of the scale and back: what comes back has no time, and who had
/// updated the object has, where the number has stayed, an entry for the number alone beside the other.
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
        // Where nobody owned it, as of an object without entries, nobody begins to.
        Scaling::To if owned.values().all(|entry| !entry.fields.has_any(&field)) => {}
        Scaling::To => {
            let owner = writer.owner(Kind::Update);
            take(&mut owned, &field, Some(&owner));
            owned.entry(owner).or_insert_with(|| alone(writer.api_version));
        }
    }
    entries::write(object, owned.into_iter().chain(apart));
}
