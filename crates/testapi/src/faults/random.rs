//! Random faults, from a seed.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use parking_lot::Mutex;

use super::fault::{Fault, Point, Refusal, StreamError};
use super::matcher::Matcher;
use crate::{Call, Verb};

/// The kinds of random faults and their weights.
///
/// As text: a name and changes to it, such as `default`, `network,share=0.5`, `none,cut=3,too-many-requests=1`. The
/// names are `none`, `default` (faults that clients must recover from by themselves), `network` (no fault of content,
/// no refusal), `refusals` and `all`; the kinds are those of [`Kind`] with their weights.
///
/// ```
/// use testapi::faults::{Kind, Mix};
///
/// let mix: Mix = "none,cut=3,too-many-requests=1,share=0.2".parse()?;
/// assert_eq!(mix, Mix::none().weight(Kind::Cut, 3).weight(Kind::TooManyRequests, 1).share(0.2));
/// # Ok::<_, testapi::faults::MixError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Mix {
    weights: BTreeMap<Kind, u32>,
    share: f64,
    pub(super) matcher: Matcher,
}

macro_rules! kinds {
    ($($kind:ident $name:literal $doc:literal)*) => {
        /// A kind of fault, for a [`Mix`].
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Kind {
            $(#[doc = concat!("`", $name, "`: ", $doc)] $kind,)*
        }

        impl Kind {
            /// All kinds.
            pub const ALL: &[Self] = &[$(Self::$kind),*];

            /// The name in the text of a [`Mix`].
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$kind => $name,)* }
            }
        }
    };
}

kinds! {
    Disconnect "disconnect" "the connection is closed without an answer."
    Delay "delay" "the answer comes up to 200 ms later."
    Hang "hang" "there is no answer."
    Cut "cut" "the connection breaks in the middle of the answer."
    End "end" "a watch ends early."
    Stall "stall" "nothing comes any more in the middle of the answer."
    Chunks "chunks" "the answer comes in odd pieces."
    Slow "slow" "the answer comes slowly."
    Unauthorized "unauthorized" "401."
    Forbidden "forbidden" "403."
    NotFound "not-found" "404."
    Conflict "conflict" "409, for what writes."
    Expired "expired" "410 to a list or a watch, as an answer or as an event."
    Invalid "invalid" "422."
    TooManyRequests "too-many-requests" "429 with Retry-After 1, as an answer or as an event."
    InternalError "internal-error" "500, as an answer or as an event."
    StoreRead "store-read" "the ERROR event of an undecodable object."
    Unavailable "unavailable" "503."
    Timeout "timeout" "504."
    Garble "garble" "garbled bytes in a read."
    Truncate "truncate" "half an event."
    WrongKind "wrong-kind" "another kind."
    Duplicate "duplicate" "an event comes twice."
    RevisionBack "revision-back" "a resourceVersion is lower than it should be."
    NoEndBookmark "no-end-bookmark" "the bookmark that ends initial events does not come."
    Compact "compact" "the history is compacted."
    DisconnectAll "disconnect-all" "all connections are closed."
}

impl Mix {
    /// No fault. With kinds added, one in ten requests meets a fault.
    pub fn none() -> Self {
        Self { weights: BTreeMap::new(), share: 0.1, matcher: Matcher::any() }
    }

    /// Broken, stalled and slow connections, and small chunks.
    pub fn network() -> Self {
        use Kind::{Chunks, Cut, Delay, Disconnect, DisconnectAll, End, Slow};
        let none = Self::none().weight(Chunks, 5).weight(Cut, 5).weight(Delay, 3).weight(Disconnect, 3);
        none.weight(End, 3).weight(Slow, 1).weight(DisconnectAll, 1)
    }

    /// Temporary refusals.
    pub fn refusals() -> Self {
        use Kind::{Expired, InternalError, Timeout, TooManyRequests, Unavailable};
        let none = Self::none().weight(TooManyRequests, 3).weight(Unavailable, 2);
        none.weight(InternalError, 2).weight(Timeout, 1).weight(Expired, 2)
    }

    /// Every fault, with the same weight. A client cannot recover from all of them: after a 403 it may give up.
    pub fn all() -> Self {
        Kind::ALL.iter().fold(Self::none(), |mix, kind| mix.weight(*kind, 1))
    }

    /// The weight of a kind in relation to the others; 0 for never.
    #[must_use]
    pub fn weight(mut self, kind: Kind, weight: u32) -> Self {
        match weight {
            0 => self.weights.remove(&kind),
            _ => self.weights.insert(kind, weight),
        };
        self
    }

    /// The share of requests that meet a fault, from 0 to 1.
    #[must_use]
    pub fn share(mut self, share: f64) -> Self {
        self.share = share.clamp(0.0, 1.0);
        self
    }

    /// Limits the faults to these requests.
    #[must_use]
    pub fn on(mut self, matcher: Matcher) -> Self {
        self.matcher = matcher;
        self
    }
}

