//! Stories and their members, and the objects that a fold looks up.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use super::db::{Db, Row, values};
use super::fault::{Fault, Outcome};
use super::times::meta;
use super::values::{id, number};
use super::{documents, states};
use crate::record::{Gvk, Incarnation, Number, ObjectId};
use crate::story::{Folded, StoredStory};

/// An object's controllers are followed this far.
const HEIGHT: usize = 8;

/// Stores what a fold has found, all of it or nothing.
pub(crate) fn fold(db: Db<'_>, folded: &Folded) -> Outcome<()> {
    db.writing(|db| {
        if place(db)?.0 != folded.version {
            db.run("DELETE FROM members", &[])?;
            db.run("DELETE FROM stories", &[])?;
        }
        for story in &folded.stories {
            let content = serde_json::to_string(&story.content);
            let content = content.map_err(|_| Fault::Invalid("the content of a story is no JSON"))?;
            db.run("DELETE FROM stories WHERE id = ?1", values![id(story.id)])?;
            let sql = "INSERT INTO stories (id, last, is_open, content) VALUES (?1, ?2, ?3, ?4)";
            db.run(sql, values![id(story.id), id(story.last), story.is_open, content])?;
        }
        for (member, story) in &folded.members {
            db.run("DELETE FROM members WHERE number = ?1", values![id(*member)])?;
            // Retention may have removed it meanwhile.
            let sql = "INSERT INTO members (number, story) SELECT number, ?2 FROM versions WHERE number = ?1";
            db.run(sql, values![id(*member), id(*story)])?;
        }
        for (name, value) in [("fold_version", i64::from(folded.version)), ("folded_to", id(folded.through))]
        {
            db.run("UPDATE meta SET value = ?2 WHERE name = ?1", values![name, value])?;
        }
        Ok(())
    })
}

/// A reference to an owner can name any uid: across namespaces it names nothing.
pub(crate) fn controlled(db: Db<'_>, by: &ObjectId, most: usize) -> Outcome<Vec<Incarnation>> {
    let sql = "SELECT o.id FROM objects o LEFT JOIN namespaces n ON n.id = o.namespace
               WHERE o.owner = ?1 AND coalesce(n.name, '') = coalesce(?2, n.name, '')
               ORDER BY o.family, o.name, o.id LIMIT ?3";
    let ids = db.all(sql, values![&by.uid, by.namespace.as_deref(), most], |row| row.get(0))?;
    let mut found = states::described(db, &ids)?;
    found.sort_by(|a, b| a.object.cmp(&b.object));
    Ok(found)
}

/// The version of the fold, and how far it has come.
pub(crate) fn place(db: Db<'_>) -> Outcome<(u32, Number)> {
    let version = u32::try_from(meta(db, "fold_version")?).unwrap_or(u32::MAX);
    Ok((version, number(meta(db, "folded_to")?)))
}

fn story(row: &Row<'_>) -> Outcome<StoredStory> {
    let (of, last, is_open): (i64, i64, i64) = (row.get(0)?, row.get(1)?, row.get(2)?);
    let content = serde_json::from_str(&row.get::<String>(3)?);
    let content = content.map_err(|_| Fault::damaged(format!("the content of story {of} is undecodable")))?;
    Ok(StoredStory { id: number(of), last: number(last), is_open: is_open != 0, content })
}

/// The stories that may go on, the oldest first.
pub(crate) fn open(db: Db<'_>) -> Outcome<Vec<StoredStory>> {
    db.all("SELECT id, last, is_open, content FROM stories WHERE is_open <> 0 ORDER BY id", &[], story)
}

pub(crate) fn one(db: Db<'_>, of: Number) -> Outcome<Option<StoredStory>> {
    db.first("SELECT id, last, is_open, content FROM stories WHERE id = ?1", values![id(of)], story)
}

/// Which of these records belong to a story, and to which.
pub(crate) fn members(db: Db<'_>, of: RangeInclusive<Number>) -> Outcome<BTreeMap<Number, Number>> {
    let sql = "SELECT number, story FROM members WHERE number BETWEEN ?1 AND ?2";
    let of = values![id(*of.start()), id(*of.end())];
    Ok(db.all(sql, of, |row| Ok((number(row.get(0)?), number(row.get(1)?))))?.into_iter().collect())
}

/// The records of a story, in order.
pub(crate) fn members_of(db: Db<'_>, story: Number) -> Outcome<Vec<Number>> {
    let sql = "SELECT number FROM members WHERE story = ?1 ORDER BY number";
    db.all(sql, values![id(story)], |row| Ok(number(row.get(0)?)))
}

/// Forgets what is about records that are removed: up to this one.
pub(crate) fn forget(db: Db<'_>, cut: i64) -> Outcome<()> {
    db.run("DELETE FROM members WHERE number <= ?1", values![cut])?;
    db.run("DELETE FROM stories WHERE last <= ?1", values![cut])?;
    db.run("DELETE FROM authors WHERE number <= ?1", values![cut])?;
    documents::forget(db, cut)
}

/// The object with a uid, then its controller, and so on upwards. An object of another namespace than this one is none of them: a
/// writer in one namespace may claim any uid.
pub(crate) fn lineage(
    db: Db<'_>,
    uid: &str,
    namespace: Option<&str>,
    by: Number,
) -> Outcome<(Vec<ObjectId>, Option<String>)> {
    // The number of the namespace, once it is known.
    let mut within: Option<i64> = None;
    let (mut found, mut next) = (Vec::new(), Some(uid.to_owned()));
    while let Some(uid) = next.filter(|_| found.len() < HEIGHT) {
        let sql = "SELECT o.namespace, n.name, o.name, o.owner, k.api_group, k.version, k.kind, k.plural FROM objects o
                   CROSS JOIN kinds k ON k.id = (SELECT id FROM kinds WHERE family = o.family ORDER BY id DESC LIMIT 1)
                   LEFT JOIN namespaces n ON n.id = o.namespace WHERE o.uid = ?1 AND o.namespace IN (0, coalesce(?2, (SELECT id FROM namespaces WHERE name = ?4))) AND o.first <= ?3 LIMIT 1";
        let row = db.first(sql, values![&uid, within, id(by), namespace], |row| {
            let gvk = Gvk { group: row.get(4)?, version: row.get(5)?, kind: row.get(6)? };
            let object = ObjectId {
                gvk,
                resource: row.get(7)?,
                namespace: row.get(1)?,
                name: row.get(2)?,
                uid: uid.clone(),
            };
            Ok((row.get::<i64>(0)?, object, row.get(3)?))
        })?;
        let Some((namespace, object, owner)) = row else { return Ok((found, Some(uid))) };
        (within, next) = (Some(namespace), owner);
        found.push(object);
    }
    Ok((found, None))
}
