//! The candidates of the story: child processes, what they say, and signals to them.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};

use conformance::{Rig, within};
use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};
use tokio::sync::mpsc;

/// One period in which a candidate led.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Led {
    pub(crate) name: &'static str,
    pub(crate) generation: u32,
    /// Nanoseconds of the clock that all processes share.
    since: u64,
}

/// A line of a candidate.
type Said = (&'static str, Vec<String>);

pub(crate) struct Cast {
    processes: BTreeMap<&'static str, Process>,
    lines: mpsc::UnboundedReceiver<Said>,
    /// Lines that nobody has waited for yet.
    unread: Vec<Said>,
    terms: Vec<Led>,
    /// By generation: when the last write passed the gate.
    last_writes: BTreeMap<u32, u64>,
}

struct Process {
    child: Child,
    orders: Option<ChildStdin>,
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Cast {
    pub(crate) fn start<const N: usize>(rig: &Rig, names: [&'static str; N]) -> Self {
        let (sender, lines) = mpsc::unbounded_channel();
        let start = |name| {
            let mut child = Command::new(env!("CARGO_BIN_EXE_candidate"))
                .arg(rig.kubeconfig())
                .args([rig.namespace(), name])
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .expect("a process");
            let (output, orders) = (child.stdout.take().expect("a pipe"), child.stdin.take());
            let sender = sender.clone();
            std::thread::spawn(move || {
                for line in BufReader::new(output).lines().map_while(Result::ok) {
                    let words = line.split(' ').map(str::to_owned).collect();
                    if sender.send((name, words)).is_err() {
                        return;
                    }
                }
            });
            (name, Process { child, orders })
        };
        let processes = names.map(start).into();
        Self { processes, lines, unread: Vec::new(), terms: Vec::new(), last_writes: BTreeMap::new() }
    }

    /// The next candidate that leads.
    pub(crate) async fn leader(&mut self) -> Led {
        let (name, words) = self.says("a leader", |(_, words)| words[0] == "leading").await;
        let led = Led { name, generation: words[1].parse().unwrap(), since: words[2].parse().unwrap() };
        self.terms.push(led.clone());
        led
    }

    /// Waits for the end of a term, and returns its reason.
    pub(crate) async fn loss(&mut self, of: &Led) -> String {
        let (_, words) = self.says("a loss", |said| is_about(said, "lost", of)).await;
        self.last_writes.insert(of.generation, words[2].parse().unwrap());
        words[3].clone()
    }

    /// Waits until a former leader has sent the write that it was stopped before.
    pub(crate) async fn sent_late(&mut self, leader: &Led) {
        self.says("a late write", |said| is_about(said, "sent-late", leader)).await;
    }

    pub(crate) fn freeze(&self, leader: &Led) {
        kill_process(self.pid(leader), Signal::STOP).unwrap();
    }

    pub(crate) fn thaw(&self, leader: &Led) {
        kill_process(self.pid(leader), Signal::CONT).unwrap();
    }

    /// Makes a leader stop itself before its next write of this object, and waits until it has.
    pub(crate) async fn stop_before(&mut self, leader: &Led, object: &str) {
        let pid = self.pid(leader);
        let orders = self.processes.get_mut(leader.name).and_then(|process| process.orders.as_mut());
        writeln!(orders.expect("a pipe"), "stop-before {object}").unwrap();
        let stopped = tokio::task::spawn_blocking(move || waitpid(Some(pid), WaitOptions::UNTRACED));
        let (_, status) = within("a stop", stopped).await.unwrap().unwrap().expect("a status");
        assert!(status.stopped(), "{status:?}");
    }

    /// Kills a leader, which has no time to say anything.
    pub(crate) fn kill(&mut self, leader: &Led) {
        self.processes.remove(leader.name).expect("a process");
    }

    /// Ends a leader in an orderly way.
    pub(crate) fn end(&mut self, leader: &Led) {
        let mut process = self.processes.remove(leader.name).expect("a process");
        drop(process.orders.take());
        assert!(process.child.wait().unwrap().success());
    }

    /// No write passed a gate after the next candidate led.
    pub(crate) fn check_terms(&self) {
        for next in self.terms.windows(2) {
            let [former, next] = next else { continue };
            assert!(former.generation < next.generation, "{:?}", self.terms);
            if let Some(last) = self.last_writes.get(&former.generation) {
                assert!(former.since < *last && *last < next.since, "{former:?} wrote at {last}, {next:?}");
            }
        }
    }

    fn pid(&self, leader: &Led) -> Pid {
        Pid::from_child(&self.processes.get(leader.name).expect("a process").child)
    }

    async fn says(&mut self, what: &str, is_it: impl Fn(&Said) -> bool) -> Said {
        loop {
            if let Some(at) = self.unread.iter().position(&is_it) {
                return self.unread.remove(at);
            }
            let said = within(what, self.lines.recv()).await;
            self.unread.push(said.expect("a candidate that lives"));
        }
    }
}

fn is_about((name, words): &Said, verb: &str, led: &Led) -> bool {
    *name == led.name && words[0] == verb && words[1] == led.generation.to_string()
}
