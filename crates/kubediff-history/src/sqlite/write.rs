//! Batches become rows.

use std::collections::BTreeSet;
use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior, params};

use super::codec::{Codec, MOST_BYTES, Packed, Purpose};
use super::detail;
use super::fault::{Fault, Outcome};
use super::links::Links;
use super::names::{KindId, Names, Table};
use super::recent::Recent;
use crate::batch::{Batch, Entry, Observation, What};
use crate::record::{ChangeRecord, Origin, Verb};

/// At most this many versions follow each other as deltas: it bounds the work of reading one.
const CHAIN: u32 = 32;
/// The bytes of recent versions that are kept for the deltas of the next ones.
const RECENT: usize = 64 << 20;
/// The overhead of an object there, in bytes.
const RECENT_ENTRY: usize = 300;
/// A part of an object that is at least as long is stored once, however many versions begin with it.
const SHARED_LEAST: usize = 1_024;

/// About what a version needs besides its content and details, in bytes: the rest of its row, and its place in the indexes.
pub(super) const ROW: usize = 200;

/// A clock that is set back by more than this is a gap, in microseconds.
const SET_BACK: i64 = 1_000_000;
/// A clock that is set back by more than this was wrong before, and not now.
const WRONG: i64 = 3_600 * 1_000_000;

/// Writes batches, and remembers of the file what that needs. After a failure it is loaded again.
pub(super) struct BatchWriter {
    next: i64,
    /// The time of the last version, or of noise after it.
    latest: i64,
    /// Whether the clock is behind it, and that is recorded.
    is_set_back: bool,
    /// The bytes of Events in this batch.
    event_bytes: usize,
    names: Names,
    pub(super) codec: Codec,
    recent: Recent<(i64, String), Known>,
}

/// A live object.
#[derive(Clone)]
struct Known {
    object: i64,
    /// Its newest version.
    newest: i64,
    /// How many deltas lead to it.
    chain: u32,
    body: Arc<[u8]>,
    /// Whether noise has come since.
    has_state: bool,
}

/// The content of a new version.
struct Content {
    base: i64,
    chain: u32,
    shared: Option<(i64, usize)>,
    packed: Packed,
}

impl BatchWriter {
    pub(super) fn load(connection: &Connection) -> Outcome<Self> {
        let mut codec = Codec::new()?;
        codec.prepare(connection)?;
        let next =
            connection.query_row("SELECT value FROM meta WHERE name = 'next'", [], |row| row.get(0))?;
        let latest = "SELECT observed_at FROM versions ORDER BY number DESC LIMIT 1";
        let latest = connection.query_row(latest, [], |row| row.get(0)).optional()?.unwrap_or(i64::MIN);
        let recent = Recent::new(RECENT);
        Ok(Self { next, latest, is_set_back: false, event_bytes: 0, names: Names::new(), codec, recent })
    }

    /// The number of the last record.
    pub(super) fn last(&self) -> i64 {
        self.next - 1
    }

    /// Forgets what it knows of objects, because something else has changed them.
    pub(super) fn forget_objects(&mut self) {
        self.recent = Recent::new(RECENT);
    }

    /// A path that no version has any more.
    pub(super) fn forget_path(&mut self, path: &str) {
        self.names.forget_path(path);
    }

