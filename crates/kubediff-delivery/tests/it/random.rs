//! Random sinks and crashes, against what is promised.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use fastrand::Rng;
use kubediff_delivery::{Action, Answer, Batch, Delivery, Entry, Policy};

const SEEDS: u64 = 2_000;

/// A sink with moods, and some records that it never takes.
struct Sink {
    random: Rng,
    mood: Mood,
    refused: BTreeSet<u64>,
    poison: BTreeSet<u64>,
    /// In the order in which they were accepted first.
    accepted: Vec<u64>,
    /// How often it began to refuse everything.
    refusing: usize,
}

#[derive(Clone, Copy)]
enum Mood {
    Good,
    Flaky,
    Down,
    Closed,
    /// It refuses everything.
    Refusing,
}

impl Sink {
    /// The answer that the delivery gets, which need not be the truth.
    fn take(&mut self, batch: &Batch) -> Answer {
        if self.random.u8(..20) == 0 {
            self.mood = *self
                .random
                .choice(
                    [Mood::Good, Mood::Good, Mood::Flaky, Mood::Down, Mood::Closed, Mood::Refusing].iter(),
                )
                .expect("there are moods");
            self.refusing += usize::from(matches!(self.mood, Mood::Refusing));
        }
        let failure = Answer::Unavailable { reason: "500".into() };
        match self.mood {
            Mood::Down => return failure,
            Mood::Closed => return Answer::Unavailable { reason: "401".into() },
            Mood::Refusing => return Answer::Refused { reason: "400".into() },
            Mood::Flaky if self.random.bool() => {
                return match self.random.u8(..4) {
                    0 => Answer::Busy { wait: None },
                    1 => Answer::Busy { wait: Some(Duration::from_secs(self.random.u64(..100))) },
                    2 => failure,
                    // It has the batch, and its answer is lost.
                    _ => {
                        if !self.dislikes(batch) {
                            self.accept(batch);
                        }
                        failure
                    }
                };
            }
            _ => {}
        }
        if batch.numbers.iter().any(|number| self.refused.contains(number)) {
            return Answer::Refused { reason: "413".into() };
        }
        if batch.numbers.iter().any(|number| self.poison.contains(number)) {
            return failure;
        }
        self.accept(batch);
        Answer::Accepted
    }

    fn dislikes(&self, batch: &Batch) -> bool {
        batch.numbers.iter().any(|number| self.refused.contains(number) || self.poison.contains(number))
    }

    fn accept(&mut self, batch: &Batch) {
        for number in &batch.numbers {
            if !self.accepted.contains(number) {
                self.accepted.push(*number);
            }
        }
    }
}

#[test]
fn whatever_a_sink_does_each_record_is_delivered_or_a_dead_letter_and_in_order() {
    for seed in 0..SEEDS {
        let outcome = std::panic::catch_unwind(|| run(seed));
        assert!(outcome.is_ok(), "seed {seed}");
    }
}

