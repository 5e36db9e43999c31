//! Versions by path, manager, kind or namespace, in order and a part at a time: a path may have all versions of a history, or one.

use std::collections::HashSet;

use rusqlite::{Connection, params};

use super::chosen::Chosen;
use super::fault::Outcome;
use super::names::{self, Table};
use super::times::Span;
use crate::filter::{Filter, Order};

/// This many versions of each name are looked up at once.
const PART: usize = 500;

/// The names that a filter asks for, by their numbers.
pub(super) struct Candidates {
    /// The table and its column.
    index: (&'static str, &'static str),
    ids: Vec<i64>,
    /// The namespaces of kinds: a kind in one of them is in order, a namespace as a whole is not.
    namespaces: Option<Vec<i64>>,
}

/// The versions that a filter's path and manager select.
pub(super) enum Named {
    /// Nothing can match.
    Nothing,
    /// The conditions on each version; none for a filter without.
    All(Vec<Candidates>),
}

impl Named {
    pub(super) fn find(connection: &Connection, filter: &Filter) -> Outcome<Self> {
        let mut all = Vec::new();
        if !filter.paths.is_empty() {
            let ids = paths_below(connection, &filter.paths)?;
            all.push(Candidates { index: ("version_paths", "path"), ids, namespaces: None });
        }
        if let Some(manager) = &filter.manager {
            let ids = match manager.contains('*') {
                true => managers_like(connection, manager)?,
                false => names::find(connection, Table::Managers, manager)?.into_iter().collect(),
            };
            all.push(Candidates { index: ("version_managers", "manager"), ids, namespaces: None });
        }
        let nothing = all.iter().any(|it| it.ids.is_empty());
        Ok(if nothing { Self::Nothing } else { Self::All(all) })
    }
}

impl Candidates {
    /// The versions of the kinds and namespaces that are chosen; `None` where all are.
    pub(super) fn of_places(connection: &Connection, chosen: &Chosen) -> Outcome<Option<Self>> {
        let namespaces = chosen.namespaces.clone();
        let ids = match &chosen.kinds {
            Some(kinds) => kinds.clone(),
            None if namespaces.is_none() => return Ok(None),
            None => {
                let mut all = connection.prepare_cached("SELECT id FROM kinds")?;
                all.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?
            }
        };
        Ok(Some(Self { index: ("versions", "kind"), ids, namespaces }))
    }

    /// The next versions of a span in this order beyond `after`, and the place from which to go on; `None` at the end.
    pub(super) fn next(
        &self,
        connection: &Connection,
        order: Order,
        after: i64,
        span: &Span,
    ) -> Outcome<(Vec<i64>, Option<i64>)> {
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
            let mut statement = connection.prepare_cached(&format!(
                "SELECT number FROM {table} WHERE {column} = ?1{place} AND number {compare} ?2 AND number {until}
                 ORDER BY number {direction} LIMIT {PART}"
            ))?;
            for id in &self.ids {
                let part: Vec<i64> =
                    statement.query_map(params![id, after], |row| row.get(0))?.collect::<Result<_, _>>()?;
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

    /// The condition for a version `v`.
    pub(super) fn condition(&self) -> String {
        let (table, column) = self.index;
        let ids: Vec<String> = self.ids.iter().map(i64::to_string).collect();
        let ids = ids.join(",");
        format!("EXISTS (SELECT 1 FROM {table} i WHERE i.{column} IN ({ids}) AND i.number = v.number)")
    }
}

/// The managers whose names match a pattern.
fn managers_like(connection: &Connection, pattern: &str) -> Outcome<Vec<i64>> {
    // To SQLite, other characters mean something, too.
    let glob = pattern.replace('[', "[[]").replace('?', "[?]");
    let mut statement = connection.prepare_cached("SELECT id FROM managers WHERE name GLOB ?1")?;
    Ok(statement.query_map([glob], |row| row.get(0))?.collect::<Result<_, _>>()?)
}

/// The paths that are wanted or below a wanted one. Both may be many.
fn paths_below(connection: &Connection, wanted: &[String]) -> Outcome<Vec<i64>> {
    let wanted: HashSet<&str> = wanted.iter().map(String::as_str).collect();
    let is_wanted = |name: &str| {
        let above = name.match_indices(['.', '[', '#']).filter_map(|(at, _)| name.get(..at));
        above.chain([name]).any(|path| wanted.contains(path))
    };
    let mut statement = connection.prepare_cached("SELECT id, name FROM paths")?;
    let mut rows = statement.query([])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        if row.get_ref(1)?.as_str().is_ok_and(is_wanted) {
            found.push(row.get(0)?);
        }
    }
    Ok(found)
}
