//! One tenant's records that the sink does not take, beside those of others, in simulated time.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use expect_test::expect;
use fastrand::Rng;
use kubediff_delivery::{Action, Answer, Batch, Delivery, Entry, Policy};

use crate::scripts::check;

/// A namespace of a tenant whose records may be poison, and one of others.
const EVIL: u64 = 6;
const SHOP: u64 = 7;

/// A log that grows at given times, a sink that needs a while for each batch, and what became of them.
struct World {
    policy: Policy,
    log: Vec<(Duration, Entry)>,
    took: Duration,
    accepted: BTreeMap<u64, Duration>,
    dead: BTreeMap<u64, Duration>,
    tries: usize,
    position: u64,
    now: Duration,
    refused_all: bool,
}

impl World {
    fn new(policy: Policy) -> Self {
        Self {
            policy,
            log: Vec::new(),
            took: Duration::from_millis(10),
            accepted: BTreeMap::new(),
            dead: BTreeMap::new(),
            tries: 0,
            position: 0,
            now: Duration::ZERO,
            refused_all: false,
        }
    }

    /// A record at this time, not before the last one.
    fn append(&mut self, at: Duration, namespace: u64, object: u64) -> u64 {
        let number = self.log.len() as u64 + 1;
        let entry = Entry { number, object: namespace * 1_000_000 + object, namespace, bytes: 500 };
        self.log.push((at, entry));
        number
    }

    /// Runs until these are settled, or until this time.
    fn run(&mut self, settled: usize, until: Duration, mut sink: impl FnMut(Duration, &[Entry]) -> Answer) {
        let begin = Instant::now();
        let mut delivery = Delivery::new(self.policy.clone(), 1, 0);
        let mut steps = 0;
        while self.now < until && self.position < settled as u64 {
            steps += 1;
            assert!(steps < 2_000_000, "no end at {:?}: {delivery:?}", self.now);
            let grown = self.log.partition_point(|(at, _)| *at <= self.now);
            delivery.grown(grown as u64);
            match delivery.next(begin + self.now) {
                Action::Store(settled) => {
                    self.position = settled.position;
                    for letter in settled.dead {
                        assert!(self.dead.insert(letter.number, self.now).is_none());
                    }
                }
                Action::Read { after, records, bytes } => {
                    let mut left = bytes;
                    let fits = |entry: &Entry| {
                        let fits = entry.bytes <= left;
                        left = left.saturating_sub(entry.bytes);
                        fits
                    };
                    let unread = self.log[after as usize..grown].iter().map(|(_, entry)| *entry);
                    let read: Vec<Entry> = unread.take(records).take_while(fits).collect();
                    let through = read.last().map_or(after, |entry| entry.number);
                    delivery.read(read, through).expect("in order");
                    let held =
                        (self.position + 1..=grown as u64).filter(|number| delivery.holds(*number)).count();
                    assert!(held <= self.policy.window, "{held} records in memory");
                }
                Action::Send(batch) => self.answer(&mut delivery, begin, &batch, &mut sink),
                Action::Wait { until } => {
                    let next = self.log.get(grown).map(|(at, _)| *at);
                    let woken = until.map(|until| until - begin);
                    let Some(woken) = woken.into_iter().chain(next).min() else {
                        panic!("it waits for nothing: {delivery:?}")
                    };
                    assert!(woken > self.now, "it waits for what is over: {delivery:?}");
                    self.now = woken;
                }
            }
        }
    }

