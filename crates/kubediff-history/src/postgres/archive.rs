//! Copies a day of a history into a file, as retention would leave it before the day, and with nothing of later days.

use std::collections::{BTreeMap, HashMap};

use jiff::Timestamp;
use jiff::civil::Date;

use crate::batch::{Observation, What};
use crate::body::Body;
use crate::record::{ChangeRecord, Version};
use crate::sql::codec::{Codec, Stored};
use crate::sql::conditions::in_list;
use crate::sql::db::{Db, Row, Value, values};
use crate::sql::fault::{Fault, Outcome};
use crate::sql::noise::noise;
use crate::sql::read::{self, Lens};
use crate::sql::times::meta;
use crate::sql::{states, values};
use crate::sqlite::copied::Copied;

/// Versions that are read at once.
const CHUNK: i64 = 256;
/// Objects that are looked at together.
const OBJECTS: i64 = 5_000;

/// Rows that are in the file as in the database: their table and columns, the type of each (integer, text, bytes), and which of them. The
/// parameters are the number before the day, the last one of the day, and the time of the record after it.
const ROWS: &[(&str, &str, &str, &str)] = &[
    // A gap that began in the day may have ended later.
    (
        "gaps",
        "number, from_at, to_at, resource, reason",
        "iiitt",
        "number > ?1 AND (number <= ?2 OR from_at < ?3)",
    ),
    ("scrubs", "number, at, first, last, masked, cause", "iiiiit", "number > ?1 AND number <= ?2"),
    ("timelines", "first, timeline", "ii", "first <= ?2"),
    ("positions", "resource, rv", "tt", "?1 <= ?2"),
    ("prints", "id, namespace, print", "itb", "?1 <= ?2"),
    ("members", "number, story", "ii", "number > ?1 AND number <= ?2"),
    ("authors", "number, author, probable", "iii", "number > ?1 AND number <= ?2"),
    ("users", "id, name", "it", "id IN (SELECT author FROM authors WHERE number > ?1 AND number <= ?2)"),
    (
        "documents",
        "name, first, edition, length, crc, frame",
        "titiib",
        "first <= ?2 + 1 AND NOT EXISTS (SELECT 1 FROM documents l WHERE l.name = documents.name AND l.first > documents.first AND l.first <= ?1 + 1)",
    ),
    (
        "stories",
        "id, last, is_open, content",
        "iiit",
        "id IN (SELECT story FROM members WHERE number > ?1 AND number <= ?2)",
    ),
];

/// The days that are over, and the last number of each.
pub(crate) fn days(db: Db<'_>) -> Outcome<BTreeMap<Date, i64>> {
    if db.is_file() {
        return Ok(BTreeMap::new());
    }
    // Without a later record, a writer may still be in the day before this one.
    let sql = "SELECT day::text, last FROM days d WHERE last > (SELECT value FROM meta WHERE name = 'complete_after')
               AND (day < (clock_timestamp() AT TIME ZONE 'utc')::date - 1 OR EXISTS (SELECT 1 FROM days l WHERE l.day > d.day))";
    let found = db.all(sql, &[], |row| Ok((row.get::<String>(0)?, row.get(1)?)))?;
    let day = |text: String| text.parse().map_err(|_| Fault::damaged(format!("{text} is no day")));
    found.into_iter().map(|(text, last)| Ok((day(text)?, last))).collect()
}

