//! Valid labels, as the Kubernetes API defines them, and its words for invalid ones.

/// The reason in the server's words, and the remedy.
pub(super) type Fault = (String, &'static str);

const KEY: &str = "write up to 63 letters, digits, `-`, `_` and `.`, with a letter or a digit at both ends, behind an optional \
                   DNS name and `/`";
const VALUE: &str =
    "write nothing, or up to 63 letters, digits, `-`, `_` and `.`, with a letter or a digit at both ends";

const NAME_FORM: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric \
                         character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
                         '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const PREFIX_FORM: &str = "prefix part a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' \
                           or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used \
                           for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const VALUE_FORM: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and \
                          must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', \
                          regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";

/// A key that no label can have.
pub(super) fn key_fault(key: &str) -> Option<Fault> {
    let error = key_error(key)?;
    Some((format!("<nil>: Invalid value: {key:?}: {error}"), KEY))
}

/// Values that no label of this key can have. `compares`: whether they are bounds of numbers.
pub(super) fn value_fault<'a>(
    key: &str,
    values: impl Iterator<Item = &'a str>,
    compares: bool,
) -> Option<Fault> {
    let mut numbers = Vec::new();
    let mut errors = Vec::new();
    for (at, value) in values.enumerate() {
        if compares && value.parse::<i64>().is_err() {
            numbers.push(format!(
                "values[0]: Invalid value: {value:?}: for 'Gt', 'Lt' operators, the value must be an integer"
            ));
        }
        if let Some(error) = value_error(value) {
            errors.push(format!("values[{at}][{key}]: Invalid value: {value:?}: {error}"));
        }
    }
    let remedy = if numbers.is_empty() { VALUE } else { "compare with a whole number" };
    numbers.extend(errors);
    match numbers.as_slice() {
        [] => None,
        [error] => Some((error.clone(), remedy)),
        _ => Some((format!("[{}]", numbers.join(", ")), remedy)),
    }
}

fn key_error(key: &str) -> Option<String> {
    let mut errors = Vec::new();
    let name = match key.split_once('/') {
        None => key,
        Some((_, name)) if name.contains('/') => {
            return Some(format!(
                "a valid label key {NAME_FORM} with an optional DNS subdomain prefix and '/' (e.g. \
                 'example.com/MyName')"
            ));
        }
        Some((prefix, name)) => {
            if prefix.is_empty() {
                errors.push("prefix part must be non-empty".to_owned());
            } else if prefix.len() > 253 {
                errors.push("prefix part must be no more than 253 bytes".to_owned());
            } else if !prefix.split('.').all(is_dns_label) {
                errors.push(PREFIX_FORM.to_owned());
            }
            name
        }
    };
    if name.is_empty() {
        errors.push("name part must be non-empty".to_owned());
    } else if name.len() > 63 {
        errors.push("name part must be no more than 63 bytes".to_owned());
    }
    if !is_name(name) {
        errors.push(format!("name part {NAME_FORM}"));
    }
    (!errors.is_empty()).then(|| errors.join("; "))
}

fn value_error(value: &str) -> Option<String> {
    let mut errors = Vec::new();
    if value.len() > 63 {
        errors.push("must be no more than 63 bytes");
    }
    if !value.is_empty() && !is_name(value) {
        errors.push(VALUE_FORM);
    }
    (!errors.is_empty()).then(|| errors.join("; "))
}

fn is_name(text: &str) -> bool {
    let is_inner = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    text.bytes().all(is_inner) && has_ends(text, |byte| byte.is_ascii_alphanumeric())
}

fn is_dns_label(text: &str) -> bool {
    let is_end = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    text.bytes().all(|byte| is_end(byte) || byte == b'-') && has_ends(text, is_end)
}

/// Whether the text has a first and a last character, both of the right kind.
fn has_ends(text: &str, is_right: impl Fn(u8) -> bool) -> bool {
    matches!((text.as_bytes().first(), text.as_bytes().last()), (Some(&a), Some(&b)) if is_right(a) && is_right(b))
}
