//! Label selectors: `app=web,tier in (a,b),!canary`.
//!
//! The grammar is the server's own, including what is not documented: `in` and `notin` are names in the place of a
//! name, values may be empty, and a missing value is the empty one.

use std::collections::BTreeSet;
use std::iter::Peekable;
use std::vec;

use crate::Labels;

/// One of the conditions, all of which must hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Requirement {
    key: String,
    test: Test,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Test {
    In(BTreeSet<String>),
    NotIn(BTreeSet<String>),
    Exists,
    Missing,
    Above(i64),
    Below(i64),
}

impl Requirement {
    pub(crate) fn matches(&self, labels: &Labels) -> bool {
        let value = labels.get(&self.key);
        let number = || value.and_then(|value| value.parse::<i64>().ok());
        match &self.test {
            Test::In(values) => value.is_some_and(|value| values.contains(value)),
            Test::NotIn(values) => value.is_none_or(|value| !values.contains(value)),
            Test::Exists => value.is_some(),
            Test::Missing => value.is_none(),
            Test::Above(limit) => number().is_some_and(|number| number > *limit),
            Test::Below(limit) => number().is_some_and(|number| number < *limit),
        }
    }
}

/// Parses a selector; the error is in the server's words.
pub(crate) fn parse(text: &str) -> Result<Vec<Requirement>, String> {
    let mut tokens = tokens(text).into_iter().peekable();
    let mut requirements = Vec::new();
    loop {
        match tokens.peek() {
            None => return Ok(requirements),
            Some(Token::Word(_)) => {}
            Some(Token::Symbol("!")) => {}
            Some(other) => {
                return Err(format!("found '{}', expected: !, identifier, or 'end of string'", other.text()));
            }
        }
        requirements
            .push(requirement(&mut tokens).map_err(|error| format!("unable to parse requirement: {error}"))?);
        match tokens.next() {
            None => return Ok(requirements),
            Some(Token::Symbol(",")) => match tokens.peek() {
                Some(Token::Word(_) | Token::Symbol("!")) => {}
                other => {
                    return Err(format!("found '{}', expected: identifier after ','", said(other)));
                }
            },
            Some(other) => return Err(format!("found '{}', expected: ',' or 'end of string'", other.text())),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Token {
    Word(String),
    Symbol(&'static str),
    Wrong(String),
}

type Tokens = Peekable<vec::IntoIter<Token>>;

impl Token {
    fn text(&self) -> &str {
        match self {
            Self::Word(text) | Self::Wrong(text) => text,
            Self::Symbol(text) => text,
        }
    }
}

fn said(token: Option<&Token>) -> &str {
    token.map_or("", Token::text)
}

fn tokens(text: &str) -> Vec<Token> {
    const SPECIAL: &str = "=!(),<>";
    const SYMBOLS: [&str; 9] = ["!", "!=", "(", ")", ",", "=", "==", "<", ">"];
    let blank = |c: char| matches!(c, ' ' | '\t' | '\r' | '\n');
    let mut tokens = Vec::new();
    let mut rest = text.trim_start_matches(blank);
    while let Some(first) = rest.chars().next() {
        let length = if SPECIAL.contains(first) {
            // The longest run of special characters that is an operator; a run that begins with none is an error as a
            // whole.
            let run = rest.find(|c| !SPECIAL.contains(c)).unwrap_or(rest.len());
            let known = |length: &usize| SYMBOLS.contains(&&rest[..*length]);
            match (1..=run).find(known) {
                Some(start) => (start..=run).take_while(known).last().unwrap_or(start),
                None => run,
            }
        } else {
            rest.find(|c| SPECIAL.contains(c) || blank(c)).unwrap_or(rest.len())
        };
        let (token, tail) = rest.split_at(length);
        tokens.push(match SYMBOLS.iter().find(|symbol| **symbol == token) {
            Some(symbol) => Token::Symbol(symbol),
            None if SPECIAL.contains(first) => {
                Token::Wrong(format!("error expected: keyword found '{token}'"))
            }
            None => Token::Word(token.to_string()),
        });
        rest = tail.trim_start_matches(blank);
    }
    tokens
}

fn requirement(tokens: &mut Tokens) -> Result<Requirement, String> {
    let missing = tokens.next_if_eq(&Token::Symbol("!")).is_some();
    let key = match tokens.next() {
        Some(Token::Word(key)) => key,
        other => return Err(format!("found '{}', expected: identifier", said(other.as_ref()))),
    };
    if let Some(error) = key_error(&key) {
        return Err(format!("<nil>: Invalid value: {key:?}: {error}"));
    }
    if missing {
        return Ok(Requirement { key, test: Test::Missing });
    }
    if matches!(tokens.peek(), None | Some(Token::Symbol(","))) {
        return Ok(Requirement { key, test: Test::Exists });
    }
    let operator = tokens.next();
    let operator = said(operator.as_ref());
    let values = match operator {
        "in" | "notin" => several(tokens)?,
        "=" | "==" | "!=" | "<" | ">" => BTreeSet::from([one(tokens)?]),
        other => return Err(format!("found '{other}', expected: in, notin, =, ==, !=, gt, lt")),
    };
    let mut errors = Vec::new();
    let mut limit = 0;
    if matches!(operator, "<" | ">") {
        for value in &values {
            match value.parse() {
                Ok(number) => limit = number,
                Err(_) => errors.push(format!(
                    "values[0]: Invalid value: {value:?}: for 'Gt', 'Lt' operators, the value must be an integer"
                )),
            }
        }
    }
    for (at, value) in values.iter().enumerate() {
        if let Some(error) = value_error(value) {
            errors.push(format!("values[{at}][{key}]: Invalid value: {value:?}: {error}"));
        }
    }
    match errors.as_slice() {
        [] => {}
        [error] => return Err(error.clone()),
        _ => return Err(format!("[{}]", errors.join(", "))),
    }
    let test = match operator {
        "notin" | "!=" => Test::NotIn(values),
        ">" => Test::Above(limit),
        "<" => Test::Below(limit),
        _ => Test::In(values),
    };
    Ok(Requirement { key, test })
}

fn one(tokens: &mut Tokens) -> Result<String, String> {
    match tokens.peek() {
        None | Some(Token::Symbol(",")) => Ok(String::new()),
        _ => match tokens.next() {
            Some(Token::Word(value)) => Ok(value),
            other => Err(format!("found '{}', expected: identifier", said(other.as_ref()))),
        },
    }
}

fn several(tokens: &mut Tokens) -> Result<BTreeSet<String>, String> {
    let open = tokens.next();
    if open != Some(Token::Symbol("(")) {
        return Err(format!("found '{}' expected: '('", said(open.as_ref())));
    }
    let mut values = BTreeSet::new();
    match tokens.peek() {
        Some(Token::Symbol(")")) => {
            tokens.next();
            values.insert(String::new());
            return Ok(values);
        }
        Some(Token::Word(_) | Token::Symbol(",")) => {}
        other => return Err(format!("found '{}', expected: ',', ')' or identifier", said(other))),
    }
    loop {
        match tokens.next() {
            Some(Token::Word(value)) => {
                values.insert(value);
                match tokens.peek() {
                    Some(Token::Symbol(",")) => {}
                    Some(Token::Symbol(")")) => break,
                    other => return Err(format!("found '{}', expected: ',' or ')'", said(other))),
                }
            }
            Some(Token::Symbol(",")) => {
                if values.is_empty() {
                    values.insert(String::new());
                }
                match tokens.peek() {
                    Some(Token::Symbol(")")) => {
                        values.insert(String::new());
                        break;
                    }
                    Some(Token::Symbol(",")) => {
                        values.insert(String::new());
                    }
                    _ => {}
                }
            }
            other => return Err(format!("found '{}', expected: ',', or identifier", said(other.as_ref()))),
        }
    }
    tokens.next();
    Ok(values)
}

fn key_error(key: &str) -> Option<String> {
    let mut errors = Vec::new();
    let parts: Vec<&str> = key.split('/').collect();
    let name = match parts.as_slice() {
        [name] => name,
        [prefix, name] => {
            if prefix.is_empty() {
                errors.push("prefix part must be non-empty".to_string());
            } else if prefix.len() > 253 {
                errors.push("prefix part must be no more than 253 bytes".to_string());
            } else if !prefix.split('.').all(is_dns_label) {
                errors.push(
                    "prefix part a lowercase RFC 1123 subdomain must consist of lower case alphanumeric \
                     characters, '-' or '.', and must start and end with an alphanumeric character (e.g. \
                     'example.com', regex used for validation is \
                     '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
                        .to_string(),
                );
            }
            name
        }
        _ => {
            return Some(
                "a valid label key must consist of alphanumeric characters, '-', '_' or '.', and must start \
                 and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex \
                 used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS \
                 subdomain prefix and '/' (e.g. 'example.com/MyName')"
                    .to_string(),
            );
        }
    };
    if name.is_empty() {
        errors.push("name part must be non-empty".to_string());
    } else if name.len() > 63 {
        errors.push("name part must be no more than 63 bytes".to_string());
    }
    if !is_name(name) {
        errors.push(
            "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with \
             an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for \
             validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
                .to_string(),
        );
    }
    (!errors.is_empty()).then(|| errors.join("; "))
}

fn value_error(value: &str) -> Option<String> {
    let mut errors = Vec::new();
    if value.len() > 63 {
        errors.push("must be no more than 63 bytes");
    }
    if !value.is_empty() && !is_name(value) {
        errors.push(
            "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', \
             and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or \
             '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')",
        );
    }
    (!errors.is_empty()).then(|| errors.join("; "))
}

fn is_name(text: &str) -> bool {
    let ends = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    let bytes = text.as_bytes();
    ends(bytes.first())
        && ends(bytes.last())
        && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(byte))
}

fn is_dns_label(text: &str) -> bool {
    let ends =
        |byte: Option<&u8>| byte.is_some_and(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
    let bytes = text.as_bytes();
    ends(bytes.first())
        && ends(bytes.last())
        && bytes.iter().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || *byte == b'-')
}
