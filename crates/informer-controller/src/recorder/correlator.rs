//! Which events become requests: series, spam filter, bounds. Pure logic, with the time as an argument.

use std::collections::VecDeque;
use std::time::Duration;

use informer_core::Time;
use jiff::Timestamp;

use super::bounded::Bounded;
use super::event::{EventType, Reference, Series, Subject};

// The numbers of client-go: `tools/events/event_broadcaster.go` and `tools/record/events_cache.go`.

/// A series that is not observed for this long has ended.
const SERIES_ENDS: Duration = Duration::from_secs(6 * 60);
/// How often the count of a series that goes on is written.
const REFRESH: Duration = Duration::from_secs(30 * 60);
/// The number of events of a type about an object at once ...
const BURST: u64 = 25;
/// ... and one more after each of these.
const REFILL: Duration = Duration::from_secs(5 * 60);
/// The number of remembered series, and of objects in the spam filter.
const REMEMBERED: usize = 4096;
/// The number of events that may wait for their request.
const WAITING: usize = 1000;

/// The treatment of an observed event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Observed {
    /// Its request waits.
    Waits,
    /// It counts in a series, whose request waits, is on its way, or comes with the next refresh.
    Counts,
    /// The object has too many events.
    Filtered,
    /// Too many events wait.
    Lost,
}

/// A request to send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Write {
    pub(super) subject: Subject,
    /// The name of the event.
    pub(super) name: String,
    pub(super) first: Timestamp,
    /// How often, if more than once.
    pub(super) series: Option<Series>,
    /// Whether the event exists already.
    pub(super) update: bool,
}

/// How a request ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ended {
    Done,
    /// The event to update does not exist: events expire, by default after an hour.
    Missing,
    /// For good.
    Failed,
}

/// An event that was observed, perhaps several times.
#[derive(Debug)]
struct Record {
    name: String,
    first: Timestamp,
    last: Timestamp,
    count: u32,
    /// The count that the server has.
    written: u32,
    written_at: Time,
    request: Request,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Request {
    None,
    Waits,
    Sent,
}

/// The tokens of an object.
#[derive(Debug)]
struct Bucket {
    tokens: u64,
    /// Since when the next token is on its way.
    since: Time,
}

#[derive(Debug)]
pub(super) struct Correlator {
    records: Bounded<Subject, Record>,
    buckets: Bounded<(Reference, EventType), Bucket>,
    waiting: VecDeque<Subject>,
    /// The last number in a name. Two events have different names also when the clock stands still.
    number: u128,
    /// Nothing is due before.
    due: Option<Time>,
}

impl Correlator {
    pub(super) fn new() -> Self {
        Self {
            records: Bounded::new(REMEMBERED),
            buckets: Bounded::new(REMEMBERED),
            waiting: VecDeque::new(),
            number: 0,
            due: None,
        }
    }

    /// An event was observed; `at` is the time that the server gets.
    pub(super) fn observe(&mut self, now: Time, at: Timestamp, subject: Subject) -> Observed {
        self.tick(now);
        if let Some(record) = self.records.using(now, &subject) {
            record.count = record.count.saturating_add(1);
            record.last = at;
            let refresh = record.written_at + REFRESH;
            if record.request == Request::None {
                // The second observation makes it a series on the server. Later ones are only counted.
                if record.written == 1 {
                    record.request = Request::Waits;
                    self.waiting.push_back(subject);
                } else {
                    self.due_at(refresh);
                }
            }
            return Observed::Counts;
        }
        if self.waiting.len() >= WAITING {
            return Observed::Lost;
        }
        if !self.take_token(now, &subject) {
            return Observed::Filtered;
        }
        self.number = u128::try_from(at.as_nanosecond()).unwrap_or(0).max(self.number + 1);
        let record = Record {
            name: subject.regarding.event_name(self.number),
            first: at,
            last: at,
            count: 1,
            written: 0,
            written_at: now,
            request: Request::Waits,
        };
        self.records.insert(now, subject.clone(), record);
        self.waiting.push_back(subject);
        Observed::Waits
    }

