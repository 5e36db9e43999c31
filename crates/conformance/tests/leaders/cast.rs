//! The candidates of the story: child processes, what they say, and signals to them.

use std::collections::{BTreeMap, BTreeSet};
use std::pin::pin;

use conformance::{Actor, Rig, within};
use rustix::process::{WaitOptions, waitpid};
use tokio::sync::mpsc;

use crate::history::History;

/// A leader could not renew its lease of two seconds in time, although nobody disturbed it.
#[derive(Debug)]
pub(crate) struct TooBusy;

/// One period in which a candidate led.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Led {
    pub(crate) name: &'static str,
    pub(crate) generation: u32,
}

/// A line of a candidate.
type Said = (&'static str, Vec<String>);

pub(crate) struct Cast {
    processes: BTreeMap<&'static str, Actor>,
    lines: mpsc::UnboundedReceiver<Said>,
    /// Lines that nobody has waited for yet.
    unread: Vec<Said>,
    /// By generation: when the term began.
    begins: BTreeMap<u32, u64>,
    /// By generation: when the last write passed the gate.
    last_writes: BTreeMap<u32, u64>,
    /// The generations whose leaders were frozen.
    frozen: BTreeSet<u32>,
}

impl Cast {
    pub(crate) fn start<const N: usize>(rig: &Rig, names: [&'static str; N]) -> Self {
        let (sender, lines) = mpsc::unbounded_channel();
        let start = |name| {
            let sender = sender.clone();
            let said = move |line: &str| {
                let words = line.split(' ').map(str::to_owned).collect();
                sender.send((name, words)).is_ok()
            };
            (name, Actor::start(env!("CARGO_BIN_EXE_candidate"), rig, name, said))
        };
        let processes = names.map(start).into();
        Self {
            processes,
            lines,
            unread: Vec::new(),
            begins: BTreeMap::new(),
            last_writes: BTreeMap::new(),
            frozen: BTreeSet::new(),
        }
    }

    /// The next candidate that leads, when it has written both objects.
    pub(crate) async fn leader(&mut self, history: &History) -> Result<Led, TooBusy> {
        let (name, words) = self.says("a leader", |(_, words)| words[0] == "leading").await?;
        let led = Led { name, generation: words[1].parse().unwrap() };
        self.meanwhile("a write", history.has(led.generation)).await?;
        Ok(led)
    }

    /// Waits for the end of a term, and returns its reason.
    pub(crate) async fn loss(&mut self, of: &Led) -> Result<String, TooBusy> {
        let (_, words) = self.says("a loss", |said| is_about(said, "lost", of)).await?;
        Ok(words[3].clone())
    }

    /// Waits until a former leader has sent the write that it was stopped before.
    pub(crate) async fn sent_late(&mut self, leader: &Led) -> Result<(), TooBusy> {
        self.says("a late write", |said| is_about(said, "sent-late", leader)).await.map(drop)
    }

    pub(crate) fn freeze(&mut self, leader: &Led) {
        self.frozen.insert(leader.generation);
        self.actor(leader).freeze();
    }

    pub(crate) fn thaw(&self, leader: &Led) {
        self.actor(leader).thaw();
    }

    /// Makes a leader stop itself before its next write of this object, and waits until it has.
    pub(crate) async fn stop_before(&mut self, leader: &Led, object: &str) -> Result<(), TooBusy> {
        let actor = self.processes.get_mut(leader.name).expect("a process");
        actor.order(&format!("stop-before {object}"));
        let pid = actor.pid();
        let stopped = tokio::task::spawn_blocking(move || waitpid(Some(pid), WaitOptions::UNTRACED));
        let stopped = self.meanwhile("a stop", stopped).await?;
        let (_, status) = stopped.unwrap().unwrap().expect("a status");
        assert!(status.stopped(), "{status:?}");
        self.frozen.insert(leader.generation);
        Ok(())
    }

    /// Kills a leader, which has no time to say anything.
    pub(crate) fn kill(&mut self, leader: &Led) {
        self.processes.remove(leader.name).expect("a process");
    }

    /// Ends a leader in an orderly way.
    pub(crate) fn end(&mut self, leader: &Led) {
        self.processes.remove(leader.name).expect("a process").end();
    }

    /// No write passed a gate after the next candidate led.
    pub(crate) fn check_terms(&self) {
        for (generation, last) in &self.last_writes {
            if let Some((next, begin)) = self.begins.range(generation + 1..).next() {
                assert!(last < begin, "term {generation} wrote at {last}, term {next} began at {begin}");
            }
        }
    }

    fn actor(&self, leader: &Led) -> &Actor {
        self.processes.get(leader.name).expect("a process")
    }

    async fn says(&mut self, what: &str, is_it: impl Fn(&Said) -> bool) -> Result<Said, TooBusy> {
        loop {
            if let Some(at) = self.unread.iter().position(&is_it) {
                return Ok(self.unread.remove(at));
            }
            within(what, self.line()).await?;
        }
    }

    /// Waits for something else, while the candidates may say what they like.
    async fn meanwhile<F: Future>(&mut self, what: &str, future: F) -> Result<F::Output, TooBusy> {
        let mut future = pin!(future);
        let waiting = async {
            loop {
                tokio::select! {
                    biased;
                    output = &mut future => return Ok(output),
                    line = self.line() => line?,
                }
            }
        };
        within(what, waiting).await
    }

    /// Takes one line down. Cancel safe.
    async fn line(&mut self) -> Result<(), TooBusy> {
        let (name, words) = self.lines.recv().await.expect("a candidate that lives");
        let mut result = Ok(());
        let number = |at: usize| words[at].parse().unwrap();
        let generation = words[1].parse().unwrap();
        match words[0].as_str() {
            "leading" => drop(self.begins.insert(generation, number(2))),
            "lost" => {
                self.last_writes.insert(generation, number(2));
                if !self.frozen.contains(&generation) {
                    assert_eq!(words[3], "Expired", "{name} {words:?}");
                    eprintln!("{name}: term {generation} ended by itself");
                    result = Err(TooBusy);
                }
            }
            _ => {}
        }
        self.unread.push((name, words));
        result
    }
}

fn is_about((name, words): &Said, verb: &str, led: &Led) -> bool {
    *name == led.name && words[0] == verb && words[1] == led.generation.to_string()
}
