//! Questions become queries.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::Value;

use super::candidates::{Candidates, Named};
use super::chosen::{Chosen, kinds};
use super::codec::{Codec, Detail};
use super::conditions::{Conditions, MOST, in_list, order_by};
use super::db::{Db, Row, values};
use super::detail;
use super::fault::{Fault, Outcome};
use super::noise;
use super::packing::{event_code, verb_code};
use super::times::Span;
use super::users;
use super::values::{id, number, time};
use crate::body::Body;
use crate::filter::{Filter, Order, Page, Scope};
use crate::mask::{self, Mask};
use crate::record::{
    ChangeRecord, Event, Gap, Gvk, Number, ObjectId, Origin, Record, Scrubbed, User, Verb, Version,
};
use crate::report::{DeadLetter, Ids, Records, Sink, Size};

/// Columns of a version and its change, without the content. `CROSS JOIN`: the conditions are about versions.
pub(crate) const HEAD: &str =
    "SELECT v.number, v.verb, v.source, v.observed_at, v.rv, v.rv_before, v.detail_length,
    v.detail_dictionary, v.detail, k.api_group, k.version, k.kind, k.plural, n.name, o.name, o.uid, u.name, a.probable
    FROM versions v CROSS JOIN objects o ON o.id = v.object CROSS JOIN kinds k ON k.id = v.kind
    LEFT JOIN namespaces n ON n.id = v.namespace LEFT JOIN authors a ON a.number = v.number
    LEFT JOIN users u ON u.id = a.author";

/// How what is stored looks to a reader.
pub(crate) struct Lens {
    pub(crate) cluster: String,
    pub(crate) mask: Option<Arc<dyn Mask>>,
    /// Whether views stand before the tables.
    pub(crate) is_limited: bool,
}

impl Lens {
    fn mask(&self) -> Option<&dyn Mask> {
        self.mask.as_deref()
    }

    pub(crate) fn gaps(&self, gaps: &mut [Gap]) {
        for gap in gaps {
            self.mask().iter().for_each(|mask| mask.text(&mut gap.reason));
        }
    }
}

/// A row of [`HEAD`].
#[derive(Clone)]
pub(crate) struct VersionRow {
    pub(crate) number: i64,
    pub(crate) verb: i64,
    source: i64,
    observed_at: i64,
    pub(crate) rv: String,
    rv_before: Option<String>,
    pub(crate) detail: Detail,
    pub(crate) object: ObjectId,
    user: Option<User>,
}

impl VersionRow {
    pub(crate) fn read(row: &Row<'_>) -> Outcome<Self> {
        let gvk = Gvk { group: row.get(9)?, version: row.get(10)?, kind: row.get(11)? };
        Ok(Self {
            number: row.get(0)?,
            verb: row.get(1)?,
            source: row.get(2)?,
            observed_at: row.get(3)?,
            rv: row.get(4)?,
            rv_before: row.get(5)?,
            detail: Detail::read(row, 6)?,
            object: ObjectId {
                gvk,
                resource: row.get(12)?,
                namespace: row.get(13)?,
                name: row.get(14)?,
                uid: row.get(15)?,
            },
            user: users::read(row, 16)?,
        })
    }

