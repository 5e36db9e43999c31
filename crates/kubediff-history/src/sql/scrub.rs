//! Masks what is stored, a few versions at a time.
//!
//! Each step is a transaction that leaves a sound history: a version gets its masked content, and what is packed against it is
//! packed again. A scrub that is begun again finds what is left by itself, because masking what is masked changes nothing.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::Value;

use super::codec::{Codec, Purpose, Stored};
use super::db::{Db, values};
use super::detail;
use super::fault::{Fault, Outcome};
use super::names::{self, Table};
use super::noise;
use super::packing::Packing;
use super::read::{self, HEAD, VersionRow};
use super::retain;
use crate::mask::{self, Details, Mask};
use crate::record::Verb;
use crate::report::Scrub;

/// Versions per step: others may write in between,
const STEP: usize = 32;
/// and bytes of content.
const BYTES: usize = 512 << 10;
/// Rows among which a step looks for those that a dictionary packs.
const ROWS: i64 = 1_000;
/// A text that is shorter is in a dictionary by chance.
const LEAST: usize = 6;

/// A version in which there is something to mask.
struct Masked {
    number: i64,
    body: Arc<[u8]>,
    details: Vec<u8>,
    paths: [Vec<String>; 2],
    /// The state that noise has led to, if this is the newest version.
    state: Option<Vec<u8>>,
}

/// The first record of a scrub of what was recorded since `since`, and of no more than `most` records.
pub(crate) fn start(db: Db<'_>, since: i64, most: i64, last: i64) -> Outcome<i64> {
    let sql = "SELECT min(number) FROM versions WHERE observed_at >= ?1 AND number > ?2";
    let first: Option<i64> = db.one(sql, values![since, last - most])?;
    Ok(first.unwrap_or(last + 1) - 1)
}

/// Takes the next step. Returns whether there is another one.
pub(crate) fn step(packing: &mut Packing, db: Db<'_>, scrub: &mut Scrub, mask: &dyn Mask) -> Outcome<bool> {
    if scrub.after < scrub.until {
        return versions(packing, db, scrub, mask).map(|()| true);
    }
    dictionaries(packing, db, scrub)
}

fn versions(packing: &mut Packing, db: Db<'_>, scrub: &mut Scrub, mask: &dyn Mask) -> Outcome<()> {
    let sql = format!("{HEAD} WHERE v.number > ?1 AND v.number <= ?2 ORDER BY v.number LIMIT {STEP}");
    let heads = db.all(&sql, values![scrub.after, scrub.until], VersionRow::read)?;
    let (mut found, mut bytes, mut through) = (Vec::new(), 0, scrub.until);
    let count = heads.len();
    for (at, head) in heads.into_iter().enumerate() {
        let body = packing.codec.body(db, head.number)?;
        bytes += body.len();
        found.extend(masked(&mut packing.codec, db, &head, &body, mask)?);
        if at + 1 == STEP || bytes >= BYTES && at + 1 < count {
            through = head.number;
            break;
        }
    }
    if !found.is_empty() {
        packing.codec.forget_samples();
        db.unshares();
    }
    scrub.masked += db.writing(|db| {
        let masked = found.len() as u64;
        texts(db, (scrub.after, through), mask)?;
        for masked in found {
            for text in &masked.lost(&mut packing.codec, db)? {
                retire(packing, db, masked.number, text)?;
            }
            rewrite(packing, db, masked)?;
        }
        Ok(masked)
    })?;
    scrub.after = through;
    Ok(())
}

/// The parts of a version to mask; `None` where there are none.
fn masked(
    codec: &mut Codec,
    db: Db<'_>,
    head: &VersionRow,
    body: &Arc<[u8]>,
    mask: &dyn Mask,
) -> Outcome<Option<Masked>> {
    let state = noise::since(db, codec, head.number, body)?;
    let masked_state = state.as_deref().and_then(|state| mask::body(mask, &head.object, state));
    let stored = read::details(codec, db, head.number)?;
    let masked_body = mask::body(mask, &head.object, body);
    let (details, paths) = masked_details(mask, head, &stored, masked_body.as_deref())?;
    if masked_body.is_none() && details == stored && masked_state.is_none() {
        return Ok(None);
    }
    let body = masked_body.map_or_else(|| body.clone(), Into::into);
    Ok(Some(Masked { number: head.number, body, details, paths, state: masked_state.or(state) }))
}

