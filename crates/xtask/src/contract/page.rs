//! Reads `docs/CONTRACT.md`.
//!
//! The page is for people. This module reads four things from it: a heading `## L. Listing` per group, an item `- <a
//! id="l3"></a>**L3. Title.** text` per clause, and in the section "What is in force" a table whose rows start with
//! groups or clauses, then `in force` or `not yet`.

use std::collections::HashMap;
use std::fmt;
use std::str::FromStr;

use tooling::Error;

pub(super) const PATH: &str = "docs/CONTRACT.md";

/// The group whose clauses got their numbers before the versions that keep them: some are not on the page yet.
const NUMBERED_AHEAD: char = 'K';

/// The number of a clause: `W16`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct ClauseId {
    pub(super) group: char,
    number: u16,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Clause {
    pub(super) id: ClauseId,
    pub(super) title: String,
}

#[derive(Debug)]
pub(super) struct Page {
    /// In their order on the page.
    pub(super) clauses: Vec<Clause>,
    groups: HashMap<char, String>,
    /// Whether groups and clauses are in force, by their names in the table.
    in_force: HashMap<String, bool>,
}

impl ClauseId {
    /// `w16`, as in the names of tests. Upper case is not accepted, so that the name of a type is never taken for a
    /// clause.
    pub(super) fn from_test_name(word: &str) -> Option<Self> {
        let is_lower = word.starts_with(|c: char| c.is_ascii_lowercase());
        if is_lower { word.to_ascii_uppercase().parse().ok() } else { None }
    }
}

impl fmt::Display for ClauseId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.group, self.number)
    }
}

impl FromStr for ClauseId {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let group = text.chars().next().filter(char::is_ascii_uppercase).ok_or(())?;
        let digits = &text[1..];
        if !digits.bytes().all(|byte| byte.is_ascii_digit()) || digits.starts_with('0') {
            return Err(());
        }
        Ok(Self { group, number: digits.parse().map_err(drop)? })
    }
}

impl Page {
    /// The clause's own row of the table, or else its group's row.
    pub(super) fn is_in_force(&self, id: ClauseId) -> bool {
        let own = self.in_force.get(&id.to_string());
        own.or_else(|| self.in_force.get(&id.group.to_string())).copied().unwrap_or(true)
    }

    pub(super) fn has(&self, id: ClauseId) -> bool {
        self.clauses.iter().any(|clause| clause.id == id)
    }

    pub(super) fn has_group(&self, group: char) -> bool {
        self.groups.contains_key(&group)
    }

    /// `L. Listing`
    pub(super) fn group_title(&self, group: char) -> String {
        format!("{group}. {}", self.groups.get(&group).map_or("", String::as_str))
    }
}

impl FromStr for Page {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let mut page = Self { clauses: Vec::new(), groups: HashMap::new(), in_force: HashMap::new() };
        for line in text.lines() {
            if let Some((group, title)) = group_heading(line) {
                page.groups.insert(group, title.to_owned());
            } else if line.starts_with("- <a id=\"") {
                page.add(line)?;
            } else if let Some((names, in_force)) = table_row(line) {
                page.in_force.extend(names.into_iter().map(|name| (name, in_force)));
            }
        }
        page.validate()?;
        Ok(page)
    }
}

impl Page {
    fn add(&mut self, line: &str) -> Result<(), Error> {
        let invalid = |reason: &str| Error::format(PATH, format!("{reason}: `{line}`"));
        let (anchor, clause) = clause_item(line).ok_or_else(|| invalid("an item is no clause"))?;
        if anchor != clause.id.to_string().to_ascii_lowercase() {
            return Err(invalid("the anchor is not the clause"));
        }
        let last = self.clauses.iter().rev().find(|other| other.id.group == clause.id.group);
        // Numbers are neither reused nor skipped: a clause that was dropped keeps its number and says so.
        let next = last.map_or(1, |last| last.id.number + 1);
        if clause.id.number < next || clause.id.number > next && clause.id.group != NUMBERED_AHEAD {
            return Err(invalid("the numbers do not go up one by one"));
        }
        self.clauses.push(clause);
        Ok(())
    }

