//! The objects that an object names: its controller, and the object that an Event is about.

use std::borrow::Cow;

use serde::Deserialize;

use super::codec::Codec;
use super::db::{Db, values};
use super::fault::Outcome;

/// The uids; `None` for an object that names none.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Links {
    pub(crate) owner: Option<String>,
    pub(crate) about: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Linking<'a> {
    #[serde(borrow)]
    metadata: Metadata<'a>,
    #[serde(borrow)]
    involved_object: Named<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Metadata<'a> {
    #[serde(borrow)]
    owner_references: Vec<Named<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Named<'a> {
    controller: Option<bool>,
    #[serde(borrow)]
    uid: Cow<'a, str>,
}

impl Links {
    /// The links of an object with this content. Another form of content has none.
    pub(crate) fn of(body: &[u8]) -> Self {
        let Linking { metadata, involved_object } = serde_json::from_slice(body).unwrap_or_default();
        let uid = |named: Named<'_>| Some(named.uid.into_owned()).filter(|uid| !uid.is_empty());
        let owner = metadata.owner_references.into_iter().find(|owner| owner.controller == Some(true));
        Self { owner: owner.and_then(uid), about: uid(involved_object) }
    }

    pub(crate) fn write(&self, db: Db<'_>, object: i64) -> Outcome<()> {
        // An object that was released was its controller's before.
        let sql = "UPDATE objects SET owner = coalesce(?2, owner), about = ?3 WHERE id = ?1";
        db.run(sql, values![object, self.owner.as_deref(), self.about.as_deref()])?;
        Ok(())
    }
}

/// Fills in the links of the objects that exist, in a file that had none.
pub(crate) fn fill(db: Db<'_>) -> Outcome<()> {
    let mut codec = Codec::new()?;
    let newest = "SELECT o.id, max(v.number) FROM objects o JOIN versions v ON v.object = o.id WHERE o.ended IS NULL GROUP BY o.id";
    for (object, number) in db.all(newest, &[], |row| Ok((row.get(0)?, row.get(1)?)))? {
        Links::of(&codec.body(db, number)?).write(db, object)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::Links;

    #[test]
    fn an_object_names_its_controller_and_an_event_its_object() {
        let links = |json: &str| {
            let Links { owner, about } = Links::of(json.as_bytes());
            format!("{} {}", owner.unwrap_or_default(), about.unwrap_or_default())
        };
        let owners = r#"{"metadata": {"ownerReferences": [{"uid": "a"}, {"uid": "b", "controller": true}]}}"#;
        assert_eq!(links(owners), "b ");
        assert_eq!(links(r#"{"involvedObject": {"kind": "Pod", "uid": "c\u0041"}}"#), " cA");
        assert_eq!(links(r#"{"metadata": {"ownerReferences": 5}}"#), " ");
        assert_eq!(links("{}"), " ");
    }
}