fn run(seed: u64) {
    let mut random = Rng::with_seed(seed);
    let policy = Policy {
        batch: random.usize(1..8),
        batch_bytes: random.usize(10..60),
        window: random.usize(1..30),
        window_bytes: random.usize(10..300),
        pace: Duration::from_millis(random.u64(..2_000)),
        digest_beyond: random.bool().then(|| random.usize(1..20)),
        // A process lives for some hours only.
        longest_refusal: Duration::from_secs(3_600),
        ..Policy::default()
    };
    let count = random.u64(1..120);
    let objects = random.u64(1..12);
    let namespaces = seed % 5 + 1;
    let entry = |number, object, bytes| Entry { number, object, namespace: object % namespaces, bytes };
    let mut log: Vec<Entry> =
        (1..=count).map(|number| entry(number, random.u64(..objects), random.usize(1..40))).collect();
    let refused = (1..=count).filter(|_| random.u8(..15) == 0).collect::<BTreeSet<_>>();
    // A record that fails is told from a sink that is down by records of other objects: there have to be some in the window.
    let has_poison = policy.window > 12 && policy.window_bytes > 200 && count > 60;
    let poison: BTreeSet<u64> = has_poison.then(|| random.u64(1..20)).into_iter().collect();
    for number in poison.iter().flat_map(|number| [*number, *number + 6]) {
        let place = &mut log[number as usize - 1];
        *place = entry(number, objects, place.bytes);
    }
    let mut sink =
        Sink { poison, refused, random: random.fork(), mood: Mood::Good, accepted: Vec::new(), refusing: 0 };

    let begin = Instant::now();
    let mut now = begin;
    let (mut stored, mut dead) = (0, BTreeMap::new());
    let mut delivery = Delivery::new(policy.clone(), seed, 0);
    let mut grown = 0;
    let mut held: BTreeMap<u64, usize> = BTreeMap::new();
    let mut steps = 0;
    while stored < count {
        steps += 1;
        assert!(steps < 60_000, "no end: {delivery:?}");
        if grown < count && random.u8(..4) == 0 {
            grown = (grown + random.u64(1..20)).min(count);
            delivery.grown(grown);
        }
        if random.u16(..300) == 0 {
            delivery = Delivery::new(policy.clone(), random.u64(..), stored);
            delivery.grown(grown);
            held.clear();
        }
        match delivery.next(now) {
            Action::Store(settled) => {
                assert!(settled.position >= stored, "the position goes back");
                stored = settled.position;
                for letter in settled.dead {
                    held.remove(&letter.number);
                    dead.insert(letter.number, letter.reason);
                }
                for number in 1..=stored {
                    let is_settled = sink.accepted.contains(&number) || dead.contains_key(&number);
                    assert!(is_settled, "the position {stored} has passed {number}, which is not settled");
                }
            }
            Action::Read { after, records, bytes } => {
                let (mut read, mut left) = (Vec::new(), bytes);
                for entry in log[after as usize..grown as usize].iter().take(records) {
                    if entry.bytes > left && !read.is_empty() {
                        break;
                    }
                    left = left.saturating_sub(entry.bytes);
                    read.push(*entry);
                }
                held.extend(read.iter().map(|entry| (entry.number, entry.bytes)));
                let largest = read.iter().map(|entry| entry.bytes).max().unwrap_or_default();
                let through = read.last().map_or(after, |entry| entry.number);
                delivery.read(read, through).expect("records in order");
                held.retain(|number, _| delivery.holds(*number));
                assert!(held.len() <= policy.window, "{} records in memory", held.len());
                let bytes: usize = held.values().sum();
                assert!(bytes <= policy.window_bytes + largest, "{bytes} bytes in memory");
            }
            Action::Send(batch) => {
                check_order(&log, &batch, &sink, &dead, stored);
                let answer = sink.take(&batch);
                if answer == Answer::Accepted {
                    held.retain(|number, _| !batch.numbers.contains(number));
                }
                now += Duration::from_millis(random.u64(..500));
                delivery.answered(answer, now);
            }
            Action::Wait { until } => {
                now = until.map_or(now, |until| until.max(now)) + Duration::from_millis(1);
            }
        }
    }
    // A sink that refuses everything costs a record in an hour, and one that it refuses right after it has accepted another.
    let hours = (now - begin).as_secs() as usize / 3_600;
    let unjust = dead.iter().filter(|(number, reason)| &***reason == "400" && !sink.refused.contains(number));
    let most = sink.refusing + hours;
    assert!(unjust.clone().count() <= most, "{} dead letters, and {most} are right", unjust.count());
    for (number, reason) in &dead {
        let is_refused = sink.refused.contains(number);
        assert!(is_refused || &**reason != "413", "{number} is a dead letter because of another record");
    }
    for number in &sink.refused {
        assert!(dead.contains_key(number), "{number} was refused, and is no dead letter");
    }
    for number in &sink.poison {
        assert!(dead.contains_key(number), "{number} always failed, and is no dead letter");
    }
}

/// Before each record, the earlier ones of its object are accepted, dead, or before it in the batch.
fn check_order(log: &[Entry], batch: &Batch, sink: &Sink, dead: &BTreeMap<u64, Box<str>>, stored: u64) {
    for (place, number) in batch.numbers.iter().enumerate() {
        let object = log[*number as usize - 1].object;
        for earlier in
            log[stored as usize..*number as usize - 1].iter().filter(|entry| entry.object == object)
        {
            let is_done = sink.accepted.contains(&earlier.number)
                || dead.contains_key(&earlier.number)
                || batch.numbers[..place].contains(&earlier.number);
            assert!(is_done, "{number} is sent before {}", earlier.number);
        }
    }
}
