//! Times become numbers, also for a reader that is limited: those say nothing of objects. No version is earlier than the one before it, but among those at the beginning: an older program wrote them, or a
//! clock was hours ahead.

use jiff::Timestamp;

use super::db::{Db, Value, values};
use super::fault::Outcome;
use super::values::{self, id, number};
use crate::filter::{Order, Page};
use crate::record::Number;
use crate::report::Instant;

impl Instant {
    /// The last version that was there at a time; `None` before the first one. Later versions are not earlier, but where a clock had been
    /// hours ahead, or an older program wrote: then it is the last of those that follow each other until then.
    pub(crate) fn at(db: Db<'_>, time: Timestamp) -> Outcome<Option<Self>> {
        let time = time.as_microsecond();
        let sql = "SELECT number FROM main.versions WHERE observed_at <= ?1 ORDER BY observed_at DESC, number DESC LIMIT 1";
        let last = db.first(sql, values![time], |row| row.get::<i64>(0))?;
        let Some(last) = last else { return Ok(None) };
        let sql = "SELECT number FROM main.versions WHERE number > ?1 AND +observed_at > ?2 ORDER BY number LIMIT 1";
        let next = db.first(sql, values![last, time], |row| row.get::<i64>(0))?;
        Ok(Some(Self { last: next.map_or(i64::MAX, |next| next - 1), time }))
    }
}

/// Numbers from one on and before another one.
pub(crate) struct Span {
    pub(crate) from: i64,
    pub(crate) to: i64,
}

impl Span {
    /// All versions from a time on and before another one are in it; at the beginning of a history, also versions of other times.
    pub(crate) fn of(db: Db<'_>, from: Option<Timestamp>, to: Option<Timestamp>) -> Outcome<Self> {
        let all = Self { from: 0, to: i64::MAX };
        let times: Vec<Value> = from.into_iter().chain(to).map(|time| time.as_microsecond().into()).collect();
        if times.is_empty() {
            return Ok(all);
        }
        // The first number that a version of a time or later may have is the one after the last earlier version. A database looks through
        // an index on times, so `number` has none.
        let first = |time: usize| {
            format!("coalesce((SELECT number + 1 FROM main.versions WHERE observed_at < ?{time} AND +number >= low
                     ORDER BY observed_at DESC, number DESC LIMIT 1), low)")
        };
        // Among versions out of order, the numbers say nothing about the first one.
        let from = from.map(|_| format!("CASE WHEN latest >= ?1 THEN 0 ELSE {} END", first(1)));
        let to = to.map(|_| first(times.len()));
        let sql = format!(
            "SELECT {}, {} FROM (SELECT coalesce((SELECT value FROM meta WHERE name = 'ordered_from'), 0) AS low,
             (SELECT value FROM meta WHERE name = 'disordered_until') AS latest) clock",
            from.unwrap_or(all.from.to_string()),
            to.unwrap_or(all.to.to_string())
        );
        let span = db.first(&sql, &times, |row| Ok(Self { from: row.get(0)?, to: row.get(1)? }))?;
        Ok(span.unwrap_or(all))
    }

    /// The part of a page. SQLite seeks by one bound on each side: with two, each page would read from the beginning.
    pub(crate) fn of_page(mut self, page: &Page) -> Self {
        let next = |number| id(number).saturating_add(1);
        let (from, to) = match page.order {
            Order::NewestFirst => (page.until.map(id), page.after.map(id)),
            Order::OldestFirst => (page.after.map(next), page.until.map(next)),
        };
        self.from = self.from.max(from.unwrap_or(i64::MIN));
        self.to = self.to.min(to.unwrap_or(i64::MAX));
        self
    }

    /// The number before the first one in this order.
    pub(crate) fn before(&self, order: Order) -> i64 {
        match order {
            Order::NewestFirst => self.to,
            Order::OldestFirst => self.from - 1,
        }
    }
}

/// A number that a history keeps about itself.
pub(crate) fn meta(db: Db<'_>, name: &str) -> Outcome<i64> {
    db.one("SELECT value FROM meta WHERE name = ?1", values![name])
}

/// Whether the numbers say which versions are of this time or later.
pub(crate) fn is_ordered(db: Db<'_>, time: Timestamp) -> Outcome<bool> {
    let sql = "SELECT value FROM meta WHERE name = 'disordered_until'";
    let latest = db.first(sql, &[], |row| row.get::<Option<i64>>(0))?.flatten();
    Ok(latest.is_none_or(|latest| time.as_microsecond() > latest))
}

/// The first number that a version of this time or later may have.
pub(crate) fn first_since(db: Db<'_>, time: Timestamp) -> Outcome<Number> {
    Ok(number(Span::of(db, Some(time), None)?.from))
}

/// The time of the last version up to a number.
pub(crate) fn time_of(db: Db<'_>, last: Number) -> Outcome<Option<Timestamp>> {
    let sql = "SELECT observed_at FROM main.versions WHERE number <= ?1 ORDER BY number DESC LIMIT 1";
    let at = db.first(sql, values![id(last)], |row| row.get(0))?;
    at.map(values::time).transpose()
}