    /// The next request, with everything that was observed until now.
    pub(super) fn next_write(&mut self) -> Option<Write> {
        loop {
            let subject = self.waiting.pop_front()?;
            // It may have been displaced.
            if let Some((record, _)) = self.records.get_mut(&subject) {
                record.request = Request::Sent;
                return Some(Write {
                    name: record.name.clone(),
                    first: record.first,
                    series: record.series(),
                    update: record.written > 0,
                    subject,
                });
            }
        }
    }

    /// A request has ended. O(1).
    pub(super) fn ended(&mut self, now: Time, write: &Write, ended: Ended) {
        let Some((record, observed)) = self.records.get_mut(&write.subject) else { return };
        record.request = Request::None;
        let again = match ended {
            Ended::Done => {
                let is_new = record.written == 0;
                record.written = write.series.map_or(1, |series| series.count);
                record.written_at = now;
                // The series began while the event was being created.
                is_new && record.written == 1 && record.count > 1
            }
            Ended::Missing => {
                record.written = 0;
                true
            }
            Ended::Failed => {
                self.records.remove(&write.subject);
                return;
            }
        };
        let (refresh, is_unwritten) = (record.written_at + REFRESH, record.count > record.written);
        if again {
            record.request = Request::Waits;
            self.waiting.push_back(write.subject.clone());
            return;
        }
        if is_unwritten {
            self.due_at(refresh);
        }
        self.due_at(observed + SERIES_ENDS);
    }

    /// When to call [`tick`](Self::tick).
    pub(super) fn due(&self) -> Option<Time> {
        self.due
    }

    /// Writes the counts of series that have ended, or go on for long, and forgets what has ended.
    /// O(series), but only when something is due.
    pub(super) fn tick(&mut self, now: Time) {
        if self.due.is_none_or(|due| now < due) {
            return;
        }
        let (waiting, mut due) = (&mut self.waiting, None::<Time>);
        self.records.retain(|subject, record, observed| {
            if record.request != Request::None {
                // Its end sets `due`.
                return true;
            }
            let (ends, refresh) = (observed + SERIES_ENDS, record.written_at + REFRESH);
            let is_unwritten = record.count > record.written;
            if is_unwritten && (ends <= now || refresh <= now) {
                record.request = Request::Waits;
                waiting.push_back(subject.clone());
                return true;
            }
            let next = if is_unwritten { ends.min(refresh) } else { ends };
            if next > now {
                due = Some(due.map_or(next, |due| due.min(next)));
            }
            ends > now
        });
        self.due = due;
    }

    #[cfg(test)]
    pub(super) fn remembered(&self) -> usize {
        self.records.len().max(self.buckets.len())
    }

    /// Everything that the server does not have yet waits from now on.
    pub(super) fn finish(&mut self) {
        let waiting = &mut self.waiting;
        self.records.retain(|subject, record, _| {
            if record.request == Request::None && record.count > record.written {
                record.request = Request::Waits;
                waiting.push_back(subject.clone());
            }
            true
        });
    }

    fn due_at(&mut self, time: Time) {
        self.due = Some(self.due.map_or(time, |due| due.min(time)));
    }

    fn take_token(&mut self, now: Time, subject: &Subject) -> bool {
        let key = subject.spam_key();
        let Some(bucket) = self.buckets.using(now, &key) else {
            self.buckets.insert(now, key, Bucket { tokens: BURST - 1, since: now });
            return true;
        };
        let refills = now.since(bucket.since).as_secs() / REFILL.as_secs();
        bucket.tokens = BURST.min(bucket.tokens.saturating_add(refills));
        bucket.since = if bucket.tokens == BURST {
            now
        } else {
            bucket.since + Duration::from_secs(refills * REFILL.as_secs())
        };
        let accepts = bucket.tokens > 0;
        bucket.tokens = bucket.tokens.saturating_sub(1);
        accepts
    }
}

impl Record {
    fn series(&self) -> Option<Series> {
        let series = Series { count: self.count, last_observed_time: self.last };
        Some(series).filter(|series| series.count > 1)
    }
}
