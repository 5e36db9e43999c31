//! Events one by one, for the stages that count or change them.

use std::collections::VecDeque;

use bytes::{Bytes, BytesMut};

use crate::faults::flow::{Stage, Step};

/// Makes each event of a watch one piece.
#[derive(Debug, Default)]
pub(in crate::faults) struct Lines {
    /// The beginning of an event whose end has not come.
    begun: BytesMut,
}

impl Stage for Lines {
    fn take(&mut self, step: Step, out: &mut VecDeque<Step>) {
        let mut bytes = match step {
            Step::Bytes(bytes) => bytes,
            other => {
                out.extend((!self.begun.is_empty()).then(|| Step::Bytes(self.begun.split().freeze())));
                out.push_back(other);
                return;
            }
        };
        while let Some(end) = bytes.iter().position(|byte| *byte == b'\n') {
            let line = bytes.split_to(end + 1);
            out.push_back(Step::Bytes(self.completed(line)));
        }
        self.begun.extend_from_slice(&bytes);
    }
}

impl Lines {
    fn completed(&mut self, end: Bytes) -> Bytes {
        if self.begun.is_empty() {
            return end;
        }
        self.begun.extend_from_slice(&end);
        self.begun.split().freeze()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_put_together_however_they_come() {
        let text = b"{\"a\":1}\n{}\n\n{\"long\":[1,2,3]}\nrest";
        for size in 1..=text.len() {
            let (mut lines, mut out) = (Lines::default(), VecDeque::new());
            for piece in text.chunks(size) {
                lines.take(Step::Bytes(Bytes::copy_from_slice(piece)), &mut out);
            }
            lines.take(Step::Finish(crate::faults::flow::Finish::End), &mut out);
            let seen: Vec<_> = out
                .iter()
                .filter_map(|step| match step {
                    Step::Bytes(bytes) => Some(std::str::from_utf8(bytes).unwrap()),
                    _ => None,
                })
                .collect();
            assert_eq!(
                seen,
                ["{\"a\":1}\n", "{}\n", "\n", "{\"long\":[1,2,3]}\n", "rest"],
                "pieces of {size}"
            );
        }
    }
}
