//! New versions as rows have them: packed as differences or as a whole, with codes and names as numbers.

use std::collections::BTreeSet;
#[cfg(feature = "postgres")]
use std::ops::Range;
use std::sync::Arc;

use super::codec::{Bodies, Codec, Packed, Purpose};
#[cfg(feature = "postgres")]
use super::db::Statement;
use super::db::{Db, values};
use super::fault::{Fault, Outcome};
use super::names::{KindId, Names, Table};
#[cfg(feature = "postgres")]
use super::recent::Recent;
use crate::record::{ChangeRecord, Origin, Verb};

/// At most this many versions follow each other as deltas: it bounds the work of reading one.
const CHAIN: u32 = 32;
/// A part of an object that is at least as long is stored once, however many versions begin with it.
const SHARED_LEAST: usize = 1_024;
/// About what a version needs besides its content and details, in bytes: the rest of its row, and its place in the indexes.
pub(crate) const ROW: usize = 200;

/// Packs new versions, and remembers of the history what that needs.
pub(crate) struct Packing {
    pub(crate) names: Names,
    pub(crate) codec: Codec,
    /// The first damage that was passed over since somebody asked.
    pub(crate) damage: Option<Fault>,
    /// Contents that versions share, where the database is not asked for them.
    #[cfg(feature = "postgres")]
    pub(crate) shared: Option<Shared>,
}

/// The version before, which a new one may be packed against.
pub(crate) struct Base<'a> {
    pub(crate) number: i64,
    /// How many deltas lead to it.
    pub(crate) chain: u32,
    pub(crate) body: &'a Arc<[u8]>,
}

/// The content of a new version.
pub(crate) struct Content {
    pub(crate) base: i64,
    pub(crate) chain: u32,
    pub(crate) shared: Option<(i64, usize)>,
    pub(crate) packed: Packed,
}

impl Packing {
    pub(crate) fn load(db: Db<'_>) -> Outcome<Self> {
        let mut codec = Codec::new()?;
        codec.prepare(db)?;
        Ok(Self {
            names: Names::new(),
            codec,
            damage: None,
            #[cfg(feature = "postgres")]
            shared: None,
        })
    }

    /// The contents of the newest versions of objects, each with how many deltas lead to it. Without one that is damaged the next version is a
    /// full one.
    pub(crate) fn newest(&mut self, db: Db<'_>, numbers: &[i64]) -> Outcome<Bodies> {
        match self.codec.bodies(db, numbers) {
            Err(fault) if fault.is_damage() => match numbers.split_at(numbers.len() / 2) {
                ([], _) => {
                    self.damage.get_or_insert(fault);
                    Ok(Bodies::new())
                }
                (some, others) => {
                    let mut bodies = self.newest(db, some)?;
                    bodies.extend(self.newest(db, others)?);
                    Ok(bodies)
                }
            },
            bodies => bodies,
        }
    }

    /// A delta from the version before, or a full version where that is shorter, or the deltas are many.
    pub(crate) fn content(
        &mut self,
        db: Db<'_>,
        kind: KindId,
        known: Option<&Base<'_>>,
        details: &[u8],
        bytes: &[u8],
    ) -> Outcome<Content> {
        let mut delta = None;
        if let Some(known) = known
            && known.chain + 1 < CHAIN
        {
            let frame = self.codec.pack_delta(known.body, details, bytes)?;
            // A full version is hardly ever shorter than this, so it is not packed only to compare.
            let is_short = frame.len() < bytes.len() / 8;
            let packed = Packed { dictionary: 0, frame };
            let found = Content { base: known.number, chain: known.chain + 1, shared: None, packed };
            if is_short {
                return Ok(found);
            }
            delta = Some(found);
        }
        if let Some(delta) = delta {
            // It is only compared, so it must not leave shared content behind.
            let full = self.codec.pack(db, kind.id, Purpose::Body, bytes)?;
            if delta.packed.frame.len() <= full.frame.len() {
                return Ok(delta);
            }
        }
        let (shared, packed) = self.full(db, kind.id, bytes)?;
        Ok(Content { base: 0, chain: 0, shared, packed })
    }

    /// A full version: the longest part apart, so that it is stored once.
    pub(crate) fn full(
        &mut self,
        db: Db<'_>,
        kind: i64,
        bytes: &[u8],
    ) -> Outcome<(Option<(i64, usize)>, Packed)> {
        let part = longest_part(bytes).filter(|part| part.len() >= SHARED_LEAST && self.shares(db));
        let part = part.and_then(|part| {
            Some((bytes.get(..part.start)?, bytes.get(part.clone())?, bytes.get(part.end..)?))
        });
        let Some((before, part, after)) = part else {
            return Ok((None, self.codec.pack(db, kind, Purpose::Body, bytes)?));
        };
        // Other full versions of this object, and objects made from the same template, often have the same part.
        let id = self.share(db, kind, part)?;
        let shell = [before, after].concat();
        Ok((Some((id, before.len())), self.codec.pack(db, kind, Purpose::Body, &shell)?))
    }

