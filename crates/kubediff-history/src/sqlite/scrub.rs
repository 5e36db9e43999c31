//! Masks what is stored, a few versions at a time.
//!
//! Each step is a transaction that leaves a sound history: a version gets its masked content, and what is packed against it is
//! packed again. A scrub that is begun again finds what is left by itself, because masking what is masked changes nothing.

use std::collections::BTreeSet;
use std::sync::Arc;

use rusqlite::{Connection, Transaction, TransactionBehavior, params};
use serde_json::Value;

use super::codec::{Codec, Purpose, Stored};
use super::detail;
use super::fault::Outcome;
use super::names::{self, Table};
use super::noise;
use super::read::{self, HEAD, VersionRow};
use super::retain;
use super::write::BatchWriter;
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
pub(super) fn start(connection: &Connection, since: i64, most: i64, last: i64) -> Outcome<i64> {
    let sql = "SELECT min(number) FROM versions WHERE observed_at >= ?1 AND number > ?2";
    let first: Option<i64> = connection.query_row(sql, [since, last - most], |row| row.get(0))?;
    Ok(first.unwrap_or(last + 1) - 1)
}

/// Takes the next step. Returns whether there is another one.
pub(super) fn step(
    writer: &mut BatchWriter,
    connection: &Connection,
    scrub: &mut Scrub,
    mask: &dyn Mask,
) -> Outcome<bool> {
    if scrub.after < scrub.until {
        return versions(writer, connection, scrub, mask).map(|()| true);
    }
    dictionaries(writer, connection, scrub)
}

fn versions(
    writer: &mut BatchWriter,
    connection: &Connection,
    scrub: &mut Scrub,
    mask: &dyn Mask,
) -> Outcome<()> {
    let sql = format!("{HEAD} WHERE v.number > ?1 AND v.number <= ?2 ORDER BY v.number LIMIT {STEP}");
    let mut heads = connection.prepare_cached(&sql)?;
    let heads =
        heads.query_map([scrub.after, scrub.until], VersionRow::read)?.collect::<Result<Vec<_>, _>>()?;
    let (mut found, mut bytes, mut through) = (Vec::new(), 0, scrub.until);
    let count = heads.len();
    for (at, head) in heads.into_iter().enumerate() {
        let body = writer.codec.body(connection, head.number)?;
        bytes += body.len();
        found.extend(masked(&mut writer.codec, connection, &head, &body, mask)?);
        if at + 1 == STEP || bytes >= BYTES && at + 1 < count {
            through = head.number;
            break;
        }
    }
    if !found.is_empty() {
        writer.codec.forget_samples();
    }
    let transaction = Transaction::new_unchecked(connection, TransactionBehavior::Immediate)?;
    texts(&transaction, (scrub.after, through), mask)?;
    for masked in found {
        for text in &masked.lost(&mut writer.codec, &transaction)? {
            retire(writer, &transaction, masked.number, text)?;
        }
        rewrite(writer, &transaction, masked)?;
        scrub.masked += 1;
    }
    transaction.commit()?;
    scrub.after = through;
    Ok(())
}

