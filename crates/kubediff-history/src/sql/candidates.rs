//! Versions by path, manager, user, kind or namespace, in order and a part at a time: a path may have all versions of a history, or one.

use std::collections::HashSet;
use std::ops::ControlFlow;

use super::chosen::Chosen;
use super::db::{Db, values};
use super::fault::Outcome;
use super::names::{self, Table};
use super::times::{Span, meta};
use super::users;
use crate::filter::{Filter, Order};

/// This many versions of each name are looked up at once.
const PART: usize = 500;

/// The table of users' changes, and its column.
const AUTHORS: (&str, &str) = ("authors", "author");

/// The numbers in which tags are looked for at first, and at most at once.
const FIRST_WINDOW: i64 = 1_024;
const LAST_WINDOW: i64 = 1 << 20;

/// The names that a filter asks for, by their numbers.
pub(crate) struct Candidates {
    /// The table and its column.
    index: (&'static str, &'static str),
    ids: Vec<i64>,
    /// The namespaces of kinds: a kind in one of them is in order, a namespace as a whole is not.
    namespaces: Option<Vec<i64>>,
}

/// The versions that a filter's path, manager and user select.
pub(crate) enum Named {
    /// Nothing can match.
    Nothing,
    /// The conditions on each version; none for a filter without.
    All(Vec<Candidates>),
}

impl Named {
    pub(crate) fn find(db: Db<'_>, filter: &Filter) -> Outcome<Self> {
        let mut all = Vec::new();
        if !filter.paths.is_empty() {
            let ids = paths_below(db, &filter.paths)?;
            all.push(Candidates { index: ("version_paths", "path"), ids, namespaces: None });
        }
        if let Some(manager) = &filter.manager {
            let ids = match manager.contains('*') {
                true => managers_like(db, manager)?,
                false => names::find(db, Table::Managers, manager)?.into_iter().collect(),
            };
            all.push(Candidates { index: ("version_managers", "manager"), ids, namespaces: None });
        }
        if let Some(user) = &filter.user {
            all.push(Candidates { index: AUTHORS, ids: users::like(db, user)?, namespaces: None });
        }
        let nothing = all.iter().any(|it| it.ids.is_empty());
        Ok(if nothing { Self::Nothing } else { Self::All(all) })
    }
}

impl Candidates {
    /// The versions of the kinds and namespaces that are chosen; `None` where all are.
    pub(crate) fn of_places(db: Db<'_>, chosen: &Chosen) -> Outcome<Option<Self>> {
        let namespaces = chosen.namespaces.clone();
        let ids = match &chosen.kinds {
            Some(kinds) => kinds.clone(),
            None if namespaces.is_none() => return Ok(None),
            None => db.all("SELECT id FROM kinds", &[], |row| row.get(0))?,
        };
        Ok(Some(Self { index: ("versions", "kind"), ids, namespaces }))
    }

    /// The next versions of a span in this order beyond `after`, and the place from which to go on; `None` at the end.
    pub(crate) fn next(
        &self,
        db: Db<'_>,
        order: Order,
        after: i64,
        span: &Span,
        limit: usize,
    ) -> Outcome<(Vec<i64>, Option<i64>)> {
        if self.has_tags(db) {
            return self.tagged(db, order, after, span, PART.min(limit));
        }
        let (table, column) = self.index;
        let (compare, until, direction) = match order {
            Order::NewestFirst => ("<", format!(">= {}", span.from), "DESC"),
            Order::OldestFirst => (">", format!("< {}", span.to), "ASC"),
        };
        let places = match &self.namespaces {
            Some(namespaces) => namespaces.iter().map(|id| format!(" AND namespace = {id}")).collect(),
            None => vec![String::new()],
        };
        let (mut numbers, mut end): (Vec<i64>, Option<i64>) = (Vec::new(), None);
        for place in places {
            let sql = format!(
                "SELECT number FROM {table} WHERE {column} = ?1{place} AND number {compare} ?2 AND number {until}
                 ORDER BY number {direction} LIMIT {PART}"
            );
            for id in &self.ids {
                let part: Vec<i64> = db.all(&sql, values![*id, after], |row| row.get(0))?;
                if part.len() == PART {
                    // Beyond the last of them, this name may have more.
                    end = match (order, end, part.last().copied()) {
                        (Order::NewestFirst, Some(end), Some(last)) => Some(last.max(end)),
                        (Order::OldestFirst, Some(end), Some(last)) => Some(last.min(end)),
                        (_, None, last) => last,
                        (_, end, None) => end,
                    };
                }
                numbers.extend(part);
            }
        }
        if let Some(end) = end {
            numbers.retain(|number| match order {
                Order::NewestFirst => *number >= end,
                Order::OldestFirst => *number <= end,
            });
        }
        numbers.sort_unstable();
        numbers.dedup();
        Ok((numbers, end))
    }

