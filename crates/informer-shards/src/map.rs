//! The map: which member has which hashes, as the lease of the shards holds it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;

use informer::share::{Ranges, ShareBy, hash};
use serde::{Deserialize, Serialize};

use crate::assignment::assign;

/// The version of the format. A member follows no other.
const VERSION: u64 = 1;
/// Generations are numbers that every reader of JSON has exactly.
const LAST_GENERATION: u64 = 1 << 53;

/// Which member has which hashes, from some generation on. Each hash belongs to exactly one member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Map {
    id: MapId,
    members: BTreeMap<String, Ranges>,
}

/// One map, named by its generation and the hash of its text: two maps never have the same name, also if somebody deletes
/// or edits one. Its own text is `7-af63dc4c8601ec8c`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MapId {
    pub(crate) generation: u64,
    text: u64,
}

/// The content of the shards' lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Found {
    Map(Map),
    /// There is none, or none that somebody could follow: the next one replaces it.
    Nothing,
    /// It is not for this program to follow or to replace, for this reason.
    Foreign(String),
}

/// The text of a map.
#[derive(Serialize, Deserialize)]
struct Written {
    version: u64,
    by: String,
    generation: u64,
    members: BTreeMap<String, Vec<String>>,
}

/// The part that every version of the format has.
#[derive(Deserialize)]
struct Header {
    version: u64,
}

impl Map {
    /// The hashes of a member; none if it is not in the map.
    pub(crate) fn of(&self, member: &str) -> Ranges {
        self.members.get(member).cloned().unwrap_or_default()
    }

    pub(crate) fn id(&self) -> MapId {
        self.id
    }

    pub(crate) fn members(&self) -> &BTreeMap<String, Ranges> {
        &self.members
    }

    /// The text of a map for these members that moves little of what `before` says.
    pub(crate) fn next(
        by: ShareBy,
        generation: u64,
        before: Option<&Self>,
        members: &BTreeSet<String>,
    ) -> String {
        let nobody = BTreeMap::new();
        let before = before.map_or(&nobody, |map| &map.members);
        let text = |ranges: Ranges| ranges.iter().map(|range| range.to_string()).collect();
        let members =
            assign(before, members).into_iter().map(|(member, ranges)| (member, text(ranges))).collect();
        let written = Written { version: VERSION, by: by.to_string(), generation, members };
        serde_json::to_string(&written).unwrap_or_default()
    }
}

impl Found {
    /// Reads the text of a map, for a program that divides by `by`.
    pub(crate) fn read(text: &str, by: ShareBy) -> Self {
        match serde_json::from_str::<Header>(text) {
            Ok(Header { version }) if version > VERSION => {
                Self::Foreign(format!("the map has the format {version}, and this program knows {VERSION}"))
            }
            Ok(_) => Self::known(text, by).unwrap_or(Self::Nothing),
            Err(_) => Self::Nothing,
        }
    }

    fn known(text: &str, by: ShareBy) -> Option<Self> {
        let written: Written = serde_json::from_str(text).ok()?;
        if written.version != VERSION || written.generation >= LAST_GENERATION {
            return None;
        }
        // A name that no version of this program has written is damage.
        let divides = written.by.parse::<ShareBy>().ok()?;
        if divides != by {
            return Some(Self::Foreign(format!("the map divides by {divides}, and this program by {by}")));
        }
        let mut members = BTreeMap::new();
        let (mut covered, mut sum) = (Ranges::none(), 0);
        for (member, texts) in written.members {
            let mut own = Vec::with_capacity(texts.len());
            for text in texts {
                let range: informer::share::HashRange = text.parse().ok()?;
                sum += range.size();
                own.push(range);
            }
            let own: Ranges = own.into_iter().collect();
            covered = covered.union(&own);
            members.insert(member, own);
        }
        if !covered.is_all() || sum != Ranges::all().size() {
            return None;
        }
        let id = MapId { generation: written.generation, text: hash(text) };
        Some(Self::Map(Map { id, members }))
    }
}

impl MapId {
    /// Whether it can be that this map was acknowledged before `other` came, as it should be.
    pub(crate) fn is_before(self, other: Self) -> bool {
        self.generation < other.generation
    }
}

impl fmt::Display for MapId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{:016x}", self.generation, self.text)
    }
}

/// A text that is no name of a map.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct NoMapId;

impl FromStr for MapId {
    type Err = NoMapId;

    fn from_str(text: &str) -> Result<Self, NoMapId> {
        let (generation, text) = text.split_once('-').ok_or(NoMapId)?;
        let generation = generation.parse().ok().filter(|generation| *generation < LAST_GENERATION);
        let text = u64::from_str_radix(text, 16).map_err(|_| NoMapId)?;
        Ok(Self { generation: generation.ok_or(NoMapId)?, text })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn members(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(ToString::to_string).collect()
    }

    fn read(text: &str) -> Found {
        Found::read(text, ShareBy::Uid)
    }

    #[test]
    fn q9_a_map_is_read_as_it_was_written() {
        let text = Map::next(ShareBy::Uid, 7, None, &members(&["a", "b"]));
        assert_eq!(
            text,
            r#"{"version":1,"by":"uid","generation":7,"members":{"a":["0x0000000000000000-0x8000000000000000"],"b":["0x8000000000000000-0x10000000000000000"]}}"#
        );
        let Found::Map(map) = read(&text) else { unreachable!("{text}") };
        assert_eq!((map.id().generation, map.of("a").fraction(), map.of("c").fraction()), (7, 0.5, 0.0));
        assert_eq!(map.id().to_string().parse(), Ok(map.id()));
    }

    #[test]
    fn q9_maps_of_one_generation_have_different_names() {
        let [one, other] = ["a", "b"].map(|name| read(&Map::next(ShareBy::Uid, 7, None, &members(&[name]))));
        let (Found::Map(one), Found::Map(other)) = (one, other) else { unreachable!() };
        assert!(one.id() != other.id() && !one.id().is_before(other.id()));
    }

    #[test]
    fn q9_a_map_for_others_is_foreign_and_a_broken_one_is_none() {
        let good = Map::next(ShareBy::Uid, 7, None, &members(&["a", "b"]));
        assert!(matches!(read(&good), Found::Map(_)));
        for foreign in [good.replace("uid", "namespace"), r#"{"version":2,"shape":"unknown"}"#.to_owned()] {
            assert!(matches!(read(&foreign), Found::Foreign(_)), "{foreign}");
        }
        for broken in [
            String::new(),
            "[]".to_owned(),
            "{".to_owned(),
            good.replace("uid", "moon"),
            good.replace("\"version\":1", "\"version\":0"),
            good.replace(":7,", ":9007199254740992,"),
            good.replace(":7,", ":-7,"),
            // A gap, and a hash with two owners.
            good.replace("0x8000000000000000-", "0x8000000000000001-"),
            good.replace("0x8000000000000000-", "0x7fffffffffffffff-"),
            good.replace("0x0000000000000000", "0"),
        ] {
            assert_eq!(read(&broken), Found::Nothing, "{broken}");
        }
        for text in ["", "7", "-7", "7-x", "9007199254740992-00", "x-00"] {
            assert_eq!(text.parse::<MapId>(), Err(NoMapId), "{text}");
        }
    }
}
