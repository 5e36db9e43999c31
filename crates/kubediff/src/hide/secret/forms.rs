//! How a value looks inside of other texts.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};

/// This much of a form is recognised; of a longer one, what follows is taken for the rest.
pub(super) const PREFIX: usize = 256;

/// One way in which a value is written.
pub(super) struct Form {
    /// How it begins.
    pub(super) prefix: Vec<u8>,
    /// Its whole length in bytes.
    pub(super) length: usize,
    pub(super) encoding: Encoding,
    /// How many characters before and after are partly of the value.
    pub(super) margins: (usize, usize),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Encoding {
    Plain,
    Base64,
    Base64Twice,
}

/// Characters of a base64 text that a value determines, wherever in the encoded bytes it begins.
struct Encoded {
    prefix: Vec<u8>,
    length: usize,
    margins: (usize, usize),
}

/// All forms of a value: plain, and in base64, once and twice, in all alignments and both alphabets. URLs and JSON
/// strings are decoded before the search ([`super::readings`]).
pub(super) fn forms(value: &[u8]) -> Vec<Form> {
    let start = value.get(..PREFIX).unwrap_or(value);
    let mut forms = vec![Form {
        prefix: start.to_vec(),
        length: value.len(),
        encoding: Encoding::Plain,
        margins: (0, 0),
    }];
    // Lines may be joined where a text was folded.
    if let Some(unfolded) = unfolded(value) {
        forms.push(Form {
            prefix: unfolded.get(..PREFIX).unwrap_or(&unfolded).to_vec(),
            length: unfolded.len(),
            encoding: Encoding::Plain,
            margins: (0, 0),
        });
    }
    for once in encoded(start, value.len()) {
        for twice in encoded(&once.prefix, once.length) {
            let (before, after) = twice.margins;
            // A character that the value shares is spread over two of the outer ones.
            let margins = (before + 2 * once.margins.0, after + 2 * once.margins.1);
            forms.push(twice.form(Encoding::Base64Twice, margins));
        }
        let margins = once.margins;
        forms.push(once.form(Encoding::Base64, margins));
    }
    forms
}

impl Encoded {
    fn form(self, encoding: Encoding, margins: (usize, usize)) -> Form {
        Form { prefix: self.prefix, length: self.length, encoding, margins }
    }
}

/// `start` is the beginning of a value of `length` bytes.
fn encoded(start: &[u8], length: usize) -> Vec<Encoded> {
    let mut all: Vec<Encoded> = Vec::new();
    for offset in 0..3_usize {
        // Each character stands for six bits.
        let first = (8 * offset).div_ceil(6);
        let after = |bytes: usize| 8 * (offset + bytes) / 6;
        let padded: Vec<u8> = std::iter::repeat_n(0, offset).chain(start.iter().copied()).collect();
        let margins = (usize::from(offset > 0), usize::from(!(offset + length).is_multiple_of(3)));
        for engine in [&STANDARD, &URL_SAFE] {
            let text = engine.encode(&padded).into_bytes();
            let end = after(start.len()).min(first + PREFIX);
            let Some(prefix) = text.get(first..end) else { continue };
            if all.last().is_none_or(|last| last.prefix != prefix) {
                let length = after(length) - first;
                all.push(Encoded { prefix: prefix.to_vec(), length, margins });
            }
        }
    }
    all
}

/// Without line breaks and the white space around them, if there are any.
fn unfolded(value: &[u8]) -> Option<Vec<u8>> {
    value.contains(&b'\n').then(|| {
        let lines = value.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
        lines.collect::<Vec<_>>().concat()
    })
}