    /// Stores a batch in one transaction.
    pub(super) fn commit(&mut self, connection: &Connection, batch: &Batch) -> Outcome<()> {
        // The write lock is taken now, where SQLite waits for it. A transaction that begins by reading fails when it comes
        // to write and another writer was there in the meantime.
        let transaction = Transaction::new_unchecked(connection, TransactionBehavior::Immediate)?;
        let before = self.next;
        for entry in &batch.entries {
            match entry {
                Entry::Observation(observation) => self.observe(&transaction, observation)?,
                Entry::Gap { from, to, resource, reason } => {
                    let time = (from.as_microsecond(), to.as_microsecond());
                    self.gap(&transaction, time, resource.as_deref(), reason)?;
                }
            }
        }
        if let Some((scrub, at, cause)) = &batch.scrub {
            let sql = "INSERT INTO scrubs VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
            let number = self.number();
            let row = params![number, at.as_microsecond(), scrub.from, scrub.until, scrub.masked, cause];
            transaction.prepare_cached(sql)?.execute(row)?;
        }
        // In the same transaction as the versions: a restart resumes right behind what is stored.
        for (resource, rv) in &batch.positions {
            let sql = "INSERT INTO positions VALUES (?1, ?2) ON CONFLICT DO UPDATE SET rv = ?2";
            transaction.prepare_cached(sql)?.execute([resource, rv])?;
        }
        for (name, value) in &batch.notes {
            let sql = "INSERT INTO notes VALUES (?1, ?2) ON CONFLICT DO UPDATE SET value = ?2";
            transaction.prepare_cached(sql)?.execute([name, value])?;
        }
        for (namespace, print) in &batch.prints {
            match namespace {
                Some(namespace) => transaction
                    .prepare_cached(
                        "INSERT INTO prints (namespace, print) VALUES (?1, ?2) ON CONFLICT DO NOTHING",
                    )?
                    .execute(params![namespace, print])?,
                None => {
                    transaction.prepare_cached("DELETE FROM prints WHERE print = ?1")?.execute([print])?
                }
            };
        }
        // Positions and notes take no number, so a batch of them alone leaves this row unwritten.
        if self.next > before {
            let sql = "UPDATE meta SET value = ?1 WHERE name = 'next'";
            transaction.prepare_cached(sql)?.execute([self.next])?;
        }
        if self.event_bytes > 0 {
            let sql = "UPDATE meta SET value = value + ?1 WHERE name = 'event_bytes'";
            transaction.prepare_cached(sql)?.execute([std::mem::take(&mut self.event_bytes)])?;
        }
        Ok(transaction.commit()?)
    }

    fn gap(
        &mut self,
        connection: &Connection,
        (from, to): (i64, i64),
        resource: Option<&str>,
        reason: &str,
    ) -> Outcome<()> {
        let sql = "INSERT INTO gaps (number, from_at, to_at, resource, reason) VALUES (?1, ?2, ?3, ?4, ?5)";
        let number = self.number();
        connection.prepare_cached(sql)?.execute(params![number, from, to, resource, reason])?;
        Ok(())
    }

    /// The time of what was observed at this time: never before the last version, so that each time is a place in the log.
    fn time(&mut self, connection: &Connection, observed_at: i64) -> Outcome<i64> {
        let back = self.latest.saturating_sub(observed_at);
        let is_set_back = back > SET_BACK;
        if is_set_back && !self.is_set_back {
            let reason = format!("the clock was set back by {} s", back / 1_000_000);
            self.gap(connection, (observed_at, self.latest), None, &reason)?;
        }
        self.is_set_back = is_set_back && back <= WRONG;
        if back > WRONG && self.latest > i64::MIN {
            let sql = "UPDATE meta SET value = CASE name WHEN 'ordered_from' THEN ?1 ELSE max(coalesce(value, ?2), ?2) END
                       WHERE name IN ('ordered_from', 'disordered_until')";
            connection.prepare_cached(sql)?.execute([self.next, self.latest])?;
        }
        self.latest = if back > WRONG { observed_at } else { observed_at.max(self.latest) };
        Ok(self.latest)
    }

    fn number(&mut self) -> i64 {
        // Versions and gaps share one sequence, which keeps the order of the batch.
        self.next += 1;
        self.next - 1
    }