/// The faults that clients must recover from by themselves: [`network`](Mix::network), [`refusals`](Mix::refusals),
/// duplicates, garbled responses and compaction.
impl Default for Mix {
    fn default() -> Self {
        let mut mix = Self::network();
        mix.weights.extend(Self::refusals().weights);
        mix.weight(Kind::Duplicate, 1).weight(Kind::Garble, 1).weight(Kind::Compact, 1)
    }
}

/// Compares weights and share; matchers cannot be compared.
impl PartialEq for Mix {
    fn eq(&self, other: &Self) -> bool {
        self.weights == other.weights && self.share == other.share
    }
}

impl fmt::Display for Mix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "none")?;
        for (kind, weight) in &self.weights {
            write!(f, ",{}={weight}", kind.as_str())?;
        }
        write!(f, ",share={}", self.share)
    }
}

impl FromStr for Mix {
    type Err = MixError;

    fn from_str(text: &str) -> Result<Self, MixError> {
        let mut mix = Self::default();
        for part in text.split(',').map(str::trim) {
            let wrong = || MixError(part.to_owned());
            mix = match part.split_once('=') {
                Some(("share", share)) => mix.share(share.parse().map_err(|_| wrong())?),
                Some((name, weight)) => {
                    let kind = Kind::ALL.iter().find(|kind| kind.as_str() == name).ok_or_else(wrong)?;
                    mix.weight(*kind, weight.parse().map_err(|_| wrong())?)
                }
                None => match part {
                    "none" => Self::none(),
                    "default" => Self::default(),
                    "network" => Self::network(),
                    "refusals" => Self::refusals(),
                    "all" => Self::all(),
                    _ => return Err(wrong()),
                },
            };
        }
        Ok(mix)
    }
}

/// A part of a mix that is malformed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is neither a mix (none, default, network, refusals, all) nor a kind of fault with its weight (cut=3)"
)]
pub struct MixError(String);

/// Draws the fault of each request.
#[derive(Debug)]
pub(super) struct Random {
    seed: u64,
    mix: Mix,
    /// The number of requests so far by verb, resource or path, and namespace.
    counts: Mutex<HashMap<(Verb, String), u64>>,
}

impl Random {
    pub(super) fn new(seed: u64, mix: Mix) -> Self {
        Self { seed, mix, counts: Mutex::default() }
    }

    pub(super) fn draw(&self, call: &Call) -> Vec<Fault> {
        let what = match &call.target {
            Some(target) => {
                format!("{}/{}", target.qualified(), target.namespace.as_deref().unwrap_or_default())
            }
            None => call.path.clone(),
        };
        let key = (call.verb, what);
        let mut random = fastrand::Rng::with_seed(self.seed ^ hash(&key));
        let count = {
            let mut counts = self.counts.lock();
            let count = counts.entry(key).or_default();
            *count += 1;
            *count
        };
        // Each request has a random sequence of its own.
        let mut random = fastrand::Rng::with_seed(random.u64(..) ^ count.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        if random.f64() >= self.mix.share {
            return Vec::new();
        }
        let possible: Vec<_> = self.mix.weights.iter().filter(|(kind, _)| kind.fits(call)).collect();
        let total: u32 = possible.iter().map(|(_, weight)| **weight).sum();
        if total == 0 {
            return Vec::new();
        }
        let mut at = random.u32(..total);
        for (kind, weight) in possible {
            if at < *weight {
                return vec![kind.fault(call, &mut random)];
            }
            at -= weight;
        }
        Vec::new()
    }
}

impl fmt::Display for Random {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "random from seed {}: {}", self.seed, self.mix)
    }
}

impl Kind {
    fn fits(self, call: &Call) -> bool {
        let watch = call.verb == Verb::Watch;
        match self {
            Self::End | Self::StoreRead | Self::Truncate | Self::Duplicate => watch,
            Self::NoEndBookmark => call.is_streaming_list(),
            Self::Expired | Self::RevisionBack => watch || call.verb == Verb::List,
            Self::Garble | Self::WrongKind | Self::Chunks | Self::Slow => call.verb.is_read(),
            Self::Conflict => !call.verb.is_read(),
            _ => true,
        }
    }

