//! Parses selectors.
//!
//! A selector is a list of requirements separated by `,`. Each requirement is one of these:
//! `key`, `!key`, `key = value` (or `==`), `key != value`, `key > number`, `key < number`, `key in (value, ...)`,
//! `key notin (value, ...)`. White space is ignored, a value may be empty, and `in` and `notin` are operators only in an
//! operator's place.

use std::str::FromStr;

use super::{InvalidSelector, Operator, Requirement, Selector};

const SYNTAX: &str =
    "write requirements like `a=b`, `a!=b`, `a in (b,c)`, `a notin (b,c)`, `a` or `!a`, parted by commas";

impl FromStr for Selector {
    type Err = InvalidSelector;

    /// Parses the syntax of `kubectl -l`; the empty string selects everything.
    fn from_str(text: &str) -> Result<Self, InvalidSelector> {
        Parser { text, tokens: tokens(text), next: 0 }.selector().map_err(|error| error.within(text))
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

fn is_space(character: char) -> bool {
    matches!(character, ' ' | '\t' | '\r' | '\n')
}

struct Parser<'a> {
    text: &'a str,
    tokens: Vec<Token<'a>>,
    next: usize,
}

impl<'a> Parser<'a> {
    fn selector(mut self) -> Result<Selector, InvalidSelector> {
        let mut requirements = Vec::new();
        if self.peek().kind == Kind::End {
            return Ok(Selector::EVERYTHING);
        }
        loop {
            requirements.push(self.requirement()?);
            let token = self.take();
            match token.kind {
                Kind::End => return Ok(requirements.into_iter().collect()),
                Kind::Symbol(",") => {}
                _ => return Err(self.surprise(token, "`,` or the end")),
            }
        }
    }

    fn requirement(&mut self) -> Result<Requirement, InvalidSelector> {
        let is_absent = self.take_symbol("!");
        let start = self.peek().at;
        let key = self.key()?;
        if is_absent {
            return self.built(start, key, Operator::DoesNotExist, &[]);
        }
        let token = self.peek();
        let (operator, takes_list) = match token.kind {
            Kind::End | Kind::Symbol(",") => return self.built(start, key, Operator::Exists, &[]),
            Kind::Symbol("=" | "==") => (Operator::In, false),
            Kind::Symbol("!=") => (Operator::NotIn, false),
            Kind::Symbol(">") => (Operator::GreaterThan, false),
            Kind::Symbol("<") => (Operator::LessThan, false),
            Kind::Word("in") => (Operator::In, true),
            Kind::Word("notin") => (Operator::NotIn, true),
            _ => return Err(self.surprise(token, "`=`, `==`, `!=`, `<`, `>`, `in`, `notin`, `,` or the end")),
        };
        self.take();
        let values = if takes_list { self.list()? } else { vec![self.value()] };
        self.built(start, key, operator, &values)
    }

    fn key(&mut self) -> Result<&'a str, InvalidSelector> {
        let token = self.take();
        match token.kind {
            Kind::Word(key) => Ok(key),
            _ => Err(self.surprise(token, "a label's key")),
        }
    }

    /// One value. If none follows, it is the empty one.
    fn value(&mut self) -> &'a str {
        match self.peek().kind {
            Kind::Word(value) => {
                self.take();
                value
            }
            _ => "",
        }
    }

    fn list(&mut self) -> Result<Vec<&'a str>, InvalidSelector> {
        let open = self.peek();
        if !self.take_symbol("(") {
            return Err(self.surprise(open, "`(`"));
        }
        if self.take_symbol(")") {
            return Ok(Vec::new());
        }
        let mut values = Vec::new();
        loop {
            values.push(self.value());
            let token = self.take();
            match token.kind {
                Kind::Symbol(",") => {}
                Kind::Symbol(")") => return Ok(values),
                _ => return Err(self.surprise(token, "`,` or `)`")),
            }
        }
    }

    fn built(
        &self,
        start: usize,
        key: &str,
        operator: Operator,
        values: &[&str],
    ) -> Result<Requirement, InvalidSelector> {
        Requirement::new(key, operator, values.iter().copied())
            .map_err(|error| error.at(self.position(start)))
    }

    fn peek(&self) -> Token<'a> {
        self.tokens.get(self.next).copied().unwrap_or(Token { at: self.text.len(), kind: Kind::End })
    }

    fn take(&mut self) -> Token<'a> {
        let token = self.peek();
        self.next += 1;
        token
    }

    fn take_symbol(&mut self, symbol: &str) -> bool {
        let is_it = self.peek().kind == Kind::Symbol(symbol);
        self.next += usize::from(is_it);
        is_it
    }

    fn surprise(&self, token: Token<'_>, expected: &str) -> InvalidSelector {
        let found = match token.kind {
            Kind::Word(text) | Kind::Symbol(text) => format!("`{text}`"),
            Kind::End => "the end".to_owned(),
        };
        let reason = format!("found {found} where {expected} was expected");
        InvalidSelector::labels(self.position(token.at), reason, SYNTAX)
    }

    /// The position in characters.
    fn position(&self, at: usize) -> usize {
        self.text.get(..at).unwrap_or_default().chars().count()
    }
}

#[cfg(test)]
mod tests {
    use crate::{Labels, Selector};

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
                "at character 2: found `b` where `=`, `==`, `!=`, `<`, `>`, `in`, `notin`, `,` or the end was expected; write requirements like",
            ),
            ("a,", "at character 2: found the end where a label's key was expected"),
            (",a", "at character 0: found `,` where a label's key"),
            ("a in b", "at character 5: found `b` where `(` was expected"),
            ("a in (b", "at character 7: found the end where `,` or `)`"),
            ("a in ()", "at character 0: there is no value to compare with; name at least one value"),
            ("!a=b", "at character 2: found `=` where `,` or the end"),
            ("a=b=c", "at character 3: found `=`"),
            ("a,x>b", "at character 2: `b` is not a whole number; compare with"),
            ("a,-x=b", "at character 2: `-x` cannot be a label's key; write up to 63"),
            ("Example/x", "at character 0: `Example/x` cannot be a label's key; write the part before"),
            ("a=ü", "at character 0: `ü` cannot be a label's value"),
            ("a!", "at character 1: found `!`"),
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
            |text: &'static str| Labels::new(text.split(',').filter_map(|pair| pair.split_once('=')));
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
            assert_eq!(selector(text).matches(&labels(set)), expected, "{text} on {set}");
        }
    }
}
