//! Reads ahead of the writer: of each object, the last version of a step is packed again, and to read it takes as long as its deltas lie far
//! from each other.

use std::collections::{BTreeMap, BTreeSet};

use super::goal;
use crate::report::{Ahead, Plan};
use crate::sql::codec::Codec;
use crate::sql::db::{Db, Row, values};
use crate::sql::fault::Outcome;
use crate::sql::times::meta;

/// A step has the versions of so many objects at most: each of them is a row that the writer writes. And so many versions.
const OBJECTS: usize = 128;
const VERSIONS: i64 = 4_096;
/// Versions whose objects are looked up at once.
const SOME: i64 = 512;

/// Reads what the next step of a plan needs.
pub(crate) fn prepare(db: Db<'_>, codec: &mut Codec, plan: &mut Plan) -> Outcome<()> {
    plan.ahead = Ahead::default();
    let before = meta(db, "complete_after")?;
    if db.is_file() {
        return Ok(());
    }
    let Some(goal) = goal(db, plan, before)? else { return Ok(()) };
    let (mut newest, mut up_to, mut count) = (BTreeMap::new(), before, 0);
    let sql = "SELECT number, object, verb FROM versions WHERE number > ?1 AND number <= ?2 ORDER BY number LIMIT ?3";
    'all: loop {
        let read = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?));
        let some: Vec<(i64, i64, i64)> = db.all(sql, values![up_to, goal, SOME], read)?;
        for (number, object, verb) in &some {
            if newest.len() == OBJECTS && !newest.contains_key(object) {
                break 'all;
            }
            newest.insert(*object, (*number, *verb));
            (up_to, count) = (*number, count + 1);
        }
        if count >= VERSIONS {
            break;
        }
        if some.len() < usize::try_from(SOME).unwrap_or(usize::MAX) {
            up_to = goal;
            break;
        }
    }
    // Of an object that is gone, nothing is kept.
    let is_left = |(number, verb): (i64, i64)| (!matches!(verb, 3 | 7)).then_some(number);
    let numbers: BTreeSet<i64> = newest.into_values().filter_map(is_left).collect();
    let numbers: Vec<i64> = numbers.into_iter().collect();
    let bodies = codec.bodies(db, &numbers)?.into_iter().map(|(number, (body, _))| (number, body)).collect();
    plan.ahead = Ahead { after: before, up_to, bodies };
    Ok(())
}
