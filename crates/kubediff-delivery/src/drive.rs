//! Carries out what a delivery decides: reads a log, sends to a sink, stores the position.

use std::collections::BTreeMap;
use std::pin::pin;
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use crate::answer::Answer;
use crate::delivery::{Action, Batch, Delivery, Settled};
use crate::record::{Parcel, Record};

/// A sink that has a batch for so long without an answer takes nothing at the moment.
const SLOW: Duration = Duration::from_secs(5);

/// The log that is delivered. It is read at the sink's pace: nothing else holds records back.
pub trait Log {
    /// Why the log cannot be read or written.
    type Error;

    /// Returns the records after a number that this sink wants, in order: at most `records` records
    /// and `bytes` bytes, but at least one record if any exists.
    fn read(
        &self,
        after: u64,
        records: usize,
        bytes: usize,
    ) -> impl Future<Output = Result<Page, Self::Error>> + Send;

    /// The texts of records that were read at this number may read differently at a higher one: something became known that must
    /// not be sent.
    fn edition(&self) -> u64 {
        0
    }

    /// Stores what became of records, in one transaction.
    fn store(&self, settled: Settled) -> impl Future<Output = Result<(), Self::Error>> + Send;

    /// Waits until the log has a record after this number, and returns the newest number. Cancel safe.
    fn grown(&self, after: u64) -> impl Future<Output = u64> + Send;

    /// The sink has [lost](Sink::lost) what it had accepted after `position`, and up to `from`. It is sent again.
    fn went_back(&self, position: u64, from: u64) {
        let _ = (position, from);
    }
}

/// Records of a log.
#[derive(Debug, Default)]
pub struct Page {
    /// The records.
    pub records: Vec<Record>,
    /// Everything up to this number was looked at. Not below the last record's number.
    pub through: u64,
}

/// Where records go.
pub trait Sink {
    /// Sends these records. A sink has a time limit of its own; dropping the future may leave the sink with the records.
    fn send(&mut self, parcel: Parcel<'_>) -> impl Future<Output = Answer> + Send;

    /// Waits until the sink is found to have lost records that it had accepted, and returns the number of the last one before them. It
    /// is polled while nothing is sent. Cancel safe. Most sinks cannot tell.
    fn lost(&mut self) -> impl Future<Output = u64> + Send {
        std::future::pending()
    }

    /// The place in the sink up to which it has records. It is stored with the position, for the sink that continues after a restart.
    fn tail(&self) -> Option<Box<str>> {
        None
    }
}

/// Why a delivery has ended, although it was not stopped.
#[derive(Debug, thiserror::Error)]
pub enum DriveError<E> {
    /// The log failed. Records whose position was not stored are sent again after a new start.
    #[error("the log cannot be read or written")]
    Log(#[source] E),
    /// The log gave records in a wrong order.
    #[error(transparent)]
    Disorder(#[from] crate::Disorder),
}

/// Where a delivery stands.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Status {
    /// All records up to this number are settled.
    pub position: u64,
    /// How many numbers of the log lie behind it.
    pub behind: u64,
    /// How many dead letters there are.
    pub dead: u64,
    /// Why the sink does not take records at the moment, for people.
    pub trouble: Option<Box<str>>,
    /// Whether it refuses every record.
    pub refuses_all: bool,
    /// How many batches it has taken.
    pub taken: u64,
}

/// A delivery with its log and its sink.
#[derive(Debug)]
pub struct Driver<L, S> {
    /// The machine that decides.
    pub delivery: Delivery,
    /// The records to deliver.
    pub log: L,
    /// Where to.
    pub sink: S,
    /// How long a batch that is under way at the stop may take.
    pub grace: Duration,
    /// Tells where the delivery stands.
    pub status: watch::Sender<Status>,
    /// Dead letters to send again.
    pub resends: mpsc::Receiver<Record>,
}

impl<L: Log, S: Sink> Driver<L, S> {
    /// Delivers until it is stopped.
    ///
    /// A batch that is under way then has [`grace`](Self::grace) to be answered, and what was answered is stored. Dropping the future
    /// loses nothing either; more is sent twice.
    ///
    /// # Errors
    ///
    /// If the log fails, or gives records out of order.
    pub async fn run(mut self, stop: CancellationToken) -> Result<(), DriveError<L::Error>> {
        let mut held = Held::default();
        let mut taken = self.status.borrow().taken;
        loop {
            let action = self.delivery.next(Instant::now().into_std());
            tell(&self.delivery, &self.status, taken, false);
            match action {
                Action::Store(mut settled) => {
                    // After a loss, the former tail tells a new process what is not sent again yet.
                    let is_there = self.delivery.position() >= settled.position;
                    settled.tail = is_there.then(|| self.sink.tail()).flatten();
                    held.forget(settled.dead.iter().map(|letter| letter.number));
                    self.log.store(settled).await.map_err(DriveError::Log)?;
                }
                _ if stop.is_cancelled() => return Ok(()),
                Action::Read { after, records, bytes } => {
                    let edition = self.log.edition();
                    let page = self.log.read(after, records, bytes).await.map_err(DriveError::Log)?;
                    self.delivery.read(page.records.iter().map(|record| record.entry), page.through)?;
                    held.take(edition, page.records);
                    held.keep(|number| self.delivery.holds(number));
                }
                Action::Send(batch) => {
                    read_again(&self.log, &batch, &mut held).await?;
                    let answer = self.send(held.parcel(&batch), taken, &stop).await;
                    let accepted = answer.accepted(batch.numbers.len());
                    held.forget(batch.numbers.into_iter().take(accepted));
                    taken += u64::from(accepted > 0);
                    self.delivery.answered(answer, Instant::now().into_std());
                }
                Action::Wait { until } => self.wait(until.map(Instant::from_std), &stop, &mut held).await,
            }
        }
    }

