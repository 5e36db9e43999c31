//! Batches become rows: all statements of a batch are sent at once, and its commit takes one round trip.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::ops::Range;
use std::sync::Arc;

use jiff::Timestamp;

use super::Address;
use super::attempt::{Attempt, random_uuid};
use super::rows::{Change, Rows, State};
use super::schema::{self, open_log};
use super::session::{Role, Session, TTL};
use super::term;
use crate::batch::{Batch, Entry, Observation, What};
use crate::error::Error;
use crate::record::{ChangeRecord, Verb};
use crate::report::Cluster;
use crate::sql::clock::Time;
use crate::sql::codec::{MOST_BYTES, Packed, Purpose};
use crate::sql::db::{Db, Integer, Statement, Value, values};
use crate::sql::detail;
use crate::sql::fault::{Fault, Outcome};
use crate::sql::links::Links;
use crate::sql::names::{KindId, Table};
use crate::sql::packing::{Base, Packing, ROW, Shared, event_code, origin_code, verb_code};
use crate::sql::recent::Recent;
use crate::sql::times::meta;

/// The bytes of recent versions that are kept for the deltas of the next ones, and what an object costs besides, in bytes.
const RECENT: usize = 64 << 20;
const RECENT_ENTRY: usize = 300;
/// A day is counted when it has so many records of this log, as its questions need. A process that takes over goes on from what the day has:
/// to count takes longer the more there is, and records wait meanwhile.
const COUNTED: [i64; 4] = [500, 5_000, 50_000, 500_000];
/// More callers than this do not commit at the same time.
const CALLERS: usize = 8;
/// This many numbers of objects are taken from the database at once.
const BLOCK: i64 = 1_000;

/// Writes a history in PostgreSQL, as long as this process has its term.
pub(crate) struct PostgresHistory {
    address: Address,
    cluster: Cluster,
    pub(crate) session: Session,
    writer: Writer,
    /// The batch whose commit was not answered.
    uncertain: Option<Attempt>,
    /// Batches that were stored, and whose callers do not know that yet: what they commit next begins with the same entries.
    stored: Vec<Attempt>,
    /// The last number whose commit was answered.
    acknowledged: i64,
    /// Whether others may have the term although it is not over.
    is_lent: bool,
    /// Whether the connection may be over.
    is_broken: bool,
}

/// What is remembered of the history, to write the next batch. After a failure it is loaded again.
struct Writer {
    next: i64,
    time: Time,
    /// The day of the next versions, in days since 1970, and how many records it has of this log.
    day: i64,
    of_day: i64,
    packing: Packing,
    recent: Recent<(i64, String), Known>,
    /// Objects of this batch that the history does not have.
    absent: HashSet<(i64, String)>,
    object_ids: Range<i64>,
}

/// An object that exists, or one that has ended.
#[derive(Clone)]
struct Known {
    object: i64,
    has_ended: bool,
    /// Its newest version, with how many deltas lead to it, and its day.
    newest: i64,
    chain: u32,
    day: i64,
    /// `None` if it is damaged.
    body: Option<Arc<[u8]>>,
    /// Whether noise has come since.
    has_state: bool,
}

impl PostgresHistory {
    /// Claims the term of a cluster's log, which is made if there is none.
    pub(crate) fn open(
        address: &Address,
        cluster: &Cluster,
        holder: &str,
        returns: bool,
    ) -> Result<Self, Error> {
        let failed = |fault: Fault| fault.at(address.place());
        let session = open_log(schema::connect(address, Role::Writer)?, cluster).map_err(failed)?;
        match term::claim(&session, holder, returns).map_err(failed)? {
            Some(token) => Self::lead(address, cluster, session, token),
            None => {
                let holder = "SELECT holder FROM terms";
                let holder: Option<String> = Db(&session).one(holder, &[]).map_err(failed)?;
                Err(Error::Held { place: address.place(), holder: holder.unwrap_or_default() })
            }
        }
    }