    fn fault(self, call: &Call, random: &mut fastrand::Rng) -> Fault {
        let watch = call.verb == Verb::Watch;
        let after = if watch { few(random) } else { 0 };
        let point = match watch && random.bool() {
            true => Point::Events(after),
            false => Point::Bytes(1 << random.u32(..16)),
        };
        let refuse = |refusal, error: Option<StreamError>, random: &mut fastrand::Rng| match error {
            Some(error) if watch && random.bool() => Fault::ErrorAfter(after, error),
            _ => Fault::Refuse(refusal),
        };
        let retry_after = 1;
        match self {
            Self::Disconnect => Fault::Disconnect,
            Self::Delay => Fault::Delay(Duration::from_millis(random.u64(..=200))),
            Self::Hang => Fault::Hang,
            Self::Cut => Fault::CutAfter(point),
            Self::End => Fault::EndAfter(Point::Events(after)),
            Self::Stall => Fault::StallAfter(point),
            Self::Chunks => Fault::Chunks { seed: random.u64(..), max: 1 << random.u32(2..14) },
            Self::Slow => Fault::Slow { bytes_per_second: 1 << random.u32(14..20) },
            Self::Unauthorized => Fault::Refuse(Refusal::Unauthorized),
            Self::Forbidden => Fault::Refuse(Refusal::Forbidden),
            Self::NotFound => Fault::Refuse(Refusal::NotFound),
            Self::Conflict => Fault::Refuse(Refusal::Conflict),
            Self::Expired => refuse(Refusal::Expired, Some(StreamError::Expired), random),
            Self::Invalid => Fault::Refuse(Refusal::Invalid),
            Self::TooManyRequests => refuse(
                Refusal::TooManyRequests { retry_after },
                Some(StreamError::TooManyRequests { retry_after }),
                random,
            ),
            Self::InternalError => refuse(Refusal::InternalError, Some(StreamError::InternalError), random),
            Self::StoreRead => Fault::ErrorAfter(after, StreamError::StoreRead),
            Self::Unavailable => Fault::Refuse(Refusal::Unavailable),
            Self::Timeout => Fault::Refuse(Refusal::Timeout),
            Self::Garble => Fault::Garble(after),
            Self::Truncate => Fault::Truncate(after),
            Self::WrongKind => Fault::WrongKind(after),
            Self::Duplicate => Fault::Duplicate(after),
            Self::RevisionBack => Fault::RevisionBack { after, by: random.u64(1..100) },
            Self::NoEndBookmark => Fault::NoEndBookmark,
            Self::Compact => Fault::Compact,
            Self::DisconnectAll => Fault::DisconnectAll,
        }
    }
}

/// A number that is mostly small and sometimes in the hundreds.
fn few(random: &mut fastrand::Rng) -> u64 {
    let most = 1 << random.u32(..9);
    random.u64(..most)
}

/// FNV-1a: the same in every process.
fn hash((verb, what): &(Verb, String)) -> u64 {
    let bytes = verb.as_str().bytes().chain([b' ']).chain(what.bytes());
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(uri: &str) -> Call {
        let (parts, ()) = http::Request::builder().uri(uri).body(()).unwrap().into_parts();
        Call::new(1, String::new(), &parts)
    }

    fn draws(random: &Random, uri: &str, times: usize) -> Vec<Vec<Fault>> {
        (0..times).map(|_| random.draw(&call(uri))).collect()
    }

    #[test]
    fn what_a_request_meets_does_not_depend_on_others() {
        for seed in 0..20 {
            let alone = Random::new(seed, Mix::all().share(0.5));
            let alone = draws(&alone, "/api/v1/pods?watch=1", 30);
            let among_others = Random::new(seed, Mix::all().share(0.5));
            let among_others: Vec<_> = (0..30)
                .map(|_| {
                    let _ = draws(&among_others, "/api/v1/configmaps", 2);
                    among_others.draw(&call("/api/v1/pods?watch=1"))
                })
                .collect();
            assert_eq!(alone, among_others, "seed {seed}");
            assert!(
                alone.iter().any(Vec::is_empty) && alone.iter().any(|faults| !faults.is_empty()),
                "seed {seed}"
            );
        }
    }

    #[test]
    fn seeds_differ_and_every_kind_comes() {
        let mut faults = Vec::new();
        for seed in 0..100 {
            let random = Random::new(seed, Mix::all().share(1.0));
            faults.extend(draws(&random, "/api/v1/pods?watch=1&sendInitialEvents=true", 20).concat());
        }
        assert_eq!(faults.len(), 2_000);
        let kinds: std::collections::HashSet<_> = faults.iter().map(std::mem::discriminant).collect();
        // All variants of `Fault` but `Answer` and `NoBookmarks`, which no kind makes.
        assert_eq!(kinds.len(), 18);
    }

    #[test]
    fn faults_for_watches_do_not_meet_lists() {
        for seed in 0..100 {
            let random = Random::new(seed, Mix::all().share(1.0));
            for fault in draws(&random, "/api/v1/pods", 20).concat() {
                assert!(!fault.is_for_watches(), "seed {seed}: {fault:?}");
            }
        }
    }

    #[test]
    fn a_mix_is_written_and_read() {
        for mix in [Mix::none(), Mix::default(), Mix::network(), Mix::refusals(), Mix::all().share(0.25)] {
            assert_eq!(mix.to_string().parse::<Mix>(), Ok(mix));
        }
        for wrong in ["", "cut", "cut=x", "share=often", "bang=1"] {
            assert!(wrong.parse::<Mix>().is_err(), "{wrong:?}");
        }
        assert_eq!("network".parse(), Ok(Mix::network()));
    }
}
