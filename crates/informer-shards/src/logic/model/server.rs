//! The server of the model: the leases, their versions, and people who edit.

use informer_controller::internals::Record;

use super::*;

#[derive(Default)]
pub(super) struct Server {
    version: u64,
    map: Option<Stated>,
    leases: BTreeMap<String, Stored>,
    /// All maps that there were.
    texts: Vec<String>,
}

/// The map, as text and as members read it.
struct Stated {
    text: String,
    found: Found,
    version: u64,
}

struct Stored {
    found: FoundMember,
    /// Writes of one lease come in this order: the server refuses older ones, because they have an older version.
    order: u64,
}

#[derive(Debug, Clone)]
pub(super) enum Request {
    Look,
    /// If the map has this version; if there is none, without one.
    Map {
        text: String,
        version: Option<u64>,
    },
    Lease {
        of: String,
        order: u64,
        found: FoundMember,
        takes: bool,
    },
}

#[derive(Debug)]
pub(super) enum Response {
    Leases {
        look: Look,
        version: Option<u64>,
    },
    Done,
    /// The map has another version, or the lease was written by somebody else, in this order.
    Conflict(u64),
    NotFound,
}

impl Server {
    pub(super) fn serve(&mut self, request: &Request) -> Response {
        match request {
            Request::Look => Response::Leases { look: self.look(), version: self.version() },
            Request::Map { version, .. } if *version != self.version() => Response::Conflict(0),
            Request::Map { text, .. } => {
                self.texts.push(text.clone());
                self.put(text.clone());
                Response::Done
            }
            Request::Lease { of, order, found, takes } => match self.leases.get_mut(of) {
                Some(stored) if stored.order > *order => Response::Conflict(stored.order),
                None if !takes => Response::NotFound,
                _ => {
                    self.leases.insert(of.clone(), Stored { found: found.clone(), order: *order });
                    Response::Done
                }
            },
        }
    }

    /// Whether a member seems to have its lease.
    pub(super) fn is_held(&self, member: &str) -> bool {
        self.leases.get(member).is_some_and(|stored| stored.found.record.holder().is_some())
    }

    pub(super) fn maps(&self) -> u64 {
        self.texts.len() as u64
    }

    fn look(&self) -> Look {
        let map = self.map.as_ref().map_or(Found::Nothing, |map| map.found.clone());
        let members =
            self.leases.iter().map(|(member, stored)| (member.clone(), stored.found.clone())).collect();
        Look { map, members }
    }

    fn put(&mut self, text: String) {
        self.version += 1;
        let found = Found::read(&text, ShareBy::Uid);
        self.map = Some(Stated { text, found, version: self.version });
    }

    fn version(&self) -> Option<u64> {
        self.map.as_ref().map(|map| map.version)
    }

    /// Somebody edits something.
    pub(super) fn edit(&mut self, random: &mut Rng, names: &[String]) {
        let Some(text) = self.map.as_ref().map(|map| map.text.clone()) else { return };
        match random.u8(..8) {
            0 => self.map = None,
            1 => self.put(String::new()),
            2 => self.put(text.replace("\"0x", "\"0y")),
            3 => {
                let older = random.usize(..self.texts.len());
                self.put(self.texts[older].clone());
            }
            // Two members have each other's hashes, in the same generation or in a later one.
            4 | 5 => {
                let (one, other) = (&names[random.usize(..names.len())], &names[random.usize(..names.len())]);
                let quoted = |name: &str| format!("\"{name}\"");
                let swapped = text
                    .replace(&quoted(one), "\"?\"")
                    .replace(&quoted(other), &quoted(one))
                    .replace("\"?\"", &quoted(other));
                let later = if random.bool() { "\"generation\":1" } else { "\"generation\":" };
                self.put(swapped.replace("\"generation\":", later));
            }
            6 => self.put(r#"{"version":2}"#.to_owned()),
            _ => {
                // A record without a holder, as of a person who clears it: the member loses its lease.
                let one = &names[random.usize(..names.len())];
                if let Some(stored) = self.leases.get_mut(one) {
                    stored.found.record = Record::default();
                    stored.order += 1_000;
                }
            }
        }
    }

    /// A map that nobody may replace stays, unless somebody takes it away.
    pub(super) fn forget_foreign(&mut self) {
        if self.map.as_ref().is_some_and(|map| matches!(map.found, Found::Foreign(_))) {
            self.map = None;
        }
    }
}
