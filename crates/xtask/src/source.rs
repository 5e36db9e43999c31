//! Rust source as lines of code: enough of the lexer to tell code from comments and literals.

/// `text` with the content of comments, strings and character literals replaced by spaces, line for line, so that a
/// search for `sleep(` finds calls only.
pub(crate) fn code_only(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let mut code = String::with_capacity(text.len());
    let mut at = 0;
    while at < chars.len() {
        let end = literal_or_comment(&chars, at);
        if end == at {
            code.push(chars[at]);
            at += 1;
        } else {
            code.extend(chars[at..end].iter().map(|&c| if c == '\n' { '\n' } else { ' ' }));
            at = end;
        }
    }
    code
}

/// The end of the comment or literal that starts at `at`, or `at` if none does.
fn literal_or_comment(chars: &[char], at: usize) -> usize {
    let next = chars.get(at + 1).copied();
    let starts_word = at == 0 || !is_word(chars[at - 1]);
    match chars[at] {
        '/' if next == Some('/') => find(chars, at, |c| c == '\n'),
        '/' if next == Some('*') => block_comment(chars, at),
        '"' => string(chars, at),
        'b' | 'c' if starts_word && next == Some('"') => string(chars, at + 1),
        'r' if starts_word => raw_string(chars, at, at + 1),
        'b' | 'c' if starts_word && next == Some('r') => raw_string(chars, at, at + 2),
        '\'' => character(chars, at),
        _ => at,
    }
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn find(chars: &[char], from: usize, wanted: impl Fn(char) -> bool) -> usize {
    chars[from..].iter().position(|&c| wanted(c)).map_or(chars.len(), |offset| from + offset)
}

fn block_comment(chars: &[char], at: usize) -> usize {
    let mut depth = 0;
    let mut at = at;
    while at + 1 < chars.len() {
        match (chars[at], chars[at + 1]) {
            ('/', '*') => depth += 1,
            ('*', '/') => depth -= 1,
            _ => {
                at += 1;
                continue;
            }
        }
        at += 2;
        if depth == 0 {
            return at;
        }
    }
    chars.len()
}

fn string(chars: &[char], quote: usize) -> usize {
    let mut at = quote + 1;
    while at < chars.len() {
        match chars[at] {
            '\\' => at += 2,
            '"' => return at + 1,
            _ => at += 1,
        }
    }
    chars.len()
}

/// `hashes` is where the hashes of `r##"` would start; a raw identifier is no string.
fn raw_string(chars: &[char], start: usize, hashes: usize) -> usize {
    let quote = find(chars, hashes, |c| c != '#');
    if chars.get(quote) != Some(&'"') {
        return start;
    }
    let closing = quote - hashes;
    let mut at = quote + 1;
    while at < chars.len() {
        if chars[at] == '"' && chars[at + 1..].iter().take(closing).filter(|&&c| c == '#').count() == closing
        {
            return at + 1 + closing;
        }
        at += 1;
    }
    chars.len()
}

/// A lifetime has no closing quote two or more characters on.
fn character(chars: &[char], at: usize) -> usize {
    match (chars.get(at + 1), chars.get(at + 2)) {
        (Some('\\'), Some(_)) => (find(chars, at + 3, |c| c == '\'') + 1).min(chars.len()),
        (Some(_), Some('\'')) => at + 3,
        _ => at,
    }
}

/// A function: its name and the lines, counted from 1, of its head and its closing brace.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Function {
    pub(crate) name: String,
    pub(crate) first: usize,
    pub(crate) last: usize,
}

