//! Bytes as the tables have them: packed against a dictionary, or against what came before.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use zstd_dictionary::{Dictionary, Form, Packer, Packing, Unpacker, Unpacking, finalize};

use super::conditions::in_list;
use super::db::{Db, Row, values};
use super::fault::{Fault, Outcome};
use crate::patience::Patience;

/// The most bytes that a version or its details may have: a damaged length must not exhaust the memory.
pub(crate) const MOST_BYTES: usize = 64 << 20;
/// Samples that make a dictionary: in number, and in bytes.
const SAMPLES: usize = 24;
const SAMPLE_BYTES: usize = 96 << 10;
/// The most bytes of content that a dictionary has.
const CONTENT: usize = 48 << 10;

/// The use of a dictionary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Purpose {
    Body = 0,
    Detail = 1,
}

/// Packs and unpacks. It has digested dictionaries, one per kind and purpose at most.
pub(crate) struct Codec {
    packer: Packer,
    unpacker: Unpacker,
    dictionaries: HashMap<i64, Unpacking>,
    packings: HashMap<(i64, Purpose), (i64, Packing)>,
    samples: HashMap<(i64, Purpose), Vec<Vec<u8>>>,
    /// Contents that the versions which are being unpacked share.
    shared: HashMap<i64, Arc<[u8]>>,
    /// When it refuses to unpack more.
    pub(crate) patience: Patience,
}

/// Bytes packed against a dictionary; 0 means none.
pub(crate) struct Packed {
    pub(crate) dictionary: i64,
    pub(crate) frame: Vec<u8>,
}

/// The content of a version, as its row has it.
pub(crate) struct Stored {
    pub(crate) number: i64,
    pub(crate) object: i64,
    pub(crate) base: i64,
    content: Option<i64>,
    split: Option<usize>,
    length: usize,
    pub(crate) crc: u32,
    dictionary: i64,
    detail: Detail,
    frame: Vec<u8>,
}

/// The details of a change, packed.
#[derive(Clone)]
pub(crate) struct Detail {
    pub(crate) length: usize,
    pub(crate) dictionary: i64,
    pub(crate) frame: Vec<u8>,
}

impl Detail {
    /// From three columns that begin at `at`: length, dictionary, frame.
    pub(crate) fn read(row: &Row<'_>, at: usize) -> Outcome<Self> {
        Ok(Self { length: row.count(at)?, dictionary: row.get(at + 1)?, frame: row.get(at + 2)? })
    }
}

/// The contents of versions by their numbers, each with how many deltas lead to it.
pub(crate) type Bodies = HashMap<i64, (Arc<[u8]>, u32)>;

/// The columns of [`Stored`].
const STORED: &str = "v.number, v.object, v.base, v.content, v.split, v.length, v.crc, v.dictionary, v.detail_length, v.detail_dictionary,
    v.detail, v.frame";

impl Stored {
    pub(crate) fn load(db: Db<'_>, number: i64) -> Outcome<Self> {
        let sql = format!("SELECT {STORED} FROM main.versions v WHERE v.number = ?1");
        let stored = db.first(&sql, values![number], Self::read)?;
        stored.ok_or_else(|| Fault::damaged(format!("version {number} is missing")))
    }

    /// These versions and all that they are packed against, back to one that is known.
    pub(crate) fn chains(db: Db<'_>, numbers: &[i64], known: Option<i64>) -> Outcome<HashMap<i64, Self>> {
        // A day is whole by itself, but for what outlives it: no other one is looked into.
        let (day, is_base, is_it) = match db.is_file() {
            true => ("0", "", ""),
            false => ("v.day", " AND v.day IN ('1970-01-01', chain.day)", " AND v.day = chain.day"),
        };
        // A base comes before what is packed against it, so that a damaged file leads to no endless search.
        let sql = format!(
            "WITH RECURSIVE chain (number, base, day) AS (SELECT v.number, v.base, {day} FROM main.versions v WHERE v.number{}
                 UNION SELECT v.number, v.base, {day} FROM chain CROSS JOIN main.versions v ON v.number = chain.base{is_base}
                     WHERE chain.base < chain.number AND chain.base <> ?1)
             SELECT {STORED} FROM chain CROSS JOIN main.versions v ON v.number = chain.number{is_it}",
            in_list(numbers)
        );
        let rows = db.all(&sql, values![known.unwrap_or(0)], Self::read)?;
        Ok(rows.into_iter().map(|stored| (stored.number, stored)).collect())
    }

    /// How many deltas lead to a version.
    fn deltas(mut number: i64, stored: &HashMap<i64, Self>) -> u32 {
        let mut deltas = 0;
        while let Some(base) = stored.get(&number).map(|it| it.base).filter(|base| *base != 0) {
            (number, deltas) = (base, deltas + 1);
        }
        deltas
    }

    /// These versions alone.
    #[cfg(feature = "postgres")]
    pub(crate) fn some(db: Db<'_>, numbers: &[i64]) -> Outcome<HashMap<i64, Self>> {
        let sql = format!("SELECT {STORED} FROM main.versions v WHERE v.number{}", in_list(numbers));
        let rows = db.all(&sql, &[], Self::read)?;
        Ok(rows.into_iter().map(|stored| (stored.number, stored)).collect())
    }

    fn read(row: &Row<'_>) -> Outcome<Self> {
        let split: Option<i64> = row.get(4)?;
        Ok(Self {
            number: row.get(0)?,
            object: row.get(1)?,
            base: row.get(2)?,
            content: row.get(3)?,
            split: split.and_then(|split| usize::try_from(split).ok()),
            length: row.count(5)?,
            crc: row.count(6)?,
            dictionary: row.get(7)?,
            detail: Detail::read(row, 8)?,
            frame: row.get(11)?,
        })
    }
}