    fn observe(&mut self, connection: &Connection, observation: &Observation) -> Outcome<()> {
        let object = &observation.record.object;
        // Only the uid tells an object from a later one of the same name.
        if object.uid.is_empty() {
            return Err(Fault::Invalid("it has no uid"));
        }
        // Readers take a longer content for damage, so none may be written.
        if observation.body.bytes().len() > MOST_BYTES {
            return Err(Fault::Invalid("it has more than 64 MiB"));
        }
        let kind = self.names.kind(connection, object)?;
        let key = (kind.family, object.uid.clone());
        let known = self.known(connection, &key)?;
        let at = self.time(connection, observation.record.observed_at.as_microsecond())?;
        match (observation.what, known) {
            (What::Known | What::Noise, Some(known)) => self.noise(connection, observation, at, key, known),
            // Nothing is known that this could differ from, so the history of the object begins here.
            (What::Known | What::Noise, None) => {
                self.version(connection, observation, (at, kind), None, None)
            }
            // An Event that was left out when it came is left out when it goes.
            (What::Event, None) if observation.record.verb == Verb::Deleted => Ok(()),
            (What::Change | What::Event, known) => {
                self.version(connection, observation, (at, kind), known, Some(&observation.record))
            }
        }
    }

    /// The known state of a live object; `None` for others.
    fn known(&mut self, connection: &Connection, key: &(i64, String)) -> Outcome<Option<Known>> {
        if let Some(known) = self.recent.get(key) {
            return Ok(Some(known.clone()));
        }
        let sql =
            "SELECT id, state IS NOT NULL FROM objects WHERE uid = ?1 AND family = ?2 AND ended IS NULL";
        let found = connection
            .prepare_cached(sql)?
            .query_row(params![key.1, key.0], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, bool>(1)?)));
        let Some((object, has_state)) = found.optional()? else { return Ok(None) };
        // By number: the clock may have been set back between two versions.
        let newest = "SELECT max(number) FROM versions WHERE object = ?1";
        let newest: Option<i64> = connection.prepare_cached(newest)?.query_row([object], |row| row.get(0))?;
        let newest = newest.ok_or_else(|| Fault::damaged(format!("object {object} has no version")))?;
        let body = self.codec.body(connection, newest)?;
        let chain = chain_of(connection, newest)?;
        Ok(Some(Known { object, newest, chain, body, has_state }))
    }

    fn remember(&mut self, key: (i64, String), known: Known) {
        let weight = known.body.len() + RECENT_ENTRY;
        self.recent.insert(key, known, weight);
    }

    /// Replaces the current state of an object, without a version.
    fn noise(
        &mut self,
        connection: &Connection,
        observation: &Observation,
        at: i64,
        key: (i64, String),
        known: Known,
    ) -> Outcome<()> {
        let bytes = observation.body.bytes();
        // The base is the newest version and not the noise before: each noise replaces the one before it, and none is needed to
        // read another.
        let delta = self.codec.pack_delta(&known.body, &[], bytes)?;
        let sql =
            "UPDATE objects SET state_rv = ?2, state_at = ?3, state_length = ?4, state_crc = ?5, state = ?6
                   WHERE id = ?1";
        connection.prepare_cached(sql)?.execute(params![
            known.object,
            observation.record.rv.as_deref().unwrap_or_default(),
            at,
            bytes.len(),
            crc32fast::hash(bytes),
            delta
        ])?;
        self.remember(key, Known { has_state: true, ..known });
        Ok(())
    }

    fn version(
        &mut self,
        connection: &Connection,
        observation: &Observation,
        (observed_at, kind): (i64, KindId),
        known: Option<Known>,
        change: Option<&ChangeRecord>,
    ) -> Outcome<()> {
        let number = self.number();
        let object = &observation.record.object;
        let namespace = self.names.namespace(connection, object.namespace.as_deref())?;

        // The details come first: the content is packed against them too, since they have the new values already.
        let details = change.map(detail::write).transpose()?.unwrap_or_default();
        let detail = match &*details {
            [] => Packed { dictionary: 0, frame: Vec::new() },
            details => self.codec.pack(connection, kind.id, Purpose::Detail, details)?,
        };
        let content = self.content(connection, kind, known.as_ref(), &details, observation.body.bytes())?;

        // The incarnation before gets no version of its deletion, which was not observed. It ends with this version.
        if let Some(replaced) = observation.replaces.as_deref() {
            let sql = "UPDATE objects SET ended = ?1, ended_at = ?2 WHERE uid = ?3 AND family = ?4 AND ended IS NULL";
            let at = params![number, observed_at, replaced, kind.family];
            connection.prepare_cached(sql)?.execute(at)?;
            self.recent.remove(&(kind.family, replaced.to_owned()));
        }
        let has_ended = change.is_some_and(|change| change.verb == Verb::Deleted);
        let has_state = known.as_ref().is_some_and(|known| known.has_state);
        let was_known = known.is_some();
        let id = match known {
            Some(known) => known.object,
            None => object_id(connection, observation, kind, namespace, number)?,
        };
        let is_of_owners = |path: &String| path.starts_with("metadata.ownerReferences");
        if !was_known || change.is_some_and(|change| change.paths.iter().any(is_of_owners)) {
            Links::of(observation.body.bytes()).write(connection, id)?;
        }
        // The state of a noise is packed against the version that was the newest until now, so it cannot stay.
        if has_ended || has_state {
            let sql = "UPDATE objects SET ended = ?2, ended_at = ?3, state_rv = NULL, state_at = NULL,
                       state_length = NULL, state_crc = NULL, state = NULL WHERE id = ?1";
            let end = has_ended.then_some((number, observed_at)).unzip();
            connection.prepare_cached(sql)?.execute(params![id, end.0, end.1])?;
        }

        let bytes = observation.body.bytes();
        let (detail_length, content_length) = (detail.frame.len(), content.packed.frame.len());
        // The checksum is that of the unpacked content. A reader checks it after each delta, so it finds damage anywhere in the
        // chain.
        let sql = "INSERT INTO versions (number, object, kind, namespace, verb, source, observed_at, rv, rv_before,
                   base, content, split, length, crc, dictionary, detail_length, detail_dictionary, detail, frame)
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19)";
        connection.prepare_cached(sql)?.execute(params![
            number,
            id,
            kind.id,
            namespace,
            change.map_or(0, |change| match observation.what {
                What::Event => event_code(change.verb),
                _ => verb_code(change.verb),
            }),
            origin_code(observation.record.origin),
            observed_at,
            observation.record.rv.as_deref().unwrap_or_default(),
            change.and_then(|change| change.rv_before.as_deref()),
            content.base,
            content.shared.map(|(id, _)| id),
            content.shared.map(|(_, split)| split),
            bytes.len(),
            crc32fast::hash(bytes),
            content.packed.dictionary,
            details.len(),
            detail.dictionary,
            detail.frame,
            content.packed.frame
        ])?;
        if let Some(change) = change {
            self.index(connection, number, change)?;
        }
        if observation.what == What::Event {
            self.event_bytes += detail_length + content_length + ROW;
        }
        let key = (kind.family, object.uid.clone());
        if has_ended {
            self.recent.remove(&key);
        } else {
            let body = observation.body.shared();
            let known = Known { object: id, newest: number, chain: content.chain, body, has_state: false };
            self.remember(key, known);
        }
        Ok(())
    }

    /// A delta from the version before, or a full version where that is shorter, or the deltas are many.
    fn content(
        &mut self,
        connection: &Connection,
        kind: KindId,
        known: Option<&Known>,
        details: &[u8],
        bytes: &[u8],
    ) -> Outcome<Content> {
        let mut delta = None;
        if let Some(known) = known
            && known.chain + 1 < CHAIN
        {
            let frame = self.codec.pack_delta(&known.body, details, bytes)?;
            // A full version is hardly ever shorter than this, so it is not packed only to compare.
            let is_short = frame.len() < bytes.len() / 8;
            let packed = Packed { dictionary: 0, frame };
            let found = Content { base: known.newest, chain: known.chain + 1, shared: None, packed };
            if is_short {
                return Ok(found);
            }
            delta = Some(found);
        }
        if let Some(delta) = delta {
            // It is only compared, so it must not leave shared content behind.
            let full = self.codec.pack(connection, kind.id, Purpose::Body, bytes)?;
            if delta.packed.frame.len() <= full.frame.len() {
                return Ok(delta);
            }
        }
        let (shared, packed) = self.full(connection, kind.id, bytes)?;
        Ok(Content { base: 0, chain: 0, shared, packed })
    }

    /// A full version: the longest part apart, so that it is stored once.
    pub(super) fn full(
        &mut self,
        connection: &Connection,
        kind: i64,
        bytes: &[u8],
    ) -> Outcome<(Option<(i64, usize)>, Packed)> {
        let part = longest_part(bytes).filter(|part| part.len() >= SHARED_LEAST);
        let part = part.and_then(|part| {
            Some((bytes.get(..part.start)?, bytes.get(part.clone())?, bytes.get(part.end..)?))
        });
        let Some((before, part, after)) = part else {
            return Ok((None, self.codec.pack(connection, kind, Purpose::Body, bytes)?));
        };
        // Other full versions of this object, and objects made from the same template, often have the same part.
        let id = self.share(connection, kind, part)?;
        let shell = [before, after].concat();
        Ok((Some((id, before.len())), self.codec.pack(connection, kind, Purpose::Body, &shell)?))
    }

    fn share(&mut self, connection: &Connection, kind: i64, part: &[u8]) -> Outcome<i64> {
        let crc = crc32fast::hash(part);
        let mut same = connection.prepare_cached("SELECT id FROM contents WHERE crc = ?1 AND length = ?2")?;
        let same: Vec<i64> =
            same.query_map(params![crc, part.len()], |row| row.get(0))?.collect::<Result<_, _>>()?;
        for id in same {
            // Different parts may have the same checksum.
            if self.codec.shared(connection, id)? == part {
                connection
                    .prepare_cached("UPDATE contents SET uses = uses + 1 WHERE id = ?1")?
                    .execute([id])?;
                return Ok(id);
            }
        }
        let packed = self.codec.pack(connection, kind, Purpose::Body, part)?;
        let sql = "INSERT INTO contents (crc, length, dictionary, frame, uses) VALUES (?1, ?2, ?3, ?4, 1)";
        let row = params![crc, part.len(), packed.dictionary, packed.frame];
        connection.prepare_cached(sql)?.execute(row)?;
        Ok(connection.last_insert_rowid())
    }

    fn index(&mut self, connection: &Connection, number: i64, change: &ChangeRecord) -> Outcome<()> {
        // Sets: a change may name a manager or path twice, and the tables refuse a second row.
        let managers: BTreeSet<&str> = change.managers.iter().map(|it| it.manager.as_str()).collect();
        for manager in managers {
            let id = self.names.of(connection, Table::Managers, manager)?;
            connection
                .prepare_cached("INSERT INTO version_managers VALUES (?1, ?2)")?
                .execute([id, number])?;
        }
        self.index_paths(connection, number, &change.paths)
    }

    pub(super) fn index_paths(
        &mut self,
        connection: &Connection,
        number: i64,
        paths: &[String],
    ) -> Outcome<()> {
        let paths: BTreeSet<&String> = paths.iter().collect();
        for path in paths {
            let id = self.names.of(connection, Table::Paths, path)?;
            connection.prepare_cached("INSERT INTO version_paths VALUES (?1, ?2)")?.execute([id, number])?;
        }
        Ok(())
    }
}