/// The functions with a body. Relies on rustfmt: a body ends with the first closing brace that is indented as its head.
pub(crate) fn functions(code: &str) -> Vec<Function> {
    let lines: Vec<&str> = code.lines().collect();
    let mut functions = Vec::new();
    for (index, line) in lines.iter().enumerate() {
        let Some(name) = function_name(line) else { continue };
        let closing = format!("{}}}", indentation(line));
        let end = lines[index..].iter().position(|line| line.trim_end() == closing);
        let declaration_ends = lines[index..].iter().position(|line| line.contains([';', '{']));
        // A declaration in a trait has no body; neither has one that fits on a line and ends there.
        let has_body = declaration_ends.is_some_and(|offset| lines[index + offset].trim_end().ends_with('{'));
        if let (Some(end), true) = (end, has_body) {
            functions.push(Function { name: name.to_owned(), first: index + 1, last: index + end + 1 });
        }
    }
    functions
}

fn indentation(line: &str) -> &str {
    &line[..line.len() - line.trim_start().len()]
}

fn function_name(line: &str) -> Option<&str> {
    let (head, rest) = line.split_once("fn ")?;
    let qualifier = |word: &str| {
        word.starts_with("pub") || matches!(word, "const" | "async" | "unsafe" | "extern" | "default")
    };
    if !head.split_whitespace().all(|word| qualifier(word) || word.ends_with(')')) {
        return None;
    }
    let end = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
    (end > 0).then(|| &rest[..end])
}

/// The lines, counted from 1, that belong to items under `#[cfg(test)]`.
pub(crate) fn test_lines(code: &str) -> Vec<usize> {
    let lines: Vec<&str> = code.lines().collect();
    let mut inside = Vec::new();
    for (index, line) in lines.iter().enumerate() {
        if line.trim() != "#[cfg(test)]" {
            continue;
        }
        let closing = format!("{}}}", indentation(line));
        let ends = |line: &&str| line.trim_end() == closing || line.trim_end().ends_with(';');
        // Only the item's own closing line counts, so statements inside, which are indented, do not end it.
        let own = |line: &&str| indentation(line) == indentation(lines[index]);
        let end = lines[index..].iter().position(|line| own(line) && ends(line)).unwrap_or(0);
        inside.extend(index + 1..=index + end + 1);
    }
    inside
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_literals_are_blank() {
        for (text, code) in [
            ("a(); // sleep(", "a(); "),
            ("/* a /* b */ c */x", " x"),
            (r#"f("\"sleep(", 'x')"#, "f( , )"),
            (r###"f(r#"a " b"#, r#type)"###, "f( , r#type)"),
            (r#"f(b"x", '\'', '\u{1F600}')"#, "f( , , )"),
            ("fn f<'a>(x: &'a str)", "fn f<'a>(x: &'a str)"),
            ("\"a\nb\"c", " \n c"),
        ] {
            let blanked = code_only(text);
            assert_eq!(blanked.chars().count(), text.chars().count(), "{text}");
            let mut collapsed = blanked.replace("  ", " ");
            while collapsed.contains("  ") {
                collapsed = collapsed.replace("  ", " ");
            }
            assert_eq!(collapsed, code, "{text}");
        }
    }

    #[test]
    fn functions_end_at_their_own_brace() {
        let code = "impl A {\n    pub(crate) async fn one(\n        a: u8,\n    ) {\n        if a {\n        }\n    }\n\n    fn two();\n}\n\nfn three() {}\n";
        assert_eq!(functions(code), [Function { name: "one".to_owned(), first: 2, last: 7 }]);
        assert_eq!(function_name("    let f: fn (u8);"), None);
        assert_eq!(function_name("pub const fn four() {"), Some("four"));
    }

    #[test]
    fn test_modules_are_found() {
        let code =
            "fn a() {\n}\n\n#[cfg(test)]\nmod tests {\n    use super::*;\n    fn b() {}\n}\nfn c() {}\n";
        assert_eq!(test_lines(code), [4, 5, 6, 7, 8]);
        assert_eq!(test_lines("#[cfg(test)]\nmod tests;\nfn a() {}\n"), [1, 2]);
        assert_eq!(test_lines("#[cfg(test)]\nuse a::b;\n\nfn a() {\n    x;\n}\n"), [1, 2]);
    }
}