    fn validate(&self) -> Result<(), Error> {
        if let Some(clause) = self.clauses.iter().find(|clause| !self.has_group(clause.id.group)) {
            return Err(Error::format(PATH, format!("{} has no heading of its group", clause.id)));
        }
        let is_known = |name: &str| match name.parse::<ClauseId>() {
            Ok(id) => self.has(id),
            Err(()) => name.chars().all(|group| self.has_group(group)),
        };
        if let Some(name) = self.in_force.keys().find(|name| !is_known(name)) {
            return Err(Error::format(PATH, format!("the table names {name}, which is not on the page")));
        }
        let is_listed = |group: &char| self.in_force.contains_key(&group.to_string());
        match self.groups.keys().find(|group| !is_listed(group)) {
            Some(group) => {
                Err(Error::format(PATH, format!("the table does not say whether {group} is in force")))
            }
            None => Ok(()),
        }
    }
}

/// `## L. Listing`
fn group_heading(line: &str) -> Option<(char, &str)> {
    let (group, title) = line.strip_prefix("## ")?.split_once(". ")?;
    let mut letters = group.chars();
    match (letters.next(), letters.next()) {
        (Some(group), None) if group.is_ascii_uppercase() => Some((group, title)),
        _ => None,
    }
}

/// `- <a id="l3"></a>**L3. Title.** text`: the anchor and the clause.
fn clause_item(line: &str) -> Option<(&str, Clause)> {
    let (anchor, rest) = line.strip_prefix("- <a id=\"")?.split_once("\"></a>**")?;
    let (number, title) = rest.split_once("**")?.0.split_once(". ")?;
    Some((anchor, Clause { id: number.parse().ok()?, title: title.trim_end_matches('.').to_owned() }))
}

/// `| L, C9 | not yet | why |`: the names, and whether they are in force.
fn table_row(line: &str) -> Option<(Vec<String>, bool)> {
    let mut cells = line.strip_prefix('|')?.split('|').map(str::trim);
    let names = cells.next()?.split(',').map(|name| name.trim().to_owned()).collect();
    match cells.next()? {
        "in force" => Some((names, true)),
        "not yet" => Some((names, false)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "\
# Contract
## L. Listing
- <a id=\"l1\"></a>**L1. First.** (+) Text.
- <a id=\"l2\"></a>**L2. Second.** (go) Text.
## C. Cache
- <a id=\"c1\"></a>**C1. Ahead.** (go) Text.
## What is in force
| Clauses | State | Why |
|---|---|---|
| L, C | in force | |
| L2 | not yet | later |
";

    #[test]
    fn a_page_is_read() {
        let page: Page = PAGE.parse().unwrap();
        let clauses: Vec<String> =
            page.clauses.iter().map(|clause| format!("{} {}", clause.id, clause.title)).collect();
        assert_eq!(clauses, ["L1 First", "L2 Second", "C1 Ahead"]);
        let in_force: Vec<bool> = page.clauses.iter().map(|clause| page.is_in_force(clause.id)).collect();
        assert_eq!(in_force, [true, false, true]);
        assert_eq!(page.group_title('L'), "L. Listing");
    }

    #[test]
    fn our_own_page_is_read() {
        let page: Page = include_str!("../../../../docs/CONTRACT.md").parse().unwrap();
        // Clauses may be added, but never removed.
        assert!(page.clauses.len() >= 87, "{}", page.clauses.len());
    }

    #[test]
    fn a_page_with_a_mistake_is_refused() {
        for (right, wrong, reason) in [
            ("id=\"l2\"", "id=\"l3\"", "the anchor is not the clause"),
            ("**C1.", "**C.", "an item is no clause"),
            ("## C. Cache\n", "", "C1 has no heading"),
            ("| L2 |", "| L7 |", "the table names L7"),
            ("| L, C |", "| L |", "does not say whether C"),
        ] {
            let error = PAGE.replace(right, wrong).parse::<Page>().unwrap_err().to_string();
            assert!(error.contains(reason), "{error}");
        }
        let gap = PAGE.replace("l2", "l3").replace("L2.", "L3.");
        assert!(gap.parse::<Page>().unwrap_err().to_string().contains("one by one"));
        let ahead = |from: &str| PAGE.replace("## C.", "## K.").replace("\"c1", from).replace("L, C", "L, K");
        assert!(ahead("\"k8").replace("**C1.", "**K8.").parse::<Page>().is_ok());
    }

    #[test]
    fn clause_numbers() {
        assert_eq!("W16".parse(), Ok(ClauseId { group: 'W', number: 16 }));
        assert_eq!(ClauseId::from_test_name("w16").unwrap().to_string(), "W16");
        for text in ["", "W", "16", "w16", "W016", "W1a", "WW1"] {
            assert_eq!(text.parse::<ClauseId>(), Err(()), "{text}");
        }
        assert_eq!(ClauseId::from_test_name("W16"), None);
    }
}
