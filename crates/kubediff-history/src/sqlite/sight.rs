//! A reader of a part of the history: views of the connection stand before the tables. So no query can forget about it.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use jiff::{SignedDuration, Timestamp};
use rusqlite::{Connection, Transaction, params};

use super::Reader;
use super::codec::Codec;
use super::fault::Outcome;
use super::names::{self, Table};
use super::times::{first_since, is_ordered};
use super::values::id;
use crate::error::Error;
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

const VIEWS: &[&str] =
    &["objects", "versions", "kinds", "gaps", "positions", "scrubs", "sinks", "dead_letters"];
const SEEN: &[&str] = &["seen_kinds", "seen_places", "seen_newcomers", "seen_objects", "seen_resources"];

impl Reader {
    /// From now on, the reader knows of no objects but those of a sight: neither of them nor of what happened to them, and not how many
    /// there are. `None` ends that. Names of namespaces and managers are found by those who know them; the number and the time of the last
    /// record are known to all.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, or is damaged.
    pub fn limit(&mut self, sight: Option<&Sight>) -> Result<(), Error> {
        let mut run = || {
            // The file system may be read-only.
            self.connection.pragma_update(None, "temp_store", "memory")?;
            let transaction = self.connection.unchecked_transaction()?;
            let (codec, made) = (&mut self.codec, &mut self.made);
            let mut tenancies = Tenancies { codec, made, since: HashMap::new() };
            limit(&transaction, &mut tenancies, sight)?;
            transaction.commit()?;
            self.lens.is_limited = sight.is_some();
            Ok(())
        };
        run().map_err(|fault: super::fault::Fault| fault.at(&self.path))
    }

    /// The resources of the history, each with the namespaces of its objects; without one for those outside of namespaces.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, or is damaged.
    pub fn places(&mut self) -> Result<BTreeMap<KindName, BTreeSet<Option<String>>>, Error> {
        self.at_once(|connection, _, _| places(connection))
    }

    /// Whether the reader knows a part of the history alone.
    ///
    /// # Errors
    ///
    /// When the file cannot be read.
    pub fn is_limited(&mut self) -> Result<bool, Error> {
        self.at_once(|connection, _, _| is_limited(connection))
    }

    /// Whether none of these records is of an object beyond the sight. Of a record that was removed nobody knows that any more.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, or is damaged.
    pub fn sees(&mut self, numbers: impl IntoIterator<Item = Number>) -> Result<bool, Error> {
        self.at_once(|connection, _, _| {
            if !is_limited(connection)? {
                return Ok(true);
            }
            let sql = "SELECT NOT EXISTS (SELECT 1 FROM main.versions WHERE number = ?1)
                       OR EXISTS (SELECT 1 FROM versions WHERE number = ?1)";
            let mut statement = connection.prepare_cached(sql)?;
            for number in numbers {
                if !statement.query_row([id(number)], |row| row.get::<_, bool>(0))? {
                    return Ok(false);
                }
            }
            Ok(true)
        })
    }
}

fn places(connection: &Connection) -> Outcome<BTreeMap<KindName, BTreeSet<Option<String>>>> {
    let sql = "SELECT k.api_group, k.plural, n.name FROM main.kinds k
               CROSS JOIN (SELECT id, name FROM namespaces UNION ALL SELECT 0, NULL) n
               WHERE EXISTS (SELECT 1 FROM main.versions WHERE namespace = n.id AND kind = k.id)";
    let mut found: BTreeMap<KindName, BTreeSet<Option<String>>> = BTreeMap::new();
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let resource = KindName { group: Some(row.get(0)?), resource: row.get(1)? };
        found.entry(resource).or_default().insert(row.get(2)?);
    }
    Ok(found)
}

/// Whether views stand before the tables.
pub(super) fn is_limited(connection: &Connection) -> Outcome<bool> {
    let sql = "SELECT EXISTS (SELECT 1 FROM temp.sqlite_schema WHERE name = 'objects')";
    Ok(connection.prepare_cached(sql)?.query_row([], |row| row.get(0))?)
}

fn limit(connection: &Transaction<'_>, tenancies: &mut Tenancies<'_>, sight: Option<&Sight>) -> Outcome<()> {
    let was_limited = is_limited(connection)?;
    let Some(sight) = sight else {
        if was_limited {
            let views = VIEWS.iter().map(|name| format!("DROP VIEW temp.{name};"));
            let tables = SEEN.iter().map(|name| format!("DROP TABLE temp.{name};"));
            connection.execute_batch(&views.chain(tables).collect::<String>())?;
        }
        return Ok(());
    };
    match was_limited {
        true => SEEN.iter().try_for_each(|name| {
            connection.prepare_cached(&format!("DELETE FROM temp.{name}"))?.execute([]).map(drop)
        })?,
        false => connection.execute_batch(TABLES)?,
    }
    for right in &sight.rights {
        add(connection, tenancies, right)?;
    }
    Ok(())
}

