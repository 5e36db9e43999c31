//! The paths of printer columns: a subset of kubectl's JSONPath.
//!
//! `.a.b`, `.a\.b`, `['a']`, `[0]`, `[-1]`, `[0:2]`, `[0,1]`, `[*]`, `.*`, `..a` and
//! `[?(@.type=="Ready")]` with `==`, `!=`, `<`, `<=`, `>`, `>=` or nothing after the path. No functions, no scripts.

use std::cmp::Ordering;

use serde_json::Value;

/// A path through JSON.
#[derive(Debug, PartialEq)]
pub(crate) struct JsonPath(Vec<Step>);

#[derive(Debug, PartialEq)]
enum Step {
    Member(String),
    /// From a start up to an end, exclusive; negative numbers count from the end.
    Slice(Option<i64>, Option<i64>),
    Items(Vec<i64>),
    All,
    /// The value itself and everything below it.
    Deep,
    Filter(Filter),
}

#[derive(Debug, PartialEq)]
struct Filter {
    path: JsonPath,
    comparison: Option<(Comparison, Value)>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl JsonPath {
    /// Parses a path; `None` if it is malformed or uses an unsupported feature.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        // Nested filters recurse. No column needs a longer path, and the stack could not take a deeper one.
        if text.len() > 4_096 {
            return None;
        }
        let text = text.strip_prefix('{').and_then(|text| text.strip_suffix('}')).unwrap_or(text);
        let mut rest = text.strip_prefix(['$', '@']).unwrap_or(text);
        let mut steps = Vec::new();
        while !rest.is_empty() {
            if let Some(after) = rest.strip_prefix("..") {
                // A second `..` would find everything again below everything.
                if steps.contains(&Step::Deep) {
                    return None;
                }
                steps.push(Step::Deep);
                if !after.starts_with('[') {
                    rest = member(after, &mut steps)?;
                    continue;
                }
                rest = after;
            }
            rest = if let Some(after) = rest.strip_prefix('[') {
                let end = bracket_end(after)?;
                steps.push(subscript(after[..end].trim())?);
                &after[end + 1..]
            } else if let Some(after) = rest.strip_prefix('.') {
                if after.starts_with('[') || after.is_empty() { after } else { member(after, &mut steps)? }
            } else {
                return None;
            };
        }
        Some(Self(steps))
    }

    /// The first value that the path leads to.
    pub(crate) fn first<'a>(&self, value: &'a Value) -> Option<&'a Value> {
        self.find(value).into_iter().next()
    }

    fn find<'a>(&self, value: &'a Value) -> Vec<&'a Value> {
        let mut found = vec![value];
        for step in &self.0 {
            let mut next = Vec::new();
            for value in found {
                step.walk(value, &mut next);
            }
            found = next;
        }
        found
    }
}

impl Step {
    fn walk<'a>(&self, value: &'a Value, found: &mut Vec<&'a Value>) {
        match (self, value) {
            (Self::Member(name), Value::Object(members)) => found.extend(members.get(name)),
            (Self::All, Value::Object(members)) => found.extend(members.values()),
            (Self::All, Value::Array(items)) => found.extend(items),
            (Self::Items(wanted), Value::Array(items)) => {
                found.extend(wanted.iter().filter_map(|at| items.get(position(*at, items.len())?)));
            }
            (Self::Slice(start, end), Value::Array(items)) => {
                let at = |at: &Option<i64>, otherwise: usize| {
                    at.map_or(otherwise, |at| position(at, items.len()).unwrap_or(0).min(items.len()))
                };
                found.extend(items.get(at(start, 0)..at(end, items.len())).unwrap_or_default());
            }
            (Self::Filter(filter), Value::Array(items)) => {
                found.extend(items.iter().filter(|item| filter.accepts(item)));
            }
            (Self::Deep, value) => {
                found.push(value);
                match value {
                    Value::Object(members) => members.values().for_each(|below| self.walk(below, found)),
                    Value::Array(items) => items.iter().for_each(|below| self.walk(below, found)),
                    _ => {}
                }
            }
            _ => {}
        }
    }
}

impl Filter {
    fn accepts(&self, item: &Value) -> bool {
        let Some(value) = self.path.first(item) else {
            return false;
        };
        let Some((comparison, wanted)) = &self.comparison else {
            return true;
        };
        let order = match (value, wanted) {
            (Value::Number(left), Value::Number(right)) => left.as_f64().partial_cmp(&right.as_f64()),
            (Value::String(left), Value::String(right)) => Some(left.cmp(right)),
            (Value::Bool(left), Value::Bool(right)) => Some(left.cmp(right)),
            _ => None,
        };
        match comparison {
            Comparison::Equal => order == Some(Ordering::Equal),
            Comparison::NotEqual => order != Some(Ordering::Equal),
            Comparison::Less => order == Some(Ordering::Less),
            Comparison::LessOrEqual => order.is_some_and(Ordering::is_le),
            Comparison::Greater => order == Some(Ordering::Greater),
            Comparison::GreaterOrEqual => order.is_some_and(Ordering::is_ge),
        }
    }
}

fn position(at: i64, length: usize) -> Option<usize> {
    if at >= 0 {
        usize::try_from(at).ok()
    } else {
        length.checked_sub(usize::try_from(at.unsigned_abs()).ok()?)
    }
}

