//! The parameters of a request.

use super::address;
use super::problem::Problem;

/// The parameters of a request, in order.
#[derive(Debug, Clone, Default)]
pub(super) struct Params(Vec<(String, String)>);

impl Params {
    pub(super) fn parse(query: &str) -> Self {
        let pairs = form_urlencoded::parse(query.as_bytes());
        Self(pairs.map(|(name, value)| (name.into_owned(), value.trim().to_owned())).collect())
    }

    /// The last value of this name that is not empty.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        let values = self.0.iter().rev().filter(|(known, value)| known == name && !value.is_empty());
        values.map(|(_, value)| value.as_str()).next()
    }

    /// The same as a text, empty without one.
    pub(super) fn text(&self, name: &str) -> &str {
        self.get(name).unwrap_or_default()
    }

    /// `1` is true, `0` is false.
    pub(super) fn flag(&self, name: &str, default: bool) -> Result<bool, Problem> {
        match self.get(name) {
            None => Ok(default),
            Some("1" | "true") => Ok(true),
            Some("0" | "false") => Ok(false),
            Some(text) => Err(Problem::wrong(name, format!("`{text}` is neither 1 nor 0."))),
        }
    }

    /// A number from `least` to `most`.
    pub(super) fn number(
        &self,
        name: &str,
        default: usize,
        least: usize,
        most: usize,
    ) -> Result<usize, Problem> {
        let Some(text) = self.get(name) else { return Ok(default) };
        let number = text.parse().ok().filter(|number| (least..=most).contains(number));
        number.ok_or_else(|| Problem::wrong(name, format!("`{text}` is no number from {least} to {most}.")))
    }

    /// The names that are not among the known ones.
    pub(super) fn unknown(&self, known: &[&str]) -> Vec<String> {
        let mut names: Vec<String> = self
            .0
            .iter()
            .map(|(name, _)| name.clone())
            .filter(|name| !known.contains(&name.as_str()))
            .collect();
        names.dedup();
        names
    }

    /// An address with these parameters, some of which have other values.
    pub(super) fn address(&self, path: &str, kept: &[&str], others: &[(&str, &str)]) -> String {
        let of = |name: &'_ str| match others.iter().find(|(other, _)| *other == name) {
            Some((_, value)) => (*value).to_owned(),
            None => self.text(name).to_owned(),
        };
        address::with(path, kept.iter().map(|name| (*name, of(name))))
    }
}