/// The row of an object: a new one, or that of an object that had ended and is back.
fn object_id(
    connection: &Connection,
    observation: &Observation,
    kind: KindId,
    namespace: i64,
    first: i64,
) -> Outcome<i64> {
    let object = &observation.record.object;
    let sql = "INSERT INTO objects (family, namespace, name, uid, first) VALUES (?1, ?2, ?3, ?4, ?5)
               ON CONFLICT DO UPDATE SET returned = 1, ended = NULL, ended_at = NULL, state_rv = NULL, state_at = NULL,
               state_length = NULL, state_crc = NULL, state = NULL RETURNING id";
    let row = params![kind.family, namespace, object.name, object.uid, first];
    Ok(connection.prepare_cached(sql)?.query_row(row, |row| row.get(0))?)
}

/// How many deltas lead to a version.
fn chain_of(connection: &Connection, number: i64) -> Outcome<u32> {
    let sql = "WITH RECURSIVE chain (base) AS (
                   SELECT base FROM versions WHERE number = ?1
                   UNION ALL SELECT versions.base FROM chain JOIN versions ON versions.number = chain.base)
               SELECT count(*) - 1 FROM chain";
    Ok(connection.prepare_cached(sql)?.query_row([number], |row| row.get(0))?)
}

pub(super) fn verb_code(verb: Verb) -> i64 {
    match verb {
        Verb::Added => 1,
        Verb::Updated => 2,
        Verb::Deleted => 3,
        Verb::Recreated => 4,
    }
}

