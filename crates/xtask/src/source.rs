//! Rust source as a flat list of tokens, from the lexer of procedural macros. It has no comments, nothing inside
//! literals, and the arguments of macros like other code. Comments of rustdoc are known by their lines.

use std::ops::{Range, RangeInclusive};

use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// All tokens of a file, including those in brackets.
#[derive(Debug)]
pub(crate) struct SourceCode {
    pub(crate) tokens: Vec<Token>,
    /// The lines of comments for rustdoc.
    pub(crate) docs: Vec<RangeInclusive<usize>>,
}

#[derive(Debug)]
pub(crate) struct Token {
    pub(crate) kind: Kind,
    /// Counted from 1.
    pub(crate) line: usize,
    /// The same, unless it is a literal of several lines.
    pub(crate) last: usize,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Word(String),
    Punct(char),
    /// An opening bracket, and the index of the token that closes it.
    Open(char, usize),
    Close,
    Literal,
}

/// A function: its name and the lines of its head and of its closing brace.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Function {
    pub(crate) name: String,
    pub(crate) first: usize,
    pub(crate) last: usize,
}

impl SourceCode {
    /// Fails, with the reason, if the text is not Rust.
    pub(crate) fn read(text: &str) -> Result<Self, String> {
        let stream: TokenStream = text.parse().map_err(|error| format!("not Rust: {error}"))?;
        let mut source = Self { tokens: Vec::new(), docs: Vec::new() };
        source.add(stream);
        Ok(source)
    }

    fn add(&mut self, stream: TokenStream) {
        for tree in stream {
            let (start, end) = (tree.span().start(), tree.span().end());
            let line = start.line;
            // The lexer makes an attribute of a comment for rustdoc, and each of its tokens spans the comment.
            let hash = matches!(&tree, TokenTree::Punct(punct) if punct.as_char() == '#');
            if hash && (start.line, start.column + 1) < (end.line, end.column) {
                self.docs.push(start.line..=end.line);
            }
            if self.docs.last().is_some_and(|docs| docs.contains(&line)) {
                continue;
            }
            match tree {
                TokenTree::Ident(word) => self.push(Kind::Word(word.to_string()), line),
                TokenTree::Punct(punct) => self.push(Kind::Punct(punct.as_char()), line),
                TokenTree::Literal(_) => {
                    self.tokens.push(Token { kind: Kind::Literal, line, last: end.line })
                }
                TokenTree::Group(group) => {
                    let bracket = match group.delimiter() {
                        Delimiter::Parenthesis => '(',
                        Delimiter::Bracket => '[',
                        Delimiter::Brace | Delimiter::None => '{',
                    };
                    let open = self.tokens.len();
                    self.push(Kind::Open(bracket, 0), line);
                    self.add(group.stream());
                    self.tokens[open].kind = Kind::Open(bracket, self.tokens.len());
                    self.push(Kind::Close, group.span_close().start().line);
                }
            }
        }
    }

    fn push(&mut self, kind: Kind, line: usize) {
        self.tokens.push(Token { kind, line, last: line });
    }

    pub(crate) fn word(&self, at: usize) -> Option<&str> {
        match &self.tokens.get(at)?.kind {
            Kind::Word(word) => Some(word),
            _ => None,
        }
    }

    pub(crate) fn is_word(&self, at: usize, word: &str) -> bool {
        self.word(at) == Some(word)
    }

    pub(crate) fn is_punct(&self, at: usize, punct: char) -> bool {
        self.tokens.get(at).is_some_and(|token| token.kind == Kind::Punct(punct))
    }

    /// Whether the token at this index begins `::`.
    pub(crate) fn is_path_separator(&self, at: usize) -> bool {
        self.is_punct(at, ':') && self.is_punct(at + 1, ':')
    }

    /// The index of the token that closes the bracket at this index.
    pub(crate) fn brackets(&self, at: usize, bracket: char) -> Option<usize> {
        match self.tokens.get(at)?.kind {
            Kind::Open(open, close) if open == bracket => Some(close),
            _ => None,
        }
    }

    pub(crate) fn functions(&self) -> Vec<Function> {
        let mut functions = Vec::new();
        for at in 0..self.tokens.len() {
            let (true, Some(name)) = (self.is_word(at, "fn"), self.word(at + 1)) else { continue };
            // A declaration in a trait has no body.
            if let Some(Kind::Open('{', close)) = self.item_end(at).map(|end| &self.tokens[end].kind) {
                let (first, last) = (self.tokens[at].line, self.tokens[*close].line);
                functions.push(Function { name: name.to_owned(), first, last });
            }
        }
        functions
    }

    /// The indexes of the tokens of items that only tests have.
    pub(crate) fn tests(&self) -> Vec<Range<usize>> {
        let mut tests = Vec::new();
        for at in 0..self.tokens.len() {
            let Some(close) = self.is_punct(at, '#').then(|| self.brackets(at + 1, '[')).flatten() else {
                continue;
            };
            let has = |word| (at + 2..close).any(|index| self.is_word(index, word));
            if self.is_word(at + 2, "cfg") && (has("test") || has("loom")) && !has("not") {
                let end = self.item_end(close + 1).unwrap_or(close);
                let end = self.brackets(end, '{').unwrap_or(end);
                tests.push(at..end + 1);
            }
        }
        tests
    }

    /// The index of the opening brace, or the semicolon, of the item that begins at `from`.
    fn item_end(&self, from: usize) -> Option<usize> {
        let mut at = from;
        loop {
            match self.tokens.get(at)?.kind {
                Kind::Open('{', _) | Kind::Punct(';') => return Some(at),
                Kind::Open(_, close) => at = close + 1,
                Kind::Close => return None,
                _ => at += 1,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> SourceCode {
        SourceCode::read(text).unwrap()
    }

    #[test]
    fn comments_are_gone_and_what_is_in_macros_is_there() {
        let source = read("// a\n/* b */ c!(d, \"e\", { f }) // g\n");
        let words: Vec<_> = (0..source.tokens.len()).filter_map(|at| source.word(at)).collect();
        assert_eq!(words, ["c", "d", "f"]);
        assert!(SourceCode::read("fn (").is_err());
    }

    #[test]
    fn functions_end_at_their_own_brace() {
        let code = "impl A {\n    pub(crate) async fn one(\n        a: [u8; 2],\n    ) {\n        if a {\n        }\n    }\n\n    fn two();\n}\ntype F = fn(u8);\n";
        assert_eq!(read(code).functions(), [Function { name: "one".to_owned(), first: 2, last: 7 }]);
    }

    #[test]
    fn what_is_there_for_tests_only_is_found() {
        let lines = |code: &str| {
            let source = read(code);
            let line = |at: usize| source.tokens[at].line;
            source
                .tests()
                .into_iter()
                .map(|range| (line(range.start), line(range.end - 1)))
                .collect::<Vec<_>>()
        };
        let code =
            "fn a() {\n}\n\n#[cfg(test)]\nmod tests {\n    use super::*;\n    fn b() {}\n}\nfn c() {}\n";
        assert_eq!(lines(code), [(4, 8)]);
        assert_eq!(lines("#[cfg(all(test, loom))]\n#[path = \"x\"]\nmod tests;\nfn a() {}\n"), [(1, 3)]);
        assert_eq!(lines("#[cfg(not(test))]\nfn a() {}\n"), []);
    }
}
