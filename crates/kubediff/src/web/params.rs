//! The parameters of a request.

use super::address;

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
    pub(super) fn flag(&self, name: &str, default: bool) -> bool {
        match self.get(name) {
            Some("1" | "true") => true,
            Some("0" | "false") => false,
            _ => default,
        }
    }

    /// A number from 1 to `most`.
    pub(super) fn number(&self, name: &str, default: usize, most: usize) -> usize {
        self.get(name).and_then(|text| text.parse().ok()).unwrap_or(default).clamp(1, most)
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
