//! A running `kubediff watch`.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use control_plane::ControlPlane;

/// Longer than anything takes.
pub(crate) const PATIENCE: Duration = Duration::from_secs(180);

/// How long the next line of a stream is waited for: silence ends the wait sooner than other lines do, which may be endless.
struct Wait(Instant);

impl Wait {
    fn begin() -> Self {
        Self(Instant::now() + 2 * PATIENCE)
    }

    fn next(&self, stream: &Receiver<String>) -> Result<String, RecvTimeoutError> {
        let left = self.0.saturating_duration_since(Instant::now());
        // A stream that is never empty would hide that the time is over.
        if left.is_zero() { Err(RecvTimeoutError::Timeout) } else { stream.recv_timeout(left.min(PATIENCE)) }
    }
}

pub(crate) struct Session {
    child: Child,
    /// Standard output, as long as nobody reads it.
    asleep: Option<ChildStdout>,
    stdout: Receiver<String>,
    stderr: Receiver<String>,
    seen: Vec<String>,
}

impl Session {
    /// Starts `kubediff watch` with these arguments and waits until it watches.
    pub(crate) fn start(server: &ControlPlane, arguments: &[&str]) -> Self {
        let mut session = Self::spawn(server, arguments);
        session.note("watching");
        session
    }

    pub(crate) fn spawn(server: &ControlPlane, arguments: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kubediff"));
        command.arg("watch").args(arguments).env("KUBECONFIG", server.kubeconfig());
        Self::run(command)
    }

    /// Starts `kubediff watch` with these arguments and this kubeconfig.
    pub(crate) fn with(kubeconfig: impl AsRef<OsStr>, arguments: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kubediff"));
        command.arg("watch").args(arguments).env("KUBECONFIG", kubeconfig);
        Self::run(command)
    }

    /// The same, and waits until it watches.
    pub(crate) fn against(kubeconfig: &Path, arguments: &[&str]) -> Self {
        let mut session = Self::with(kubeconfig, arguments);
        session.note("watching");
        session
    }

    /// The same as [`with`](Self::with), with a reader that sleeps until [`wake`](Self::wake).
    pub(crate) fn asleep(kubeconfig: &Path, arguments: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kubediff"));
        command.arg("watch").args(arguments).env("KUBECONFIG", kubeconfig);
        let mut session = Self::start_child(command);
        session.note("watching");
        session
    }

