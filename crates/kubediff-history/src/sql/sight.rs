//! A reader of a part of the history: views of the connection stand before the tables. So no query can forget about it.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use jiff::{SignedDuration, Timestamp};

use super::codec::Codec;
use super::db::{Db, values};
use super::fault::Outcome;
use super::names::{self, Table};
use super::times::{first_since, is_ordered};
use super::values::id;
use crate::filter::KindName;
use crate::record::Number;
use crate::sight::{Right, Sight};

/// A record may be so far from the time of its object, by the clocks of the server and of this machine or because a watch was behind.
const APART: SignedDuration = SignedDuration::from_mins(15);

// Of a place, objects are seen that are first of the number `since` or a later one. One that came before may be a newcomer all the same.
const TABLES: &str = "
CREATE TEMP TABLE seen_kinds (kind INTEGER PRIMARY KEY, family INTEGER NOT NULL);
CREATE TEMP TABLE seen_places (
    kind INTEGER, namespace INTEGER, family INTEGER NOT NULL, since INTEGER NOT NULL,
    PRIMARY KEY (kind, namespace)
) WITHOUT ROWID;
CREATE INDEX temp.seen_families ON seen_places (family, namespace);
CREATE TEMP TABLE seen_newcomers (object INTEGER PRIMARY KEY);
CREATE TEMP TABLE seen_objects (object INTEGER PRIMARY KEY);
CREATE TEMP TABLE seen_resources (resource TEXT, namespace TEXT, PRIMARY KEY (resource, namespace)) WITHOUT ROWID;
CREATE TEMP VIEW objects AS SELECT * FROM main.objects AS o WHERE o.family IN (SELECT family FROM temp.seen_kinds)
    OR EXISTS (SELECT 1 FROM temp.seen_places AS p WHERE p.family = o.family AND p.namespace = o.namespace AND (
        o.first >= p.since OR o.id IN (SELECT object FROM temp.seen_newcomers)))
    OR o.id IN (SELECT object FROM temp.seen_objects);
CREATE TEMP VIEW versions AS SELECT * FROM main.versions AS v WHERE v.kind IN (SELECT kind FROM temp.seen_kinds)
    OR EXISTS (SELECT 1 FROM temp.seen_places AS p WHERE p.kind = v.kind AND p.namespace = v.namespace AND (
        p.since = 0 OR EXISTS (SELECT 1 FROM temp.objects AS o WHERE o.id = v.object)))
    OR v.object IN (SELECT object FROM temp.seen_objects);
CREATE TEMP VIEW kinds AS SELECT * FROM main.kinds AS k WHERE k.id IN (SELECT kind FROM temp.seen_kinds)
    OR (k.id IN (SELECT kind FROM temp.seen_places) AND EXISTS (SELECT 1 FROM temp.objects AS o WHERE o.family = k.family))
    OR k.family IN (SELECT o.family FROM temp.seen_objects AS s JOIN main.objects AS o ON o.id = s.object);
CREATE TEMP VIEW gaps AS SELECT * FROM main.gaps AS g WHERE g.resource IS NULL OR EXISTS (SELECT 1 FROM temp.seen_resources AS r
    WHERE r.resource = substr(g.resource, 1, instr(g.resource || '/', '/') - 1)
        AND (r.namespace = '' OR instr(g.resource, '/') = 0 OR r.namespace = substr(g.resource, instr(g.resource, '/') + 1)));
CREATE TEMP VIEW positions AS SELECT * FROM main.positions AS g WHERE EXISTS (SELECT 1 FROM temp.seen_resources AS r
    WHERE r.resource = substr(g.resource, 1, instr(g.resource || '/', '/') - 1)
        AND (r.namespace = '' OR instr(g.resource, '/') = 0 OR r.namespace = substr(g.resource, instr(g.resource, '/') + 1)));
CREATE TEMP VIEW scrubs AS SELECT * FROM main.scrubs WHERE FALSE;
CREATE TEMP VIEW sinks AS SELECT * FROM main.sinks WHERE FALSE;
CREATE TEMP VIEW dead_letters AS SELECT * FROM main.dead_letters WHERE FALSE;
";