/// The verb of a version of an Event.
pub(super) fn event_code(verb: Verb) -> i64 {
    match verb {
        Verb::Added | Verb::Recreated => 5,
        Verb::Updated => 6,
        Verb::Deleted => 7,
    }
}

fn origin_code(origin: Origin) -> i64 {
    match origin {
        Origin::Watch => 0,
        Origin::List => 1,
        Origin::Restart => 2,
    }
}

/// The place of the longest value among the fields of a JSON map, other than `metadata`, which is unique to the object.
fn longest_part(json: &[u8]) -> Option<std::ops::Range<usize>> {
    // A walk over the bytes finds places, which a parsed tree would not keep.
    let (mut depth, mut in_string, mut escaped) = (0_usize, false, false);
    let (mut name, mut string) = (0..0, 0);
    let mut start = None;
    let mut longest = 0..0;
    for (at, byte) in json.iter().enumerate() {
        if in_string {
            match byte {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'"' => {
                    in_string = false;
                    if depth == 1 && start.is_none() {
                        name = string..at;
                    }
                }
                _ => {}
            }
            continue;
        }
        match byte {
            b'"' => (in_string, string) = (true, at + 1),
            b'{' | b'[' => depth += 1,
            b':' if depth == 1 => start = Some(at + 1),
            b',' | b'}' if depth == 1 => {
                let value = start.take().unwrap_or(at)..at;
                let is_metadata = json.get(name.clone()) == Some(b"metadata");
                if value.len() > longest.len() && !is_metadata {
                    longest = value;
                }
                depth -= usize::from(*byte == b'}');
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    (!longest.is_empty()).then_some(longest)
}

#[cfg(test)]
mod tests {
    use super::longest_part;

    #[test]
    fn the_longest_part_is_a_field_of_the_map() {
        for (json, expected) in [
            (r#"{"kind":"A","spec":{"a":[1,2,{"b":"}"}]},"x":1}"#, r#"{"a":[1,2,{"b":"}"}]}"#),
            (r#"{"metadata":{"long":"aaaaaaaaaaaaaaaaaaaaa"},"data":{"a":"\"}{,"}}"#, r#"{"a":"\"}{,"}"#),
            (r#"{"data":[1,2,3]}"#, "[1,2,3]"),
            ("[]", ""),
            ("{}", ""),
            ("", ""),
            (r#"{"a"#, ""),
        ] {
            let part = longest_part(json.as_bytes()).and_then(|part| json.get(part)).unwrap_or_default();
            assert_eq!(part, expected, "of {json}");
        }
    }
}
