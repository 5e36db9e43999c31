//! Settings and answers that are no records.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use crate::record::{Number, Record};

/// Which cluster a file is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cluster {
    /// Its identity: the uid of the namespace `kube-system`.
    pub uid: String,
    /// The name that people know it by.
    pub name: Option<String>,
}

impl Cluster {
    /// Its name, else its uid.
    pub fn shown(&self) -> &str {
        self.name.as_deref().unwrap_or(&self.uid)
    }
}

/// The present state of the writer of a history.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Standing {
    /// Its [notes](crate::Reader::notes).
    pub notes: BTreeMap<String, String>,
    /// Its [positions](crate::Reader::positions).
    pub positions: BTreeMap<String, String>,
    /// The last record, and its time.
    pub last: Option<(Number, Timestamp)>,
    /// Whether it has [prints](crate::Reader::prints).
    pub has_prints: bool,
    /// Whether the reader [is limited](crate::Reader::is_limited).
    pub is_limited: bool,
}

/// A history in a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Overview {
    /// The cluster that it is of.
    pub cluster: Cluster,
    /// The process that has the term. In a file nobody has one.
    pub leader: Option<Leader>,
    /// The present state of the writer.
    pub standing: Standing,
    /// How many changes were seen since the time of the question.
    pub changes: u64,
    /// The number of objects that exist.
    pub existing: u64,
    /// Bytes: of a file with the log beside it; in a database of the history's own versions.
    pub bytes: u64,
}

/// The process that has the term of a history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leader {
    /// Its name.
    pub name: String,
    /// Since when it has the term.
    pub since: Timestamp,
}

/// How a file is written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Settings {
    /// The most bytes that the file may have: beyond it, commits fail as on a full disk. The log beside it (`-wal`) is
    /// not counted.
    pub most_bytes: Option<u64>,
    /// The name of this process for others, who wait for its term in a database.
    pub holder: Option<String>,
    /// Whether the process of this name that had the term is over, so that this one may claim it at once.
    pub returns: bool,
}

impl Settings {
    #[cfg(feature = "postgres")]
    pub(crate) fn holder(&self) -> &str {
        self.holder.as_deref().unwrap_or("kubediff")
    }
}

/// The ids of records: no id is given twice, also after a lost file or a restored backup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ids {
    /// The id of the history.
    pub(crate) log: String,
    /// From which number on a timeline holds.
    pub(crate) timelines: BTreeMap<Number, i64>,
}

impl Ids {
    /// `LOG-TIMELINE-NUMBER`: the history's id, the time at which its writer began, in milliseconds since 1970, and the number. Numbers
    /// rise within a history.
    pub fn of(&self, number: Number) -> String {
        let timeline = self.timelines.range(..=number).next_back().map_or(0, |(_, timeline)| *timeline);
        format!("{}-{timeline}-{number}", self.log)
    }
}

/// The parts of a history to keep. Nothing is removed by default.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Retention {
    /// Records younger than this. The last record is of now at the latest, whatever the clock says.
    pub age: Option<Duration>,
    /// This many of the latest records.
    pub count: Option<u64>,
    /// As many of the latest records as need about this many bytes.
    pub bytes: Option<u64>,
    /// Up to this many records are kept although they are to go, because a sink has not taken them.
    pub for_sinks: u64,
    /// Events younger than this.
    pub event_age: Option<Duration>,
    /// As many of the latest Events as need about this many bytes.
    pub event_bytes: Option<u64>,
}

/// The records that a run of retention removes ([`Reader::plan`](crate::Reader::plan)).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// Age and count do not keep the records up to this one,
    pub(crate) up_to: i64,
    /// and bytes may take those up to this one.
    pub(crate) most: i64,
    pub(crate) bytes: Option<u64>,
    pub(crate) for_sinks: u64,
    pub(crate) leaves_some: bool,
    /// Age and bytes do not keep the Events up to this one.
    pub(crate) events_up_to: i64,
    /// The contents that a reader has read for its next step.
    pub(crate) ahead: Ahead,
}

/// The contents that a step of retention packs again: those of the last versions before what it keeps.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Ahead {
    /// The step removes the records after this one, up to that one.
    pub(crate) after: i64,
    pub(crate) up_to: i64,
    pub(crate) bodies: HashMap<i64, Arc<[u8]>>,
}

impl Plan {
    /// Whether age or count would take more than the day's records that one run may remove.
    pub fn leaves_some(&self) -> bool {
        self.leaves_some
    }
}

/// The result of a step of [`History::retain`](crate::History::retain).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Retained {
    /// Versions removed, those of Events among them.
    pub versions: u64,
    /// Gaps removed.
    pub gaps: u64,
    /// Versions that were deltas, and are full ones now.
    pub rebased: u64,
    /// All records after this one are kept. Before it, only the last version of each object that existed then is.
    pub complete_after: Number,
    /// The records that sinks will not get.
    pub lost: Vec<Lost>,
    /// Whether something was removed, so that another step may remove more.
    pub more: bool,
}

/// Records that were removed before a sink took them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lost {
    /// The sink.
    pub sink: String,
    /// Records after this one,
    pub after: Number,
    /// up to this one,
    pub up_to: Number,
    /// and how many they were.
    pub records: u64,
}