    /// Writes from now on, by the token of a term.
    pub(super) fn lead(
        address: &Address,
        cluster: &Cluster,
        mut session: Session,
        token: String,
    ) -> Result<Self, Error> {
        let failed = |fault: Fault| fault.at(address.place());
        session.token = Some(token);
        term::renew(&session);
        let timeline = "INSERT INTO timelines (first, timeline) SELECT value, greatest(?1, coalesce((SELECT max(timeline) + 1 FROM timelines), 1))
             FROM meta WHERE name = 'next' ON CONFLICT (log, first) DO UPDATE SET timeline = excluded.timeline";
        let now = Timestamp::now().as_millisecond();
        let begun = Db(&session).writing(|db| db.run(timeline, values![now]).map(drop));
        begun.map_err(failed)?;
        let writer = Writer::load(&session).map_err(failed)?;
        let (address, cluster) = (address.clone(), cluster.clone());
        let acknowledged = writer.next - 1;
        let (uncertain, stored, is_lent, is_broken) = (None, Vec::new(), false, false);
        Ok(Self { address, cluster, session, writer, uncertain, stored, acknowledged, is_lent, is_broken })
    }

    pub(crate) fn address(&self) -> &Address {
        &self.address
    }

    /// The number of the last record.
    pub(crate) fn last(&self) -> i64 {
        self.writer.next - 1
    }

