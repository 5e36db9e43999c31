//! Valid labels, as the Kubernetes API defines them.

use super::{Operator, Requirement};

/// The reason, and the remedy.
type Fault = (String, &'static str);

const NAME: &str = "write up to 63 letters, digits, `-`, `_` and `.`, with a letter or a digit at both ends";
const PREFIX: &str =
    "write the part before `/` as a DNS name of up to 253 lower-case letters, digits, `-` and `.`";
const VALUE: &str =
    "write nothing, or up to 63 letters, digits, `-`, `_` and `.`, with a letter or a digit at both ends";

impl Requirement {
    pub(super) fn check(&self) -> Option<Fault> {
        let count = self.values.len();
        let counted = match self.operator {
            Operator::In | Operator::NotIn if count == 0 => {
                Some(("there is no value to compare with".to_owned(), "name at least one value"))
            }
            Operator::GreaterThan | Operator::LessThan if count != 1 => {
                Some((format!("there are {count} values to compare with"), "compare with one whole number"))
            }
            Operator::Exists | Operator::DoesNotExist if count != 0 => {
                Some((format!("there are {count} values where none is asked for"), "leave them out"))
            }
            _ => None,
        };
        check_key(&self.key)
            .or(counted)
            .or_else(|| self.values.iter().find_map(|value| self.check_value(value)))
    }

    fn check_value(&self, value: &str) -> Option<Fault> {
        if self.operator.compares() && value.parse::<i64>().is_err() {
            return Some((format!("`{value}` is not a whole number"), "compare with a whole number"));
        }
        (!value.is_empty() && !is_name(value))
            .then(|| (format!("`{value}` cannot be a label's value"), VALUE))
    }
}

fn check_key(key: &str) -> Option<Fault> {
    let (prefix, name) = match key.split_once('/') {
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, key),
    };
    if prefix.is_some_and(|prefix| !is_dns_name(prefix)) {
        return Some((format!("`{key}` cannot be a label's key"), PREFIX));
    }
    (!is_name(name)).then(|| (format!("`{key}` cannot be a label's key"), NAME))
}

fn is_name(text: &str) -> bool {
    text.len() <= 63
        && has_ends(text, |byte| byte.is_ascii_alphanumeric())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'))
}

fn is_dns_name(text: &str) -> bool {
    let is_letter_or_digit = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let is_label = |label: &str| {
        has_ends(label, is_letter_or_digit)
            && label.bytes().all(|byte| is_letter_or_digit(byte) || byte == b'-')
    };
    text.len() <= 253 && text.split('.').all(is_label)
}

/// Whether the text has a first and a last character, both of the right kind.
fn has_ends(text: &str, is_right: impl Fn(u8) -> bool) -> bool {
    matches!((text.as_bytes().first(), text.as_bytes().last()), (Some(&a), Some(&b)) if is_right(a) && is_right(b))
}
