//! Whether a file is sound.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::Arc;

use serde::Deserialize;

use super::codec::{Codec, Stored};
use super::db::{Db, values};
use super::fault::{Fault, Outcome};
use super::noise;
use super::read::{HEAD, VersionRow};
use super::{detail, documents};
use crate::record::Number;
use crate::report::Checked;

/// Versions of an object that are looked at together.
const CHUNK: usize = 256;
/// More lines than this say nothing new.
const PROBLEMS: usize = 100;

/// Each of them finds nothing in a sound file. What is missing elsewhere is looked up by an index: PostgreSQL reads all of a table for each row of
/// another one that is `NOT IN` it.
const QUERIES: &[(&str, &str)] = &[
    ("version of no object", "SELECT number FROM versions WHERE NOT EXISTS (SELECT 1 FROM objects WHERE objects.id = versions.object)"),
    ("object without a version", "SELECT id FROM objects WHERE NOT EXISTS (SELECT 1 FROM versions WHERE versions.object = objects.id)"),
    (
        "object with another first version",
        "SELECT id FROM objects WHERE first <> (SELECT min(number) FROM versions WHERE object = objects.id)",
    ),
    (
        "object that returned without a mark",
        "SELECT o.id FROM versions v JOIN objects o ON o.id = v.object
         WHERE v.verb IN (3, 7) AND v.number IS DISTINCT FROM o.ended AND o.returned = 0",
    ),
    (
        "version earlier than the one before it",
        "SELECT number FROM (SELECT number, observed_at, lag(observed_at) OVER (ORDER BY number) AS before FROM versions) v
         WHERE observed_at < before AND number > (SELECT value FROM meta WHERE name = 'ordered_from')",
    ),
    (
        "time that is out of order later than it may be",
        "SELECT number FROM versions WHERE number < (SELECT value FROM meta WHERE name = 'ordered_from')
         AND observed_at > (SELECT value FROM meta WHERE name = 'disordered_until')",
    ),
    ("member of no story", "SELECT number FROM members WHERE NOT EXISTS (SELECT 1 FROM stories WHERE stories.id = members.story)"),
    ("member that is no version", "SELECT number FROM members WHERE NOT EXISTS (SELECT 1 FROM versions WHERE versions.number = members.number)"),
    ("author of nothing", "SELECT number FROM authors WHERE NOT EXISTS (SELECT 1 FROM versions WHERE versions.number = authors.number)"),
    ("author that is no user", "SELECT number FROM authors WHERE NOT EXISTS (SELECT 1 FROM users WHERE users.id = authors.author)"),
    ("version of no kind", "SELECT number FROM versions WHERE NOT EXISTS (SELECT 1 FROM kinds WHERE kinds.id = versions.kind)"),
    (
        "version in no namespace",
        "SELECT number FROM versions WHERE namespace > 0 AND NOT EXISTS (SELECT 1 FROM namespaces WHERE namespaces.id = versions.namespace)",
    ),
    (
        "version in another namespace than its object",
        "SELECT number FROM versions v JOIN objects o ON o.id = v.object WHERE o.namespace <> v.namespace",
    ),
    (
        "version of another kind than its object",
        "SELECT number FROM versions v JOIN objects o ON o.id = v.object JOIN kinds k ON k.id = v.kind
         WHERE o.family <> k.family",
    ),
    (
        "number used twice",
        "SELECT number FROM gaps WHERE number IN (SELECT number FROM versions)
         UNION ALL SELECT number FROM scrubs WHERE number IN (SELECT number FROM versions UNION SELECT number FROM gaps)",
    ),
    (
        "number that is not given yet",
        "SELECT n FROM (SELECT max(number) AS n FROM versions UNION ALL SELECT max(number) FROM gaps
         UNION ALL SELECT max(number) FROM scrubs
         UNION ALL SELECT max(position) FROM sinks UNION ALL SELECT value FROM meta WHERE name = 'complete_after') m
         WHERE n >= (SELECT value FROM meta WHERE name = 'next')",
    ),
];