/// Copies a day. `notes` gets the notes of now, and the time of the first record after the day. Returns the first number that the file has not.
pub(crate) fn copy(
    db: Db<'_>,
    codec: &mut Codec,
    day: Date,
    to: &mut Copied,
    notes: impl FnOnce(&mut BTreeMap<String, String>, Option<Timestamp>),
) -> Outcome<i64> {
    let days = days(db)?;
    let Some(last) = days.get(&day).copied() else {
        let known: Vec<String> = days.keys().map(Date::to_string).collect();
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        return Err(Fault::NotFound(format!("day {day}; the days that are over and not removed: {known}")));
    };
    let before = days.range(..day).next_back().map_or(0, |(_, last)| *last);
    let after = before.max(meta(db, "complete_after")?);
    let next = "SELECT observed_at FROM versions WHERE number > ?1 ORDER BY number LIMIT 1";
    let until: Option<i64> = db.first(next, values![last], |row| row.get(0))?;
    let mut copy = Copying { db, codec, to, until: until.unwrap_or(i64::MAX) };
    copy.states_before(after, last)?;
    let mut done = after;
    while let numbers = copy.numbers(done, last)?
        && let Some(last) = numbers.last()
    {
        done = *last;
        copy.versions(&numbers)?;
    }
    let until = until.map(values::time).transpose()?;
    copy.rows(after, last)?;
    let mut kept = read::notes(db)?;
    notes(&mut kept, until);
    for (name, value) in kept {
        copy.to.run("INSERT INTO notes VALUES (?1, ?2)", values![name, value])?;
    }
    let folded = meta(db, "folded_to")?.min(last);
    for (name, value) in [
        ("complete_after", after),
        ("events_after", meta(db, "events_after")?.min(last)),
        ("fold_version", meta(db, "fold_version")?),
        ("folded_to", folded),
    ] {
        copy.to.run("UPDATE meta SET value = ?2 WHERE name = ?1", values![name, value])?;
    }
    copy.to.run("UPDATE meta SET value = ?1 WHERE name = 'log'", values![db.log()?])?;
    let gaps = "SELECT coalesce(max(number), 0) FROM gaps WHERE from_at < ?1";
    Ok(last.max(db.one(gaps, values![copy.until])?) + 1)
}

struct Copying<'a> {
    db: Db<'a>,
    codec: &'a mut Codec,
    to: &'a mut Copied,
    /// The time of the first record after the day.
    until: i64,
}