    /// Changes rows.
    pub(crate) fn reworking<T>(
        &mut self,
        work: impl FnOnce(&mut Packing, Db<'_>) -> Outcome<T>,
    ) -> Result<T, Error> {
        self.mend()?;
        // What is shared is stored with a batch.
        let shared = self.writer.packing.shared.take();
        let worked = work(&mut self.writer.packing, Db(&self.session));
        self.writer.packing.shared = shared;
        self.settled(worked)
    }

    /// Forgets the objects that retention may have removed. The newest version of another one is what it was.
    pub(crate) fn forget_ended(&mut self) {
        self.writer.recent.retain(|known| !known.has_ended);
    }

    pub(crate) fn forget_objects(&mut self) {
        self.writer.recent = Recent::new(RECENT);
        self.writer.packing.shared = Some(Shared::default());
    }

    pub(crate) fn commit(&mut self, batch: &Batch) -> Result<(), Error> {
        self.mend()?;
        if let Some(attempt) = self.uncertain.take() {
            let last = "SELECT last_batch::text FROM terms";
            let last: Result<Option<String>, _> = Db(&self.session).one(last, &[]);
            match last {
                Ok(last) if last.as_deref() == Some(&*attempt.id) => {
                    self.stored.truncate(CALLERS);
                    self.stored.insert(0, attempt);
                }
                Ok(_) => {}
                Err(fault) => {
                    self.uncertain = Some(attempt);
                    return self.settled(Err(fault));
                }
            }
        }
        let stored = self.stored.iter().find(|attempt| attempt.is_of(batch));
        let stored = stored.map_or((0, false), |attempt| (attempt.entries, attempt.scrub.is_some()));
        let id = random_uuid();
        let sent = self.writer.commit(&self.session, batch, &id, stored);
        if sent.as_ref().is_err_and(Fault::is_unanswered) {
            self.uncertain = Some(Attempt::new(id, batch));
        }
        self.settled(sent)?;
        self.stored.retain(|attempt| !attempt.is_of(batch));
        self.acknowledged = self.last();
        Ok(())
    }

    pub(crate) fn is_awaited(&mut self) -> bool {
        self.reworking(|_, db| db.one(&term::is_awaited(), &[])).unwrap_or(false)
    }

    /// Keeps the term, or lends it: whoever stands by may have it at once, and until somebody does, this process writes.
    pub(crate) fn hold(&mut self, keeps: bool) {
        if self.is_lent != keeps {
            return;
        }
        self.is_lent = !keeps;
        match keeps {
            true => term::renew(&self.session),
            false => term::lend(&self.session),
        }
    }

    /// Connects again, if the connection may be over.
    fn mend(&mut self) -> Result<(), Error> {
        if !self.is_broken {
            return Ok(());
        }
        let failed = |fault: Fault| fault.at(self.address.place());
        let link = schema::connect(&self.address, Role::Writer)?;
        let mut session = open_log(link, &self.cluster).map_err(failed)?;
        session.token = self.session.token.take();
        self.session = session;
        if !self.is_lent {
            term::renew(&self.session);
        }
        self.writer = Writer::load(&self.session).map_err(failed)?;
        if self.last() < self.acknowledged {
            let what = format!("{} of {}", self.acknowledged - self.last(), self.acknowledged);
            return Err(failed(Fault::WentBack(what)));
        }
        self.is_broken = false;
        Ok(())
    }

    /// After a failure, what this remembers may be more than what was stored.
    fn settled<T>(&mut self, outcome: Outcome<T>) -> Result<T, Error> {
        outcome.map_err(|fault| {
            match Writer::load(&self.session) {
                Ok(writer) if !fault.is_unanswered() => self.writer = writer,
                _ => self.is_broken = true,
            }
            fault.at(self.address.place())
        })
    }
}

/// Gives the term back, so that another process need not wait for its end.
impl Drop for PostgresHistory {
    fn drop(&mut self) {
        if let Some(token) = &self.session.token {
            let sql = format!(
                "UPDATE terms SET token = NULL, expires_at = clock_timestamp() WHERE token = '{token}'"
            );
            // Without an answer, the term ends by itself.
            let _ = self.session.link.batch(sql);
        }
    }
}

/// The day of the database's clock, in days since 1970.
const TODAY: &str = "SELECT ((clock_timestamp() AT TIME ZONE 'utc')::date - '1970-01-01'::date)::bigint";

impl Writer {
    fn load(session: &Session) -> Outcome<Self> {
        let db = Db(session);
        let mut packing = Packing::load(db)?;
        packing.shared = Some(Shared::default());
        let latest =
            db.first("SELECT observed_at FROM versions ORDER BY number DESC LIMIT 1", &[], |row| row.get(0))?;
        let days = "SELECT coalesce(max(day - '1970-01-01'::date), 0)::bigint FROM days";
        let day = db.one::<i64>(TODAY, &[])?.max(db.one(days, &[])?);
        prepare_days(db, day)?;
        let (next, after) = (meta(db, "next")?, meta(db, "complete_after")?);
        let earlier = "SELECT greatest(?1, max(last)) FROM days WHERE day < '1970-01-01'::date + ?2::int";
        let of_day = next - 1 - db.one::<i64>(earlier, values![after, day])?;
        Ok(Self {
            next,
            time: Time::after(latest),
            day,
            of_day,
            packing,
            recent: Recent::new(RECENT),
            absent: HashSet::new(),
            object_ids: 0..0,
        })
    }