/// Those of tables that only a file has.
const OF_FILES: &[(&str, &str)] = &[
    (
        "content with a wrong number of uses",
        "SELECT c.id FROM contents c LEFT JOIN
         (SELECT content, count(*) AS uses FROM versions WHERE content IS NOT NULL GROUP BY content) v ON v.content = c.id
         WHERE c.uses <> coalesce(v.uses, 0)",
    ),
    (
        "manager of no version",
        "SELECT number FROM version_managers WHERE NOT EXISTS (SELECT 1 FROM versions WHERE versions.number = version_managers.number)",
    ),
    ("path of no version", "SELECT number FROM version_paths WHERE NOT EXISTS (SELECT 1 FROM versions WHERE versions.number = version_paths.number)"),
];

pub(crate) fn check(db: Db<'_>, codec: &mut Codec) -> Outcome<Checked> {
    let mut check = Check { db, checked: Checked::default(), managers: 0, paths: 0 };
    db.unsound()?.into_iter().for_each(|line| check.problem(line));
    for (what, sql) in QUERIES.iter().chain(OF_FILES.iter().filter(|_| db.is_file())) {
        db.each(sql, &[], |row| {
            check.problem(format!("{what}: {}", row.get::<i64>(0)?));
            Ok(ControlFlow::Continue(()))
        })?;
    }
    let count = |table: &str| db.one::<i64>(&format!("SELECT count(*) FROM {table}"), &[]);
    check.checked.objects = count("objects")?.unsigned_abs();
    check.checked.gaps = count("gaps")?.unsigned_abs();
    for object in db.all("SELECT id FROM objects", &[], |row| row.get(0))? {
        check.object(codec, object)?;
    }
    for name in documents::editions(db)?.keys() {
        let read = documents::read(db, codec, name, Number(u64::MAX));
        check.sound(read)?;
    }
    let tables = [("version_managers", check.managers), ("version_paths", check.paths)];
    for (table, wanted) in tables.into_iter().filter(|_| db.is_file()) {
        let found = count(table)?;
        if found != wanted {
            check.problem(format!("{table} has {found} rows, not {wanted}"));
        }
    }
    Ok(check.checked)
}

/// The part of a content that its version has beside it. Only the content has a checksum.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Content<'a> {
    #[serde(borrow)]
    kind: Option<Cow<'a, str>>,
    #[serde(borrow)]
    metadata: Metadata<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Metadata<'a> {
    #[serde(borrow)]
    name: Option<Cow<'a, str>>,
    #[serde(borrow)]
    namespace: Option<Cow<'a, str>>,
    #[serde(borrow)]
    uid: Option<Cow<'a, str>>,
    #[serde(borrow)]
    resource_version: Option<Cow<'a, str>>,
}

impl Content<'_> {
    /// The name of a field that the version beside it has with another value.
    fn differs(body: &[u8], head: &VersionRow) -> Option<&'static str> {
        let Content { kind, metadata } = serde_json::from_slice(body).ok()?;
        let namespace = head.object.namespace.as_deref().unwrap_or_default();
        let fields = [
            ("kind", kind, head.object.gvk.kind.as_str()),
            ("name", metadata.name, &head.object.name),
            ("namespace", metadata.namespace, namespace),
            ("uid", metadata.uid, &head.object.uid),
            ("resourceVersion", metadata.resource_version, &head.rv),
        ];
        let is_other = |(_, content, head): &(_, Option<Cow<'_, str>>, &str)| {
            content.as_ref().is_some_and(|content| content != head)
        };
        fields.into_iter().find(is_other).map(|(name, ..)| name)
    }
}

struct Check<'a> {
    db: Db<'a>,
    checked: Checked,
    /// How many rows the indexes should have.
    managers: i64,
    paths: i64,
}

