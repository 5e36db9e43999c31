//! Batches become rows.

use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior, params};

use crate::batch::{Batch, Entry, Observation, What};
#[cfg(feature = "postgres")]
use crate::record::ObjectId;
use crate::record::{ChangeRecord, Verb};
use crate::sql::clock::Time;
use crate::sql::codec::{MOST_BYTES, Packed, Purpose};
use crate::sql::db::Db;
use crate::sql::detail;
use crate::sql::fault::{Fault, Outcome};
use crate::sql::links::Links;
use crate::sql::names::KindId;
use crate::sql::packing::{Base, Packing, ROW, event_code, origin_code, verb_code};
use crate::sql::recent::Recent;

/// The bytes of recent versions that are kept for the deltas of the next ones.
const RECENT: usize = 64 << 20;
/// The overhead of an object there, in bytes.
const RECENT_ENTRY: usize = 300;

/// Writes batches, and remembers of the file what that needs. After a failure it is loaded again.
pub(crate) struct BatchWriter {
    next: i64,
    time: Time,
    /// The bytes of Events in this batch.
    pub(crate) event_bytes: usize,
    pub(crate) packing: Packing,
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
    /// `None` if it is damaged.
    body: Option<Arc<[u8]>>,
    /// Whether noise has come since.
    has_state: bool,
}

impl BatchWriter {
    pub(crate) fn load(connection: &Connection) -> Outcome<Self> {
        let packing = Packing::load(Db(connection))?;
        let next =
            connection.query_row("SELECT value FROM meta WHERE name = 'next'", [], |row| row.get(0))?;
        let latest = "SELECT observed_at FROM versions ORDER BY number DESC LIMIT 1";
        let latest = connection.query_row(latest, [], |row| row.get(0)).optional()?;
        let recent = Recent::new(RECENT);
        Ok(Self { next, time: Time::after(latest), event_bytes: 0, packing, recent })
    }

    /// The number of the last record.
    pub(crate) fn last(&self) -> i64 {
        self.next - 1
    }

    /// Forgets what it knows of objects, because something else has changed them.
    pub(crate) fn forget_objects(&mut self) {
        self.recent = Recent::new(RECENT);
    }

    /// Stores a batch in one transaction.
    pub(crate) fn commit(&mut self, connection: &Connection, batch: &Batch) -> Outcome<()> {
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

    /// The time of what was observed at this time.
    fn time(&mut self, connection: &Connection, observed_at: i64) -> Outcome<i64> {
        let timed = self.time.of(observed_at);
        if let Some((time, reason)) = timed.set_back {
            self.gap(connection, time, None, &reason)?;
        }
        if let Some(latest) = timed.disordered_until {
            let sql = "UPDATE meta SET value = CASE name WHEN 'ordered_from' THEN ?1 ELSE max(coalesce(value, ?2), ?2) END
                       WHERE name IN ('ordered_from', 'disordered_until')";
            connection.prepare_cached(sql)?.execute([self.next, latest])?;
        }
        Ok(timed.at)
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
        let kind = self.packing.names.kind(Db(connection), object)?;
        let key = (kind.family, object.uid.clone());
        let known = self.known(connection, &key)?;
        let at = self.time(connection, observation.record.observed_at.as_microsecond())?;
        match (observation.what, known) {
            (What::Known | What::Noise, Some(known)) if known.body.is_some() => {
                self.noise(connection, observation, at, key, known)
            }
            // Nothing is known that this could differ from: the history of the object begins here, or goes on after a damaged version.
            (What::Known | What::Noise, known) => {
                self.version(connection, observation, (at, kind), known, None)
            }
            // An Event that was left out when it came is left out when it goes.
            (What::Event, None) if observation.record.verb == Verb::Deleted => Ok(()),
            (What::Change | What::Event, known) => {
                self.version(connection, observation, (at, kind), known, Some(&observation.record))
            }
        }
    }

    /// Stores what another history has as it is there: with its number and its time.
    #[cfg(feature = "postgres")]
    pub(crate) fn adopt(
        &mut self,
        connection: &Connection,
        number: i64,
        observation: &Observation,
    ) -> Outcome<()> {
        let object = &observation.record.object;
        let kind = self.packing.names.kind(Db(connection), object)?;
        let key = (kind.family, object.uid.clone());
        let known = self.known(connection, &key)?;
        let at = observation.record.observed_at.as_microsecond();
        match (observation.what, known) {
            (What::Noise, Some(known)) => self.noise(connection, observation, at, key, known),
            (What::Noise, None) => Ok(()),
            (what, known) => {
                self.next = number;
                let change = Some(&observation.record).filter(|_| what != What::Known);
                self.version(connection, observation, (at, kind), known, change)
            }
        }
    }

    /// The newest version of a live object, and its content.
    #[cfg(feature = "postgres")]
    pub(crate) fn newest(
        &mut self,
        connection: &Connection,
        object: &ObjectId,
    ) -> Outcome<Option<(i64, Arc<[u8]>)>> {
        let family = self.packing.names.kind(Db(connection), object)?.family;
        let known = self.known(connection, &(family, object.uid.clone()))?;
        Ok(known.and_then(|known| Some((known.newest, known.body?))))
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
        let (body, chain) = self.packing.newest(Db(connection), &[newest])?.remove(&newest).unzip();
        let chain = chain.unwrap_or_default();
        Ok(Some(Known { object, newest, chain, body, has_state }))
    }

    fn remember(&mut self, key: (i64, String), known: Known) {
        let weight = known.body.as_ref().map_or(0, |body| body.len()) + RECENT_ENTRY;
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
        let base = known.body.as_deref().unwrap_or_default();
        let delta = self.packing.codec.pack_delta(base, &[], bytes)?;
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
        let namespace = self.packing.names.namespace(Db(connection), object.namespace.as_deref())?;

        // The details come first: the content is packed against them too, since they have the new values already.
        let details = change.map(detail::write).transpose()?.unwrap_or_default();
        let detail = match &*details {
            [] => Packed { dictionary: 0, frame: Vec::new() },
            details => self.packing.codec.pack(Db(connection), kind.id, Purpose::Detail, details)?,
        };
        let base = known.as_ref().and_then(|known| {
            Some(Base { number: known.newest, chain: known.chain, body: known.body.as_ref()? })
        });
        let bytes = observation.body.bytes();
        let content = self.packing.content(Db(connection), kind, base.as_ref(), &details, bytes)?;

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
            Links::of(observation.body.bytes()).write(Db(connection), id)?;
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
            self.packing.index(Db(connection), number, change)?;
        }
        if observation.what == What::Event {
            self.event_bytes += detail_length + content_length + ROW;
        }
        let key = (kind.family, object.uid.clone());
        if has_ended {
            self.recent.remove(&key);
        } else {
            let body = Some(observation.body.shared());
            let known = Known { object: id, newest: number, chain: content.chain, body, has_state: false };
            self.remember(key, known);
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
