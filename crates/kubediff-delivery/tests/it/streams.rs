//! Random streams, which keep one order and may lose their end, against what is promised.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use fastrand::Rng;
use kubediff_delivery::{Action, Answer, Delivery, Entry, Policy};

const SEEDS: u64 = 2_000;

/// A stream with moods. It says where it is, so that what it has is not appended again.
struct Stream {
    random: Rng,
    refused: BTreeSet<u64>,
    messages: Vec<u64>,
    /// The last number that is known to be in the stream. It is stored with the position.
    known: u64,
}

impl Stream {
    fn has_lost(&self) -> bool {
        self.last() < self.known
    }

    fn append(&mut self, numbers: &[u64]) -> Answer {
        let last = self.last();
        let new = numbers.iter().position(|number| *number > last).unwrap_or(numbers.len());
        let most = if self.random.bool() { usize::MAX } else { self.random.usize(..=numbers.len()) };
        let mut accepted = new;
        for number in numbers.iter().skip(new).take(most) {
            if self.refused.contains(number) {
                return self.partly(accepted, numbers, Answer::Refused { reason: "too large".into() });
            }
            self.messages.push(*number);
            accepted += 1;
        }
        let failure = match self.random.u8(..4) {
            0 => Answer::Busy { wait: None },
            _ => Answer::Unavailable { reason: "500".into() },
        };
        if accepted == numbers.len() && self.random.u8(..5) > 0 {
            self.known = self.last();
            return Answer::Accepted;
        }
        // Some of the answers are lost.
        let known = if self.random.bool() { accepted } else { self.random.usize(..=accepted) };
        self.partly(known, numbers, failure)
    }

    fn partly(&mut self, accepted: usize, numbers: &[u64], rest: Answer) -> Answer {
        if let Some(last) = numbers[..accepted].last() {
            self.known = *last;
        }
        Answer::Partly { accepted, rest: Box::new(rest) }
    }

    fn last(&self) -> u64 {
        self.messages.last().copied().unwrap_or_default()
    }
}

#[test]
fn whatever_a_stream_does_it_has_each_record_once_and_in_order() {
    let mut backs = 0;
    for seed in 0..SEEDS {
        let outcome = std::panic::catch_unwind(|| run(seed));
        backs += outcome.unwrap_or_else(|_| panic!("seed {seed}"));
    }
    assert!(backs > SEEDS / 10, "{backs} times the end was lost");
}

/// Returns how often the delivery went back.
fn run(seed: u64) -> u64 {
    let mut random = Rng::with_seed(seed);
    let policy = Policy {
        batch: random.usize(1..8),
        window: random.usize(8..30),
        window_bytes: random.usize(40..300),
        ..Policy::stream()
    };
    let count = random.u64(1..120);
    // A route leads some of the records elsewhere.
    let entry = |number| Entry { number, object: number % 7, namespace: number % 3, bytes: 10 };
    let log: Vec<Entry> = (1..=count).filter(|_| random.u8(..4) > 0).map(entry).collect();
    let refused: BTreeSet<u64> =
        log.iter().map(|entry| entry.number).filter(|_| random.u8(..15) == 0).collect();
    let mut stream = Stream { random: random.fork(), refused, messages: Vec::new(), known: 0 };

    let mut now = Instant::now();
    let (mut stored, mut tail, mut dead) = (0, 0, BTreeSet::new());
    let (mut backs, mut losses, mut steps, mut grown) = (0, 0, 0, 0);
    let mut delivery = Delivery::new(policy.clone(), seed, 0);
    loop {
        steps += 1;
        assert!(steps < 60_000, "no end: {delivery:?}");
        if grown < count && random.u8(..4) == 0 {
            grown = (grown + random.u64(1..20)).min(count);
            delivery.grown(grown);
        }
        if random.u16(..100) == 0 {
            // A new process: what is stored is all that is known.
            delivery = Delivery::new(policy.clone(), random.u64(..), stored);
            delivery.grown(grown);
            stream.known = tail;
        }
        if losses < 8 && random.u16(..100) == 0 && !stream.messages.is_empty() {
            losses += 1;
            stream.messages.truncate(random.usize(..stream.messages.len()));
        }
        match delivery.next(now) {
            Action::Store(settled) => {
                assert!(settled.position >= stored, "the position goes back");
                stored = settled.position;
                if delivery.position() >= stored {
                    tail = stream.known;
                }
                dead.extend(settled.dead.iter().map(|letter| letter.number));
            }
            Action::Read { after, records, .. } => {
                let unread = log.iter().filter(|entry| entry.number > after && entry.number <= grown);
                let read: Vec<Entry> = unread.take(records).copied().collect();
                let through =
                    if read.len() < records { grown } else { read.last().map_or(grown, |last| last.number) };
                delivery.read(read, through.max(after)).expect("records in order");
            }
            Action::Send(batch) => {
                let answer = match stream.has_lost() {
                    true => Answer::Unavailable { reason: "it has lost its end".into() },
                    false => stream.append(&batch.numbers),
                };
                delivery.answered(answer, now);
            }
            Action::Wait { .. } if stream.has_lost() => {
                backs += u64::from(delivery.go_back(stream.last()));
                stream.known = stream.last();
            }
            Action::Wait { until: None } if stored >= count => break,
            Action::Wait { until } => {
                now = until.map_or(now, |until| until.max(now)) + Duration::from_millis(1);
            }
        }
    }
    let expected: Vec<u64> =
        log.iter().map(|entry| entry.number).filter(|number| !stream.refused.contains(number)).collect();
    assert_eq!(stream.messages, expected);
    assert_eq!(dead, stream.refused);
    backs
}
