//! The stages: each does one thing to an answer.

mod edit;
mod lines;
mod pace;

use std::collections::VecDeque;

use bytes::Bytes;
use serde_json::json;

use super::fault::{Fault, Point};
use super::flow::{Finish, Stage, Step, finishing};
use super::rule::Hit;

use self::edit::{Edit, Editor, HeadEditor, is_bookmark, is_end_bookmark};
pub(super) use self::lines::Lines;
use self::pace::{Chunks, Slow};

/// The stage that does what a fault says, if it is about how the answer is sent or what it says.
pub(super) fn of(fault: &Fault, hit: Hit, is_watch: bool) -> Option<Box<dyn Stage>> {
    let gate = |point, finish| -> Box<dyn Stage> { Box::new(Gate::new(point, finish, hit.clone())) };
    let edit = |after, edit| -> Box<dyn Stage> {
        match is_watch {
            true => Box::new(Editor::new(after, edit, hit.clone())),
            false => Box::new(HeadEditor::new(edit, hit.clone())),
        }
    };
    Some(match fault {
        Fault::CutAfter(point) => gate(*point, Finish::Cut),
        Fault::EndAfter(point) => gate(*point, Finish::End),
        Fault::StallAfter(point) => gate(*point, Finish::Stall),
        Fault::ErrorAfter(after, error) => {
            let event = json!({ "type": "ERROR", "object": error.status().to_json() });
            Box::new(Gate::new(Point::Events(*after), Finish::End, hit).with_last_words(line(&event)))
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

/// JSON as a line of a watch.
pub(super) fn line(event: &serde_json::Value) -> Bytes {
    format!("{event}\n").into()
}

/// Ends an answer after so many bytes or events.
struct Gate {
    left: Point,
    finish: Finish,
    last_words: Option<Bytes>,
    closed: bool,
    hit: Hit,
}

impl Gate {
    fn new(point: Point, finish: Finish, hit: Hit) -> Self {
        Self { left: point, finish, last_words: None, closed: false, hit }
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
                    Point::Events(left) => *left -= u64::from(bytes.ends_with(b"\n")),
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

/// Leaves lines out.
struct Without {
    unwanted: fn(&[u8]) -> bool,
    hit: Hit,
}

impl Stage for Without {
    fn take(&mut self, step: Step, out: &mut VecDeque<Step>) {
        match step {
            Step::Bytes(line) if (self.unwanted)(&line) => self.hit.fire(),
            other => out.push_back(other),
        }
    }
}