/// A scrub of what is stored, as far as it has come ([`History::scrub`](crate::History::scrub)).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scrub {
    /// The first record.
    pub(crate) from: i64,
    /// It has come to this one,
    pub(crate) after: i64,
    /// and goes to this one.
    pub(crate) until: i64,
    /// How far the versions of a dictionary are packed without it.
    pub(crate) repacked: i64,
    pub(crate) masked: u64,
    pub(crate) is_clean: bool,
}

impl Scrub {
    /// How many versions were masked.
    pub fn masked(&self) -> u64 {
        self.masked
    }

    /// Whether the log beside the file has nothing any more of what was masked. A reader may keep it for a while.
    pub fn is_clean(&self) -> bool {
        self.is_clean
    }
}

/// Where a sink stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sink {
    /// Its name.
    pub name: String,
    /// The last record that it has taken.
    pub position: Number,
    /// How many records were removed before it took them.
    pub lost: u64,
    /// How many dead letters it has.
    pub dead: u64,
    /// Its last [tail](Settled::tail).
    pub tail: Option<String>,
}

/// A record that a sink does not take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadLetter {
    /// The record.
    pub number: Number,
    /// Its object, as the delivery numbers it.
    pub object: u64,
    /// Why, for people.
    pub reason: String,
}

/// The fate of records that a sink was to take: taken, or dead letters.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Settled {
    /// All records up to this one were taken, or are dead letters.
    pub position: Number,
    /// New dead letters.
    pub dead: Vec<DeadLetter>,
    /// Former dead letters that were taken after all.
    pub resent: Vec<Number>,
    /// What the sink wants to know after a restart, if it is new.
    pub tail: Option<String>,
}

/// How much is in a history.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Size {
    /// Bytes of the file, with the log beside it.
    pub bytes: u64,
    /// Changes.
    pub changes: u64,
    /// Versions of Events.
    pub events: u64,
    /// Gaps.
    pub gaps: u64,
    /// Objects, each incarnation counted.
    pub objects: u64,
    /// The number of them that exist.
    pub existing: u64,
}

/// A page of records.
#[derive(Debug, Clone, PartialEq)]
pub struct Records {
    /// The records.
    pub records: Vec<Record>,
    /// Whether there may be more.
    pub more: bool,
}

/// The objects that were there at one moment, by namespace and name, without their contents: eight bytes for each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Present {
    /// `None`: now, whenever they are read.
    pub(crate) at: Option<Instant>,
    pub(crate) ids: Vec<i64>,
}

impl Present {
    /// How many they are.
    pub fn len(&self) -> usize {
        self.ids.len()
    }

    /// Whether there was none.
    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }
}

/// A moment of a history: its last record, and the time until which noise counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Moment {
    /// The last record.
    pub number: Number,
    /// The time.
    pub time: Timestamp,
}

/// The objects that were there at one moment, in the order of API servers: by the text `namespace/name`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Keys {
    present: Present,
    /// The texts, one after the other.
    text: String,
    ends: Vec<usize>,
}

impl Keys {
    /// Of ids with namespaces and names.
    pub(crate) fn new(at: Instant, mut found: Vec<(String, i64)>) -> Self {
        found.sort_unstable();
        let mut keys = Self {
            present: Present { at: Some(at), ids: Vec::new() },
            text: String::new(),
            ends: Vec::new(),
        };
        for (key, id) in found {
            keys.text.push_str(&key);
            keys.ends.push(keys.text.len());
            keys.present.ids.push(id);
        }
        keys
    }

    /// The objects, in this order: [`Reader::states`](crate::Reader::states) reads them.
    pub fn present(&self) -> &Present {
        &self.present
    }

    /// The places of the objects of a namespace, or of all.
    pub fn within(&self, namespace: Option<&str>) -> Range<usize> {
        let Some(namespace) = namespace else { return 0..self.ends.len() };
        // The character after the slash.
        self.first(&format!("{namespace}/"))..self.first(&format!("{namespace}0"))
    }

    /// The place of the first object after this one.
    pub fn after(&self, namespace: &str, name: &str) -> usize {
        self.first(&format!("{namespace}/{name}\0"))
    }

    /// The memory that they take, about.
    pub fn bytes(&self) -> usize {
        self.text.len() + 16 * self.ends.len()
    }

    /// The place of the first object from this text on.
    fn first(&self, text: &str) -> usize {
        let begin = |at: usize| at.checked_sub(1).and_then(|at| self.ends.get(at)).copied().unwrap_or(0);
        let (mut low, mut high) = (0, self.ends.len());
        while low < high {
            let middle = low.midpoint(high);
            let end = self.ends.get(middle).copied().unwrap_or_default();
            match self.text.get(begin(middle)..end).unwrap_or_default() < text {
                true => low = middle + 1,
                false => high = middle,
            }
        }
        low
    }
}

/// A moment: the records up to a number, and the noise up to a time in microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Instant {
    pub(crate) last: i64,
    pub(crate) time: i64,
}

/// The result of a check of a file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Checked {
    /// Versions whose content was read and compared with its checksum.
    pub versions: u64,
    /// Objects.
    pub objects: u64,
    /// Gaps.
    pub gaps: u64,
    /// The problems; none when the file is sound. At most 100 lines, none of which has content of objects.
    pub problems: Vec<String>,
}
