//! The place at which a page of the log ends, as a text for the next question.

use std::collections::BTreeSet;

use kubediff_history::Number;
use siphasher::sip::SipHasher13;
use std::hash::Hasher as _;

use super::error::AskError;

/// The form of this text. Another one is another number.
const FORM: &str = "1";

/// The place at which a page ends.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Cursor {
    /// The last record that was looked at.
    pub(crate) after: Number,
    /// The stories that were shown, and have records beyond it.
    pub(crate) shown: BTreeSet<Number>,
}

impl Cursor {
    /// The text, for the next part of this question.
    pub(crate) fn text(&self, question: &str) -> String {
        let shown: Vec<String> = self.shown.iter().map(Number::to_string).collect();
        format!("{FORM}.{}.{}.{:x}", self.after, shown.join("-"), hash(question))
    }

    /// The place that a text means.
    pub(crate) fn read(text: &str, question: &str) -> Result<Self, AskError> {
        let parse = || {
            let mut parts = text.split('.');
            let mut part = || parts.next();
            let (form, after, shown, of) = (part()?, part()?, part()?, part()?);
            let is_it = form == FORM && of == format!("{:x}", hash(question)) && parts.next().is_none();
            let number = |text: &str| text.parse().ok().map(Number);
            let shown = shown.split('-').filter(|text| !text.is_empty()).map(number);
            is_it.then_some(Self { after: number(after)?, shown: shown.collect::<Option<_>>()? })
        };
        parse().ok_or(AskError::Cursor)
    }
}

/// Not a secret: a cursor of another question is a mistake, and no attack.
fn hash(question: &str) -> u64 {
    let mut hasher = SipHasher13::new();
    hasher.write(question.as_bytes());
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_of_one_question() {
        let cursor = Cursor { after: Number(812), shown: [Number(3), Number(40)].into() };
        let text = cursor.text("ns=shop");
        assert!(text.chars().all(|c| c.is_ascii_alphanumeric() || ".-".contains(c)), "{text}");
        assert_eq!(Cursor::read(&text, "ns=shop").unwrap(), cursor);
        assert!(matches!(Cursor::read(&text, "ns=other"), Err(AskError::Cursor)));
        for text in ["", "1.2.3", "1.x..0", "2.812.3-40.0", &format!("{text}.1"), &text.replace('-', "-x")] {
            assert!(Cursor::read(text, "ns=shop").is_err(), "{text}");
        }
        let none = Cursor::default();
        assert_eq!(Cursor::read(&none.text(""), "").unwrap(), none);
    }
}
