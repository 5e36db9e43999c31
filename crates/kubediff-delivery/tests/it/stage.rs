//! Plays a script: a line is an input, and what the delivery does until it waits follows.

use std::fmt::Write;
use std::time::{Duration, Instant};

use kubediff_delivery::{Action, Answer, Batch, Delivery, Entry, Policy};

/// Without randomness, so that waits can be read: a wait of up to a half less is rounded up.
pub(crate) struct Stage {
    policy: Policy,
    delivery: Delivery,
    begin: Instant,
    now: Instant,
    log: Vec<Entry>,
    said: String,
}

/// Plays the script. Records are written `OBJECT`, `NAMESPACE/OBJECT` or `OBJECT:BYTES`; their numbers are their places in the log.
///
/// - `log a b a`: the log grows by these records
/// - `ok`, `busy`, `busy 30s`, `down`, `closed`, `refuse`: the answer to what was sent
/// - `later 2s`: time passes
/// - `resend 3`: a dead letter is sent again
/// - `restart`: a new process begins after the last record
pub(crate) fn play(policy: Policy, script: &str) -> String {
    let begin = Instant::now();
    let mut stage = Stage {
        delivery: Delivery::new(policy.clone(), 1, 0),
        policy,
        begin,
        now: begin,
        log: Vec::new(),
        said: String::new(),
    };
    for line in script.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let _ = writeln!(stage.said, "> {line}");
        stage.input(line);
        stage.act();
    }
    stage.said
}

impl Stage {
    fn input(&mut self, line: &str) {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        let reason = || Box::from(if rest.is_empty() { "500" } else { rest });
        match word {
            "log" => {
                for record in rest.split(' ') {
                    let (object, bytes) = record.split_once(':').unwrap_or((record, "10"));
                    let (namespace, object) = object.split_once('/').unwrap_or(("", object));
                    let hash = |text: &str| text.bytes().fold(0, |hash, byte| hash * 256 + u64::from(byte));
                    self.log.push(Entry {
                        number: self.log.len() as u64 + 1,
                        object: hash(namespace) * 65_536 + hash(object),
                        namespace: hash(namespace),
                        bytes: bytes.parse().expect("a number of bytes"),
                    });
                }
                self.delivery.grown(self.log.len() as u64);
            }
            "ok" => self.delivery.answered(Answer::Accepted, self.now),
            "busy" => {
                let wait = (!rest.is_empty()).then(|| seconds(rest));
                self.delivery.answered(Answer::Busy { wait }, self.now);
            }
            "down" => self.delivery.answered(Answer::Unavailable { reason: reason() }, self.now),
            "closed" => self.delivery.answered(Answer::Unavailable { reason: "401".into() }, self.now),
            "refuse" => self.delivery.answered(Answer::Refused { reason: "413".into() }, self.now),
            "restart" => {
                self.delivery = Delivery::new(self.policy.clone(), 1, self.log.len() as u64);
            }
            "later" => self.now += seconds(rest),
            "resend" => {
                let number: usize = rest.parse().expect("a number");
                self.delivery.resend(self.log[number - 1]);
            }
            other => panic!("{other:?} is no input"),
        }
    }

    /// Does what the delivery wants until it waits.
    fn act(&mut self) {
        loop {
            let action = self.delivery.next(self.now);
            match &action {
                Action::Store(settled) => {
                    let _ = write!(self.said, "  store {}", settled.position);
                    for dead in &settled.dead {
                        let _ = write!(self.said, ", dead {} ({})", dead.number, dead.reason);
                    }
                    for number in &settled.resent {
                        let _ = write!(self.said, ", resent {number}");
                    }
                    self.said.push('\n');
                }
                Action::Read { after, records, bytes } => {
                    let entries = self.take(*after, *records, *bytes);
                    let through = entries.last().map_or(*after, |entry| entry.number);
                    let _ = writeln!(self.said, "  read {}..={through}", after + 1);
                    self.delivery.read(entries, through).expect("records in order");
                }
                Action::Send(batch) => self.say(batch),
                Action::Wait { until } => {
                    if let Some(until) = until {
                        let seconds = (*until - self.begin).as_secs_f64();
                        let _ = writeln!(self.said, "  wait until {:.0} s", seconds.ceil());
                    }
                    return;
                }
            }
        }
    }

    fn take(&self, after: u64, records: usize, bytes: usize) -> Vec<Entry> {
        let mut left = bytes;
        let after = usize::try_from(after).expect("a place in the log");
        let mut entries: Vec<Entry> = Vec::new();
        for entry in self.log[after..].iter().take(records) {
            if entry.bytes > left && !entries.is_empty() {
                break;
            }
            left = left.saturating_sub(entry.bytes);
            entries.push(*entry);
        }
        entries
    }

    fn say(&mut self, batch: &Batch) {
        let what = match (batch.is_digest, batch.is_late) {
            (true, _) => "send digest",
            (_, true) => "send late",
            _ => "send",
        };
        let _ = write!(self.said, "  {what} {:?}", batch.numbers);
        for (number, missing) in &batch.missing {
            let _ = write!(self.said, ", before {number} lacks {missing:?}");
        }
        self.said.push('\n');
    }
}

fn seconds(text: &str) -> Duration {
    Duration::from_secs(text.trim_end_matches('s').parse().expect("seconds"))
}