/// Those that others need are last.
const VIEWS: &[&str] =
    &["versions", "kinds", "objects", "gaps", "positions", "scrubs", "sinks", "dead_letters"];
const SEEN: &[&str] = &["seen_kinds", "seen_places", "seen_newcomers", "seen_objects", "seen_resources"];

/// Whether none of these records is of an object beyond the sight.
pub(crate) fn sees(db: Db<'_>, numbers: impl IntoIterator<Item = Number>) -> Outcome<bool> {
    if !is_limited(db)? {
        return Ok(true);
    }
    let sql = "SELECT NOT EXISTS (SELECT 1 FROM main.versions WHERE number = ?1)
               OR EXISTS (SELECT 1 FROM versions WHERE number = ?1)";
    for number in numbers {
        if !db.one::<bool>(sql, values![id(number)])? {
            return Ok(false);
        }
    }
    Ok(true)
}

pub(crate) fn places(db: Db<'_>) -> Outcome<BTreeMap<KindName, BTreeSet<Option<String>>>> {
    let sql = "SELECT k.api_group, k.plural, n.name FROM main.kinds k
               CROSS JOIN (SELECT id, name FROM namespaces UNION ALL SELECT 0, NULL) n ON TRUE
               WHERE EXISTS (SELECT 1 FROM main.versions WHERE namespace = n.id AND kind = k.id)";
    let mut found: BTreeMap<KindName, BTreeSet<Option<String>>> = BTreeMap::new();
    for (resource, namespace) in db.all(sql, &[], |row| {
        Ok((KindName { group: Some(row.get(0)?), resource: row.get(1)? }, row.get(2)?))
    })? {
        found.entry(resource).or_default().insert(namespace);
    }
    Ok(found)
}

/// Whether views stand before the tables.
pub(crate) fn is_limited(db: Db<'_>) -> Outcome<bool> {
    db.one(db.has_views(), &[])
}

pub(crate) fn limit(db: Db<'_>, tenancies: &mut Tenancies<'_>, sight: Option<&Sight>) -> Outcome<()> {
    let was_limited = is_limited(db)?;
    let Some(sight) = sight else {
        if was_limited {
            let views = VIEWS.iter().map(|name| format!("DROP VIEW temp.{name};"));
            let tables = SEEN.iter().map(|name| format!("DROP TABLE temp.{name};"));
            db.statements(&views.chain(tables).collect::<String>())?;
        }
        return Ok(());
    };
    match was_limited {
        true => {
            SEEN.iter().try_for_each(|name| db.run(&format!("DELETE FROM temp.{name}"), &[]).map(drop))?
        }
        false => db.statements(TABLES)?,
    }
    for right in &sight.rights {
        add(db, tenancies, right)?;
    }
    Ok(())
}

fn add(db: Db<'_>, tenancies: &mut Tenancies<'_>, right: &Right) -> Outcome<()> {
    let group = right.resource.group.as_deref().unwrap_or_default();
    let kinds = "SELECT id, family FROM main.kinds WHERE api_group = ?1 AND plural = ?2";
    let kinds: Vec<(i64, i64)> =
        db.all(kinds, values![group, &right.resource.resource], |row| Ok((row.get(0)?, row.get(1)?)))?;
    if right.name.is_none() {
        let sql = "INSERT INTO temp.seen_resources VALUES (?1, ?2) ON CONFLICT DO NOTHING";
        let namespace = right.namespace.as_deref().unwrap_or_default();
        db.run(sql, values![right.resource.to_string(), namespace])?;
    }
    let place = match &right.namespace {
        None => None,
        Some(name) => match names::find(db, Table::Namespaces, name)? {
            Some(namespace) => Some((namespace, tenancies.since(db, namespace, right.since)?)),
            // Nothing was ever in it.
            None => return Ok(()),
        },
    };
    for (kind, family) in kinds {
        match (&right.name, place) {
            (None, None) => {
                let sql = "INSERT INTO temp.seen_kinds VALUES (?1, ?2) ON CONFLICT DO NOTHING";
                db.run(sql, values![kind, family])?;
            }
            (None, Some((namespace, since))) => {
                let sql = "INSERT INTO temp.seen_places VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO NOTHING";
                db.run(sql, values![kind, namespace, family, since])?;
            }
            (Some(name), place) => {
                let (namespace, since) = place.unwrap_or_default();
                let sql = "INSERT INTO temp.seen_objects SELECT id FROM main.objects
                           WHERE name = ?1 AND family = ?2 AND namespace = ?3 AND (first >= ?4
                               OR id IN (SELECT object FROM temp.seen_newcomers)) ON CONFLICT DO NOTHING";
                db.run(sql, values![name, family, namespace, since])?;
            }
        }
    }
    Ok(())
}