impl Codec {
    pub(crate) fn new() -> Outcome<Self> {
        Ok(Self {
            packer: Packer::new()?,
            unpacker: Unpacker::new()?,
            dictionaries: HashMap::new(),
            packings: HashMap::new(),
            samples: HashMap::new(),
            shared: HashMap::new(),
            patience: Patience::default(),
        })
    }

    /// Loads the dictionaries for packing.
    pub(crate) fn prepare(&mut self, db: Db<'_>) -> Outcome<()> {
        let sql = "SELECT id, kind, purpose FROM dictionaries WHERE kind > 0";
        let known = db.all(sql, &[], |row| Ok((row.get(0)?, row.get(1)?, row.get::<i64>(2)?)))?;
        for (id, kind, purpose) in known {
            let purpose = if purpose == 0 { Purpose::Body } else { Purpose::Detail };
            let packing = load(db, id)?.packing()?;
            self.packings.insert((kind, purpose), (id, packing));
        }
        Ok(())
    }

    /// Packs against the dictionary of its kind. The first bytes of a kind become that dictionary.
    pub(crate) fn pack(&mut self, db: Db<'_>, kind: i64, purpose: Purpose, bytes: &[u8]) -> Outcome<Packed> {
        let mut frame = Vec::new();
        let of = (kind, purpose);
        if let Some((dictionary, packing)) = self.packings.get(&of) {
            self.packer.pack(bytes, Some(packing), &mut frame)?;
            return Ok(Packed { dictionary: *dictionary, frame });
        }
        let samples = self.samples.entry(of).or_default();
        samples.push(bytes.to_vec());
        if samples.len() >= SAMPLES || samples.iter().map(Vec::len).sum::<usize>() >= SAMPLE_BYTES {
            let samples = self.samples.remove(&of).unwrap_or_default();
            if let Some(made) = make(&samples)? {
                let sql = "INSERT INTO dictionaries (kind, purpose, finalized, crc, bytes) VALUES (?1, ?2, ?3, ?4, ?5) RETURNING id";
                let (finalized, bytes_of) = (made.form() == Form::Finalized, made.bytes());
                let row =
                    values![kind, purpose as i64, finalized, crc32fast::hash(bytes_of), bytes_of.to_vec()];
                self.packings.insert(of, (db.one(sql, row)?, made.packing()?));
                return self.pack(db, kind, purpose, bytes);
            }
        }
        self.packer.pack(bytes, None, &mut frame)?;
        Ok(Packed { dictionary: 0, frame })
    }

    /// Reverses [`pack`](Self::pack).
    pub(crate) fn unpack(
        &mut self,
        db: Db<'_>,
        dictionary: i64,
        frame: &[u8],
        length: usize,
    ) -> Outcome<Vec<u8>> {
        self.expect(length)?;
        if dictionary != 0 && !self.dictionaries.contains_key(&dictionary) {
            self.dictionaries.insert(dictionary, load(db, dictionary)?.unpacking()?);
        }
        Ok(self.unpacker.unpack(frame, self.dictionaries.get(&dictionary), length)?)
    }

