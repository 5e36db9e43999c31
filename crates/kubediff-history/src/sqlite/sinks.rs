//! The positions of sinks.

use rusqlite::{Connection, Transaction, TransactionBehavior, params};

use super::fault::{Fault, Outcome};
use super::values::id;
use crate::report::Settled;

pub(super) fn settle(connection: &Connection, sink: &str, settled: &Settled) -> Outcome<()> {
    let transaction = Transaction::new_unchecked(connection, TransactionBehavior::Immediate)?;
    let sql = "UPDATE sinks SET position = max(position, ?2) WHERE name = ?1";
    if transaction.prepare_cached(sql)?.execute(params![sink, id(settled.position)])? == 0 {
        return Err(Fault::NotFound(format!("sink {sink}")));
    }
    for letter in &settled.dead {
        let sql = "INSERT OR REPLACE INTO dead_letters VALUES (?1, ?2, ?3, ?4)";
        let object = letter.object.cast_signed();
        transaction.prepare_cached(sql)?.execute(params![sink, id(letter.number), object, letter.reason])?;
    }
    for number in &settled.resent {
        let sql = "DELETE FROM dead_letters WHERE sink = ?1 AND number = ?2";
        transaction.prepare_cached(sql)?.execute(params![sink, id(*number)])?;
    }
    Ok(transaction.commit()?)
}

pub(super) fn remove(connection: &Connection, sink: &str) -> Outcome<()> {
    let transaction = Transaction::new_unchecked(connection, TransactionBehavior::Immediate)?;
    transaction.execute("DELETE FROM dead_letters WHERE sink = ?1", [sink])?;
    transaction.execute("DELETE FROM sinks WHERE name = ?1", [sink])?;
    Ok(transaction.commit()?)
}
