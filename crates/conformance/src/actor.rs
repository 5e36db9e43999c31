//! A child process of a story: it says what it does, takes orders, and is frozen and killed.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::Rig;

/// A child process. Dropping it kills it.
pub struct Actor {
    child: Child,
    orders: Option<ChildStdin>,
}

impl Actor {
    /// Starts a program with a kubeconfig, the test's namespace and a name as arguments. `said` gets each line that it says,
    /// on a thread of its own, until it returns `false`.
    ///
    /// # Panics
    ///
    /// When the program cannot be started.
    pub fn start(
        program: &str,
        rig: &Rig,
        name: &str,
        mut said: impl FnMut(&str) -> bool + Send + 'static,
    ) -> Self {
        let mut child = Command::new(program)
            .arg(rig.kubeconfig())
            .args([rig.namespace(), name])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a process");
        let (output, orders) = (child.stdout.take().expect("a pipe"), child.stdin.take());
        std::thread::spawn(move || {
            let mut lines = BufReader::new(output).lines().map_while(Result::ok);
            while lines.next().is_some_and(|line| said(&line)) {}
        });
        Self { child, orders }
    }

    /// Its process.
    pub fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// Writes a line to its input.
    ///
    /// # Panics
    ///
    /// When it has ended.
    pub fn order(&mut self, line: &str) {
        writeln!(self.orders.as_mut().expect("a pipe"), "{line}").expect("a process that reads");
    }

    /// Stops it where it is.
    ///
    /// # Panics
    ///
    /// When it has ended.
    pub fn freeze(&self) {
        kill_process(self.pid(), Signal::STOP).expect("a process");
    }

    /// Lets it go on.
    ///
    /// # Panics
    ///
    /// When it has ended.
    pub fn thaw(&self) {
        kill_process(self.pid(), Signal::CONT).expect("a process");
    }

    /// Ends it in an orderly way, by the end of its input, and waits until it has ended. Blocks.
    ///
    /// # Panics
    ///
    /// When it ends with an error.
    pub fn end(mut self) {
        drop(self.orders.take());
        assert!(self.child.wait().expect("a process").success());
    }
}

impl Drop for Actor {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