    fn change(
        self,
        db: Db<'_>,
        codec: &mut Codec,
        lens: &Lens,
        in_words: bool,
    ) -> Outcome<Option<ChangeRecord>> {
        let Some(verb) = self.verb()? else { return Ok(None) };
        let bytes = codec.detail(db, &self.detail)?;
        let details = match in_words && lens.mask.is_none() {
            true => detail::read_words(&bytes, self.number)?,
            false => detail::read(&bytes, self.number)?,
        };
        let mut record = ChangeRecord {
            number: Some(number(self.number)),
            cluster: Some(lens.cluster.clone()),
            observed_at: self.observed_at()?,
            object: self.object,
            verb,
            rv_before: self.rv_before,
            rv: Some(self.rv).filter(|rv| !rv.is_empty()),
            origin: match self.source {
                0 => Origin::Watch,
                1 => Origin::List,
                _ => Origin::Restart,
            },
            managers: details.managers.into_owned(),
            owners: details.owners.into_owned(),
            paths: details.paths.into_owned(),
            diff: details.diff.into_owned(),
            summary: details.summary.into_owned(),
            dropped: details.dropped.into_owned(),
            key: details.key.map(Cow::into_owned),
            merged: details.merged,
            user: self.user,
        };
        if verb == Verb::Recreated && lens.is_limited {
            // The state before is that of another object, which may have been somebody else's.
            record = ChangeRecord {
                rv_before: None,
                paths: Vec::new(),
                diff: Value::Null,
                summary: String::new(),
                dropped: BTreeMap::new(),
                ..record
            };
        }
        if let Some(mask) = lens.mask() {
            // The words about an object that came or went are of its content.
            let is_of_content = matches!(verb, Verb::Added | Verb::Deleted);
            let body = is_of_content.then(|| codec.body(db, self.number)).transpose()?;
            mask::record(mask, &mut record, body.as_deref());
        }
        Ok(Some(record))
    }

    /// Whether it is a version of an Event that came, changed or went.
    pub(crate) fn is_event(&self) -> bool {
        self.verb >= event_code(Verb::Added)
    }

    /// Whether it was deleted.
    pub(crate) fn is_deletion(&self) -> bool {
        [verb_code(Verb::Deleted), event_code(Verb::Deleted)].contains(&self.verb)
    }

    /// The kind of change; `None` for a version that was found and not seen to become.
    pub(crate) fn verb(&self) -> Outcome<Option<Verb>> {
        Ok(match self.verb {
            0 => None,
            1 => Some(Verb::Added),
            2 => Some(Verb::Updated),
            3 => Some(Verb::Deleted),
            4 => Some(Verb::Recreated),
            5 => Some(Verb::Added),
            6 => Some(Verb::Updated),
            7 => Some(Verb::Deleted),
            _ => return Err(Fault::damaged(format!("version {} has an unknown verb", self.number))),
        })
    }

    pub(crate) fn observed_at(&self) -> Outcome<Timestamp> {
        time(self.observed_at)
    }

    pub(crate) fn version(
        self,
        db: Db<'_>,
        codec: &mut Codec,
        lens: &Lens,
        body: Arc<[u8]>,
    ) -> Outcome<Version> {
        let change = self.clone().change(db, codec, lens, false)?.map(Box::new);
        Ok(Version { change, ..self.state(lens, body)? })
    }

    /// The same without the change that led to it, whose details need not be unpacked then.
    pub(crate) fn state(self, lens: &Lens, body: Arc<[u8]>) -> Outcome<Version> {
        let mut version = Version {
            number: number(self.number),
            object: self.object,
            rv: self.rv,
            observed_at: time(self.observed_at)?,
            change: None,
            body: Body::stored(body),
        };
        if let Some(mask) = lens.mask() {
            mask::version(mask, &mut version);
        }
        Ok(version)
    }
}

/// The unpacked details of a version.
pub(crate) fn details(codec: &mut Codec, db: Db<'_>, number: i64) -> Outcome<Vec<u8>> {
    let sql = "SELECT detail_length, detail_dictionary, detail FROM versions WHERE number = ?1";
    let detail = db.first(sql, values![number], |row| Detail::read(row, 0))?;
    let detail = detail.ok_or_else(|| Fault::damaged(format!("version {number} is missing")))?;
    codec.detail(db, &detail)
}

/// A page ends after changes whose details have this many bytes, whatever its limit: details of few bytes take many times as
/// many in memory.
const BYTES: usize = 2 << 20;

/// Changes, and the bytes of their details.
#[derive(Default)]
struct Found {
    records: Vec<Record>,
    bytes: usize,
}