    /// Stores a batch, but for the entries that are stored already.
    fn commit(
        &mut self,
        session: &Session,
        batch: &Batch,
        id: &str,
        (stored, has_scrub): (usize, bool),
    ) -> Outcome<()> {
        let db = Db(session);
        let entries = batch.entries.get(stored..).unwrap_or_default();
        let before = self.next;
        self.prepare(db, entries)?;
        let mut rows = Rows::default();
        for entry in entries {
            match entry {
                Entry::Observation(observation) => self.observe(db, &mut rows, observation)?,
                Entry::Gap { from, to, resource, reason } => {
                    let time = (from.as_microsecond(), to.as_microsecond());
                    let number = self.number();
                    rows.gap(number, time, resource.clone(), reason.clone());
                }
            }
        }
        if let Some((scrub, at, cause)) = batch.scrub.as_ref().filter(|_| !has_scrub) {
            let number = self.number();
            rows.scrub(number, at.as_microsecond(), scrub, cause);
        }
        let mut statements = vec![
            statement("BEGIN", &[]),
            statement(
                "SELECT begin_batch($1::uuid, $2, $3::uuid, $4::interval)",
                values![session.token.as_deref(), before, id, format!("{} seconds", TTL.as_secs())],
            ),
        ];
        if let Some(shared) = &mut self.packing.shared {
            statements.extend(shared.stored(self.day));
        }
        statements.extend(rows.statements(self.day));
        statements.extend(of_batch(batch));
        if self.next > before {
            let next = "UPDATE meta SET value = $1 WHERE name = 'next'";
            statements.push(statement(next, values![self.next]));
            let days = "INSERT INTO days (day, last) VALUES ('1970-01-01'::date + $1::int, $2)
                        ON CONFLICT (log, day) DO UPDATE SET last = excluded.last";
            statements.push(statement(days, values![self.day, self.next - 1]));
        }
        statements.push(statement("COMMIT", &[]));
        statements.push(statement(TODAY, &[]));
        let done = match session.run(statements) {
            Ok(done) => done,
            Err(fault) => {
                // The failed transaction is over with the COMMIT, unless that did not arrive.
                let _ = session.link.batch("ROLLBACK");
                return Err(fault);
            }
        };
        let (had, has) = (self.of_day, self.of_day + self.next - before);
        self.of_day = has;
        // The batch is stored: nothing of what follows may fail it.
        if COUNTED.iter().any(|step| (had..has).contains(step)) {
            let count = "SELECT count_day('1970-01-01'::date + ?1::int)";
            let _ = db.all(count, values![self.day], |_| Ok(()));
        }
        let today = done.last().and_then(|done| done.rows.first()).and_then(|row| row.try_get(0).ok());
        if let Some(Integer(today)) = today.filter(|Integer(today)| *today > self.day)
            && prepare_days(db, today).is_ok()
        {
            (self.day, self.of_day) = (today, 0);
            // What repeats is stored once a day.
            self.packing.shared = Some(Shared::default());
        }
        Ok(())
    }

    fn number(&mut self) -> i64 {
        // Versions and gaps share one sequence, which keeps the order of the batch.
        self.next += 1;
        self.next - 1
    }

    /// Looks up what the entries need, however many they are, in a few questions.
    fn prepare(&mut self, db: Db<'_>, entries: &[Entry]) -> Outcome<()> {
        let observations = || {
            entries.iter().filter_map(|entry| match entry {
                Entry::Observation(observation) => Some(&**observation),
                Entry::Gap { .. } => None,
            })
        };
        for table in [Table::Namespaces, Table::Managers, Table::Paths] {
            let of = |observation: &Observation| -> Vec<String> {
                let record = &observation.record;
                match table {
                    Table::Namespaces => record.object.namespace.iter().cloned().collect(),
                    Table::Managers => record.managers.iter().map(|it| it.manager.clone()).collect(),
                    Table::Paths => record.paths.clone(),
                }
            };
            let unknown: BTreeSet<String> =
                observations().flat_map(of).filter(|name| !self.packing.names.knows(table, name)).collect();
            self.packing.names.learn(db, table, unknown)?;
        }
        let mut unknown: BTreeSet<(i64, String)> = BTreeSet::new();
        for observation in observations() {
            let object = &observation.record.object;
            if object.uid.is_empty() {
                return Err(Fault::Invalid("it has no uid"));
            }
            // Readers take a longer content for damage, so none may be written.
            if observation.body.bytes().len() > MOST_BYTES {
                return Err(Fault::Invalid("it has more than 64 MiB"));
            }
            let family = self.packing.names.kind(db, object)?.family;
            for uid in [Some(&object.uid), observation.replaces.as_ref()].into_iter().flatten() {
                let key = (family, uid.clone());
                if self.recent.get(&key).is_none() {
                    unknown.insert(key);
                }
            }
        }
        self.absent = unknown.iter().cloned().collect();
        self.learn_objects(db, &unknown)?;
        let wanted = i64::try_from(entries.len()).unwrap_or(BLOCK);
        if self.object_ids.end - self.object_ids.start < wanted {
            self.object_ids = block(db, "object_ids", wanted.max(BLOCK))?;
        }
        if let Some(shared) = &mut self.packing.shared {
            shared.reserve(wanted, || block(db, "content_ids", wanted.max(BLOCK)))?;
        }
        Ok(())
    }