/// Rights in a namespace are rights of its present owner. A namespace of the same name before it was somebody else's. An object cannot
/// outlive its namespace, so each one that is older than this one was in another.
pub(crate) struct Tenancies<'a> {
    pub(crate) codec: &'a mut Codec,
    pub(crate) made: &'a mut HashMap<(i64, i64), Option<Timestamp>>,
    /// The numbers from which on all objects of a namespace are its own.
    pub(crate) since: HashMap<i64, i64>,
}

impl Tenancies<'_> {
    /// The most objects whose creation is remembered.
    const MOST: usize = 100_000;

    /// The number from which on all objects of a namespace are its own, which was made then. Its own objects before are newcomers.
    fn since(&mut self, db: Db<'_>, namespace: i64, made: Option<Timestamp>) -> Outcome<i64> {
        let Some(made) = made else { return Ok(0) };
        if let Some(known) = self.since.get(&namespace) {
            return Ok(*known);
        }
        let [before, after] = [-APART, APART].map(|far| made.checked_add(far).unwrap_or(made));
        let begin = id(first_since(db, before)?);
        let end = if is_ordered(db, after)? { id(first_since(db, after)?) } else { i64::MAX };
        let objects = "SELECT id, first, ended IS NULL FROM main.objects WHERE namespace = ?1 AND first >= ?2 AND first < ?3";
        let objects: Vec<(i64, i64, bool)> = db.all(objects, values![namespace, begin, end], |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?))
        })?;
        for (object, first, exists) in objects {
            // Times of the server have seconds. Of an object that was made in that of its namespace and is gone, nobody knows in which of
            // two it was.
            let is_new = |created| created > made || (created == made && exists);
            if self.created(db, (object, first))?.is_some_and(is_new) {
                let sql = "INSERT INTO temp.seen_newcomers VALUES (?1) ON CONFLICT DO NOTHING";
                db.run(sql, values![object])?;
            }
        }
        self.since.insert(namespace, end);
        Ok(end)
    }

    fn created(&mut self, db: Db<'_>, object: (i64, i64)) -> Outcome<Option<Timestamp>> {
        if let Some(known) = self.made.get(&object) {
            return Ok(*known);
        }
        let created = created(db, self.codec, object.0)?;
        if self.made.len() >= Self::MOST {
            self.made.clear();
        }
        self.made.insert(object, created);
        Ok(created)
    }
}

/// When the server made an object.
fn created(db: Db<'_>, codec: &mut Codec, object: i64) -> Outcome<Option<Timestamp>> {
    #[derive(Default, serde::Deserialize)]
    #[serde(default)]
    struct Made {
        metadata: Metadata,
    }
    #[derive(Default, serde::Deserialize)]
    #[serde(default, rename_all = "camelCase")]
    struct Metadata {
        creation_timestamp: Option<String>,
    }
    let sql = "SELECT min(number) FROM main.versions WHERE object = ?1";
    let first: Option<i64> = db.one(sql, values![object])?;
    let Some(first) = first else { return Ok(None) };
    let made: Made = serde_json::from_slice(&codec.body(db, first)?).unwrap_or_default();
    Ok(made.metadata.creation_timestamp.and_then(|text| text.parse().ok()))
}