/// A page of changes, and of gaps if they are asked for.
pub(crate) fn records(
    db: Db<'_>,
    codec: &mut Codec,
    lens: &Lens,
    filter: &Filter,
    page: &Page,
) -> Outcome<Records> {
    let limit = page.limit.clamp(1, MOST);
    let Found { mut records, bytes } = changes(db, codec, lens, filter, page, limit + 1)?;
    let last = records.last().filter(|_| bytes >= BYTES).map(Record::number);
    if filter.gaps {
        let mut gaps = gaps(db, &filter.scope, filter.from, filter.to, page, limit + 1)?;
        lens.gaps(&mut gaps);
        records.extend(gaps.into_iter().map(Record::Gap));
        records.extend(scrubs(db, filter, page, limit + 1)?.into_iter().map(Record::Scrubbed));
        match page.order {
            Order::NewestFirst => records.sort_by_key(|record| std::cmp::Reverse(record.number())),
            Order::OldestFirst => records.sort_by_key(Record::number),
        }
    }
    // A page that is full of bytes ends with its last change.
    let end = last.and_then(|last| records.iter().position(|record| record.number() == last));
    let end = end.map_or(limit, |at| limit.min(at + 1));
    let more = last.is_some() || records.len() > end;
    records.truncate(end);
    Ok(Records { records, more })
}

fn changes(
    db: Db<'_>,
    codec: &mut Codec,
    lens: &Lens,
    filter: &Filter,
    page: &Page,
    limit: usize,
) -> Outcome<Found> {
    let mut found = Found::default();
    let Named::All(mut named) = Named::find(db, filter)? else { return Ok(found) };
    let Some(mut chosen) = Chosen::find(db, &filter.scope)? else { return Ok(found) };
    if filter.takes_events() {
        chosen.add_events(db)?;
    }
    // One object's versions are few. Otherwise the path leads, or the manager, or else kinds and namespaces.
    let leads = match chosen.objects {
        Some(_) => None,
        None if named.is_empty() => Candidates::of_places(db, &chosen)?,
        None => Some(named.remove(0)),
    };
    let span = Span::of(db, filter.from, filter.to)?.of_page(page);
    let mut conditions = chosen.on_versions(filter, &span, leads.is_some());
    named.iter().for_each(|it| {
        conditions.and(&it.condition(db));
    });
    let Some(leads) = leads else {
        since(db, &mut conditions, span.from)?;
        select(db, codec, lens, &conditions, (page, limit, filter.in_words), &mut found)?;
        return Ok(found);
    };
    let mut after = Some(span.before(page.order));
    while let Some(beyond) = after
        && found.records.len() < limit
        && found.bytes < BYTES
    {
        let numbers;
        (numbers, after) = leads.next(db, page.order, beyond, &span, limit)?;
        let mut conditions = conditions.clone();
        conditions.numbered(db, &numbers);
        since(db, &mut conditions, numbers.iter().min().copied().unwrap_or_default())?;
        let part = (page, limit - found.records.len(), filter.in_words);
        select(db, codec, lens, &conditions, part, &mut found)?;
    }
    Ok(found)
}

/// In a database, leaves out the days that have no version from this number on, and those that were kept from removed days. One comparison:
/// with two of them, the planner reads all versions to put some in order.
fn since(db: Db<'_>, conditions: &mut Conditions, from: i64) -> Outcome<()> {
    if !db.is_file() && from > 0 {
        let first = "SELECT CASE WHEN ?1 > complete_after() THEN coalesce(min(day - '1970-01-01'::date), 0) ELSE 0 END::bigint
                     FROM days WHERE last >= ?1";
        let first: i64 = db.one(first, values![from])?;
        conditions.compare("v.day >= '1970-01-01'::date + ", first);
        conditions.text.push_str("::int");
    }
    Ok(())
}

