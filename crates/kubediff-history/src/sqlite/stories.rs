//! Stories and their members, and the objects that a fold looks up.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use rusqlite::{Connection, OptionalExtension, Row, Transaction, TransactionBehavior, params};

use super::fault::{Fault, Outcome};
use super::names::{self, Table};
use super::states;
use super::values::{id, number};
use super::{History, Reader};
use crate::error::Error;
use crate::record::{Gvk, Incarnation, Number, ObjectId};
use crate::story::{Folded, StoredStory};

/// An object's controllers are followed this far.
const HEIGHT: usize = 8;

impl History {
    /// Stores the stories that a fold has found, and how far it has come, all of it or nothing.
    ///
    /// # Errors
    ///
    /// When the file cannot be written.
    pub fn fold(&mut self, folded: &Folded) -> Result<(), Error> {
        fold(&self.connection, folded).map_err(|fault| fault.at(&self.path))
    }
}

impl Reader {
    /// The object with this uid in a namespace, or in none, then its controller, and so on upwards: those that were known by this
    /// record. Of a controller that was not, the uid follows.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, or is damaged.
    pub fn lineage(
        &mut self,
        uid: &str,
        namespace: Option<&str>,
        by: Number,
    ) -> Result<(Vec<ObjectId>, Option<String>), Error> {
        self.at_once(|connection, _, _| lineage(connection, uid, namespace, by))
    }

    /// The objects that this one controls, or has controlled, by kind and name: at most this many.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, or is damaged.
    pub fn controlled(&mut self, by: &ObjectId, most: usize) -> Result<Vec<Incarnation>, Error> {
        self.at_once(|connection, _, _| controlled(connection, by, most))
    }

    /// The version of the fold that has stored stories here, and the record that it has come to.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, or is damaged.
    pub fn folded(&mut self) -> Result<(u32, Number), Error> {
        self.at_once(|connection, _, _| place(connection))
    }

    /// The stories that may go on, the oldest first.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, or is damaged.
    pub fn open_stories(&mut self) -> Result<Vec<StoredStory>, Error> {
        self.at_once(|connection, _, _| open(connection))
    }

    /// One story.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, or is damaged.
    pub fn story(&mut self, id: Number) -> Result<Option<StoredStory>, Error> {
        self.at_once(|connection, _, _| one(connection, id))
    }

    /// Which of these records belong to a story, and to which.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, or is damaged.
    pub fn members(&mut self, of: RangeInclusive<Number>) -> Result<BTreeMap<Number, Number>, Error> {
        self.at_once(|connection, _, _| members(connection, of))
    }

    /// The records of a story, the oldest first.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, or is damaged.
    pub fn members_of(&mut self, story: Number) -> Result<Vec<Number>, Error> {
        self.at_once(|connection, _, _| members_of(connection, story))
    }
}

/// Stores what a fold has found, all of it or nothing.
fn fold(connection: &Connection, folded: &Folded) -> Outcome<()> {
    let transaction = Transaction::new_unchecked(connection, TransactionBehavior::Immediate)?;
    if place(&transaction)?.0 != folded.version {
        transaction.execute_batch("DELETE FROM members; DELETE FROM stories")?;
    }
    for story in &folded.stories {
        let content = serde_json::to_string(&story.content);
        let content = content.map_err(|_| Fault::Invalid("the content of a story is no JSON"))?;
        let sql = "INSERT OR REPLACE INTO stories (id, last, is_open, content) VALUES (?1, ?2, ?3, ?4)";
        let row = params![id(story.id), id(story.last), story.is_open, content];
        transaction.prepare_cached(sql)?.execute(row)?;
    }
    for (member, story) in &folded.members {
        // Retention may have removed it meanwhile.
        let sql = "INSERT OR REPLACE INTO members SELECT number, ?2 FROM versions WHERE number = ?1";
        transaction.prepare_cached(sql)?.execute([id(*member), id(*story)])?;
    }
    for (name, value) in [("fold_version", i64::from(folded.version)), ("folded_to", id(folded.through))] {
        let sql = "UPDATE meta SET value = ?2 WHERE name = ?1";
        transaction.prepare_cached(sql)?.execute(params![name, value])?;
    }
    Ok(transaction.commit()?)
}

/// A reference to an owner can name any uid: across namespaces it names nothing.
fn controlled(connection: &Connection, by: &ObjectId, most: usize) -> Outcome<Vec<Incarnation>> {
    let sql = "SELECT o.id FROM objects o LEFT JOIN namespaces n ON n.id = o.namespace
               WHERE o.owner = ?1 AND (?2 IS NULL OR n.name = ?2) ORDER BY o.family, o.name, o.id LIMIT ?3";
    let mut statement = connection.prepare_cached(sql)?;
    let ids = statement.query_map(params![by.uid, by.namespace, most], |row| row.get(0))?;
    let mut found = states::described(connection, ids.collect::<Result<_, _>>()?)?;
    found.sort_by(|a, b| a.object.cmp(&b.object));
    Ok(found)
}

