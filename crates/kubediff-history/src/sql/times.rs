//! Times become numbers, also for a reader that is limited: those say nothing of objects. No version is earlier than the one before it, but among those at the beginning: an older program wrote them, or a
//! clock was hours ahead.

use jiff::Timestamp;

use super::db::{Db, values};
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
        let mut span = Self { from: 0, to: i64::MAX };
        if from.is_none() && to.is_none() {
            return Ok(span);
        }
        let Clock { ordered_from, disordered_until } = Clock::read(db)?;
        if let Some(from) = from.map(Timestamp::as_microsecond)
            && disordered_until.is_none_or(|latest| from > latest)
        {
            span.from = first(db, ordered_from, from)?;
        }
        if let Some(to) = to.map(Timestamp::as_microsecond) {
            span.to = first(db, ordered_from, to)?;
        }
        Ok(span)
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

/// From which number on no version is earlier than the one before it, and the latest time of those before.
struct Clock {
    ordered_from: i64,
    disordered_until: Option<i64>,
}

impl Clock {
    fn read(db: Db<'_>) -> Outcome<Self> {
        let mut clock = Self { ordered_from: 0, disordered_until: None };
        let sql = "SELECT name, value FROM meta WHERE name IN ('ordered_from', 'disordered_until')";
        for (name, value) in
            db.all(sql, &[], |row| Ok((row.get::<String>(0)?, row.get::<Option<i64>>(1)?)))?
        {
            match name.as_str() {
                "ordered_from" => clock.ordered_from = value.unwrap_or_default(),
                _ => clock.disordered_until = value,
            }
        }
        Ok(clock)
    }
}

/// Whether the numbers say which versions are of this time or later.
pub(crate) fn is_ordered(db: Db<'_>, time: Timestamp) -> Outcome<bool> {
    let latest = Clock::read(db)?.disordered_until;
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

/// The first number from `low` on that a version of this time or later may have: the one after the last earlier version. A database looks
/// through an index on times, so `number` has none.
fn first(db: Db<'_>, low: i64, time: i64) -> Outcome<i64> {
    let sql = "SELECT number FROM main.versions WHERE observed_at < ?1 AND +number >= ?2 ORDER BY observed_at DESC, number DESC LIMIT 1";
    let before: Option<i64> = db.first(sql, values![time, low], |row| row.get(0))?;
    Ok(before.map_or(low, |before| before + 1))
}
