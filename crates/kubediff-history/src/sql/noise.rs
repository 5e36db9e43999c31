//! The current state of an object, where it differs from its newest version by noise alone.

use super::codec::Codec;
use super::db::{Db, values};
use super::fault::{Fault, Outcome};

/// The state that noise has led to: resourceVersion, time, content.
pub(crate) fn noise(
    db: Db<'_>,
    codec: &mut Codec,
    object: i64,
    newest: &[u8],
) -> Outcome<Option<(String, i64, Vec<u8>)>> {
    let sql = "SELECT state_rv, state_at, state_length, state_crc, state FROM objects
               WHERE id = ?1 AND state IS NOT NULL";
    let row = db.first(sql, values![object], |row| {
        let (length, crc): (usize, u32) = (row.count(2)?, row.count(3)?);
        Ok((row.get::<String>(0)?, row.get::<i64>(1)?, length, crc, row.get::<Vec<u8>>(4)?))
    })?;
    let Some((rv, at, length, crc, frame)) = row else { return Ok(None) };
    let body = codec.unpack_delta(newest, &[], &frame, length)?;
    if crc32fast::hash(&body) != crc {
        return Err(Fault::damaged(format!("the state of object {object} has another checksum")));
    }
    Ok(Some((rv, at, body)))
}

/// The current state of the object that has this version, if this is its newest one and noise has come since.
pub(crate) fn since(db: Db<'_>, codec: &mut Codec, version: i64, body: &[u8]) -> Outcome<Option<Vec<u8>>> {
    let sql = "SELECT o.id FROM versions v JOIN objects o ON o.id = v.object
               WHERE v.number = ?1 AND o.state IS NOT NULL AND v.number = (SELECT max(number) FROM versions WHERE object = o.id)";
    let object = db.first(sql, values![version], |row| row.get(0))?;
    let Some(object) = object else { return Ok(None) };
    Ok(noise(db, codec, object, body)?.map(|(.., state)| state))
}
