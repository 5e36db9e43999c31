//! Documents that the server gives about itself, each from a record on.

use std::collections::BTreeMap;

use super::codec::Codec;
use super::db::{Db, values};
use super::fault::{Fault, Outcome};
use super::times::meta;
use super::values::id;
use crate::document::Document;
use crate::record::Number;

/// Stores a document from the next record on, unless the last edition is this one.
pub(crate) fn store(codec: &mut Codec, db: Db<'_>, document: &Document) -> Outcome<()> {
    let Document { name, edition, content } = document;
    db.writing(|db| {
        if editions(db)?.get(name) == Some(edition) {
            return Ok(());
        }
        let first = meta(db, "next")?;
        db.run("DELETE FROM documents WHERE name = ?1 AND first = ?2", values![name, first])?;
        let (length, crc) = (content.len(), crc32fast::hash(content));
        let sql = "INSERT INTO documents (name, first, edition, length, crc, frame) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
        db.run(sql, values![name, first, edition, length, crc, codec.pack_alone(content)?]).map(drop)
    })
}

/// The last edition of each document.
pub(crate) fn editions(db: Db<'_>) -> Outcome<BTreeMap<String, String>> {
    let all = db.all("SELECT name, edition FROM documents ORDER BY first", &[], |row| {
        Ok((row.get(0)?, row.get(1)?))
    })?;
    Ok(all.into_iter().collect())
}

/// The content of a document after a record: the oldest one where the server was first asked later.
pub(crate) fn read(db: Db<'_>, codec: &mut Codec, name: &str, after: Number) -> Outcome<Option<Vec<u8>>> {
    // The next record's number is that of a document which came after this one.
    let sql = "SELECT length, crc, frame FROM documents WHERE name = ?1
               ORDER BY CASE WHEN first <= ?2 THEN 0 ELSE 1 END, CASE WHEN first <= ?2 THEN -first ELSE first END LIMIT 1";
    let row = db.first(sql, values![name, id(after).saturating_add(1)], |row| {
        Ok((row.count::<usize>(0)?, row.count::<u32>(1)?, row.get::<Vec<u8>>(2)?))
    })?;
    let Some((length, crc, frame)) = row else { return Ok(None) };
    let content = codec.unpack(db, 0, &frame, length)?;
    if crc32fast::hash(&content) != crc {
        return Err(Fault::damaged(format!("the document {name} has another checksum")));
    }
    Ok(Some(content).filter(|content| !content.is_empty()))
}

/// Forgets the editions that were over before the records after this one.
pub(crate) fn forget(db: Db<'_>, cut: i64) -> Outcome<()> {
    let sql = "DELETE FROM documents WHERE EXISTS
               (SELECT 1 FROM documents l WHERE l.name = documents.name AND l.first > documents.first AND l.first <= ?1 + 1)";
    db.run(sql, values![cut]).map(drop)
}