    /// Packs `bytes` as the difference from `base`. Values that the details of the change have are taken from there.
    pub(crate) fn pack_delta(&mut self, base: &[u8], detail: &[u8], bytes: &[u8]) -> Outcome<Vec<u8>> {
        let mut frame = Vec::new();
        let packing = reference(base, detail)?.map(|it| it.packing()).transpose()?;
        self.packer.pack(bytes, packing.as_ref(), &mut frame)?;
        Ok(frame)
    }

    /// Reverses [`pack_delta`](Self::pack_delta).
    pub(crate) fn unpack_delta(
        &mut self,
        base: &[u8],
        detail: &[u8],
        frame: &[u8],
        length: usize,
    ) -> Outcome<Vec<u8>> {
        self.expect(length)?;
        let unpacking = reference(base, detail)?.map(|it| it.unpacking()).transpose()?;
        Ok(self.unpacker.unpack(frame, unpacking.as_ref(), length)?)
    }

    /// The details of a change, as JSON; empty where there are none.
    pub(crate) fn detail(&mut self, db: Db<'_>, detail: &Detail) -> Outcome<Vec<u8>> {
        if detail.length == 0 {
            return Ok(Vec::new());
        }
        self.unpack(db, detail.dictionary, &detail.frame, detail.length)
    }

    /// Refuses to unpack what is too long, or comes too late.
    fn expect(&self, length: usize) -> Outcome<()> {
        if self.patience.has_ended() {
            return Err(Fault::Late);
        }
        if length > MOST_BYTES {
            return Err(Fault::damaged("a content has an impossible length"));
        }
        Ok(())
    }

    /// The content of a version.
    pub(crate) fn body(&mut self, db: Db<'_>, number: i64) -> Outcome<Arc<[u8]>> {
        self.body_after(db, number, None)
    }

    /// The same, where the content of an earlier version is at hand.
    pub(crate) fn body_after(
        &mut self,
        db: Db<'_>,
        number: i64,
        known: Option<(i64, &Arc<[u8]>)>,
    ) -> Outcome<Arc<[u8]>> {
        let chain = Stored::chains(db, &[number], known.map(|(number, _)| number))?;
        self.unpacked(db, number, &chain, known)
    }