    fn answer(
        &mut self,
        delivery: &mut Delivery,
        begin: Instant,
        batch: &Batch,
        sink: &mut impl FnMut(Duration, &[Entry]) -> Answer,
    ) {
        let entries: Vec<Entry> = batch.numbers.iter().map(|number| self.entry(*number)).collect();
        for (place, entry) in entries.iter().enumerate() {
            for earlier in self.of_object(entry.object).filter(|number| *number < entry.number) {
                let is_done = self.accepted.contains_key(&earlier)
                    || self.dead.contains_key(&earlier)
                    || batch.numbers[..place].contains(&earlier);
                assert!(is_done, "{} is sent before {earlier}", entry.number);
            }
        }
        self.tries += 1;
        self.now += self.took;
        let answer = sink(self.now, &entries);
        if answer == Answer::Accepted {
            for entry in entries {
                self.accepted.entry(entry.number).or_insert(self.now);
            }
        }
        delivery.answered(answer, begin + self.now);
        self.refused_all |= delivery.refuses_all();
    }

    fn entry(&self, number: u64) -> Entry {
        self.log[number as usize - 1].1
    }

    /// The numbers of the records of this object that are not settled.
    fn of_object(&self, object: u64) -> impl Iterator<Item = u64> {
        let entries = self.log[self.position as usize..].iter().map(|(_, entry)| entry);
        entries.filter(move |entry| entry.object == object).map(|entry| entry.number)
    }

    /// How long the slowest record of other namespaces than these took.
    fn slowest_but(&self, evil: &BTreeSet<u64>) -> Duration {
        let others = self.log.iter().filter(|(at, entry)| *at < self.now && !evil.contains(&entry.namespace));
        let late = |(at, entry): &(Duration, Entry)| {
            self.accepted.get(&entry.number).copied().unwrap_or(self.now).saturating_sub(*at)
        };
        others.map(late).max().expect("records of others")
    }
}

fn seconds(number: u64) -> Duration {
    Duration::from_secs(number)
}

fn of_http(status: u16) -> Answer {
    Answer::of_http(status, None)
}

/// Some objects of one namespace that the sink does not take, then a record of another one each second.
fn beside_poison(objects: u64, status: u16) -> World {
    let mut world = World::new(Policy::default());
    for object in 0..objects {
        world.append(Duration::ZERO, EVIL, object);
    }
    for second in 0..150 {
        world.append(seconds(second), SHOP, 0);
    }
    world.run(world.log.len(), seconds(160), |_, entries| {
        let is_poison = entries.iter().any(|entry| entry.namespace == EVIL);
        if is_poison { of_http(status) } else { Answer::Accepted }
    });
    world
}

/// The attack: 0 of 120 records of the others arrived in 150 s.
#[test]
fn k6_records_that_are_refused_do_not_hold_up_those_of_another_namespace() {
    for (objects, status) in [(20, 400), (200, 400), (20, 413), (2_500, 400)] {
        let world = beside_poison(objects, status);
        let slowest = world.slowest_but(&BTreeSet::from([EVIL]));
        assert!(slowest < seconds(2), "{objects} objects, {status}: {slowest:?}");
        assert!(!world.refused_all, "it took others");
        assert!(world.dead.keys().all(|number| world.entry(*number).namespace == EVIL));
        assert!(objects > 20 || world.dead.len() == 20, "{} dead letters", world.dead.len());
    }
}

/// A parser that dies, and a web application firewall.
#[test]
fn k6_records_that_the_sink_fails_with_do_not_hold_up_those_of_another_namespace() {
    for (objects, status) in [(3, 500), (1, 403), (1, 404), (20, 500), (2_500, 500)] {
        let world = beside_poison(objects, status);
        let slowest = world.slowest_but(&BTreeSet::from([EVIL]));
        assert!(slowest < seconds(10), "{objects} objects, {status}: {slowest:?}");
        assert!(objects > 3 || world.dead.len() as u64 == objects, "{} dead letters", world.dead.len());
    }
}

/// The eighth attack: each of eight namespaces doubled the wait before the turn of the ninth, which was more than three minutes.
#[test]
fn k6_a_sink_that_fails_with_records_of_many_namespaces_takes_those_of_the_last_one_soon() {
    let mut world = World::new(Policy::default());
    for namespace in 10..40 {
        world.append(Duration::ZERO, namespace, 0);
    }
    world.append(Duration::ZERO, SHOP, 0);
    world.run(world.log.len(), seconds(300), |_, entries| {
        if entries.iter().all(|entry| entry.namespace == SHOP) { Answer::Accepted } else { of_http(500) }
    });
    let slowest = world.slowest_but(&(10..40).collect());
    assert!(slowest < seconds(30 * 4 + 4), "{slowest:?}");
}

