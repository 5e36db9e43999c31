//! The stages: each applies one fault to a response.

mod edit;
mod one_by_one;
mod pace;

use std::collections::VecDeque;

use bytes::Bytes;
use serde_json::json;

use super::fault::{Fault, Point};
use super::flow::{Finish, Stage, Step, finishing};
use super::framing::Framing;
use super::rule::Hit;

use self::edit::{Edit, Editor, HeadEditor, is_bookmark, is_end_bookmark};
pub(super) use self::one_by_one::OneByOne;
use self::pace::{Chunks, Slow};

/// The stage of a fault that changes the content or the sending of a response. `events` is the framing of a watch.
pub(super) fn of(fault: &Fault, hit: Hit, events: Option<Framing>) -> Option<Box<dyn Stage>> {
    let framing = events.unwrap_or_default();
    let gate = |point, finish| -> Box<dyn Stage> { Box::new(Gate::new(point, finish, framing, hit.clone())) };
    let edit = |after, edit| -> Box<dyn Stage> {
        match events {
            Some(framing) => Box::new(Editor::new(after, edit, framing, hit.clone())),
            None => Box::new(HeadEditor::new(edit, hit.clone())),
        }
    };
    Some(match fault {
        Fault::CutAfter(point) => gate(*point, Finish::Cut),
        Fault::EndAfter(point) => gate(*point, Finish::End),
        Fault::StallAfter(point) => gate(*point, Finish::Stall),
        Fault::ErrorAfter(after, error) => {
            let event = json!({ "type": "ERROR", "object": error.status().to_json() });
            let gate = Gate::new(Point::Events(*after), Finish::End, framing, hit);
            Box::new(gate.with_last_words(framing.event(&event)))
        }
        Fault::Chunks { seed, max } => Box::new(Chunks::new(*seed, *max, hit)),
        Fault::Slow { bytes_per_second } => Box::new(Slow::new(*bytes_per_second, hit)),
        Fault::Garble(after) => edit(*after, Edit::Garble),
        Fault::Truncate(after) => edit(*after, Edit::Truncate),
        Fault::WrongKind(after) => edit(*after, Edit::WrongKind),
        Fault::Duplicate(after) => edit(*after, Edit::Duplicate),
        Fault::RevisionBack { after, by } => edit(*after, Edit::RevisionBack(*by)),
        Fault::NoEndBookmark => Box::new(Without { unwanted: is_end_bookmark, hit }),
        Fault::NoBookmarks => Box::new(Without { unwanted: is_bookmark, hit }),
        Fault::Disconnect
        | Fault::DisconnectAll
        | Fault::Hang
        | Fault::Delay(_)
        | Fault::Refuse(_)
        | Fault::Answer(_)
        | Fault::Compact
        | Fault::AsTable => return None,
    })
}

/// Ends a response after a number of bytes or events.
struct Gate {
    left: Point,
    finish: Finish,
    framing: Framing,
    last_words: Option<Bytes>,
    closed: bool,
    hit: Hit,
}

impl Gate {
    fn new(point: Point, finish: Finish, framing: Framing, hit: Hit) -> Self {
        Self { left: point, finish, framing, last_words: None, closed: false, hit }
    }

    fn with_last_words(mut self, words: Bytes) -> Self {
        self.last_words = Some(words);
        self
    }

    fn close_if_reached(&mut self, out: &mut VecDeque<Step>) {
        if matches!(self.left, Point::Bytes(0) | Point::Events(0)) {
            self.closed = true;
            self.hit.fire();
            out.extend(self.last_words.take().map(Step::Bytes));
            out.extend(finishing(self.finish));
        }
    }
}

impl Stage for Gate {
    fn start(&mut self, out: &mut VecDeque<Step>) {
        self.close_if_reached(out);
    }

    fn take(&mut self, step: Step, out: &mut VecDeque<Step>) {
        match step {
            _ if self.closed => return,
            Step::Bytes(mut bytes) => {
                match &mut self.left {
                    Point::Events(left) => *left -= u64::from(self.framing.is_event(&bytes)),
                    Point::Bytes(left) => {
                        let passes = usize::try_from(*left).unwrap_or(usize::MAX).min(bytes.len());
                        bytes.truncate(passes);
                        *left -= passes as u64;
                    }
                }
                out.push_back(Step::Bytes(bytes));
            }
            other => out.push_back(other),
        }
        self.close_if_reached(out);
    }
}

/// Drops events.
struct Without {
    unwanted: fn(&[u8]) -> bool,
    hit: Hit,
}

impl Stage for Without {
    fn take(&mut self, step: Step, out: &mut VecDeque<Step>) {
        match step {
            Step::Bytes(event) if (self.unwanted)(&event) => self.hit.fire(),
            other => out.push_back(other),
        }
    }
}