    /// The same for `kubediff serve`.
    pub(crate) fn serve_asleep(kubeconfig: &Path, config: &Path) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kubediff"));
        command.arg("serve").arg("-c").arg(config).env("KUBECONFIG", kubeconfig);
        Self::start_child(command)
    }

    /// The output that nobody has read yet.
    pub(crate) fn unread(&mut self) -> ChildStdout {
        self.asleep.take().unwrap()
    }

    /// Begins to read.
    pub(crate) fn wake(&mut self) {
        if let Some(stdout) = self.asleep.take() {
            self.stdout = lines(stdout);
        }
    }

    /// Starts `kubediff serve` with this configuration.
    pub(crate) fn serve(kubeconfig: &Path, config: &Path) -> Self {
        Self::serve_with(kubeconfig, config, &[])
    }

    /// Starts `kubediff serve` with this configuration and these further arguments.
    pub(crate) fn serve_with(kubeconfig: &Path, config: &Path, arguments: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kubediff"));
        command
            .arg("serve")
            .arg("-c")
            .arg(config)
            .args(arguments)
            .env("KUBECONFIG", kubeconfig)
            .env("WORD", "a word from outside");
        Self::run(command)
    }

    /// Starts `kubediff demo` with these arguments.
    pub(crate) fn demo(arguments: &[&str]) -> Self {
        let mut command = Command::new("env");
        // Tests that run under `nohup` would hand on that hangups are ignored.
        if cfg!(target_os = "linux") {
            command.arg("--default-signal=HUP");
        }
        // The user's cluster is another one.
        command.arg(env!("CARGO_BIN_EXE_kubediff")).arg("demo").args(arguments).env("KUBECONFIG", "/nowhere");
        Self::run(command)
    }

    /// Starts any command of it.
    pub(crate) fn program(command: Command) -> Self {
        Self::run(command)
    }

    fn run(command: Command) -> Self {
        let mut session = Self::start_child(command);
        session.wake();
        session
    }

    fn start_child(mut command: Command) -> Self {
        let mut child = command
            .env_remove("RUST_LOG")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let asleep = child.stdout.take();
        let stderr = lines(child.stderr.take().unwrap());
        let (_, stdout) = channel();
        Self { child, asleep, stdout, stderr, seen: Vec::new() }
    }

    /// Waits for a line on standard output that holds all of these texts.
    pub(crate) fn line(&mut self, texts: &[&str]) -> String {
        // Endless output must not hide that the line does not come.
        self.line_of_many(texts, 5_000)
    }

    /// The same, among that many lines.
    pub(crate) fn line_of_many(&mut self, texts: &[&str], most: usize) -> String {
        let wait = Wait::begin();
        loop {
            let line = self.next_line(&wait, texts);
            assert!(self.seen.len() < most, "no line with {texts:?} in {:#?}", self.seen);
            if texts.iter().all(|text| line.contains(text)) {
                return line;
            }
        }
    }

    /// Waits for lines with these texts, in whatever order they come.
    pub(crate) fn lines(&mut self, wanted: &[&[&str]]) {
        let mut left: Vec<&[&str]> = wanted.to_vec();
        let wait = Wait::begin();
        while !left.is_empty() {
            let line = self.next_line(&wait, left.first().copied().unwrap_or_default());
            left.retain(|texts| !texts.iter().all(|text| line.contains(text)));
        }
    }

    fn next_line(&mut self, wait: &Wait, texts: &[&str]) -> String {
        match wait.next(&self.stdout) {
            Ok(line) => {
                self.seen.push(line.clone());
                line
            }
            Err(error) => panic!("{error}: no line with {texts:?} in {:#?}", self.seen),
        }
    }

    /// Waits for a note on standard error.
    pub(crate) fn note(&mut self, text: &str) -> String {
        let mut seen = Vec::new();
        let wait = Wait::begin();
        loop {
            match wait.next(&self.stderr) {
                Ok(line) if line.contains(text) => return line,
                Ok(line) => seen.push(line),
                Err(error) => panic!("{error}: no note with {text:?} in {seen:#?}"),
            }
        }
    }

    /// Ends it as Ctrl-C does; what it has written since, on both streams, and how it ended.
    pub(crate) fn interrupt(self) -> (Vec<String>, Vec<String>, ExitStatus) {
        self.end_with("-INT")
    }

    /// The same with another signal.
    pub(crate) fn end_with(mut self, signal: &str) -> (Vec<String>, Vec<String>, ExitStatus) {
        let status = Command::new("kill").args([signal, &self.id().to_string()]).status().unwrap();
        assert!(status.success());
        let stdout = rest(&self.stdout);
        let stderr = rest(&self.stderr);
        self.seen.extend(stdout);
        (std::mem::take(&mut self.seen), stderr, self.child.wait().unwrap())
    }

    /// The number of its process.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal.
    pub(crate) fn signal(&self, signal: &str) {
        let status = Command::new("kill").args([signal, &self.id().to_string()]).status().unwrap();
        assert!(status.success());
    }

    /// Makes it stand still until it gets `-CONT`. Returns when every thread has stopped, as far as the system tells of threads.
    pub(crate) fn freeze(&self) {
        self.signal("-STOP");
        let tasks = format!("/proc/{}/task", self.id());
        let runs = |task: std::io::Result<std::fs::DirEntry>| {
            let status = std::fs::read_to_string(task.unwrap().path().join("status")).unwrap_or_default();
            assert!(!status.contains("State:\tZ"), "the process has ended");
            !status.contains("State:\tT")
        };
        while std::fs::read_dir(&tasks).is_ok_and(|mut tasks| tasks.any(runs)) {
            std::thread::yield_now();
        }
    }

    /// Ends it without a chance to do anything; what it has written since on standard output.
    pub(crate) fn kill(mut self) -> Vec<String> {
        self.child.kill().unwrap();
        self.seen.extend(rest(&self.stdout));
        std::mem::take(&mut self.seen)
    }

    pub(crate) fn wait(mut self) -> (Vec<String>, ExitStatus) {
        let stderr = rest(&self.stderr);
        (stderr, self.child.wait().unwrap())
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn lines(stream: impl Read + Send + 'static) -> Receiver<String> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(stream).lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                break;
            }
        }
    });
    receiver
}

/// Everything up to the end of the stream.
fn rest(stream: &Receiver<String>) -> Vec<String> {
    let mut lines = Vec::new();
    let wait = Wait::begin();
    loop {
        match wait.next(stream) {
            Ok(line) => lines.push(line),
            Err(RecvTimeoutError::Disconnected) => return lines,
            Err(RecvTimeoutError::Timeout) => panic!("it does not end; so far: {lines:#?}"),
        }
    }
}