fn select(
    db: Db<'_>,
    codec: &mut Codec,
    lens: &Lens,
    conditions: &Conditions,
    (page, limit, in_words): (&Page, usize, bool),
    found: &mut Found,
) -> Outcome<()> {
    let (text, order) = (&conditions.text, order_by("v.number", page, limit));
    let sql = if db.is_file() {
        format!("{HEAD}{text}{order}")
    } else {
        // A database does not know that versions are of the objects of their log: it would begin with all of these.
        let page = format!("(SELECT * FROM versions v{text}{order}) v");
        HEAD.replacen("versions v", &page, 1) + &order
    };
    db.each(&sql, &conditions.parameters, |row| {
        let row = VersionRow::read(row)?;
        found.bytes += row.detail.length;
        if row.is_event() {
            let body = codec.body(db, row.number)?;
            // How often it came is noise, and worth knowing.
            let body = noise::since(db, codec, row.number, &body)?.map_or(body, Into::into);
            found.bytes += body.len();
            let Version { number, observed_at, body, .. } = row.version(db, codec, lens, body)?;
            found.records.push(Record::Event(Event { number, observed_at, object: body.value() }));
        } else {
            let change = row.change(db, codec, lens, in_words)?;
            found.records.extend(change.map(|change| Record::Change(Box::new(change))));
        }
        Ok(if found.bytes < BYTES { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
    })
}

/// The objects with a change that the filter takes, path and manager apart, or with noise in its time.
pub(crate) fn changed(db: Db<'_>, filter: &Filter) -> Outcome<Vec<i64>> {
    let Some(chosen) = Chosen::find(db, &filter.scope)? else { return Ok(Vec::new()) };
    let span = Span::of(db, filter.from, filter.to)?;
    let conditions = chosen.on_versions(filter, &span, false);
    let sql = format!("SELECT DISTINCT v.object FROM versions v{}", conditions.text);
    let ids = db.all(&sql, &conditions.parameters, |row| row.get(0))?;
    let mut found: BTreeSet<i64> = ids.into_iter().collect();
    let noise = "SELECT id FROM objects WHERE state_at >= ?1 AND state_at < ?2";
    let from = filter.from.map_or(i64::MIN, Timestamp::as_microsecond);
    let to = filter.to.map_or(i64::MAX, Timestamp::as_microsecond);
    for id in db.all(noise, values![from, to], |row| row.get::<i64>(0))? {
        if chosen.objects(db, &filter.scope, id - 1, 1)?.first() == Some(&id) {
            found.insert(id);
        }
    }
    Ok(found.into_iter().collect())
}

/// Scrubs, in the order of the page.
fn scrubs(db: Db<'_>, filter: &Filter, page: &Page, limit: usize) -> Outcome<Vec<Scrubbed>> {
    let mut conditions = Conditions::default();
    conditions.page("number", page);
    if let Some(from) = filter.from {
        conditions.compare("at >= ", from.as_microsecond());
    }
    if let Some(to) = filter.to {
        conditions.compare("at < ", to.as_microsecond());
    }
    let order = order_by("number", page, limit);
    let sql = format!("SELECT number, at, first, last, masked, cause FROM scrubs{}{order}", conditions.text);
    db.all(&sql, &conditions.parameters, |row| {
        Ok(Scrubbed {
            number: number(row.get(0)?),
            at: time(row.get(1)?)?,
            from: number(row.get(2)?),
            to: number(row.get(3)?),
            masked: row.get::<i64>(4)?.unsigned_abs(),
            cause: row.get(5)?,
        })
    })
}

/// Gaps, in the order of the page.
pub(crate) fn gaps(
    db: Db<'_>,
    scope: &Scope,
    from: Option<Timestamp>,
    to: Option<Timestamp>,
    page: &Page,
    limit: usize,
) -> Outcome<Vec<Gap>> {
    let mut conditions = Conditions::default();
    conditions.page("number", page);
    if let Some(from) = from {
        conditions.compare("to_at >= ", from.as_microsecond());
    }
    if let Some(to) = to {
        conditions.compare("from_at < ", to.as_microsecond());
    }
    if !scope.kinds.is_empty() {
        let kinds = kinds(db, &scope.kinds)?;
        let of = "SELECT CASE api_group WHEN '' THEN plural ELSE plural || '.' || api_group END FROM kinds WHERE id";
        // A gap of `deployments.apps/cart` is one of `deployments.apps`.
        let resource = "substr(resource, 1, instr(resource || '/', '/') - 1)";
        conditions.and(&format!("(resource IS NULL OR {resource} IN ({of}{})", in_list(&kinds)));
        // Of a kind without objects the history has the name alone.
        for kind in &scope.kinds {
            conditions.text.push_str(&format!(" OR {resource} = ?"));
            conditions.parameters.push(kind.to_string().into());
        }
        conditions.text.push(')');
    }
    let order = order_by("number", page, limit);
    let sql = format!("SELECT number, from_at, to_at, resource, reason FROM gaps{}{order}", conditions.text);
    db.all(&sql, &conditions.parameters, |row| {
        Ok(Gap {
            number: number(row.get(0)?),
            from: time(row.get(1)?)?,
            to: time(row.get(2)?)?,
            resource: row.get(3)?,
            reason: row.get(4)?,
        })
    })
}

/// The kinds that the history has seen, with the plural of each.
pub(crate) fn all_kinds(db: Db<'_>) -> Outcome<Vec<(Gvk, String)>> {
    let sql = "SELECT api_group, version, kind, plural FROM kinds ORDER BY api_group, kind, id";
    db.all(sql, &[], |row| {
        Ok((Gvk { group: row.get(0)?, version: row.get(1)?, kind: row.get(2)? }, row.get(3)?))
    })
}

/// The paths of all changes. After a retention, some may have no change any more.
pub(crate) fn all_paths(db: Db<'_>) -> Outcome<Vec<String>> {
    db.all("SELECT name FROM paths ORDER BY name", &[], |row| row.get(0))
}

/// The time of the first record of which nothing later was removed.
pub(crate) fn complete_since(db: Db<'_>) -> Outcome<Option<Timestamp>> {
    let sql = "SELECT observed_at FROM main.versions WHERE number >
               (SELECT value FROM meta WHERE name = 'complete_after') ORDER BY number LIMIT 1";
    let since = db.first(sql, &[], |row| row.get(0))?;
    since.map(time).transpose()
}

/// The time of the first version after the last Event that was removed by its age or for its bytes.
pub(crate) fn events_since(db: Db<'_>) -> Outcome<Option<Timestamp>> {
    let sql = "SELECT observed_at FROM main.versions WHERE number >
               (SELECT nullif(value, 0) FROM meta WHERE name = 'events_after') ORDER BY number LIMIT 1";
    let since = db.first(sql, &[], |row| row.get(0))?;
    since.map(time).transpose()
}

/// The number and the time of the last record.
pub(crate) fn last(db: Db<'_>) -> Outcome<Option<(Number, Timestamp)>> {
    let sql = "SELECT number, at FROM (SELECT * FROM (SELECT number, observed_at AS at FROM main.versions ORDER BY number DESC LIMIT 1) v
               UNION ALL SELECT * FROM (SELECT number, to_at FROM main.gaps ORDER BY number DESC LIMIT 1) g
               UNION ALL SELECT * FROM (SELECT number, at FROM main.scrubs ORDER BY number DESC LIMIT 1) s) l
               ORDER BY number DESC LIMIT 1";
    let last = db.first(sql, &[], |row| Ok((row.get::<i64>(0)?, row.get::<i64>(1)?)))?;
    last.map(|(last, at)| Ok((number(last), time(at)?))).transpose()
}

/// Counts, and the size that the caller knows.
pub(crate) fn size(db: Db<'_>, bytes: u64) -> Outcome<Size> {
    let count = |sql: &str| db.one::<i64>(sql, &[]).map(i64::unsigned_abs);
    Ok(Size {
        bytes,
        changes: count("SELECT count(*) FROM versions WHERE verb BETWEEN 1 AND 4")?,
        events: count("SELECT count(*) FROM versions WHERE verb > 4")?,
        gaps: count("SELECT count(*) FROM gaps")?,
        objects: count("SELECT count(*) FROM objects")?,
        existing: count("SELECT count(*) FROM objects WHERE ended IS NULL")?,
    })
}

pub(crate) fn count_after(db: Db<'_>, after: Number) -> Outcome<u64> {
    let sql = "SELECT (SELECT count(*) FROM versions WHERE number > ?1 AND verb BETWEEN 1 AND 4)
               + (SELECT count(*) FROM gaps WHERE number > ?1) + (SELECT count(*) FROM scrubs WHERE number > ?1)";
    Ok(db.one::<i64>(sql, values![id(after)])?.unsigned_abs())
}

pub(crate) fn positions(db: Db<'_>) -> Outcome<BTreeMap<String, String>> {
    pairs(db, "SELECT resource, rv FROM positions")
}

pub(crate) fn notes(db: Db<'_>) -> Outcome<BTreeMap<String, String>> {
    pairs(db, "SELECT name, value FROM notes")
}

fn pairs(db: Db<'_>, sql: &str) -> Outcome<BTreeMap<String, String>> {
    Ok(db.all(sql, &[], |row| Ok((row.get(0)?, row.get(1)?)))?.into_iter().collect())
}

pub(crate) fn prints(db: Db<'_>) -> Outcome<Vec<(String, Vec<u8>)>> {
    db.all("SELECT namespace, print FROM prints ORDER BY id", &[], |row| Ok((row.get(0)?, row.get(1)?)))
}

pub(crate) fn words(db: Db<'_>) -> Outcome<Vec<String>> {
    let sql =
        "SELECT name FROM namespaces UNION SELECT name FROM managers UNION SELECT name FROM main.objects";
    db.all(sql, &[], |row| row.get(0))
}

pub(crate) fn ids(db: Db<'_>) -> Outcome<Ids> {
    let timelines = db.all("SELECT first, timeline FROM timelines", &[], |row| {
        let (first, timeline): (i64, i64) = (row.get(0)?, row.get(1)?);
        Ok((number(first), timeline))
    })?;
    let mut log = db.log()?;
    for dash in [20, 16, 12, 8] {
        if log.is_char_boundary(dash) {
            log.insert(dash, '-');
        }
    }
    Ok(Ids { log, timelines: timelines.into_iter().collect() })
}

pub(crate) fn dead_letters(db: Db<'_>, sink: &str, page: &Page) -> Outcome<Vec<DeadLetter>> {
    let (beyond, order, beyond_all) = match page.order {
        Order::NewestFirst => ("<", "DESC", i64::MAX),
        Order::OldestFirst => (">", "ASC", -1),
    };
    let sql = format!(
        "SELECT number, object, reason FROM dead_letters
         WHERE sink = ?1 AND number {beyond} ?2 ORDER BY number {order} LIMIT ?3"
    );
    let after = page.after.map_or(beyond_all, id);
    db.all(&sql, values![sink, after, page.limit], |row| {
        let object: i64 = row.get(1)?;
        Ok(DeadLetter { number: number(row.get(0)?), object: object.cast_unsigned(), reason: row.get(2)? })
    })
}

pub(crate) fn sinks(db: Db<'_>) -> Outcome<Vec<Sink>> {
    let sql = "SELECT name, position, lost, (SELECT count(*) FROM dead_letters WHERE sink = sinks.name),
        (SELECT value FROM notes WHERE notes.name = ?1 || sinks.name) FROM sinks ORDER BY name";
    db.all(sql, values![super::sinks::TAIL], |row| {
        let [lost, dead]: [i64; 2] = [row.get(2)?, row.get(3)?];
        Ok(Sink {
            name: row.get(0)?,
            position: number(row.get(1)?),
            lost: lost.unsigned_abs(),
            dead: dead.unsigned_abs(),
            tail: row.get(4)?,
        })
    })
}