/// The masked details, and the paths that they had and have.
fn masked_details(
    mask: &dyn Mask,
    head: &VersionRow,
    stored: &[u8],
    masked_body: Option<&[u8]>,
) -> Outcome<(Vec<u8>, [Vec<String>; 2])> {
    let Some(verb) = head.verb()?.filter(|_| !stored.is_empty()) else { return Ok(Default::default()) };
    let mut details = detail::read(stored, head.number)?;
    let before = details.clone();
    let detail::Details { paths, diff, summary, .. } = &mut details;
    let (paths, diff, summary) = (paths.to_mut(), diff.to_mut(), summary.to_mut());
    let masked: Option<Value> = masked_body
        .filter(|_| matches!(verb, Verb::Added | Verb::Deleted))
        .and_then(|body| serde_json::from_slice(body).ok());
    let (observed_at, masked) = (head.observed_at()?, masked.as_ref());
    mask.change(&head.object, Details { paths, diff, summary, verb, observed_at, masked });
    let paths = [before.paths.to_vec(), details.paths.to_vec()];
    // Content without a mask stays as it is written, byte for byte.
    if before == details { Ok((stored.to_vec(), paths)) } else { Ok((details.written()?, paths)) }
}

impl Masked {
    /// The texts that the version has until now and that are masked, as JSON writes them.
    fn lost(&self, codec: &mut Codec, db: Db<'_>) -> Outcome<BTreeSet<Vec<u8>>> {
        let mut lost = BTreeSet::new();
        let body = codec.body(db, self.number)?;
        let details = read::details(codec, db, self.number)?;
        for (before, after) in [(&*body, &*self.body), (&*details, &*self.details)] {
            let [before, after] =
                [before, after].map(|bytes| serde_json::from_slice(bytes).unwrap_or(Value::Null));
            let (mut had, mut has) = (BTreeSet::new(), BTreeSet::new());
            texts_of(&before, &mut had);
            texts_of(&after, &mut has);
            lost.extend(had.difference(&has).cloned());
        }
        Ok(lost)
    }
}

fn texts_of(value: &Value, found: &mut BTreeSet<Vec<u8>>) {
    let mut text = |text: &str| {
        let json = Value::from(text).to_string();
        let inside = json.get(1..json.len() - 1).unwrap_or_default();
        if inside.len() >= LEAST {
            found.insert(inside.as_bytes().to_vec());
        }
    };
    match value {
        Value::String(it) => text(it),
        Value::Number(number) => text(&number.to_string()),
        Value::Array(list) => list.iter().for_each(|value| texts_of(value, found)),
        Value::Object(map) => {
            map.keys().for_each(|name| text(name));
            map.values().for_each(|value| texts_of(value, found));
        }
        Value::Null | Value::Bool(_) => {}
    }
}