/// The parts of a version to mask; `None` where there are none.
fn masked(
    codec: &mut Codec,
    connection: &Connection,
    head: &VersionRow,
    body: &Arc<[u8]>,
    mask: &dyn Mask,
) -> Outcome<Option<Masked>> {
    let state = noise::since(connection, codec, head.number, body)?;
    let masked_state = state.as_deref().and_then(|state| mask::body(mask, &head.object, state));
    let stored = read::details(codec, connection, head.number)?;
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
    fn lost(&self, codec: &mut Codec, connection: &Connection) -> Outcome<BTreeSet<Vec<u8>>> {
        let mut lost = BTreeSet::new();
        let body = codec.body(connection, self.number)?;
        let details = read::details(codec, connection, self.number)?;
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
fn rewrite(writer: &mut BatchWriter, connection: &Connection, masked: Masked) -> Outcome<()> {
    let Masked { number, body, details, paths, state } = masked;
    let sql = "SELECT object, kind, base, content FROM versions WHERE number = ?1";
    let (object, kind, base, former): (i64, i64, i64, Option<i64>) = connection
        .prepare_cached(sql)?
        .query_row([number], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)))?;
    let mut after =
        connection.prepare_cached("SELECT number FROM versions WHERE object = ?1 AND base = ?2")?;
    let after = after.query_map([object, number], |row| row.get(0))?.collect::<Result<Vec<i64>, _>>()?;
    let mut bodies = Vec::new();
    for number in after {
        bodies.push((number, writer.codec.body(connection, number)?));
    }

    let (shared, dictionary, frame) = match base {
        0 => {
            let (shared, packed) = writer.full(connection, kind, &body)?;
            (shared, packed.dictionary, packed.frame)
        }
        base => {
            let base = writer.codec.body(connection, base)?;
            (None, 0, writer.codec.pack_delta(&base, &details, &body)?)
        }
    };
    let (content, split) = shared.unzip();
    let (detail_dictionary, detail) = match &*details {
        [] => (0, Vec::new()),
        details => {
            let packed = writer.codec.pack(connection, kind, Purpose::Detail, details)?;
            (packed.dictionary, packed.frame)
        }
    };
    let sql =
        "UPDATE versions SET content = ?2, split = ?3, length = ?4, crc = ?5, dictionary = ?6, frame = ?7,
               detail_length = ?8, detail_dictionary = ?9, detail = ?10 WHERE number = ?1";
    connection.prepare_cached(sql)?.execute(params![
        number,
        content,
        split,
        body.len(),
        crc32fast::hash(&body),
        dictionary,
        frame,
        details.len(),
        detail_dictionary,
        detail
    ])?;
    retain::release(connection, former)?;
    for (next, content) in bodies {
        let details = read::details(&mut writer.codec, connection, next)?;
        let frame = writer.codec.pack_delta(&body, &details, &content)?;
        let sql = "UPDATE versions SET frame = ?2 WHERE number = ?1";
        connection.prepare_cached(sql)?.execute(params![next, frame])?;
    }
    if let Some(state) = state {
        let frame = writer.codec.pack_delta(&body, &[], &state)?;
        let sql = "UPDATE objects SET state_length = ?2, state_crc = ?3, state = ?4 WHERE id = ?1";
        let row = params![object, state.len(), crc32fast::hash(&state), frame];
        connection.prepare_cached(sql)?.execute(row)?;
    }
    index(writer, connection, number, &paths)
}

/// Replaces the paths by which a version is found.
fn index(
    writer: &mut BatchWriter,
    connection: &Connection,
    number: i64,
    [had, has]: &[Vec<String>; 2],
) -> Outcome<()> {
    if had == has {
        return Ok(());
    }
    for path in had.iter().collect::<BTreeSet<_>>() {
        let Some(id) = names::find(connection, Table::Paths, path)? else { continue };
        let sql = "DELETE FROM version_paths WHERE path = ?1 AND number = ?2";
        connection.prepare_cached(sql)?.execute([id, number])?;
        let sql =
            "DELETE FROM paths WHERE id = ?1 AND NOT EXISTS (SELECT 1 FROM version_paths WHERE path = ?1)";
        if connection.prepare_cached(sql)?.execute([id])? > 0 {
            writer.forget_path(path);
        }
    }
    writer.index_paths(connection, number, has)
}

/// Masks the texts of gaps and dead letters after one number, up to another, and notes with the first of them.
fn texts(connection: &Connection, (after, through): (i64, i64), mask: &dyn Mask) -> Outcome<()> {
    let places = [
        ("gaps", "reason", "number > ?1 AND number <= ?2"),
        ("dead_letters", "reason", "sink IN (SELECT name FROM sinks) AND number > ?1 AND number <= ?2"),
        ("notes", "value", "?2 > ?1"),
    ];
    for (table, column, condition) in places {
        let sql = format!("SELECT DISTINCT {column} FROM {table} WHERE {condition}");
        let mut found = connection.prepare_cached(&sql)?;
        let found =
            found.query_map([after, through], |row| row.get(0))?.collect::<Result<Vec<String>, _>>()?;
        for before in found {
            let mut text = before.clone();
            mask.text(&mut text);
            if text != before {
                let sql = format!("UPDATE {table} SET {column} = ?4 WHERE {column} = ?3 AND {condition}");
                connection.prepare_cached(&sql)?.execute(params![after, through, before, text])?;
            }
        }
    }
    Ok(())
}

