//! The rows of a batch, as the columns of a few statements.

use std::collections::{BTreeMap, BTreeSet};

use crate::report::Scrub;
use crate::sql::codec::Packed;
use crate::sql::db::{Statement, Value, values};
use crate::sql::links::Links;
use crate::sql::packing::{Content, ROW};

/// Rows to insert, and objects to change.
#[derive(Default)]
pub(super) struct Rows {
    pub(super) versions: Vec<Change>,
    objects: BTreeMap<i64, Object>,
    others: Vec<Statement>,
    pub(super) event_bytes: usize,
}

/// A version.
pub(super) struct Change {
    pub(super) number: i64,
    pub(super) object: i64,
    pub(super) kind: i64,
    pub(super) namespace: i64,
    pub(super) verb: i64,
    pub(super) source: i64,
    pub(super) observed_at: i64,
    pub(super) rv: String,
    pub(super) rv_before: Option<String>,
    pub(super) length: usize,
    pub(super) crc: u32,
    pub(super) tags: BTreeSet<i64>,
    pub(super) detail_length: usize,
    pub(super) detail: Packed,
    pub(super) content: Content,
}

/// An object that is new, or what becomes of it. `None`: nothing.
#[derive(Default)]
pub(super) struct Object {
    /// Family, namespace, name and uid, and the number of its first version.
    pub(super) new: Option<((i64, i64, String, String), i64)>,
    pub(super) returned: bool,
    pub(super) ended: Option<Option<(i64, i64)>>,
    pub(super) state: Option<Option<State>>,
    pub(super) links: Option<Links>,
}

/// The state that noise has led to.
pub(super) struct State {
    pub(super) rv: String,
    pub(super) at: i64,
    pub(super) length: usize,
    pub(super) crc: u32,
    pub(super) frame: Vec<u8>,
}

/// Columns of integers, from rows of them.
fn integers<T>(rows: &[T], column: impl Fn(&T) -> Option<i64>) -> Value {
    Value::Integers(rows.iter().map(column).collect())
}

fn texts<T>(rows: &[T], column: impl Fn(&T) -> Option<String>) -> Value {
    Value::Texts(rows.iter().map(column).collect())
}

fn blobs<T>(rows: &[T], column: impl Fn(&T) -> Option<Vec<u8>>) -> Value {
    Value::Blobs(rows.iter().map(column).collect())
}

fn size(length: usize) -> Option<i64> {
    i64::try_from(length).ok()
}

impl Rows {
    pub(super) fn object(&mut self, id: i64) -> &mut Object {
        self.objects.entry(id).or_default()
    }

    pub(super) fn gap(
        &mut self,
        number: i64,
        (from, to): (i64, i64),
        resource: Option<String>,
        reason: String,
    ) {
        let sql = "INSERT INTO gaps (number, from_at, to_at, resource, reason) VALUES ($1, $2, $3, $4, $5)";
        self.other(sql, values![number, from, to, resource, reason]);
    }

    pub(super) fn scrub(&mut self, number: i64, at: i64, scrub: &Scrub, cause: &str) {
        let sql =
            "INSERT INTO scrubs (number, at, first, last, masked, cause) VALUES ($1, $2, $3, $4, $5, $6)";
        let masked = i64::try_from(scrub.masked).unwrap_or(i64::MAX);
        self.other(sql, values![number, at, scrub.from, scrub.until, masked, cause]);
    }

    /// From this number on, times rise again. No version before it is later than the other time.
    pub(super) fn disordered(&mut self, from: i64, until: i64) {
        let sql = "UPDATE meta SET value = CASE name WHEN 'ordered_from' THEN $1 ELSE greatest(value, $2) END
                   WHERE name IN ('ordered_from', 'disordered_until')";
        self.other(sql, values![from, until]);
    }

    fn other(&mut self, sql: &str, values: &[Value]) {
        self.others.push(Statement { sql: sql.to_owned(), values: values.to_vec() });
    }

    /// The statements that store all of it. Versions are of this day.
    pub(super) fn statements(self, day: i64) -> Vec<Statement> {
        let mut statements = self.others;
        let (new, changed): (Vec<_>, Vec<_>) =
            self.objects.into_iter().partition(|(_, object)| object.new.is_some());
        statements.extend(inserted(&new));
        statements.extend(updated(&changed));
        statements.extend(versions(&self.versions, day));
        let of = |row: &Change| row.detail.frame.len() + row.content.packed.frame.len() + ROW;
        let bytes = self.versions.iter().map(of).sum();
        for (name, bytes) in [("bytes", bytes), ("event_bytes", self.event_bytes)] {
            if let Some(bytes) = size(bytes).filter(|bytes| *bytes > 0) {
                let sql = "UPDATE meta SET value = value + $1 WHERE name = $2";
                statements.push(Statement { sql: sql.to_owned(), values: values![bytes, name].to_vec() });
            }
        }
        statements
    }
}

fn inserted(rows: &[(i64, Object)]) -> Option<Statement> {
    if rows.is_empty() {
        return None;
    }
    let sql = "INSERT INTO objects (id, ended, ended_at, state_rv, state_at, state_length, state_crc, state, owner, about,
                   family, namespace, name, uid, first, returned)
               SELECT * FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)";
    let mut values = columns(rows);
    let of = |object: &Object| object.new.as_ref().map(|(of, _)| of.clone());
    values.extend([
        integers(rows, |(_, object)| Some(of(object)?.0)),
        integers(rows, |(_, object)| Some(of(object)?.1)),
        texts(rows, |(_, object)| Some(of(object)?.2)),
        texts(rows, |(_, object)| Some(of(object)?.3)),
        integers(rows, |(_, object)| object.new.as_ref().map(|(_, first)| *first)),
        integers(rows, |(_, object)| Some(object.returned.into())),
    ]);
    Some(Statement { sql: sql.to_owned(), values })
}

