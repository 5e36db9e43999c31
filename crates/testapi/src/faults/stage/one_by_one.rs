//! Splits a response into events, for stages that count or edit them.

use std::collections::VecDeque;

use bytes::BytesMut;

use crate::faults::flow::{Stage, Step};
use crate::faults::framing::Framing;

/// Makes each event of a watch one chunk.
#[derive(Debug)]
pub(in crate::faults) struct OneByOne {
    framing: Framing,
    /// The first bytes of an incomplete event.
    begun: BytesMut,
}

impl OneByOne {
    pub(in crate::faults) fn new(framing: Framing) -> Self {
        Self { framing, begun: BytesMut::new() }
    }
}

impl Stage for OneByOne {
    fn take(&mut self, step: Step, out: &mut VecDeque<Step>) {
        let mut bytes = match step {
            Step::Bytes(bytes) if self.begun.is_empty() => bytes,
            Step::Bytes(bytes) => {
                self.begun.extend_from_slice(&bytes);
                self.begun.split().freeze()
            }
            other => {
                out.extend((!self.begun.is_empty()).then(|| Step::Bytes(self.begun.split().freeze())));
                out.push_back(other);
                return;
            }
        };
        while let Some(length) = self.framing.first(&bytes) {
            out.push_back(Step::Bytes(bytes.split_to(length)));
        }
        self.begun.extend_from_slice(&bytes);
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    #[test]
    fn events_are_put_together_however_they_come() {
        let text = b"{\"a\":1}\n{}\n\n{\"long\":[1,2,3]}\nrest";
        for size in 1..=text.len() {
            let (mut lines, mut out) = (OneByOne::new(Framing::Lines), VecDeque::new());
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
