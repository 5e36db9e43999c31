//! The positions of sinks.

use super::db::{Db, values};
use super::fault::{Fault, Outcome};
use super::values::id;
use crate::report::Settled;

/// The name of the note with a sink's tail, before the sink's own.
pub(super) const TAIL: &str = "tail of ";

pub(crate) fn add(db: Db<'_>, sink: &str, position: i64) -> Outcome<()> {
    let sql = "INSERT INTO sinks (name, position, lost) VALUES (?1, ?2, 0) ON CONFLICT DO NOTHING";
    db.writing(|db| db.run(sql, values![sink, position]).map(drop))
}

pub(crate) fn settle(db: Db<'_>, sink: &str, settled: &Settled) -> Outcome<()> {
    let forget = |db: Db<'_>, number| {
        let sql = "DELETE FROM dead_letters WHERE sink = ?1 AND number = ?2";
        db.run(sql, values![sink, id(number)]).map(drop)
    };
    db.writing(|db| {
        let sql =
            "UPDATE sinks SET position = CASE WHEN position < ?2 THEN ?2 ELSE position END WHERE name = ?1";
        if db.run(sql, values![sink, id(settled.position)])? == 0 {
            return Err(Fault::NotFound(format!("sink {sink}")));
        }
        for letter in &settled.dead {
            forget(db, letter.number)?;
            let sql = "INSERT INTO dead_letters (sink, number, object, reason) VALUES (?1, ?2, ?3, ?4)";
            let object = letter.object.cast_signed();
            db.run(sql, values![sink, id(letter.number), object, &letter.reason])?;
        }
        settled.resent.iter().try_for_each(|number| forget(db, *number))?;
        if let Some(tail) = &settled.tail {
            db.run("DELETE FROM notes WHERE name = ?1 || ?2", values![TAIL, sink])?;
            db.run("INSERT INTO notes (name, value) VALUES (?1 || ?2, ?3)", values![TAIL, sink, tail])?;
        }
        Ok(())
    })
}

pub(crate) fn remove(db: Db<'_>, sink: &str) -> Outcome<()> {
    db.writing(|db| {
        db.run("DELETE FROM dead_letters WHERE sink = ?1", values![sink])?;
        db.run("DELETE FROM notes WHERE name = ?1 || ?2", values![TAIL, sink])?;
        db.run("DELETE FROM sinks WHERE name = ?1", values![sink])?;
        Ok(())
    })
}