/// The version of the fold, and how far it has come.
fn place(connection: &Connection) -> Outcome<(u32, Number)> {
    let of = |name: &str| -> Outcome<i64> {
        let sql = "SELECT value FROM meta WHERE name = ?1";
        Ok(connection.prepare_cached(sql)?.query_row([name], |row| row.get(0))?)
    };
    Ok((u32::try_from(of("fold_version")?).unwrap_or(u32::MAX), number(of("folded_to")?)))
}

fn story(row: &Row<'_>) -> rusqlite::Result<(i64, i64, bool, String)> {
    Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?))
}

fn read((of, last, is_open, content): (i64, i64, bool, String)) -> Outcome<StoredStory> {
    let content = serde_json::from_str(&content);
    let content = content.map_err(|_| Fault::damaged(format!("the content of story {of} is undecodable")))?;
    Ok(StoredStory { id: number(of), last: number(last), is_open, content })
}

/// The stories that may go on, the oldest first.
fn open(connection: &Connection) -> Outcome<Vec<StoredStory>> {
    let sql = "SELECT id, last, is_open, content FROM stories WHERE is_open ORDER BY id";
    let mut statement = connection.prepare_cached(sql)?;
    let rows = statement.query_map([], story)?.collect::<Result<Vec<_>, _>>()?;
    rows.into_iter().map(read).collect()
}

fn one(connection: &Connection, of: Number) -> Outcome<Option<StoredStory>> {
    let sql = "SELECT id, last, is_open, content FROM stories WHERE id = ?1";
    connection.prepare_cached(sql)?.query_row([id(of)], story).optional()?.map(read).transpose()
}

/// Which of these records belong to a story, and to which.
fn members(connection: &Connection, of: RangeInclusive<Number>) -> Outcome<BTreeMap<Number, Number>> {
    let sql = "SELECT number, story FROM members WHERE number BETWEEN ?1 AND ?2";
    let mut statement = connection.prepare_cached(sql)?;
    let found = statement
        .query_map([id(*of.start()), id(*of.end())], |row| Ok((number(row.get(0)?), number(row.get(1)?))))?;
    Ok(found.collect::<Result<_, _>>()?)
}

/// The records of a story, in order.
fn members_of(connection: &Connection, story: Number) -> Outcome<Vec<Number>> {
    let sql = "SELECT number FROM members WHERE story = ?1 ORDER BY number";
    let mut statement = connection.prepare_cached(sql)?;
    let found = statement.query_map([id(story)], |row| Ok(number(row.get(0)?)))?;
    Ok(found.collect::<Result<_, _>>()?)
}

/// Forgets what is about records that are removed: up to this one.
pub(super) fn forget(connection: &Connection, cut: i64) -> Outcome<()> {
    connection.prepare_cached("DELETE FROM members WHERE number <= ?1")?.execute([cut])?;
    connection.prepare_cached("DELETE FROM stories WHERE last <= ?1")?.execute([cut])?;
    Ok(())
}

/// The object with a uid, then its controller, and so on upwards. An object of another namespace than this one is none of them: a
/// writer in one namespace may claim any uid.
fn lineage(
    connection: &Connection,
    uid: &str,
    namespace: Option<&str>,
    by: Number,
) -> Outcome<(Vec<ObjectId>, Option<String>)> {
    let mut within = match namespace {
        Some(name) => names::find(connection, Table::Namespaces, name)?.unwrap_or_default(),
        None => 0,
    };
    let (mut found, mut next) = (Vec::new(), Some(uid.to_owned()));
    while let Some(uid) = next.filter(|_| found.len() < HEIGHT) {
        let sql = "SELECT o.namespace, n.name, o.name, o.owner, k.api_group, k.version, k.kind, k.plural FROM objects o
                   CROSS JOIN kinds k ON k.id = (SELECT id FROM kinds WHERE family = o.family ORDER BY id DESC LIMIT 1)
                   LEFT JOIN namespaces n ON n.id = o.namespace WHERE o.uid = ?1 AND o.namespace IN (0, ?2) AND o.first <= ?3 LIMIT 1";
        let row = connection.prepare_cached(sql)?.query_row(params![uid, within, id(by)], |row| {
            let gvk = Gvk { group: row.get(4)?, version: row.get(5)?, kind: row.get(6)? };
            let object = ObjectId {
                gvk,
                resource: row.get(7)?,
                namespace: row.get(1)?,
                name: row.get(2)?,
                uid: uid.clone(),
            };
            Ok((row.get::<_, i64>(0)?, object, row.get(3)?))
        });
        let Some((namespace, object, owner)) = row.optional()? else { return Ok((found, Some(uid))) };
        (within, next) = (namespace, owner);
        found.push(object);
    }
    Ok((found, None))
}
