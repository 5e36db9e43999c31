//! Reads ahead of the writer: of each object, the last version of a step is packed again, and to read it takes as long as its deltas lie far
//! from each other.

use std::collections::{BTreeMap, HashMap};

use super::goal;
use crate::report::{Ahead, Plan};
use crate::sql::codec::Codec;
use crate::sql::db::{Db, Row, values};
use crate::sql::fault::Outcome;
use crate::sql::packing::ROW;
use crate::sql::times::meta;

/// A step has the versions of so many objects at most: each of them is a row that the writer writes. So many versions, and so many bytes of
/// contents.
const OBJECTS: usize = 128;
const VERSIONS: usize = 4_096;
const BYTES: i64 = 16 << 20;
/// Versions whose objects are looked up at once, and contents that are read at once: each has a chain of deltas.
const SOME: usize = 512;
const READ: usize = 16;

/// The last version of an object so far.
struct Newest {
    number: i64,
    is_deletion: bool,
    length: i64,
}

/// Reads what the next step of a plan needs, unless that was read already: Events go first.
pub(crate) fn prepare(db: Db<'_>, codec: &mut Codec, plan: &mut Plan) -> Outcome<()> {
    let before = meta(db, "complete_after")?;
    let goal = if db.is_file() { None } else { goal(db, plan, before)? };
    let Some(goal) = goal else {
        plan.ahead = Ahead::default();
        return Ok(());
    };
    if plan.ahead.after == before && (before + 1..=goal).contains(&plan.ahead.up_to) {
        return Ok(());
    }
    let (up_to, newest) = next_step(db, before, goal, too_many(db, plan, before)?)?;
    let kept: Vec<i64> = newest.into_values().filter(|it| !it.is_deletion).map(|it| it.number).collect();
    let mut bodies = HashMap::new();
    for some in kept.chunks(READ) {
        bodies.extend(codec.bodies(db, some)?.into_iter().map(|(number, (body, _))| (number, body)));
    }
    plan.ahead = Ahead { after: before, up_to, bodies };
    Ok(())
}

/// How many bytes are to go, where only their number is why something goes.
fn too_many(db: Db<'_>, plan: &Plan, before: i64) -> Outcome<i64> {
    let Some(most) = plan.bytes.filter(|_| before >= plan.up_to) else { return Ok(i64::MAX) };
    Ok(i64::try_from(db.used_bytes()?.saturating_sub(most)).unwrap_or(i64::MAX))
}

/// The last record of a step that has so many bytes at most, and of each of its objects the last version. Without a record where the first one
/// is too large: then nothing is read ahead.
fn next_step(db: Db<'_>, before: i64, goal: i64, most: i64) -> Outcome<(i64, BTreeMap<i64, Newest>)> {
    let (mut newest, mut up_to) = (BTreeMap::<i64, Newest>::new(), before);
    let (mut count, mut contents, mut removed) = (0, 0, 0);
    let sql = "SELECT number, object, verb, length, length(detail) + length(frame) FROM versions WHERE number > ?1 AND number <= ?2
               ORDER BY number LIMIT ?3";
    loop {
        let read = |row: &Row<'_>| {
            let (object, verb): (i64, i64) = (row.get(1)?, row.get(2)?);
            let it = Newest { number: row.get(0)?, is_deletion: matches!(verb, 3 | 7), length: row.get(3)? };
            Ok((object, it, row.get::<i64>(4)?))
        };
        let some: Vec<(i64, Newest, i64)> = db.all(sql, values![up_to, goal, SOME], read)?;
        let is_last = some.len() < SOME;
        for (object, it, bytes) in some {
            contents += it.length - newest.get(&object).map_or(0, |former| former.length);
            let is_full = newest.len() == OBJECTS && !newest.contains_key(&object);
            if is_full || contents > BYTES || removed >= most || count == VERSIONS {
                return Ok((up_to, newest));
            }
            (up_to, count, removed) = (it.number, count + 1, removed + bytes + ROW as i64);
            newest.insert(object, it);
        }
        if is_last {
            return Ok((goal, newest));
        }
    }
}