    fn share(&mut self, db: Db<'_>, kind: i64, part: &[u8]) -> Outcome<i64> {
        #[cfg(feature = "postgres")]
        if let Some(shared) = &mut self.shared {
            if let Some(id) = shared.known.get(part) {
                return Ok(*id);
            }
            let packed = self.codec.pack(db, kind, Purpose::Body, part)?;
            return shared.add(part, packed);
        }
        let crc = crc32fast::hash(part);
        let same = "SELECT id FROM contents WHERE crc = ?1 AND length = ?2";
        for id in db.all(same, values![crc, part.len()], |row| row.get(0))? {
            // Different parts may have the same checksum.
            if *self.codec.shared(db, id)? == *part {
                db.run("UPDATE contents SET uses = uses + 1 WHERE id = ?1", values![id])?;
                return Ok(id);
            }
        }
        let packed = self.codec.pack(db, kind, Purpose::Body, part)?;
        let sql = "INSERT INTO contents (crc, length, dictionary, frame, uses) VALUES (?1, ?2, ?3, ?4, 1) RETURNING id";
        db.one(sql, values![crc, part.len(), packed.dictionary, packed.frame])
    }

    /// Whether parts of contents are stored once.
    fn shares(&self, db: Db<'_>) -> bool {
        #[cfg(feature = "postgres")]
        return db.is_file() || self.shared.is_some();
        #[cfg(not(feature = "postgres"))]
        db.is_file()
    }

    pub(crate) fn index(&mut self, db: Db<'_>, number: i64, change: &ChangeRecord) -> Outcome<()> {
        // Sets: a change may name a manager or path twice, and the tables refuse a second row.
        let managers: BTreeSet<&str> = change.managers.iter().map(|it| it.manager.as_str()).collect();
        for manager in managers {
            let id = self.names.of(db, Table::Managers, manager)?;
            db.run("INSERT INTO version_managers VALUES (?1, ?2)", values![id, number])?;
        }
        self.index_paths(db, number, &change.paths)
    }

    pub(crate) fn index_paths(&mut self, db: Db<'_>, number: i64, paths: &[String]) -> Outcome<()> {
        let paths: BTreeSet<&String> = paths.iter().collect();
        for path in paths {
            let id = self.names.of(db, Table::Paths, path)?;
            db.run("INSERT INTO version_paths VALUES (?1, ?2)", values![id, number])?;
        }
        Ok(())
    }
}

/// The bytes of contents that are remembered, so that they are stored once.
#[cfg(feature = "postgres")]
const SHARED: usize = 16 << 20;

/// Contents that versions of a day share, and those of them that are new.
#[cfg(feature = "postgres")]
pub(crate) struct Shared {
    known: Recent<Arc<[u8]>, i64>,
    /// Number, length, and content.
    new: Vec<(i64, usize, Packed)>,
    ids: Range<i64>,
}

#[cfg(feature = "postgres")]
impl Default for Shared {
    fn default() -> Self {
        Self { known: Recent::new(SHARED), new: Vec::new(), ids: 0..0 }
    }
}

#[cfg(feature = "postgres")]
impl Shared {
    /// Takes numbers for this many contents.
    pub(crate) fn reserve(
        &mut self,
        count: i64,
        numbers: impl FnOnce() -> Outcome<Range<i64>>,
    ) -> Outcome<()> {
        if self.ids.end - self.ids.start < count {
            self.ids = numbers()?;
        }
        Ok(())
    }

    fn add(&mut self, part: &[u8], packed: Packed) -> Outcome<i64> {
        let id = self.ids.next().ok_or_else(|| Fault::damaged("no number for a content"))?;
        self.known.insert(part.into(), id, part.len());
        self.new.push((id, part.len(), packed));
        Ok(id)
    }

    /// The statement that stores the new ones.
    pub(crate) fn stored(&mut self, day: i64) -> Option<Statement> {
        let new = std::mem::take(&mut self.new);
        if new.is_empty() {
            return None;
        }
        let integers = |column: fn(&(i64, usize, Packed)) -> i64| {
            super::db::Value::Integers(new.iter().map(|row| Some(column(row))).collect())
        };
        let sql = "INSERT INTO contents (day, id, length, dictionary, frame)
                   SELECT '1970-01-01'::date + $1::int, * FROM unnest($2, $3, $4, $5)";
        let values = vec![
            day.into(),
            integers(|(id, ..)| *id),
            integers(|(_, length, _)| i64::try_from(*length).unwrap_or(i64::MAX)),
            integers(|(.., packed)| packed.dictionary),
            super::db::Value::Blobs(new.iter().map(|(.., packed)| Some(packed.frame.clone())).collect()),
        ];
        Some(Statement { sql: sql.to_owned(), values })
    }
}

pub(crate) fn verb_code(verb: Verb) -> i64 {
    match verb {
        Verb::Added => 1,
        Verb::Updated => 2,
        Verb::Deleted => 3,
        Verb::Recreated => 4,
    }
}

/// The verb of a version of an Event.
pub(crate) fn event_code(verb: Verb) -> i64 {
    match verb {
        Verb::Added | Verb::Recreated => 5,
        Verb::Updated => 6,
        Verb::Deleted => 7,
    }
}

pub(crate) fn origin_code(origin: Origin) -> i64 {
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