/// Gives a version its masked content, and packs again what is packed against it.
fn rewrite(packing: &mut Packing, db: Db<'_>, masked: Masked) -> Outcome<()> {
    let Masked { number, body, details, paths, state } = masked;
    let sql = "SELECT object, kind, base, content FROM versions WHERE number = ?1";
    let row =
        db.first(sql, values![number], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)))?;
    let (object, kind, base, former): (i64, i64, i64, Option<i64>) =
        row.ok_or_else(|| Fault::damaged(format!("version {number} is missing")))?;
    let sql = "SELECT number FROM versions WHERE object = ?1 AND base = ?2";
    let after: Vec<i64> = db.all(sql, values![object, number], |row| row.get(0))?;
    let mut bodies = Vec::new();
    for number in after {
        bodies.push((number, packing.codec.body(db, number)?));
    }

    let (shared, dictionary, frame) = match base {
        0 => {
            let (shared, packed) = packing.full(db, kind, &body)?;
            (shared, packed.dictionary, packed.frame)
        }
        base => {
            let base = packing.codec.body(db, base)?;
            (None, 0, packing.codec.pack_delta(&base, &details, &body)?)
        }
    };
    let (content, split) = shared.unzip();
    let (detail_dictionary, detail) = match &*details {
        [] => (0, Vec::new()),
        details => {
            let packed = packing.codec.pack(db, kind, Purpose::Detail, details)?;
            (packed.dictionary, packed.frame)
        }
    };
    let sql =
        "UPDATE versions SET content = ?2, split = ?3, length = ?4, crc = ?5, dictionary = ?6, frame = ?7,
               detail_length = ?8, detail_dictionary = ?9, detail = ?10 WHERE number = ?1";
    let split = split.map(|split| i64::try_from(split).unwrap_or(i64::MAX));
    let crc = crc32fast::hash(&body);
    let row = values![
        number,
        content,
        split,
        body.len(),
        crc,
        dictionary,
        frame,
        details.len(),
        detail_dictionary,
        detail
    ];
    db.run(sql, row)?;
    retain::release(db, former)?;
    for (next, content) in bodies {
        let details = read::details(&mut packing.codec, db, next)?;
        let frame = packing.codec.pack_delta(&body, &details, &content)?;
        let sql = "UPDATE versions SET frame = ?2 WHERE number = ?1";
        db.run(sql, values![next, frame])?;
    }
    if let Some(state) = state {
        let frame = packing.codec.pack_delta(&body, &[], &state)?;
        let sql = "UPDATE objects SET state_length = ?2, state_crc = ?3, state = ?4 WHERE id = ?1";
        db.run(sql, values![object, state.len(), crc32fast::hash(&state), frame])?;
    }
    index(packing, db, number, &paths)
}

/// Replaces the paths by which a version is found.
fn index(packing: &mut Packing, db: Db<'_>, number: i64, [had, has]: &[Vec<String>; 2]) -> Outcome<()> {
    if had == has {
        return Ok(());
    }
    if !db.is_file() {
        return retag(packing, db, number, [had, has]);
    }
    for path in had.iter().collect::<BTreeSet<_>>() {
        let Some(id) = names::find(db, Table::Paths, path)? else { continue };
        let sql = "DELETE FROM version_paths WHERE path = ?1 AND number = ?2";
        db.run(sql, values![id, number])?;
        let sql =
            "DELETE FROM paths WHERE id = ?1 AND NOT EXISTS (SELECT 1 FROM version_paths WHERE path = ?1)";
        if db.run(sql, values![id])? > 0 {
            packing.names.forget_path(path);
        }
    }
    packing.index_paths(db, number, has)
}

/// Replaces the tags of paths.
fn retag(packing: &mut Packing, db: Db<'_>, number: i64, [had, has]: [&Vec<String>; 2]) -> Outcome<()> {
    for path in has {
        let id = packing.names.of(db, Table::Paths, path)?;
        let sql =
            "UPDATE versions SET tags = array_append(array_remove(tags, ?2::int), ?2::int) WHERE number = ?1";
        db.run(sql, values![number, id])?;
    }
    for path in had.iter().filter(|path| !has.contains(path)) {
        let Some(id) = names::find(db, Table::Paths, path)? else { continue };
        let sql = "UPDATE versions SET tags = array_remove(tags, ?2::int) WHERE number = ?1";
        db.run(sql, values![number, id])?;
        let sql =
            "DELETE FROM paths WHERE id = ?1 AND NOT EXISTS (SELECT tagged(ARRAY[?1::int], '{}', 0, ?2))";
        if db.run(sql, values![id, i64::MAX])? > 0 {
            packing.names.forget_path(path);
        }
    }
    Ok(())
}

/// Masks the texts of gaps and dead letters after one number, up to another, and notes with the first of them.
fn texts(db: Db<'_>, (after, through): (i64, i64), mask: &dyn Mask) -> Outcome<()> {
    let places = [
        ("gaps", "reason", "number > ?1 AND number <= ?2"),
        ("dead_letters", "reason", "sink IN (SELECT name FROM sinks) AND number > ?1 AND number <= ?2"),
        ("notes", "value", "?2 > ?1"),
    ];
    for (table, column, condition) in places {
        let sql = format!("SELECT DISTINCT {column} FROM {table} WHERE {condition}");
        for before in db.all(&sql, values![after, through], |row| row.get::<String>(0))? {
            let mut text = before.clone();
            mask.text(&mut text);
            if text != before {
                let sql = format!("UPDATE {table} SET {column} = ?4 WHERE {column} = ?3 AND {condition}");
                db.run(&sql, values![after, through, before, text])?;
            }
        }
    }
    Ok(())
}

