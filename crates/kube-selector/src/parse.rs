//! Parses label selectors.
//!
//! A selector is a list of requirements separated by `,`. Each requirement is one of these:
//! `key`, `!key`, `key = value` (or `==`), `key != value`, `key > number`, `key < number`, `key in (value, ...)`,
//! `key notin (value, ...)`. White space is ignored, and `in` and `notin` are operators only in an operator's place. Not
//! documented, but accepted by the server and so here: values may be empty, and a missing value is the empty one.

use std::str::FromStr;

use crate::validity::key_fault;
use crate::{InvalidSelector, Operator, Requirement, Selector};

const SYNTAX: &str =
    "write requirements like `a=b`, `a!=b`, `a in (b,c)`, `a notin (b,c)`, `a` or `!a`, parted by commas";

impl FromStr for Selector {
    type Err = InvalidSelector;

    /// Parses the syntax of `kubectl -l`; the empty string selects everything.
    fn from_str(text: &str) -> Result<Self, InvalidSelector> {
        Parser { text, tokens: tokens(text), next: 0 }.selector()
    }
}

impl TryFrom<&str> for Selector {
    type Error = InvalidSelector;

    fn try_from(text: &str) -> Result<Self, InvalidSelector> {
        text.parse()
    }
}

impl TryFrom<&String> for Selector {
    type Error = InvalidSelector;

    fn try_from(text: &String) -> Result<Self, InvalidSelector> {
        text.parse()
    }
}

impl TryFrom<String> for Selector {
    type Error = InvalidSelector;

    fn try_from(text: String) -> Result<Self, InvalidSelector> {
        text.parse()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Token<'a> {
    /// The offset in bytes.
    at: usize,
    kind: Kind<'a>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind<'a> {
    Word(&'a str),
    Symbol(&'a str),
    End,
}

const SYMBOLS: [&str; 9] = ["==", "!=", "=", "!", "(", ")", ",", ">", "<"];

fn is_symbol(character: char) -> bool {
    matches!(character, '=' | '!' | '(' | ')' | ',' | '>' | '<')
}

fn is_space(character: char) -> bool {
    matches!(character, ' ' | '\t' | '\r' | '\n')
}

/// Splits the text into tokens. The last one, and only that, is `End`.
fn tokens(text: &str) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start_matches(is_space);
    while !rest.is_empty() {
        let at = text.len() - rest.len();
        let symbol = SYMBOLS.into_iter().find(|symbol| rest.starts_with(symbol));
        let len = symbol.map_or_else(
            || rest.find(|character| is_symbol(character) || is_space(character)).unwrap_or(rest.len()),
            str::len,
        );
        let (token, after) = rest.split_at(len);
        tokens.push(Token { at, kind: symbol.map_or(Kind::Word(token), Kind::Symbol) });
        rest = after.trim_start_matches(is_space);
    }
    tokens.push(Token { at: text.len(), kind: Kind::End });
    tokens
}

struct Parser<'a> {
    text: &'a str,
    tokens: Vec<Token<'a>>,
    next: usize,
}

impl<'a> Parser<'a> {
    fn selector(mut self) -> Result<Selector, InvalidSelector> {
        let mut requirements = Vec::new();
        match self.peek().kind {
            Kind::End => return Ok(Selector::EVERYTHING),
            Kind::Word(_) | Kind::Symbol("!") => {}
            Kind::Symbol(_) => return Err(self.unexpected("", "expected: !, identifier, or 'end of string'")),
        }
        loop {
            requirements.push(self.requirement()?);
            match self.peek().kind {
                Kind::End => return Ok(requirements.into_iter().collect()),
                Kind::Symbol(",") => self.next += 1,
                _ => return Err(self.unexpected("", "expected: ',' or 'end of string'")),
            }
            if !matches!(self.peek().kind, Kind::Word(_) | Kind::Symbol("!")) {
                return Err(self.unexpected("", "expected: identifier after ','"));
            }
        }
    }

    fn requirement(&mut self) -> Result<Requirement, InvalidSelector> {
        let is_absent = self.take_symbol("!");
        let start = self.peek().at;
        let key = self.word()?;
        if let Some((reason, remedy)) = key_fault(key) {
            return Err(self.refused(start, &reason, remedy));
        }
        let (operator, takes_list) = match self.peek().kind {
            _ if is_absent => return Ok(Requirement::unchecked(key, Operator::DoesNotExist, Vec::new())),
            Kind::End | Kind::Symbol(",") => {
                return Ok(Requirement::unchecked(key, Operator::Exists, Vec::new()));
            }
            Kind::Symbol("=" | "==") => (Operator::In, false),
            Kind::Symbol("!=") => (Operator::NotIn, false),
            Kind::Symbol(">") => (Operator::GreaterThan, false),
            Kind::Symbol("<") => (Operator::LessThan, false),
            Kind::Word("in") => (Operator::In, true),
            Kind::Word("notin") => (Operator::NotIn, true),
            _ => return Err(self.unexpected(REQUIREMENT, "expected: in, notin, =, ==, !=, gt, lt")),
        };
        self.next += 1;
        let values = if takes_list { self.list()? } else { vec![self.value()?] };
        let requirement = Requirement::unchecked(key, operator, values);
        match requirement.values_fault() {
            None => Ok(requirement),
            Some((reason, remedy)) => Err(self.refused(start, &reason, remedy)),
        }
    }

    fn word(&mut self) -> Result<&'a str, InvalidSelector> {
        match self.peek().kind {
            Kind::Word(word) => {
                self.next += 1;
                Ok(word)
            }
            _ => Err(self.unexpected(REQUIREMENT, "expected: identifier")),
        }
    }

    /// One value. If none follows, it is the empty one.
    fn value(&mut self) -> Result<&'a str, InvalidSelector> {
        match self.peek().kind {
            Kind::End | Kind::Symbol(",") => Ok(""),
            _ => self.word(),
        }
    }

