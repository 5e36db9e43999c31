//! The logs of several clusters as one, by time. Within a cluster the order is that of its log.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use kubediff_history::{Order, Reader};

use super::error::AskError;
use super::log::{Item, Step, Walk};
use super::stories::Stories;

/// The walk through one of the logs.
pub(crate) struct Log {
    /// The name of its cluster.
    pub(crate) cluster: String,
    pub(crate) reader: Reader,
    pub(crate) walk: Walk,
    pub(crate) stories: Option<Stories>,
}

/// The entries of several logs. A log is read no further than to its entry that may be the next one.
pub(crate) struct Merge {
    logs: Vec<(Log, Option<Item>)>,
    order: Order,
    /// The logs that have more, by the place in time of their next entry. Of a log whose next entry is not read yet, it is the place from which
    /// on that is.
    next: BinaryHeap<(i64, Reverse<usize>)>,
}

impl Merge {
    /// The logs, each with a time that its newest record does not exceed, as far as that is known.
    pub(crate) fn new(logs: Vec<(Log, Option<jiff::Timestamp>)>, order: Order) -> Self {
        let place = |newest: &Option<jiff::Timestamp>| match (order, newest) {
            (Order::NewestFirst, Some(newest)) => newest.as_microsecond(),
            _ => i64::MAX,
        };
        let next = logs.iter().enumerate().map(|(at, (_, newest))| (place(newest), Reverse(at))).collect();
        Self { logs: logs.into_iter().map(|(log, _)| (log, None)).collect(), order, next }
    }

    /// The next entry, with its log. Entries of one time are in the order of the logs.
    pub(crate) fn next(&mut self) -> Result<Option<(&mut Log, Item)>, AskError> {
        while let Some((place, Reverse(at))) = self.next.pop() {
            let Some((log, read)) = self.logs.get_mut(at) else { continue };
            if let Some(item) = read.take() {
                self.next.push((place, Reverse(at)));
                // The borrow of the loop would last as long as the answer.
                return Ok(self.logs.get_mut(at).map(|(log, _)| (log, item)));
            }
            if let Step::Item(item) = log.walk.next(&mut log.reader, log.stories.as_ref())? {
                let time = match &item {
                    Item::Gap(gap) => gap.to.unwrap_or(gap.from),
                    Item::Record(_) | Item::Story(_) => log.walk.at(),
                };
                let time = time.as_microsecond();
                // A gap may have ended before the record that it follows.
                let of_it = if self.order == Order::NewestFirst { time } else { -time }.min(place);
                *read = Some(item);
                self.next.push((of_it, Reverse(at)));
            }
        }
        Ok(None)
    }

    /// The logs.
    pub(crate) fn logs(&mut self) -> impl Iterator<Item = &mut Log> {
        self.logs.iter_mut().map(|(log, _)| log)
    }
}

#[cfg(test)]
mod tests;