/// 20 new objects in a second for a minute, more than memory may hold.
#[test]
fn k6_a_steady_stream_of_poison_does_not_hold_up_the_records_of_others() {
    for status in [400, 403, 500] {
        let mut world = World::new(Policy { window: 200, ..Policy::default() });
        for tick in 0..1_200 {
            let at = Duration::from_millis(50 * tick);
            world.append(at, EVIL, tick % 600);
            if tick % 20 == 0 {
                world.append(at, SHOP, tick % 7);
            }
        }
        world.run(world.log.len(), seconds(70), |_, entries| {
            let is_poison = entries.iter().any(|entry| entry.namespace == EVIL);
            if is_poison { of_http(status) } else { Answer::Accepted }
        });
        let slowest = world.slowest_but(&BTreeSet::from([EVIL]));
        assert!(slowest < seconds(4), "{status}: {slowest:?}");
        assert!(world.dead.keys().all(|number| world.entry(*number).namespace == EVIL));
    }
}

/// Between them, the namespace of the poison has records that the sink takes.
#[test]
fn k6_what_made_room_is_read_again() {
    let mut world = World::new(Policy { window: 20, ..Policy::default() });
    for object in 0..200 {
        world.append(Duration::ZERO, EVIL, object);
    }
    for second in 0..2_000 {
        world.append(seconds(second), SHOP, 0);
    }
    world.run(world.log.len(), seconds(2_010), |_, entries| {
        let is_poison = |entry: &Entry| entry.namespace == EVIL && entry.number.is_multiple_of(3);
        if entries.iter().any(is_poison) { of_http(413) } else { Answer::Accepted }
    });
    let poison: Vec<u64> = (1..=200_u64).filter(|number| number.is_multiple_of(3)).collect();
    assert_eq!(world.dead.keys().copied().collect::<Vec<u64>>(), poison);
    assert_eq!((world.position, world.accepted.len() + poison.len()), (2_200, 2_200));
}

/// A sink that refuses or fails with everything for an hour, whatever the namespace.
#[test]
fn k6_a_sink_that_takes_nothing_of_any_namespace_costs_no_dead_letter() {
    for status in [400, 401, 500] {
        let mut world = World::new(Policy::default());
        for second in 0..4_000 {
            world.append(seconds(second), second % 10, second % 30);
        }
        let mut early = 0;
        world.run(world.log.len(), seconds(5_000), |now, _| {
            let is_down = now < seconds(3_600);
            early += usize::from(is_down);
            if is_down { of_http(status) } else { Answer::Accepted }
        });
        assert_eq!(world.dead.len(), 0, "{status}");
        assert_eq!((world.position, world.accepted.len()), (4_000, 4_000), "{status}");
        assert!(early < 60, "{status}: {early} tries in an hour");
        assert_eq!(world.refused_all, status == 400);
    }
}

