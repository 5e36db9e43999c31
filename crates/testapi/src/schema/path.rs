//! Paths to fields: by name, by the key of an item, by value, by index.

use std::cmp::Ordering;
use std::fmt;

use serde_json::Value;

use super::{Relation, TypeRef};

/// One step of a path. Steps are sorted as in managed fields: names, keys, values, indexes.
#[derive(Debug, Clone)]
pub(crate) enum Element {
    /// `f:replicas`, `.replicas`
    Field(Box<str>),
    /// `k:{"name":"a"}`, `[name="a"]`; sorted by name.
    Key(Vec<(Box<str>, Value)>),
    /// `v:"a"`, `[="a"]`
    Value(Value),
    /// `i:0`, `[0]`
    Index(usize),
}

/// An item of a list that is a map or a set, as a step of a path.
///
/// # Errors
///
/// The message of server-side apply for an item that it cannot identify.
pub(crate) fn element_of(relation: &Relation, items: &TypeRef, item: &Value) -> Result<Element, String> {
    let keys = match relation {
        Relation::Atomic => return Err("invalid indexing of non-associative list".to_owned()),
        Relation::Set => return element_of_set(item),
        Relation::Map(keys) => keys,
    };
    let members = match item {
        Value::Object(members) => members,
        Value::Null => return Err("associative list with keys may not have a null element".to_owned()),
        _ => return Err("associative list with keys may not have non-map elements".to_owned()),
    };
    let value = |key: &str| members.get(key).or_else(|| items.field(key)?.default.as_ref()).cloned();
    let mut values: Vec<(Box<str>, Value)> =
        keys.iter().filter_map(|key| Some((key.clone(), value(key)?))).collect();
    if values.is_empty() {
        let keys: Vec<_> = keys.iter().map(|key| format!("{key:?}")).collect();
        return Err(format!(
            "associative list with keys has an element that omits all key fields [{}] (and doesn't have default values \
             for any key fields)",
            keys.join(" ")
        ));
    }
    values.sort_by(|(left, _), (right, _)| left.cmp(right));
    Ok(Element::Key(values))
}

fn element_of_set(item: &Value) -> Result<Element, String> {
    match item {
        Value::Object(_) => Err("associative list without keys has an element that's a map type".to_owned()),
        Value::Array(_) => Err("not supported: associative list with lists as elements".to_owned()),
        Value::Null => Err("associative list without keys has an element that's an explicit null".to_owned()),
        value => Ok(Element::Value(value.clone())),
    }
}

impl Element {
    pub(crate) fn field(name: &str) -> Self {
        Self::Field(name.into())
    }

    /// The form in managed fields: `f:spec`.
    pub(crate) fn encode(&self) -> String {
        match self {
            Self::Field(name) => format!("f:{name}"),
            Self::Key(values) => {
                let members: serde_json::Map<_, _> =
                    values.iter().map(|(name, value)| (name.to_string(), value.clone())).collect();
                format!("k:{}", Value::Object(members))
            }
            Self::Value(value) => format!("v:{value}"),
            Self::Index(at) => format!("i:{at}"),
        }
    }

    /// `Ok(None)` for an unknown kind of step, which callers skip; `Err` for a malformed one.
    pub(crate) fn decode(text: &str) -> Result<Option<Self>, String> {
        if text.len() < 2 {
            return Err("key must be 2 characters long:".to_owned());
        }
        let Some((kind, rest)) = text.split_once(':').filter(|(kind, _)| kind.len() == 1) else {
            return Err(format!("missing colon: {text}"));
        };
        let json = || serde_json::from_str::<Value>(rest).map_err(|error| error.to_string());
        Ok(Some(match kind {
            "f" => Self::field(rest),
            "v" => Self::Value(json()?),
            "k" => match json()? {
                Value::Object(members) => {
                    Self::Key(members.into_iter().map(|(name, value)| (name.into(), value)).collect())
                }
                _ => return Err(format!("expected a JSON object: {rest}")),
            },
            "i" => Self::Index(rest.parse().map_err(|_| format!("expected a number: {rest}"))?),
            _ => return Ok(None),
        }))
    }

    fn rank(&self) -> u8 {
        match self {
            Self::Field(_) => 0,
            Self::Key(_) => 1,
            Self::Value(_) => 2,
            Self::Index(_) => 3,
        }
    }
}

/// The form in messages: `.containers`, `[name="a"]`.
impl fmt::Display for Element {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Field(name) => write!(f, ".{name}"),
            Self::Key(values) => {
                let values: Vec<_> = values.iter().map(|(name, value)| format!("{name}={value}")).collect();
                write!(f, "[{}]", values.join(","))
            }
            Self::Value(value) => write!(f, "[={value}]"),
            Self::Index(at) => write!(f, "[{at}]"),
        }
    }
}

impl Ord for Element {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Field(left), Self::Field(right)) => left.cmp(right),
            (Self::Key(left), Self::Key(right)) => {
                for ((left_name, left), (right_name, right)) in left.iter().zip(right) {
                    let order = left_name.cmp(right_name).then_with(|| compare(left, right));
                    if order.is_ne() {
                        return order;
                    }
                }
                left.len().cmp(&right.len())
            }
            (Self::Value(left), Self::Value(right)) => compare(left, right),
            (Self::Index(left), Self::Index(right)) => left.cmp(right),
            _ => self.rank().cmp(&other.rank()),
        }
    }
}

impl PartialOrd for Element {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Element {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Element {}

/// An order of all values: numbers, strings, booleans, the rest.
fn compare(left: &Value, right: &Value) -> Ordering {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => match (left.as_i64(), right.as_i64()) {
            (Some(left), Some(right)) => left.cmp(&right),
            _ => left.as_f64().unwrap_or_default().total_cmp(&right.as_f64().unwrap_or_default()),
        },
        (Value::String(left), Value::String(right)) => left.cmp(right),
        (Value::Bool(left), Value::Bool(right)) => left.cmp(right),
        _ => rank(left).cmp(&rank(right)).then_with(|| left.to_string().cmp(&right.to_string())),
    }
}

fn rank(value: &Value) -> u8 {
    match value {
        Value::Number(_) => 0,
        Value::String(_) => 1,
        Value::Bool(_) => 2,
        Value::Array(_) => 3,
        Value::Object(_) => 4,
        Value::Null => 5,
    }
}