fn add(connection: &Connection, tenancies: &mut Tenancies<'_>, right: &Right) -> Outcome<()> {
    let group = right.resource.group.as_deref().unwrap_or_default();
    let kinds = "SELECT id, family FROM main.kinds WHERE api_group = ?1 AND plural = ?2";
    let kinds = connection
        .prepare_cached(kinds)?
        .query_map([group, &right.resource.resource], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<Result<Vec<(i64, i64)>, _>>()?;
    if right.name.is_none() {
        let sql = "INSERT OR IGNORE INTO temp.seen_resources VALUES (?1, ?2)";
        let namespace = right.namespace.as_deref().unwrap_or_default();
        connection.prepare_cached(sql)?.execute([&right.resource.to_string(), namespace])?;
    }
    let place = match &right.namespace {
        None => None,
        Some(name) => match names::find(connection, Table::Namespaces, name)? {
            Some(namespace) => Some((namespace, tenancies.since(connection, namespace, right.since)?)),
            // Nothing was ever in it.
            None => return Ok(()),
        },
    };
    for (kind, family) in kinds {
        match (&right.name, place) {
            (None, None) => {
                let sql = "INSERT OR IGNORE INTO temp.seen_kinds VALUES (?1, ?2)";
                connection.prepare_cached(sql)?.execute([kind, family])?;
            }
            (None, Some((namespace, since))) => {
                let sql = "INSERT OR IGNORE INTO temp.seen_places VALUES (?1, ?2, ?3, ?4)";
                let row = params![kind, namespace, family, since];
                connection.prepare_cached(sql)?.execute(row)?;
            }
            (Some(name), place) => {
                let (namespace, since) = place.unwrap_or_default();
                let sql = "INSERT OR IGNORE INTO temp.seen_objects SELECT id FROM main.objects
                           WHERE name = ?1 AND family = ?2 AND namespace = ?3 AND (first >= ?4
                               OR id IN (SELECT object FROM temp.seen_newcomers))";
                let row = params![name, family, namespace, since];
                connection.prepare_cached(sql)?.execute(row)?;
            }
        }
    }
    Ok(())
}

/// Rights in a namespace are rights of its present owner. A namespace of the same name before it was somebody else's. An object cannot
/// outlive its namespace, so each one that is older than this one was in another.
struct Tenancies<'a> {
    codec: &'a mut Codec,
    made: &'a mut HashMap<(i64, i64), Option<Timestamp>>,
    /// The numbers from which on all objects of a namespace are its own.
    since: HashMap<i64, i64>,
}

impl Tenancies<'_> {
    /// The most objects whose creation is remembered.
    const MOST: usize = 100_000;

    /// The number from which on all objects of a namespace are its own, which was made then. Its own objects before are newcomers.
    fn since(&mut self, connection: &Connection, namespace: i64, made: Option<Timestamp>) -> Outcome<i64> {
        let Some(made) = made else { return Ok(0) };
        if let Some(known) = self.since.get(&namespace) {
            return Ok(*known);
        }
        let [before, after] = [-APART, APART].map(|far| made.checked_add(far).unwrap_or(made));
        let begin = id(first_since(connection, before)?);
        let end = if is_ordered(connection, after)? { id(first_since(connection, after)?) } else { i64::MAX };
        let objects = "SELECT id, first, ended IS NULL FROM main.objects WHERE namespace = ?1 AND first >= ?2 AND first < ?3";
        let objects: Vec<(i64, i64, bool)> = connection
            .prepare_cached(objects)?
            .query_map([namespace, begin, end], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?
            .collect::<Result<_, _>>()?;
        let mut insert =
            connection.prepare_cached("INSERT OR IGNORE INTO temp.seen_newcomers VALUES (?1)")?;
        for (object, first, exists) in objects {
            // Times of the server have seconds. Of an object that was made in that of its namespace and is gone, nobody knows in which of
            // two it was.
            let is_new = |created| created > made || (created == made && exists);
            if self.created(connection, (object, first))?.is_some_and(is_new) {
                insert.execute([object])?;
            }
        }
        self.since.insert(namespace, end);
        Ok(end)
    }

    fn created(&mut self, connection: &Connection, object: (i64, i64)) -> Outcome<Option<Timestamp>> {
        if let Some(known) = self.made.get(&object) {
            return Ok(*known);
        }
        let created = created(connection, self.codec, object.0)?;
        if self.made.len() >= Self::MOST {
            self.made.clear();
        }
        self.made.insert(object, created);
        Ok(created)
    }
}

/// When the server made an object.
fn created(connection: &Connection, codec: &mut Codec, object: i64) -> Outcome<Option<Timestamp>> {
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
    let first: Option<i64> = connection.prepare_cached(sql)?.query_row([object], |row| row.get(0))?;
    let Some(first) = first else { return Ok(None) };
    let made: Made = serde_json::from_slice(&codec.body(connection, first)?).unwrap_or_default();
    Ok(made.metadata.creation_timestamp.and_then(|text| text.parse().ok()))
}