    /// The same by tags: in a window of numbers, which grows as long as it has few.
    fn tagged(
        &self,
        db: Db<'_>,
        order: Order,
        after: i64,
        span: &Span,
        part: usize,
    ) -> Outcome<(Vec<i64>, Option<i64>)> {
        let end = meta(db, "next")?;
        let (mut from, mut to) = (span.from.max(1), span.to.min(end));
        match order {
            Order::NewestFirst => to = to.min(after),
            Order::OldestFirst => from = from.max(after.saturating_add(1)),
        }
        let within = self.namespaces.as_deref().map(list).unwrap_or_default();
        let mut window = FIRST_WINDOW;
        let mut numbers = Vec::new();
        while from < to && numbers.len() < part {
            let (low, high) = match order {
                Order::NewestFirst => (from.max(to - window), to),
                Order::OldestFirst => (from, to.min(from + window)),
            };
            let sql = "SELECT tagged FROM tagged(?1::text::int[], ?2::text::int[], ?3, ?4)";
            let (ids, within) = (format!("{{{}}}", list(&self.ids)), format!("{{{within}}}"));
            numbers.extend(db.all(sql, values![ids, within, low, high], |row| row.get::<i64>(0))?);
            match order {
                Order::NewestFirst => to = low,
                Order::OldestFirst => from = high,
            }
            window = (window * 2).min(LAST_WINDOW);
        }
        numbers.sort_unstable();
        let next = match order {
            Order::NewestFirst => to,
            Order::OldestFirst => from - 1,
        };
        let Some(beyond) = numbers.len().checked_sub(part).filter(|beyond| *beyond > 0) else {
            return Ok((numbers, (from < to).then_some(next)));
        };
        // A frequent name has many in the last window: the first of them, in order, are enough for now.
        match order {
            Order::NewestFirst => drop(numbers.drain(..beyond)),
            Order::OldestFirst => numbers.truncate(part),
        }
        let last = match order {
            Order::NewestFirst => numbers.first(),
            Order::OldestFirst => numbers.last(),
        };
        Ok((numbers.clone(), last.copied()))
    }

    /// Whether they are tags of versions, as names are in a database.
    fn has_tags(&self, db: Db<'_>) -> bool {
        !db.is_file() && self.index != AUTHORS
    }

    /// The condition for a version `v`.
    pub(crate) fn condition(&self, db: Db<'_>) -> String {
        let (table, column) = self.index;
        let ids = list(&self.ids);
        if self.has_tags(db) {
            return format!("v.tags && '{{{ids}}}'::int[]");
        }
        format!("EXISTS (SELECT 1 FROM {table} i WHERE i.{column} IN ({ids}) AND i.number = v.number)")
    }
}

fn list(ids: &[i64]) -> String {
    ids.iter().map(i64::to_string).collect::<Vec<_>>().join(",")
}

/// The managers whose names match a pattern.
fn managers_like(db: Db<'_>, pattern: &str) -> Outcome<Vec<i64>> {
    let names =
        db.all("SELECT id, name FROM managers", &[], |row| Ok((row.get(0)?, row.get::<String>(1)?)))?;
    Ok(names.into_iter().filter(|(_, name)| names::is_like(name, pattern)).map(|(id, _)| id).collect())
}

/// The paths that are wanted or below a wanted one. Both may be many.
fn paths_below(db: Db<'_>, wanted: &[String]) -> Outcome<Vec<i64>> {
    let wanted: HashSet<&str> = wanted.iter().map(String::as_str).collect();
    let is_wanted = |name: &str| {
        let above = name.match_indices(['.', '[', '#']).filter_map(|(at, _)| name.get(..at));
        above.chain([name]).any(|path| wanted.contains(path))
    };
    let mut found = Vec::new();
    db.each("SELECT id, name FROM paths", &[], |row| {
        if is_wanted(&row.get::<String>(1)?) {
            found.push(row.get(0)?);
        }
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(found)
}