    /// Reads what the history has of these objects.
    fn learn_objects(&mut self, db: Db<'_>, unknown: &BTreeSet<(i64, String)>) -> Outcome<()> {
        if unknown.is_empty() {
            return Ok(());
        }
        let sql = "SELECT o.id, o.family, o.uid, CASE WHEN o.ended IS NULL THEN 0 ELSE 1 END,
                   CASE WHEN o.state IS NULL THEN 0 ELSE 1 END, v.number, (v.day - '1970-01-01'::date)::bigint
                   FROM unnest(?1, ?2) AS wanted (family, uid) JOIN objects o ON o.family = wanted.family AND o.uid = wanted.uid
                   CROSS JOIN LATERAL (SELECT number, day FROM versions WHERE object = o.id ORDER BY number DESC LIMIT 1) v ON TRUE";
        let families = unknown.iter().map(|(family, _)| Some(*family)).collect();
        let uids = unknown.iter().map(|(_, uid)| Some(uid.clone())).collect();
        let found = db.all(sql, &[Value::Integers(families), Value::Texts(uids)], |row| {
            let of = (row.get::<i64>(0)?, row.get::<i64>(1)?, row.get::<String>(2)?);
            Ok((of, row.get::<i64>(3)? != 0, row.get::<i64>(4)? != 0, row.get::<i64>(5)?, row.get::<i64>(6)?))
        })?;
        let newest: Vec<i64> = found.iter().map(|(.., number, _)| *number).collect();
        let mut bodies = self.packing.newest(db, &newest)?;
        for ((object, family, uid), has_ended, has_state, newest, day) in found {
            let (body, chain) = bodies.remove(&newest).unzip();
            let chain = chain.unwrap_or_default();
            self.remember((family, uid), Known { object, has_ended, newest, chain, day, body, has_state });
        }
        Ok(())
    }

    fn remember(&mut self, key: (i64, String), known: Known) {
        self.absent.remove(&key);
        let weight = known.body.as_ref().map_or(0, |body| body.len()) + RECENT_ENTRY;
        self.recent.insert(key, known, weight);
    }

    fn observe(&mut self, db: Db<'_>, rows: &mut Rows, observation: &Observation) -> Outcome<()> {
        let object = &observation.record.object;
        let kind = self.packing.names.kind(db, object)?;
        let key = (kind.family, object.uid.clone());
        // A large batch may have pushed out what was looked up for it.
        if self.recent.get(&key).is_none() && !self.absent.contains(&key) {
            self.learn_objects(db, &BTreeSet::from([key.clone()]))?;
        }
        let known = self.recent.get(&key).cloned();
        let timed = self.time.of(observation.record.observed_at.as_microsecond());
        if let Some((time, reason)) = timed.set_back {
            let number = self.number();
            rows.gap(number, time, None, reason);
        }
        if let Some(latest) = timed.disordered_until {
            rows.disordered(self.next, latest);
        }
        let at = timed.at;
        let live = known.as_ref().filter(|known| !known.has_ended);
        match (observation.what, live) {
            (What::Known | What::Noise, Some(live)) if live.body.is_some() => {
                self.noise(rows, observation, at, key, known)
            }
            // Nothing is known that this could differ from: the history of the object begins here, or goes on after a damaged version.
            (What::Known | What::Noise, _) => self.version(db, rows, observation, (at, kind), known, None),
            // An Event that was left out when it came is left out when it goes.
            (What::Event, None) if observation.record.verb == Verb::Deleted => Ok(()),
            (What::Change | What::Event, _) => {
                self.version(db, rows, observation, (at, kind), known, Some(&observation.record))
            }
        }
    }

