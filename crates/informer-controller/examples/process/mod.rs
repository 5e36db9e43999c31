//! An example as a process of its own, for tests that send signals: the test binary starts itself again, and runs `main`.

use std::error::Error;
use std::path::PathBuf;
use std::process::{Child, Command};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use testapi::TestApi;

/// Set in the process that is to run `main`.
const AS_PROCESS: &str = "INFORMER_EXAMPLE_AS_PROCESS";

/// A process ends before that, unless it hangs.
const LONG: Duration = Duration::from_secs(30);

/// A running example. It is killed when this is dropped.
pub(crate) struct Process {
    child: Child,
    kubeconfig: PathBuf,
}

impl Process {
    /// Whether this process was started for `main`.
    pub(crate) fn is_this() -> bool {
        std::env::var_os(AS_PROCESS).is_some()
    }

    /// Starts the example, whose test `tests::as_a_process` runs `main`.
    pub(crate) fn start(server: &TestApi) -> Result<Self, Box<dyn Error>> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("informer-example-{}-{number}.yaml", std::process::id());
        let kubeconfig = std::env::temp_dir().join(name);
        std::fs::write(&kubeconfig, server.kubeconfig())?;
        let child = Command::new(std::env::current_exe()?)
            .args(["tests::as_a_process", "--exact", "--nocapture"])
            .env("KUBECONFIG", &kubeconfig)
            .env(AS_PROCESS, "yes")
            // A free port, for the examples that listen.
            .env("LISTEN", "127.0.0.1:0")
            .spawn()?;
        Ok(Self { child, kubeconfig })
    }

    /// Sends a signal: `TERM`, `INT`.
    pub(crate) fn signal(&self, name: &str) -> std::io::Result<()> {
        let id = self.child.id().to_string();
        let sent = Command::new("kill").args(["-s", name, &id]).status()?;
        if sent.success() { Ok(()) } else { Err(std::io::Error::other("the signal was not sent")) }
    }

    /// Sends SIGTERM, as Kubernetes does, and returns the code with which the process ends.
    pub(crate) async fn terminate(mut self) -> Result<Option<i32>, Box<dyn Error>> {
        let ended = tokio::task::spawn_blocking(move || {
            self.signal("TERM")?;
            self.child.wait()
        });
        Ok(tokio::time::timeout(LONG, ended).await???.code())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = std::fs::remove_file(&self.kubeconfig);
    }
}