/// Dictionaries are made of the first contents of a kind. Nothing is packed any more with one that has this text: its kind becomes
/// negative, and its content goes when nothing needs it.
fn retire(writer: &mut BatchWriter, connection: &Connection, number: i64, text: &[u8]) -> Outcome<()> {
    let mut of = connection.prepare_cached(
        "SELECT d.id, d.bytes FROM dictionaries d JOIN versions v ON v.kind = d.kind WHERE v.number = ?1",
    )?;
    let found = of.query_map([number], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, Vec<u8>>(1)?)))?;
    for row in found {
        let (id, bytes) = row?;
        if bytes.windows(text.len()).any(|window| window == text) {
            connection.prepare_cached("UPDATE dictionaries SET kind = -kind WHERE id = ?1")?.execute([id])?;
            writer.codec.retire(id);
        }
    }
    Ok(())
}

/// Packs a part of what a retired dictionary packs without it, and empties the dictionary in the end.
fn dictionaries(writer: &mut BatchWriter, connection: &Connection, scrub: &mut Scrub) -> Outcome<bool> {
    let sql = "SELECT min(id) FROM dictionaries WHERE kind < 0";
    let Some(id) = connection.query_row(sql, [], |row| row.get::<_, Option<i64>>(0))? else {
        return Ok(false);
    };
    let from = scrub.repacked;
    let transaction = Transaction::new_unchecked(connection, TransactionBehavior::Immediate)?;
    let ids = |sql: &str| -> Outcome<Vec<i64>> {
        let mut statement = transaction.prepare_cached(sql)?;
        Ok(statement.query_map([id, from, from + ROWS], |row| row.get(0))?.collect::<Result<_, _>>()?)
    };
    let versions = ids("SELECT number FROM versions WHERE (dictionary = ?1 OR detail_dictionary = ?1)
                        AND number > ?2 AND number <= ?3 ORDER BY number")?;
    let mut through = from + ROWS;
    for (at, number) in versions.into_iter().enumerate() {
        if at == STEP {
            through = number - 1;
            break;
        }
        repack(writer, &transaction, number)?;
    }
    let contents = "SELECT id FROM contents WHERE dictionary = ?1 AND id > ?2 AND id <= ?3";
    for content in ids(contents)?.into_iter().filter(|content| *content <= through) {
        let bytes = writer.codec.shared(&transaction, content)?;
        let frame = writer.codec.pack_alone(&bytes)?;
        let sql = "UPDATE contents SET dictionary = 0, frame = ?2 WHERE id = ?1";
        transaction.prepare_cached(sql)?.execute(params![content, frame])?;
    }
    scrub.repacked = through;
    let last = "SELECT max(coalesce((SELECT max(number) FROM versions), 0), coalesce((SELECT max(id) FROM contents), 0))";
    if through >= transaction.query_row(last, [], |row| row.get::<_, i64>(0))? {
        // Its row stays: another dictionary with its number would be taken for it by readers that have it in memory.
        let sql = "UPDATE dictionaries SET kind = 0, crc = 0, bytes = x'' WHERE id = ?1";
        transaction.execute(sql, [id])?;
        scrub.repacked = 0;
    }
    transaction.commit()?;
    Ok(true)
}

fn repack(writer: &mut BatchWriter, connection: &Connection, number: i64) -> Outcome<()> {
    let stored = Stored::load(connection, number)?;
    let kind = "SELECT kind FROM versions WHERE number = ?1";
    let kind: i64 = connection.prepare_cached(kind)?.query_row([number], |row| row.get(0))?;
    let details = read::details(&mut writer.codec, connection, number)?;
    if !details.is_empty() {
        let packed = writer.codec.pack(connection, kind, Purpose::Detail, &details)?;
        let sql = "UPDATE versions SET detail_dictionary = ?2, detail = ?3 WHERE number = ?1";
        connection.prepare_cached(sql)?.execute(params![number, packed.dictionary, packed.frame])?;
    }
    if stored.base == 0 {
        let shell = writer.codec.shell(connection, &stored)?;
        let packed = writer.codec.pack(connection, kind, Purpose::Body, &shell)?;
        let sql = "UPDATE versions SET dictionary = ?2, frame = ?3 WHERE number = ?1";
        connection.prepare_cached(sql)?.execute(params![number, packed.dictionary, packed.frame])?;
    }
    Ok(())
}