/// Dead letters that the sink refuses again are sent between other records.
#[test]
fn k6_dead_letters_of_one_namespace_do_not_hold_up_records_of_others() {
    check(
        Policy { batch: 1, refusals: 1, ..Policy::default() },
        "log e/a s/b
         refuse
         ok
         later 1s
         refuse
         log s/c s/d s/e
         resend 1
         ok
         refuse
         ok",
        &expect![[r#"
            > log e/a s/b
              read 1..=2
              send [1]
            > refuse
              send [2]
            > ok
              wait until 1 s
            > later 1s
              send [1]
            > refuse
              store 2, dead 1 (413)
            > log s/c s/d s/e
              read 3..=5
              send [3]
            > resend 1
            > ok
              store 3
              send late [1]
            > refuse
              store 3, dead 1 (413)
              send [4]
            > ok
              store 4
              send [5]
        "#]],
    );
}

#[test]
fn k6_a_record_of_a_suspect_namespace_is_tried_between_two_batches_of_the_others() {
    check(
        Policy { batch: 2, refusals: 2, ..Policy::default() },
        "log e/a e/b e/c s/d s/e s/f s/g
         refuse
         refuse
         ok
         refuse
         ok
         later 1s
         refuse
         refuse
         log s/h
         ok
         later 1s
         ok
         ok",
        &expect![[r#"
            > log e/a e/b e/c s/d s/e s/f s/g
              read 1..=7
              send [1, 2]
            > refuse
              send [1]
            > refuse
              send [4, 5]
            > ok
              send [2]
            > refuse
              send [6, 7]
            > ok
              send [3]
            > later 1s
            > refuse
              send [1]
            > refuse
              wait until 2 s
            > log s/h
              read 8..=8
              send [8]
            > ok
              wait until 2 s
            > later 1s
              send [2]
            > ok
              send [3]
            > ok
              wait until 3 s
        "#]],
    );
}

#[test]
fn k6_a_sink_that_fails_is_tried_with_a_record_of_each_namespace_in_turn() {
    check(
        Policy { refusals: 1, ..Policy::default() },
        "log e/a e/b s/c t/d
         down 500
         later 1s
         down 500
         later 2s
         ok
         log u/e
         ok
         ok",
        &expect![[r#"
            > log e/a e/b s/c t/d
              read 1..=4
              send [1, 2, 3, 4]
            > down 500
              wait until 1 s
            > later 1s
              send [1]
            > down 500
              wait until 3 s
            > later 2s
              send [3]
            > ok
              send [4]
            > log u/e
              read 5..=5
            > ok
              send [5]
            > ok
              send [2]
        "#]],
    );
}

#[test]
fn k6_whatever_some_namespaces_hold_records_of_the_others_arrive_soon() {
    for seed in 0..50 {
        let outcome = std::panic::catch_unwind(|| random(seed));
        assert!(outcome.is_ok(), "seed {seed}");
    }
}

fn random(seed: u64) {
    let mut random = Rng::with_seed(seed);
    let mut world = World::new(Policy {
        batch: random.usize(1..60),
        window: random.usize(4..300),
        window_bytes: random.usize(4_000..200_000),
        ..Policy::default()
    });
    world.took = Duration::from_millis(random.u64(1..50));
    let namespaces = random.u64(2..8);
    let evil: BTreeSet<u64> = (0..random.u64(1..=namespaces.min(4) - 1)).collect();
    let (objects, share) = (random.u64(1..30), random.u64(2..6));
    let mut poison = BTreeMap::new();
    let busy = random.u64(1..60);
    for second in 0..6_000 {
        let records = if second < busy { random.u64(0..20) } else { 1 };
        for _ in 0..records {
            let namespace = if second < busy { random.u64(..namespaces) } else { namespaces - 1 };
            let number = world.append(seconds(second), namespace, random.u64(..objects));
            if evil.contains(&namespace) && random.u64(..share) == 0 {
                poison.insert(number, *random.choice(&[400, 413, 403, 500]).expect("a status"));
            }
        }
    }
    let last = world.log.partition_point(|(at, _)| *at < seconds(busy));
    world.run(last, seconds(6_000), |_, entries| {
        let poison = entries.iter().find_map(|entry| poison.get(&entry.number));
        poison.map_or(Answer::Accepted, |status| of_http(*status))
    });
    let slowest = world.slowest_but(&evil);
    assert!(slowest < seconds(15), "{slowest:?}");
    assert!(world.position >= last as u64, "{} of {last}", world.position);
    assert!(world.dead.keys().eq(poison.keys()), "{:?} for {poison:?}", world.dead);
}