impl Copying<'_> {
    fn numbers(&self, after: i64, last: i64) -> Outcome<Vec<i64>> {
        let sql = "SELECT number FROM versions WHERE number > ?1 AND number <= ?2 ORDER BY number LIMIT ?3";
        self.db.all(sql, values![after, last, CHUNK], |row| row.get(0))
    }

    /// Copies the last version before the day of each object that existed then. One that came back within the day has its deletion.
    fn states_before(&mut self, after: i64, last: i64) -> Outcome<()> {
        let sql = "SELECT o.id, v.number, CASE WHEN v.verb NOT IN (3, 7) OR EXISTS
                       (SELECT 1 FROM versions WHERE object = o.id AND number > ?2 AND number <= ?3) THEN 1 ELSE 0 END
                   FROM (SELECT id, ended FROM objects WHERE id > ?1 ORDER BY id LIMIT ?4) o LEFT JOIN LATERAL
                       (SELECT number, verb FROM versions WHERE object = o.id AND number <= ?2 AND (o.ended IS NULL OR o.ended > ?2)
                        ORDER BY number DESC LIMIT 1) v ON TRUE ORDER BY o.id";
        let mut object = i64::MIN;
        loop {
            let found = self.db.all(sql, values![object, after, last, OBJECTS], |row| {
                Ok((row.get(0)?, row.get::<Option<i64>>(1)?, row.get::<i64>(2)? != 0))
            })?;
            let Some((newest, ..)) = found.last() else { return Ok(()) };
            object = *newest;
            let numbers: Vec<i64> = found
                .into_iter()
                .filter(|(.., is_state)| *is_state)
                .filter_map(|(_, number, _)| number)
                .collect();
            for some in numbers.chunks(usize::try_from(CHUNK).unwrap_or(1)) {
                self.versions(some)?;
            }
        }
    }

    fn versions(&mut self, numbers: &[i64]) -> Outcome<()> {
        let (db, list) = (self.db, in_list(numbers));
        let mut heads = states::heads(db, numbers)?;
        let stored = Stored::some(db, numbers)?;
        // The incarnation before has ended with a version of the one after it.
        let replaced = format!(
            "SELECT v.number, o.uid FROM objects o JOIN versions v ON v.number = o.ended WHERE o.ended{list} AND v.object <> o.id"
        );
        let replaced = db.all(&replaced, &[], |row| Ok((row.get::<i64>(0)?, row.get::<String>(1)?)))?;
        let mut replaced: HashMap<i64, String> = replaced.into_iter().collect();
        let noisy = format!(
            "SELECT v.number, o.id FROM versions v JOIN objects o ON o.id = v.object WHERE v.number{list} AND o.state_at < ?1
             AND v.number = (SELECT max(number) FROM versions WHERE object = o.id)"
        );
        let noisy =
            db.all(&noisy, values![self.until], |row| Ok((row.get::<i64>(0)?, row.get::<i64>(1)?)))?;
        let noisy: HashMap<i64, i64> = noisy.into_iter().collect();
        let mut begun = Vec::new();
        // The archive copies the stored bytes unchanged.
        let lens = Lens { cluster: String::new(), mask: None, is_limited: false };
        for number in numbers {
            let (Some(head), Some(row)) = (heads.remove(number), stored.get(number)) else {
                return Err(Fault::damaged(format!("version {number} is missing")));
            };
            let newest = self.to.newest(&head.object)?;
            if newest.is_none() {
                begun.push(*number);
            }
            let base = newest.filter(|(base, _)| *base == row.base);
            let body = match &base {
                None if row.base != 0 => self.codec.body(db, *number)?,
                base => {
                    let base = base.as_ref().map(|(base, body)| (*base, body));
                    self.codec.unpacked(db, *number, &stored, base)?
                }
            };
            let noise = match noisy.get(number) {
                Some(object) => noise(db, self.codec, *object, &body)?,
                None => None,
            };
            let is_event = head.is_event();
            let Version { object, rv, observed_at, change, body, .. } =
                head.version(db, self.codec, &lens, body)?;
            let what = match &change {
                None => What::Known,
                Some(_) if is_event => What::Event,
                Some(_) => What::Change,
            };
            let record = ChangeRecord { object, rv: Some(rv), observed_at, ..ChangeRecord::default() };
            let record = change.map_or(record, |change| *change);
            let mut observation = Observation { record, body, what, replaces: replaced.remove(number) };
            self.to.adopt(*number, &observation)?;
            if let Some((rv, at, body)) = noise {
                (observation.what, observation.body) = (What::Noise, Body::stored(body.into()));
                (observation.record.rv, observation.record.observed_at) = (Some(rv), values::time(at)?);
                self.to.adopt(*number, &observation)?;
            }
        }
        // Links may be those of a version that is not copied.
        let links = format!(
            "SELECT o.uid, o.owner, o.about FROM versions v JOIN objects o ON o.id = v.object WHERE v.number{}",
            in_list(&begun)
        );
        let update =
            "UPDATE objects SET owner = coalesce(owner, ?2), about = coalesce(about, ?3) WHERE uid = ?1";
        let optional = |row: &Row<'_>, at| row.get::<Option<String>>(at);
        for row in db.all(&links, &[], |row| Ok([optional(row, 0)?, optional(row, 1)?, optional(row, 2)?]))? {
            self.to.run(update, &row.map(Value::from))?;
        }
        Ok(())
    }

    fn rows(&self, after: i64, last: i64) -> Outcome<()> {
        for (table, columns, types, which) in ROWS {
            let value = |row: &Row<'_>, (at, of): (usize, char)| -> Outcome<Value> {
                Ok(match of {
                    'i' => row.get::<Option<i64>>(at)?.into(),
                    't' => row.get::<Option<String>>(at)?.into(),
                    _ => row.get::<Vec<u8>>(at)?.into(),
                })
            };
            let sql = format!("SELECT {columns} FROM {table} WHERE {which} ORDER BY 1");
            let places: Vec<String> = (1..=types.len()).map(|at| format!("?{at}")).collect();
            let add = format!("INSERT INTO {table} ({columns}) VALUES ({})", places.join(", "));
            let read = |row: &Row<'_>| {
                types.chars().enumerate().map(|it| value(row, it)).collect::<Outcome<Vec<_>>>()
            };
            for row in self.db.all(&sql, values![after, last, self.until], read)? {
                self.to.run(&add, &row)?;
            }
        }
        Ok(())
    }
}