impl Check<'_> {
    fn problem(&mut self, line: String) {
        if self.checked.problems.len() < PROBLEMS {
            self.checked.problems.push(line);
        }
    }

    /// Notes what is wrong with the content; other failures end the check.
    fn sound<T>(&mut self, outcome: Outcome<T>) -> Outcome<Option<T>> {
        match outcome {
            Ok(value) => Ok(Some(value)),
            Err(Fault::Damaged(what)) => {
                self.problem(what);
                Ok(None)
            }
            Err(Fault::Zstd(error)) => {
                self.problem(error.to_string());
                Ok(None)
            }
            Err(other) => Err(other),
        }
    }

    /// Reads every version of an object, and its state.
    fn object(&mut self, codec: &mut Codec, object: i64) -> Outcome<()> {
        let sql = format!("{HEAD} WHERE v.object = ?1 ORDER BY v.number");
        let heads = self.db.all(&sql, values![object], VersionRow::read)?;
        let numbers: Vec<i64> = heads.iter().map(|head| head.number).collect();
        let tags = self.tags(object)?;
        let mut before: Option<(i64, Arc<[u8]>)> = None;
        for numbers in heads.chunks(CHUNK).zip(numbers.chunks(CHUNK)) {
            let (heads, numbers) = numbers;
            let chains = Stored::chains(self.db, numbers, before.as_ref().map(|(number, _)| *number))?;
            for head in heads {
                let number = head.number;
                self.checked.versions += 1;
                let known = before.as_ref().map(|(number, body)| (*number, body));
                let body = codec.unpacked(self.db, number, &chains, known);
                let Some(body) = self.sound(body)? else { continue };
                let details = codec.detail(self.db, &head.detail);
                let details = details.and_then(|bytes| detail::read(&bytes, number));
                if let Some(details) = self.sound(details)? {
                    let managers: BTreeSet<&str> =
                        details.managers.iter().map(|it| it.manager.as_str()).collect();
                    let paths: BTreeSet<&str> = details.paths.iter().map(String::as_str).collect();
                    match &tags {
                        Some(tags) => self.tagged(tags, number, &managers, &paths),
                        None => {
                            self.managers += self.indexed("managers", "manager", &managers, number)?;
                            self.paths += self.indexed("paths", "path", &paths, number)?;
                        }
                    }
                }
                if let Some(field) = Content::differs(&body, head) {
                    self.problem(format!("version {number} has another {field} than its content"));
                }
                let base = chains.get(&number).map_or(0, |stored| stored.base);
                if base != 0 && before.as_ref().is_none_or(|(before, _)| *before != base) {
                    self.problem(format!("version {number} is not a delta from the one before"));
                }
                before = Some((number, body));
            }
        }
        if let Some((_, newest)) = before {
            let noise = noise::noise(self.db, codec, object, &newest);
            self.sound(noise)?;
        }
        Ok(())
    }

    /// The names of the tags of each version of an object; `None` in a file, which has tables of them.
    fn tags(&self, object: i64) -> Outcome<Option<BTreeSet<(i64, String)>>> {
        if self.db.is_file() {
            return Ok(None);
        }
        let sql = "SELECT v.number, n.name FROM versions v JOIN (SELECT id, name FROM managers UNION ALL SELECT id, name FROM paths) n
                   ON n.id = ANY (v.tags) WHERE v.object = ?1";
        let found = self.db.all(sql, values![object], |row| Ok((row.get(0)?, row.get(1)?)))?;
        Ok(Some(found.into_iter().collect()))
    }

    fn tagged(
        &mut self,
        tags: &BTreeSet<(i64, String)>,
        number: i64,
        managers: &BTreeSet<&str>,
        paths: &BTreeSet<&str>,
    ) {
        for name in managers.union(paths) {
            if !tags.contains(&(number, (*name).to_owned())) {
                self.problem(format!("version {number} has no tag for one of its managers or paths"));
            }
        }
    }

    /// Returns how many rows the index should have for this version.
    fn indexed(&mut self, names: &str, one: &str, wanted: &BTreeSet<&str>, number: i64) -> Outcome<i64> {
        let sql = format!(
            "SELECT count(*) FROM version_{names} v JOIN {names} n ON n.id = v.{one} WHERE v.number = ?1 AND n.name = ?2"
        );
        for name in wanted {
            let found: i64 = self.db.one(&sql, values![number, *name])?;
            if found != 1 {
                self.problem(format!("version {number} is missing in the index of {names}"));
            }
        }
        Ok(i64::try_from(wanted.len()).unwrap_or(i64::MAX))
    }
}