    /// The contents of versions, each with how many deltas lead to it.
    pub(crate) fn bodies(&mut self, db: Db<'_>, numbers: &[i64]) -> Outcome<Bodies> {
        let chains = Stored::chains(db, numbers, None)?;
        let shared: BTreeSet<i64> = chains.values().filter_map(|stored| stored.content).collect();
        let shared: Vec<i64> = shared.into_iter().collect();
        let sql = "SELECT id, dictionary, frame, length FROM contents WHERE id";
        let sql = format!("{sql}{}", in_list(&shared));
        let read = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get::<Vec<u8>>(2)?, row.count(3)?));
        for (id, dictionary, frame, length) in db.all(&sql, &[], read)? {
            let content = self.unpack(db, dictionary, &frame, length)?;
            self.shared.insert(id, content.into());
        }
        let body = |number: &i64| {
            let body = self.unpacked(db, *number, &chains, None)?;
            Ok((*number, (body, Stored::deltas(*number, &chains))))
        };
        let bodies = numbers.iter().map(body).collect();
        self.shared.clear();
        bodies
    }

    /// The content of a version, with all that it is packed against at hand.
    pub(crate) fn unpacked(
        &mut self,
        db: Db<'_>,
        number: i64,
        stored: &HashMap<i64, Stored>,
        known: Option<(i64, &Arc<[u8]>)>,
    ) -> Outcome<Arc<[u8]>> {
        let find = |number: i64| {
            let found = stored.get(&number);
            found.ok_or_else(|| Fault::damaged(format!("version {number} is missing")))
        };
        let mut chain = vec![find(number)?];
        let mut content: Option<Arc<[u8]>> = None;
        while let Some(last) = chain.last() {
            if last.base == 0 {
                break;
            }
            if let Some((number, body)) = known
                && number == last.base
            {
                content = Some(body.clone());
                break;
            }
            if last.base >= last.number {
                return Err(Fault::damaged(format!("version {} has a wrong base", last.number)));
            }
            let base = find(last.base)?;
            if base.object != last.object {
                return Err(Fault::damaged(format!("version {} has a wrong base", last.number)));
            }
            chain.push(base);
        }
        for stored in chain.iter().rev() {
            let bytes = match &content {
                None => self.full(db, stored)?,
                Some(base) => {
                    let detail = self.detail(db, &stored.detail)?;
                    self.unpack_delta(base, &detail, &stored.frame, stored.length)?
                }
            };
            if crc32fast::hash(&bytes) != stored.crc {
                return Err(Fault::damaged(format!(
                    "the content of version {} has another checksum",
                    stored.number
                )));
            }
            content = Some(bytes.into());
        }
        content.ok_or_else(|| Fault::damaged("a version without content"))
    }

    fn full(&mut self, db: Db<'_>, stored: &Stored) -> Outcome<Vec<u8>> {
        let Some(id) = stored.content else {
            return self.unpack(db, stored.dictionary, &stored.frame, stored.length);
        };
        let shared = self.shared(db, id)?;
        let shell = self.shell(db, stored)?;
        let wrong = || Fault::damaged(format!("version {} does not fit its content", stored.number));
        let (before, after) =
            stored.split.and_then(|split| shell.split_at_checked(split)).ok_or_else(wrong)?;
        Ok([before, &*shared, after].concat())
    }

    /// A full version without the content that it shares with others.
    pub(crate) fn shell(&mut self, db: Db<'_>, stored: &Stored) -> Outcome<Vec<u8>> {
        let shared = match stored.content {
            Some(id) => self.shared(db, id)?.len(),
            None => 0,
        };
        let wrong = || Fault::damaged(format!("version {} does not fit its content", stored.number));
        let length = stored.length.checked_sub(shared).ok_or_else(wrong)?;
        self.unpack(db, stored.dictionary, &stored.frame, length)
    }

    /// Packs without a dictionary.
    pub(crate) fn pack_alone(&mut self, bytes: &[u8]) -> Outcome<Vec<u8>> {
        let mut frame = Vec::new();
        self.packer.pack(bytes, None, &mut frame)?;
        Ok(frame)
    }

    /// Packs with this dictionary no more.
    pub(crate) fn retire(&mut self, dictionary: i64) {
        self.packings.retain(|_, (id, _)| *id != dictionary);
    }

    /// Takes no dictionary from what was packed until now.
    pub(crate) fn forget_samples(&mut self) {
        self.samples.clear();
    }

    /// Content that versions share.
    pub(crate) fn shared(&mut self, db: Db<'_>, id: i64) -> Outcome<Arc<[u8]>> {
        if let Some(known) = self.shared.get(&id) {
            return Ok(known.clone());
        }
        let sql = "SELECT dictionary, frame, length FROM contents WHERE id = ?1";
        let row =
            db.first(sql, values![id], |row| Ok((row.get(0)?, row.get::<Vec<u8>>(1)?, row.count(2)?)))?;
        let (dictionary, frame, length) =
            row.ok_or_else(|| Fault::damaged(format!("content {id} is missing")))?;
        Ok(self.unpack(db, dictionary, &frame, length)?.into())
    }
}

fn reference(base: &[u8], detail: &[u8]) -> Outcome<Option<Dictionary>> {
    if base.is_empty() && detail.is_empty() {
        return Ok(None);
    }
    Ok(Some(Dictionary::new([base, detail].concat().into(), Form::Raw)?))
}

fn load(db: Db<'_>, id: i64) -> Outcome<Dictionary> {
    let sql = "SELECT finalized, crc, bytes FROM dictionaries WHERE id = ?1";
    let row = db.first(sql, values![id], |row| {
        Ok((row.get::<i64>(0)? != 0, row.count::<u32>(1)?, row.get::<Vec<u8>>(2)?))
    })?;
    let (finalized, crc, bytes) = row.ok_or_else(|| Fault::damaged(format!("dictionary {id} is missing")))?;
    if crc32fast::hash(&bytes) != crc {
        return Err(Fault::damaged(format!("dictionary {id} has another checksum")));
    }
    let form = if finalized { Form::Finalized } else { Form::Raw };
    Ok(Dictionary::new(bytes.into(), form)?)
}

/// A dictionary of these samples; `None` when they have no content.
fn make(samples: &[Vec<u8>]) -> Outcome<Option<Dictionary>> {
    let mut content = Vec::new();
    // Matches at the end of a dictionary cost least, so the latest sample is last.
    for sample in samples.iter().rev() {
        let room = CONTENT.saturating_sub(content.len());
        content.splice(0..0, sample.iter().take(room).copied());
    }
    if content.is_empty() {
        return Ok(None);
    }
    let slices: Vec<&[u8]> = samples.iter().map(Vec::as_slice).collect();
    // Too little content for statistics is used without.
    let (bytes, form) = match finalize(&content, &slices) {
        Ok(bytes) => (bytes, Form::Finalized),
        Err(_) => (content, Form::Raw),
    };
    Ok(Some(Dictionary::new(bytes.into(), form)?))
}