    fn list(&mut self) -> Result<Vec<&'a str>, InvalidSelector> {
        if !self.take_symbol("(") {
            return Err(self.unexpected(REQUIREMENT, " expected: '('"));
        }
        let mut values = Vec::new();
        if !matches!(self.peek().kind, Kind::Word(_) | Kind::Symbol("," | ")")) {
            return Err(self.unexpected(REQUIREMENT, "expected: ',', ')' or identifier"));
        }
        loop {
            // Between two commas or parentheses without a word is the empty value.
            match self.peek().kind {
                Kind::Word(value) => {
                    values.push(value);
                    self.next += 1;
                }
                Kind::Symbol("," | ")") => values.push(""),
                _ => return Err(self.unexpected(REQUIREMENT, "expected: ',', or identifier")),
            }
            if self.take_symbol(")") {
                return Ok(values);
            }
            if !self.take_symbol(",") {
                return Err(self.unexpected(REQUIREMENT, "expected: ',' or ')'"));
            }
        }
    }

    fn peek(&self) -> Token<'a> {
        self.tokens.get(self.next).copied().unwrap_or(Token { at: self.text.len(), kind: Kind::End })
    }

    fn take_symbol(&mut self, symbol: &str) -> bool {
        let is_it = self.peek().kind == Kind::Symbol(symbol);
        self.next += usize::from(is_it);
        is_it
    }

    /// The next token is none that can follow.
    fn unexpected(&self, prefix: &str, expected: &str) -> InvalidSelector {
        let (Token { at, kind }, comma) = (self.peek(), if expected.starts_with(' ') { "" } else { ", " });
        let found = match kind {
            Kind::Word(text) | Kind::Symbol(text) => text,
            Kind::End => "",
        };
        let reason = format!("{prefix}found '{found}'{comma}{expected}");
        InvalidSelector::labels(reason, SYNTAX).at(self.text, at)
    }

    fn refused(&self, at: usize, reason: &str, remedy: &'static str) -> InvalidSelector {
        InvalidSelector::labels(format!("{REQUIREMENT}{reason}"), remedy).at(self.text, at)
    }
}

/// The words before an error in a requirement.
const REQUIREMENT: &str = "unable to parse requirement: ";

#[cfg(test)]
mod tests {
    use crate::Selector;