    /// Replaces the current state of an object, without a version.
    fn noise(
        &mut self,
        rows: &mut Rows,
        observation: &Observation,
        at: i64,
        key: (i64, String),
        known: Option<Known>,
    ) -> Outcome<()> {
        let Some(known) = known else { return Ok(()) };
        let bytes = observation.body.bytes();
        let state = State {
            rv: observation.record.rv.clone().unwrap_or_default(),
            at,
            length: bytes.len(),
            crc: crc32fast::hash(bytes),
            frame: self.packing.codec.pack_delta(known.body.as_deref().unwrap_or_default(), &[], bytes)?,
        };
        rows.object(known.object).state = Some(Some(state));
        self.remember(key, Known { has_state: true, ..known });
        Ok(())
    }

    fn version(
        &mut self,
        db: Db<'_>,
        rows: &mut Rows,
        observation: &Observation,
        (observed_at, kind): (i64, KindId),
        known: Option<Known>,
        change: Option<&ChangeRecord>,
    ) -> Outcome<()> {
        let number = self.number();
        let object = &observation.record.object;
        let namespace = self.packing.names.namespace(db, object.namespace.as_deref())?;
        let live = known.as_ref().filter(|known| !known.has_ended);

        // The details come first: the content is packed against them too, since they have the new values already.
        let details = change.map(detail::write).transpose()?.unwrap_or_default();
        let packed = match &*details {
            [] => Packed { dictionary: 0, frame: Vec::new() },
            details => self.packing.codec.pack(db, kind.id, Purpose::Detail, details)?,
        };
        // A day is whole by itself, so that it can be dropped.
        let base = live.filter(|known| known.day == self.day);
        let base = base.and_then(|known| {
            Some(Base { number: known.newest, chain: known.chain, body: known.body.as_ref()? })
        });
        let bytes = observation.body.bytes();
        let content = self.packing.content(db, kind, base.as_ref(), &details, bytes)?;

        if let Some(replaced) = &observation.replaces {
            let key = (kind.family, replaced.clone());
            if let Some(former) = self.recent.get(&key).filter(|former| !former.has_ended).cloned() {
                rows.object(former.object).ended = Some(Some((number, observed_at)));
                self.remember(key, Known { has_ended: true, ..former });
            }
        }
        let has_ended = change.is_some_and(|change| change.verb == Verb::Deleted);
        let is_new = known.is_none();
        let id = match &known {
            Some(known) => known.object,
            None => self.object_ids.next().ok_or_else(|| Fault::damaged("no number for an object"))?,
        };
        if is_new {
            let of = (kind.family, namespace, object.name.clone(), object.uid.clone());
            rows.object(id).new = Some((of, number));
        } else if live.is_none() {
            let row = rows.object(id);
            (row.returned, row.ended, row.state) = (true, Some(None), Some(None));
        }
        let is_of_owners = |path: &String| path.starts_with("metadata.ownerReferences");
        if live.is_none() || change.is_some_and(|change| change.paths.iter().any(is_of_owners)) {
            rows.object(id).links = Some(Links::of(bytes));
        }
        if has_ended {
            rows.object(id).ended = Some(Some((number, observed_at)));
        }
        if has_ended || live.is_some_and(|known| known.has_state) {
            rows.object(id).state = Some(None);
        }
        // Outside of namespaces is a place, too: 0.
        let mut tags = BTreeSet::from([kind.id, namespace]);
        if let Some(change) = change {
            for manager in &change.managers {
                tags.insert(self.packing.names.of(db, Table::Managers, &manager.manager)?);
            }
            for path in &change.paths {
                tags.insert(self.packing.names.of(db, Table::Paths, path)?);
            }
        }
        if observation.what == What::Event {
            rows.event_bytes += packed.frame.len() + content.packed.frame.len() + ROW;
        }
        let body = Some(observation.body.shared());
        let verb = change.map_or(0, |change| match observation.what {
            What::Event => event_code(change.verb),
            _ => verb_code(change.verb),
        });
        let (chain, day) = (content.chain, self.day);
        rows.versions.push(Change {
            number,
            object: id,
            kind: kind.id,
            namespace,
            verb,
            source: origin_code(observation.record.origin),
            observed_at,
            rv: observation.record.rv.clone().unwrap_or_default(),
            rv_before: change.and_then(|change| change.rv_before.clone()),
            length: bytes.len(),
            crc: crc32fast::hash(bytes),
            tags,
            detail_length: details.len(),
            detail: packed,
            content,
        });
        let has_state = false;
        self.remember(
            (kind.family, object.uid.clone()),
            Known { object: id, has_ended, newest: number, chain, day, body, has_state },
        );
        Ok(())
    }
}

/// Positions, notes and prints.
fn of_batch(batch: &Batch) -> Vec<Statement> {
    let mut statements = Vec::new();
    let pairs = |pairs: &[(String, String)]| {
        // The last one of a name counts, and a statement may change each row once.
        let last: BTreeMap<String, String> = pairs.iter().cloned().collect();
        let (names, values): (Vec<_>, Vec<_>) =
            last.into_iter().map(|(name, value)| (Some(name), Some(value))).unzip();
        vec![Value::Texts(names), Value::Texts(values)]
    };
    if !batch.positions.is_empty() {
        let sql = "INSERT INTO positions (resource, rv) SELECT * FROM unnest($1, $2) ON CONFLICT (log, resource) DO UPDATE SET rv = excluded.rv";
        statements.push(Statement { sql: sql.to_owned(), values: pairs(&batch.positions) });
    }
    if !batch.notes.is_empty() {
        let sql = "INSERT INTO notes (name, value) SELECT * FROM unnest($1, $2) ON CONFLICT (log, name) DO UPDATE SET value = excluded.value";
        statements.push(Statement { sql: sql.to_owned(), values: pairs(&batch.notes) });
    }
    for (namespace, print) in &batch.prints {
        statements.push(match namespace {
            Some(namespace) => statement(
                "INSERT INTO prints (namespace, print) VALUES ($1, $2) ON CONFLICT DO NOTHING",
                values![namespace, print.clone()],
            ),
            None => statement("DELETE FROM prints WHERE print = $1", values![print.clone()]),
        });
    }
    statements
}

fn statement(sql: &str, values: &[Value]) -> Statement {
    Statement { sql: sql.to_owned(), values: values.to_vec() }
}

fn prepare_days(db: Db<'_>, day: i64) -> Outcome<()> {
    db.all("SELECT prepare_days('1970-01-01'::date + ?1::int)", values![day], |_| Ok(())).map(drop)
}

/// Numbers that nobody else gets.
fn block(db: Db<'_>, sequence: &str, count: i64) -> Outcome<Range<i64>> {
    // A sequence is not cached, but others may take from it in between.
    let sql = format!("SELECT nextval('{sequence}') FROM generate_series(1, ?1)");
    let numbers = db.all(&sql, values![count], |row| row.get::<i64>(0))?;
    let (first, last) = (numbers.first().copied().unwrap_or(1), numbers.last().copied().unwrap_or(0));
    match last - first + 1 == i64::try_from(numbers.len()).unwrap_or(0) {
        true => Ok(first..last + 1),
        // Rare: the last of them follow each other in any case.
        false => block(db, sequence, count),
    }
}
