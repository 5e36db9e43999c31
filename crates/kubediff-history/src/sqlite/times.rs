//! Times become numbers, also for a reader that is limited: those say nothing of objects. No version is earlier than the one before it, but among those at the beginning: an older program wrote them, or a
//! clock was hours ahead.

use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension, params};

use super::Reader;
use super::fault::Outcome;
use super::values::{self, id, number};
use crate::error::Error;
use crate::filter::{Order, Page};
use crate::record::Number;
use crate::report::Instant;

impl Instant {
    /// The last version that was there at a time; `None` before the first one. Later versions are not earlier, but where a clock had been
    /// hours ahead, or an older program wrote: then it is the last of those that follow each other until then.
    pub(super) fn at(connection: &Connection, time: Timestamp) -> Outcome<Option<Self>> {
        let time = time.as_microsecond();
        let sql = "SELECT number FROM main.versions WHERE observed_at <= ?1 ORDER BY observed_at DESC, number DESC LIMIT 1";
        let last =
            connection.prepare_cached(sql)?.query_row([time], |row| row.get::<_, i64>(0)).optional()?;
        let Some(last) = last else { return Ok(None) };
        let sql = "SELECT number FROM main.versions WHERE number > ?1 AND +observed_at > ?2 ORDER BY number LIMIT 1";
        let next = connection.prepare_cached(sql)?.query_row([last, time], |row| row.get::<_, i64>(0));
        Ok(Some(Self { last: next.optional()?.map_or(i64::MAX, |next| next - 1), time }))
    }
}

/// Numbers from one on and before another one.
pub(super) struct Span {
    pub(super) from: i64,
    pub(super) to: i64,
}

impl Span {
    /// All versions from a time on and before another one are in it; at the beginning of a history, also versions of other times.
    pub(super) fn of(
        connection: &Connection,
        from: Option<Timestamp>,
        to: Option<Timestamp>,
    ) -> Outcome<Self> {
        let mut span = Self { from: 0, to: i64::MAX };
        if from.is_none() && to.is_none() {
            return Ok(span);
        }
        let value = "SELECT value FROM meta WHERE name = ?1";
        let mut value = connection.prepare_cached(value)?;
        let ordered: i64 = value.query_row(["ordered_from"], |row| row.get(0))?;
        let end: i64 = value.query_row(["next"], |row| row.get(0))?;
        if let Some(from) = from
            && is_ordered(connection, from)?
        {
            span.from = first(connection, (ordered, end), from.as_microsecond())?;
        }
        if let Some(to) = to.map(Timestamp::as_microsecond) {
            span.to = first(connection, (ordered, end), to)?;
        }
        Ok(span)
    }

    /// The part of a page. SQLite seeks by one bound on each side: with two, each page would read from the beginning.
    pub(super) fn of_page(mut self, page: &Page) -> Self {
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
    pub(super) fn before(&self, order: Order) -> i64 {
        match order {
            Order::NewestFirst => self.to,
            Order::OldestFirst => self.from - 1,
        }
    }
}

impl Reader {
    /// The first number that a record of this time or later may have.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, or is damaged.
    pub fn first_since(&mut self, time: Timestamp) -> Result<Number, Error> {
        self.at_once(|connection, _, _| first_since(connection, time))
    }

    /// The time of the last version up to a number; `None` before the first one.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, or is damaged.
    pub fn time_of(&mut self, number: Number) -> Result<Option<Timestamp>, Error> {
        self.at_once(|connection, _, _| time_of(connection, number))
    }
}

/// Whether the numbers say which versions are of this time or later.
pub(super) fn is_ordered(connection: &Connection, time: Timestamp) -> Outcome<bool> {
    let sql = "SELECT value FROM meta WHERE name = 'disordered_until'";
    let latest: Option<i64> = connection.prepare_cached(sql)?.query_row([], |row| row.get(0))?;
    Ok(latest.is_none_or(|latest| time.as_microsecond() > latest))
}

/// The first number that a version of this time or later may have.
pub(super) fn first_since(connection: &Connection, time: Timestamp) -> Outcome<Number> {
    Ok(number(Span::of(connection, Some(time), None)?.from))
}

/// The time of the last version up to a number.
pub(super) fn time_of(connection: &Connection, last: Number) -> Outcome<Option<Timestamp>> {
    let sql = "SELECT observed_at FROM main.versions WHERE number <= ?1 ORDER BY number DESC LIMIT 1";
    let at = connection.prepare_cached(sql)?.query_row([id(last)], |row| row.get(0)).optional()?;
    at.map(values::time).transpose()
}

/// The first of these numbers that a version of this time or later has, or their end. It takes as many looks as the numbers have digits
/// in base two.
fn first(connection: &Connection, (mut low, mut high): (i64, i64), time: i64) -> Outcome<i64> {
    let sql = "SELECT number, observed_at FROM main.versions WHERE number >= ?1 AND number < ?2 ORDER BY number LIMIT 1";
    let mut version = connection.prepare_cached(sql)?;
    while low < high {
        let middle = low + (high - low) / 2;
        let found = version
            .query_row(params![middle, high], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?)));
        match found.optional()? {
            Some((number, at)) if at < time => low = number + 1,
            _ => high = middle,
        }
    }
    Ok(low)
}
