//! The colours of a terminal's text (SGR sequences), as far as kubediff uses them.

/// A piece of a line, and its classes in the picture: one letter each.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) text: String,
    pub(super) classes: String,
}

/// The class of each code.
const CLASSES: [(&str, char); 6] =
    [("1", 'b'), ("2", 'd'), ("31", 'r'), ("32", 'g'), ("33", 'y'), ("36", 'c')];

/// `classes` are those at the beginning of the line, and then those at its end: a colour can go on in the next line.
pub(super) fn spans(line: &str, classes: &mut String) -> Vec<Span> {
    let mut spans = Vec::new();
    let mut rest = line;
    while let Some((before, after)) = rest.split_once("\u{1b}[") {
        push(&mut spans, before, classes);
        let Some((codes, after)) = after.split_once('m') else { break };
        for code in codes.split(';') {
            match CLASSES.iter().find(|(known, _)| *known == code) {
                Some((_, class)) => classes.push(*class),
                None => classes.clear(),
            }
        }
        rest = after;
    }
    push(&mut spans, rest, classes);
    spans
}

fn push(spans: &mut Vec<Span>, text: &str, classes: &str) {
    if !text.is_empty() {
        spans.push(Span { text: text.to_owned(), classes: classes.to_owned() });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_become_classes() {
        let mut classes = String::new();
        let found = spans("a\u{1b}[1m\u{1b}[33m~\u{1b}[0m b\u{1b}[2m\u{1b}[0m\u{1b}[2m", &mut classes);
        assert_eq!(classes, "d");
        let found: Vec<(&str, &str)> = found.iter().map(|it| (&*it.text, &*it.classes)).collect();
        assert_eq!(found, [("a", ""), ("~", "by"), (" b", "")]);
    }
}
