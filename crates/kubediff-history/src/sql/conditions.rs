//! The conditions of a query, as text and parameters.

use super::db::{Db, Value};
use super::values::id;
use crate::filter::{Order, Page};

/// The most rows of one page.
pub(crate) const MOST: usize = 10_000;

/// Conditions with their parameters.
#[derive(Default, Clone)]
pub(crate) struct Conditions {
    pub(crate) text: String,
    pub(crate) parameters: Vec<Value>,
}

impl Conditions {
    pub(crate) fn and(&mut self, condition: &str) -> &mut Self {
        self.text.push_str(if self.text.is_empty() { " WHERE " } else { " AND " });
        self.text.push_str(condition);
        self
    }

    pub(crate) fn compare(&mut self, condition: &str, value: impl Into<Value>) {
        self.and(condition).text.push('?');
        self.parameters.push(value.into());
    }

    /// Numbers need no parameters, of which there is a limited number.
    pub(crate) fn one_of(&mut self, column: &str, ids: &[i64]) {
        self.and(column).text.push_str(&in_list(ids));
    }

    /// The versions with these numbers. In a database, a day without any of them is not searched for each.
    pub(crate) fn numbered(&mut self, db: Db<'_>, numbers: &[i64]) {
        self.one_of("v.number", numbers);
        if let (false, Some(least), Some(most)) = (db.is_file(), numbers.iter().min(), numbers.iter().max()) {
            self.and(&format!("v.number BETWEEN {least} AND {most}"));
        }
    }

    pub(crate) fn page(&mut self, column: &str, page: &Page) {
        if let Some(after) = page.after {
            let compare = if page.order == Order::NewestFirst { "<" } else { ">" };
            self.compare(&format!("{column} {compare} "), id(after));
        }
        if let Some(until) = page.until {
            let compare = if page.order == Order::NewestFirst { ">=" } else { "<=" };
            self.compare(&format!("{column} {compare} "), id(until));
        }
    }
}

/// ` IN (1,2)`. Without numbers it is never true.
pub(crate) fn in_list(ids: &[i64]) -> String {
    if ids.is_empty() {
        return " IN (NULL)".to_owned();
    }
    let ids: Vec<String> = ids.iter().map(i64::to_string).collect();
    format!(" IN ({})", ids.join(","))
}

pub(crate) fn order_by(column: &str, page: &Page, limit: usize) -> String {
    let direction = if page.order == Order::NewestFirst { "DESC" } else { "ASC" };
    format!(" ORDER BY {column} {direction} LIMIT {limit}")
}