/// Parses a name up to the next dot or bracket, and returns the rest.
fn member<'a>(text: &'a str, steps: &mut Vec<Step>) -> Option<&'a str> {
    let mut name = String::new();
    let mut characters = text.char_indices();
    let mut end = text.len();
    while let Some((at, character)) = characters.next() {
        match character {
            '\\' => name.push(characters.next()?.1),
            '.' | '[' => {
                end = at;
                break;
            }
            other => name.push(other),
        }
    }
    if name.is_empty() {
        return None;
    }
    steps.push(if name == "*" { Step::All } else { Step::Member(name) });
    Some(&text[end..])
}

/// The offset of the bracket that closes the one opened before this text, outside quotes and filters.
fn bracket_end(text: &str) -> Option<usize> {
    let mut quote = None;
    let mut depth = 0;
    let mut characters = text.char_indices();
    while let Some((at, character)) = characters.next() {
        match (quote, character) {
            (_, '\\') => {
                characters.next();
            }
            (Some(open), _) => quote = Some(open).filter(|open| *open != character),
            (None, '"' | '\'') => quote = Some(character),
            (None, '[') => depth += 1,
            (None, ']') if depth == 0 => return Some(at),
            (None, ']') => depth -= 1,
            _ => {}
        }
    }
    None
}

fn subscript(text: &str) -> Option<Step> {
    if text == "*" {
        return Some(Step::All);
    }
    if let Some(filter) = text.strip_prefix("?(").and_then(|text| text.strip_suffix(')')) {
        return Some(Step::Filter(self::filter(filter.trim())?));
    }
    if let Some(name) = quoted(text) {
        return Some(Step::Member(name));
    }
    if let Some((start, end)) = text.split_once(':') {
        let bound = |text: &str| match text.trim() {
            "" => Some(None),
            number => number.parse().ok().map(Some),
        };
        return Some(Step::Slice(bound(start)?, bound(end)?));
    }
    let items: Option<Vec<i64>> = text.split(',').map(|number| number.trim().parse().ok()).collect();
    Some(Step::Items(items?))
}

fn filter(text: &str) -> Option<Filter> {
    let operators = [
        ("==", Comparison::Equal),
        ("!=", Comparison::NotEqual),
        ("<=", Comparison::LessOrEqual),
        (">=", Comparison::GreaterOrEqual),
        ("<", Comparison::Less),
        (">", Comparison::Greater),
    ];
    let first = operators
        .into_iter()
        .filter_map(|(sign, comparison)| Some((text.find(sign)?, sign, comparison)))
        .min_by_key(|(at, sign, _)| (*at, std::cmp::Reverse(sign.len())));
    let Some((at, sign, comparison)) = first else {
        return Some(Filter { path: JsonPath::parse(text)?, comparison: None });
    };
    let wanted = text[at + sign.len()..].trim();
    let wanted =
        quoted(wanted).map_or_else(|| serde_json::from_str(wanted).ok(), |text| Some(text.into()))?;
    Some(Filter { path: JsonPath::parse(text[..at].trim())?, comparison: Some((comparison, wanted)) })
}

/// The content of a text in quotes.
fn quoted(text: &str) -> Option<String> {
    let quote = text.chars().next().filter(|first| matches!(first, '"' | '\''))?;
    let inner = text.strip_prefix(quote)?.strip_suffix(quote)?;
    let mut content = String::new();
    let mut characters = inner.chars();
    while let Some(character) = characters.next() {
        content.push(if character == '\\' { characters.next()? } else { character });
    }
    Some(content)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn paths_of_printer_columns_find_what_a_real_server_finds() {
        let object = json!({
            "metadata": {"name": "w1", "labels": {"app.kubernetes.io/name": "cart"}},
            "spec": {"items": [{"name": "a", "at": 1}, {"name": "b", "at": 2}, {"name": "c", "at": 3}]},
            "status": {"conditions": [{"type": "Other", "status": "no"}, {"type": "Ready", "status": "True"}]},
        });
        for (path, expected) in [
            (".spec.items[0].name", Some("a")),
            (".spec.items[-1].name", Some("c")),
            (".spec.items[-4].name", None),
            (".spec.items[9].name", None),
            (".spec.items[*].name", Some("a")),
            (".spec.items[1:3].name", Some("b")),
            (".spec.items[2:1].name", None),
            (".spec.items[1,0].name", Some("b")),
            (".spec.items[?(@.at>1)].name", Some("b")),
            (".spec.items[?(@.at>=3)].name", Some("c")),
            (".spec.items[?(@.name!='a')].name", Some("b")),
            (r#".status.conditions[?(@.type=="Ready")].status"#, Some("True")),
            (r#"{.status.conditions[?(@.type == "Ready")].status}"#, Some("True")),
            (".status.conditions[?(@.missing)].status", None),
            (r".metadata.labels.app\.kubernetes\.io/name", Some("cart")),
            (r".metadata.labels['app\.kubernetes\.io/name']", Some("cart")),
            (".metadata.labels.*", Some("cart")),
            ("..name", Some("w1")),
            (".nothing.here", None),
        ] {
            let found = JsonPath::parse(path).unwrap_or_else(|| panic!("{path} is a path"));
            assert_eq!(found.first(&object).and_then(Value::as_str), expected, "{path}");
        }
    }

    #[test]
    fn what_is_not_a_path_is_none() {
        for path in ["name", ".a[", ".a['b]", ".a[x]", ".a[?(@.b==]", ".a[1:x]", ".a..", r".a\"] {
            assert_eq!(JsonPath::parse(path), None, "{path}");
        }
    }
}