    fn selector(text: &str) -> Selector {
        text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    /// From apimachinery's `TestSelectorParse` and `TestSelectorMatches`.
    #[test]
    fn reads_what_apimachinery_reads() {
        for (text, shown) in [
            ("", ""),
            ("  ", ""),
            ("x=a,y=b,z=c", "x=a,y=b,z=c"),
            ("x!=a,y=b", "x!=a,y=b"),
            ("x=", "x="),
            ("x= ", "x="),
            ("x=,z= ", "x=,z="),
            ("x= ,z= ", "x=,z="),
            ("!x", "!x"),
            ("x>1", "x>1"),
            ("x>1,z<5", "x>1,z<5"),
            ("x == a", "x=a"),
            (" x in ( b , a ) ", "x in (a,b)"),
            ("x in (a,)", "x in (,a)"),
            ("x in (,a)", "x in (,a)"),
            ("x in (,,a,)", "x in (,a)"),
            ("x in ()", "x="),
            ("x in (a)", "x=a"),
            ("x notin (a,a)", "x!=a"),
            ("z,b notin (c),a", "a,b!=c,z"),
            ("x!=b,x=a,x!=b", "x=a,x!=b"),
            ("in in (in,notin)", "in in (in,notin)"),
            ("notin", "notin"),
            ("example.com/app=shop", "example.com/app=shop"),
        ] {
            assert_eq!(selector(text).to_string(), shown, "{text}");
            assert_eq!(selector(shown), selector(text), "{text}");
        }
    }

    #[test]
    fn names_the_place_and_the_remedy() {
        for (text, message) in [
            (
                "a b",
                "at character 2: unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt; write req",
            ),
            ("a,", "at character 2: found '', expected: identifier after ','; write"),
            (",a", "at character 0: found ',', expected: !, identifier, or 'end of string'"),
            ("a in b", "at character 5: unable to parse requirement: found 'b' expected: '('"),
            ("a in (b", "at character 7: unable to parse requirement: found '', expected: ',' or ')'"),
            (
                "a in (b,",
                "at character 8: unable to parse requirement: found '', expected: ',', or identifier",
            ),
            (
                "a in (=)",
                "at character 6: unable to parse requirement: found '=', expected: ',', ')' or identifier",
            ),
            ("!a=b", "at character 2: found '=', expected: ',' or 'end of string'"),
            ("a=b=c", "at character 3: found '=', expected: ',' or 'end of string'"),
            ("a=)", "at character 2: unable to parse requirement: found ')', expected: identifier"),
            (
                "a,x>b",
                "at character 2: unable to parse requirement: values[0]: Invalid value: \"b\": for 'Gt', 'Lt' operators, the value must be an integer; compare with a whole number",
            ),
            (
                "a,-x=b",
                "at character 2: unable to parse requirement: <nil>: Invalid value: \"-x\": name part must consist",
            ),
            (
                "Example/x",
                "at character 0: unable to parse requirement: <nil>: Invalid value: \"Example/x\": prefix part a lowercase",
            ),
            (
                "a=ü",
                "at character 0: unable to parse requirement: values[0][a]: Invalid value: \"ü\": a valid label must be",
            ),
            ("a!", "at character 1: unable to parse requirement: found '!', expected: in, notin"),
        ] {
            let error = text.parse::<Selector>().unwrap_err().to_string();
            assert!(
                error.starts_with(&format!("invalid label selector `{text}` {message}")),
                "{text}: {error}"
            );
        }
    }

    #[test]
    fn matches_what_apimachinery_matches() {
        let labels =
            |text: &'static str| text.split(',').filter_map(|pair| pair.split_once('=')).collect::<Vec<_>>();
        for (text, set, expected) in [
            ("", "x=y", true),
            ("x=y", "x=y", true),
            ("x=y,z=w", "x=y,z=w", true),
            ("x!=y,z!=w", "x=z,z=a", true),
            ("notin=in", "notin=in", true),
            ("x", "x=z", true),
            ("!x", "y=z", true),
            ("x>1", "x=2", true),
            ("x<1", "x=0", true),
            ("x>1", "x=b", false),
            ("x>1", "y=2", false),
            ("x=z", "", false),
            ("x!=z", "", true),
            ("x notin (a,b)", "", true),
            ("x notin (a,b)", "x=b", false),
            ("x in (a,b)", "x=b", true),
            ("x in (,b)", "x=", true),
            ("x=", "", false),
            ("!x", "x=z", false),
            ("x=y,z=w", "x=w,z=w", false),
        ] {
            assert_eq!(selector(text).matches(&labels(set)[..]), expected, "{text} on {set}");
        }
    }
}