fn updated(rows: &[(i64, Object)]) -> Option<Statement> {
    if rows.is_empty() {
        return None;
    }
    // An object that was released was its controller's before.
    let sql = "UPDATE objects o SET
                   ended = CASE WHEN u.ends > 0 THEN u.ended ELSE o.ended END,
                   ended_at = CASE WHEN u.ends > 0 THEN u.ended_at ELSE o.ended_at END,
                   state_rv = CASE WHEN u.states > 0 THEN u.state_rv ELSE o.state_rv END,
                   state_at = CASE WHEN u.states > 0 THEN u.state_at ELSE o.state_at END,
                   state_length = CASE WHEN u.states > 0 THEN u.state_length ELSE o.state_length END,
                   state_crc = CASE WHEN u.states > 0 THEN u.state_crc ELSE o.state_crc END,
                   state = CASE WHEN u.states > 0 THEN u.state ELSE o.state END,
                   owner = coalesce(u.owner, o.owner),
                   about = CASE WHEN u.links > 0 THEN u.about ELSE o.about END,
                   returned = greatest(o.returned, u.returned)
               FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14) AS u
                   (id, ended, ended_at, state_rv, state_at, state_length, state_crc, state, owner, about, ends, states, links, returned)
               WHERE o.id = u.id";
    let mut values = columns(rows);
    values.extend([
        integers(rows, |(_, object)| Some(object.ended.is_some().into())),
        integers(rows, |(_, object)| Some(object.state.is_some().into())),
        integers(rows, |(_, object)| Some(object.links.is_some().into())),
        integers(rows, |(_, object)| Some(object.returned.into())),
    ]);
    Some(Statement { sql: sql.to_owned(), values })
}

/// id, ended, ended_at, state_rv, state_at, state_length, state_crc, state, owner, about
fn columns(rows: &[(i64, Object)]) -> Vec<Value> {
    let ended = |object: &Object| object.ended.flatten();
    fn state(object: &Object) -> Option<&State> {
        object.state.as_ref().and_then(Option::as_ref)
    }
    vec![
        integers(rows, |(id, _)| Some(*id)),
        integers(rows, |(_, object)| Some(ended(object)?.0)),
        integers(rows, |(_, object)| Some(ended(object)?.1)),
        texts(rows, |(_, object)| Some(state(object)?.rv.clone())),
        integers(rows, |(_, object)| Some(state(object)?.at)),
        integers(rows, |(_, object)| size(state(object)?.length)),
        integers(rows, |(_, object)| Some(state(object)?.crc.into())),
        blobs(rows, |(_, object)| Some(state(object)?.frame.clone())),
        texts(rows, |(_, object)| object.links.as_ref()?.owner.clone()),
        texts(rows, |(_, object)| object.links.as_ref()?.about.clone()),
    ]
}

fn versions(rows: &[Change], day: i64) -> Option<Statement> {
    if rows.is_empty() {
        return None;
    }
    let sql = "INSERT INTO versions (day, number, object, kind, namespace, verb, source, observed_at, rv, rv_before, base, content, split, length, crc,
                   dictionary, detail_length, detail_dictionary, tags, detail, frame)
               SELECT '1970-01-01'::date + $1::int, number, object, kind, namespace, verb, source, observed_at, rv, rv_before, base, content, split,
                   length, crc, dictionary, detail_length, detail_dictionary, tags::int[], detail, frame
               FROM unnest($2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21) AS v
                   (number, object, kind, namespace, verb, source, observed_at, rv, rv_before, base, content, split, length, crc,
                   dictionary, detail_length, detail_dictionary, tags, detail, frame)";
    let tags = |tags: &BTreeSet<i64>| {
        let tags: Vec<String> = tags.iter().map(i64::to_string).collect();
        format!("{{{}}}", tags.join(","))
    };
    let values = vec![
        Value::from(day),
        integers(rows, |row| Some(row.number)),
        integers(rows, |row| Some(row.object)),
        integers(rows, |row| Some(row.kind)),
        integers(rows, |row| Some(row.namespace)),
        integers(rows, |row| Some(row.verb)),
        integers(rows, |row| Some(row.source)),
        integers(rows, |row| Some(row.observed_at)),
        texts(rows, |row| Some(row.rv.clone())),
        texts(rows, |row| row.rv_before.clone()),
        integers(rows, |row| Some(row.content.base)),
        integers(rows, |row| row.content.shared.map(|(id, _)| id)),
        integers(rows, |row| row.content.shared.and_then(|(_, split)| size(split))),
        integers(rows, |row| size(row.length)),
        integers(rows, |row| Some(row.crc.into())),
        integers(rows, |row| Some(row.content.packed.dictionary)),
        integers(rows, |row| size(row.detail_length)),
        integers(rows, |row| Some(row.detail.dictionary)),
        texts(rows, |row| Some(tags(&row.tags))),
        blobs(rows, |row| Some(row.detail.frame.clone())),
        blobs(rows, |row| Some(row.content.packed.frame.clone())),
    ];
    Some(Statement { sql: sql.to_owned(), values })
}