    async fn send(&mut self, parcel: Parcel<'_>, taken: u64, stop: &CancellationToken) -> Answer {
        let mut sending = pin!(self.sink.send(parcel));
        let (mut slow, mut is_slow) = (pin!(sleep(SLOW)), false);
        let answer = loop {
            tokio::select! {
                answer = &mut sending => break Some(answer),
                () = stop.cancelled() => break timeout(self.grace, sending).await.ok(),
                () = &mut slow, if !is_slow => is_slow = true,
                newest = self.log.grown(self.delivery.newest()) => self.delivery.grown(newest),
            }
            tell(&self.delivery, &self.status, taken, is_slow);
        };
        answer.unwrap_or_else(|| Answer::Unavailable { reason: "kubediff was stopped".into() })
    }

    async fn wait(&mut self, until: Option<Instant>, stop: &CancellationToken, held: &mut Held) {
        // Without a time there is nothing to wait for but the log.
        let time = async {
            match until {
                Some(until) => sleep_until(until).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = time => {}
            () = stop.cancelled() => {}
            newest = self.log.grown(self.delivery.newest()) => self.delivery.grown(newest),
            position = self.sink.lost() => {
                let from = self.delivery.position();
                if self.delivery.go_back(position) {
                    self.log.went_back(position, from);
                }
            }
            Some(record) = self.resends.recv() => {
                self.delivery.resend(record.entry);
                // The record has waited, too: it is read again.
                held.take(u64::MAX, [record]);
            }
        }
    }
}

fn tell(delivery: &Delivery, status: &watch::Sender<Status>, taken: u64, is_slow: bool) {
    let slow = || format!("it has been busy with one batch for {} s", SLOW.as_secs()).into();
    let trouble = delivery.trouble().map(Into::into);
    let new = Status {
        position: delivery.position(),
        behind: delivery.behind(),
        dead: delivery.dead(),
        trouble: if is_slow { Some(slow()) } else { trouble },
        refuses_all: delivery.refuses_all(),
        taken,
    };
    status.send_if_modified(|last| {
        let is_new = *last != new;
        *last = new;
        is_new
    });
}

/// Reads the records of a batch again whose texts may be out of date. One that the log has no more stays as it is.
async fn read_again<L: Log>(log: &L, batch: &Batch, held: &mut Held) -> Result<(), DriveError<L::Error>> {
    let edition = log.edition();
    for number in &batch.numbers {
        if held.is_of(*number, edition) {
            continue;
        }
        let page = log.read(number.saturating_sub(1), 1, usize::MAX).await.map_err(DriveError::Log)?;
        held.take(edition, page.records.into_iter().filter(|record| record.entry.number == *number));
    }
    Ok(())
}

/// The records that the delivery knows of, until they are settled, with the edition in which each was read.
#[derive(Debug, Default)]
struct Held(BTreeMap<u64, (u64, Record)>);

impl Held {
    fn take(&mut self, edition: u64, records: impl IntoIterator<Item = Record>) {
        self.0.extend(records.into_iter().map(|record| (record.entry.number, (edition, record))));
    }

    fn is_of(&self, number: u64, edition: u64) -> bool {
        self.0.get(&number).is_some_and(|(read, _)| *read == edition)
    }

    fn keep(&mut self, is_held: impl Fn(u64) -> bool) {
        self.0.retain(|number, _| is_held(*number));
    }

    fn forget(&mut self, numbers: impl IntoIterator<Item = u64>) {
        for number in numbers {
            self.0.remove(&number);
        }
    }

    fn parcel<'a>(&'a self, batch: &'a Batch) -> Parcel<'a> {
        Parcel {
            records: batch.numbers.iter().filter_map(|number| Some(&self.0.get(number)?.1)).collect(),
            is_digest: batch.is_digest,
            is_late: batch.is_late,
            missing: &batch.missing,
        }
    }
}
