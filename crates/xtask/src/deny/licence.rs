//! SPDX licence expressions: `(MIT OR Apache-2.0) AND Unicode-3.0`.

use std::str::FromStr;

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Expression {
    /// An identifier, `WITH` its exception where it has one: `Apache-2.0 WITH LLVM-exception`.
    Licence(String),
    All(Vec<Expression>),
    Any(Vec<Expression>),
}

impl Expression {
    /// Whether using the work under licences for which `allows` holds is enough.
    pub(super) fn is_met_by(&self, allows: impl Fn(&str) -> bool) -> bool {
        self.is_met(&allows)
    }

    fn is_met(&self, allows: &dyn Fn(&str) -> bool) -> bool {
        match self {
            // An exception only adds permissions, so the licence alone is enough.
            Self::Licence(id) => allows(id) || id.split_once(" WITH ").is_some_and(|(id, _)| allows(id)),
            Self::All(parts) => parts.iter().all(|part| part.is_met(allows)),
            Self::Any(parts) => parts.iter().any(|part| part.is_met(allows)),
        }
    }
}

impl FromStr for Expression {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        // Old crates write `MIT/Apache-2.0` for a choice.
        let text = text.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
        let mut tokens = text.split_whitespace().peekable();
        let expression = any(&mut tokens)?;
        match tokens.next() {
            None => Ok(expression),
            Some(token) => Err(format!("`{token}` is unexpected")),
        }
    }
}

type Tokens<'a> = std::iter::Peekable<std::str::SplitWhitespace<'a>>;

fn any(tokens: &mut Tokens<'_>) -> Result<Expression, String> {
    let mut parts = vec![all(tokens)?];
    while tokens.next_if_eq(&"OR").is_some() {
        parts.push(all(tokens)?);
    }
    Ok(single_or(parts, Expression::Any))
}

fn all(tokens: &mut Tokens<'_>) -> Result<Expression, String> {
    let mut parts = vec![one(tokens)?];
    while tokens.next_if_eq(&"AND").is_some() {
        parts.push(one(tokens)?);
    }
    Ok(single_or(parts, Expression::All))
}

fn one(tokens: &mut Tokens<'_>) -> Result<Expression, String> {
    match tokens.next() {
        Some("(") => {
            let inner = any(tokens)?;
            tokens.next_if_eq(&")").map(|_| inner).ok_or_else(|| "`)` is missing".to_owned())
        }
        None | Some(")" | "AND" | "OR" | "WITH") => Err("a licence is missing".to_owned()),
        Some(id) if tokens.next_if_eq(&"WITH").is_some() => {
            let exception = tokens.next().ok_or("an exception is missing")?;
            Ok(Expression::Licence(format!("{id} WITH {exception}")))
        }
        Some(id) => Ok(Expression::Licence(id.to_owned())),
    }
}

fn single_or(mut parts: Vec<Expression>, join: impl Fn(Vec<Expression>) -> Expression) -> Expression {
    match parts.pop() {
        Some(part) if parts.is_empty() => part,
        last => {
            parts.extend(last);
            join(parts)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_are_met_or_not() {
        let allowed = ["MIT", "Unicode-3.0", "Apache-2.0"];
        for (text, met) in [
            ("MIT", true),
            ("GPL-3.0", false),
            ("GPL-3.0 OR MIT", true),
            ("GPL-3.0/MIT", true),
            ("GPL-3.0 AND MIT", false),
            ("(GPL-3.0 OR MIT) AND Unicode-3.0", true),
            // AND binds more tightly than OR.
            ("MIT OR GPL-3.0 AND Zlib", true),
            ("(MIT OR GPL-3.0) AND Zlib", false),
            ("Apache-2.0 WITH LLVM-exception OR GPL-3.0", true),
        ] {
            let expression: Expression = text.parse().unwrap();
            assert_eq!(expression.is_met_by(|id| allowed.contains(&id)), met, "{text}");
        }
    }

    #[test]
    fn what_is_no_expression_is_refused() {
        for text in ["", "MIT OR", "(MIT", "MIT)", "MIT Zlib", "WITH x"] {
            assert!(text.parse::<Expression>().is_err(), "{text}");
        }
    }
}