/// Dictionaries are made of the first contents of a kind. Nothing is packed any more with one that has this text: its kind becomes
/// negative, and its content goes when nothing needs it.
fn retire(packing: &mut Packing, db: Db<'_>, number: i64, text: &[u8]) -> Outcome<()> {
    let sql =
        "SELECT d.id, d.bytes FROM dictionaries d JOIN versions v ON v.kind = d.kind WHERE v.number = ?1";
    for (id, bytes) in db.all(sql, values![number], |row| Ok((row.get::<i64>(0)?, row.get::<Vec<u8>>(1)?)))? {
        if bytes.windows(text.len()).any(|window| window == text) {
            db.run("UPDATE dictionaries SET kind = -kind WHERE id = ?1", values![id])?;
            packing.codec.retire(id);
        }
    }
    Ok(())
}

/// Packs a part of what a retired dictionary packs without it, and empties the dictionary in the end.
fn dictionaries(packing: &mut Packing, db: Db<'_>, scrub: &mut Scrub) -> Outcome<bool> {
    let sql = "SELECT min(id) FROM dictionaries WHERE kind < 0";
    let Some(id) = db.one::<Option<i64>>(sql, &[])? else {
        return Ok(false);
    };
    scrub.repacked = db.writing(|db| repack_some(packing, db, id, scrub.repacked))?;
    Ok(true)
}

/// Packs some versions and contents without a dictionary, after a number. Returns how far it has come; 0 at the end.
fn repack_some(packing: &mut Packing, db: Db<'_>, id: i64, from: i64) -> Outcome<i64> {
    let ids = |sql: &str| db.all(sql, values![id, from, from + ROWS], |row| row.get::<i64>(0));
    let versions = ids("SELECT number FROM versions WHERE (dictionary = ?1 OR detail_dictionary = ?1)
                        AND number > ?2 AND number <= ?3 ORDER BY number")?;
    let mut through = from + ROWS;
    for (at, number) in versions.into_iter().enumerate() {
        if at == STEP {
            through = number - 1;
            break;
        }
        repack(packing, db, number)?;
    }
    let contents = "SELECT id FROM contents WHERE dictionary = ?1 AND id > ?2 AND id <= ?3";
    for content in ids(contents)?.into_iter().filter(|content| *content <= through) {
        let bytes = packing.codec.shared(db, content)?;
        let frame = packing.codec.pack_alone(&bytes)?;
        db.run("UPDATE contents SET dictionary = 0, frame = ?2 WHERE id = ?1", values![content, frame])?;
    }
    let last = "SELECT max(n) FROM (SELECT 0 AS n UNION ALL SELECT max(number) FROM versions UNION ALL SELECT max(id) FROM contents) m";
    if through < db.one(last, &[])? {
        return Ok(through);
    }
    // Its row stays: another dictionary with its number would be taken for it by readers that have it in memory.
    db.run("UPDATE dictionaries SET kind = 0, crc = 0, bytes = ?2 WHERE id = ?1", values![id, Vec::new()])?;
    Ok(0)
}

fn repack(packing: &mut Packing, db: Db<'_>, number: i64) -> Outcome<()> {
    let stored = Stored::load(db, number)?;
    let kind = "SELECT kind FROM versions WHERE number = ?1";
    let kind: i64 = db.one(kind, values![number])?;
    let details = read::details(&mut packing.codec, db, number)?;
    if !details.is_empty() {
        let packed = packing.codec.pack(db, kind, Purpose::Detail, &details)?;
        let sql = "UPDATE versions SET detail_dictionary = ?2, detail = ?3 WHERE number = ?1";
        db.run(sql, values![number, packed.dictionary, packed.frame])?;
    }
    if stored.base == 0 {
        let shell = packing.codec.shell(db, &stored)?;
        let packed = packing.codec.pack(db, kind, Purpose::Body, &shell)?;
        let sql = "UPDATE versions SET dictionary = ?2, frame = ?3 WHERE number = ?1";
        db.run(sql, values![number, packed.dictionary, packed.frame])?;
    }
    Ok(())
}
