//! `kubediff at TIME -- PROGRAM` as a person sees it, in a terminal: kubectl, or k9s, which `cargo xtask release-check` builds in minutes.

use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Instant;

use serde_json::json;

use super::commands::{furnished, lists};
use super::{Town, kubectl_is_missing};
use crate::session::PATIENCE;
use crate::viewers::send;

/// The program k9s; kubectl without it.
const K9S: &str = "KUBEDIFF_K9S";
const NAMESPACE: &str = "past-terminal";

/// A program in a terminal of its own, and all that it has written there.
struct Terminal {
    child: Child,
    written: Receiver<Vec<u8>>,
    screen: String,
}

impl Terminal {
    fn open(line: &str, home: &Path) -> Self {
        let mut script = Command::new("script");
        let line = format!("stty rows 40 columns 160; {line}");
        script.args(["--quiet", "--return", "--command", &line, "/dev/null"]);
        script.env("HOME", home).env("TERM", "xterm-256color").env("TZ", "UTC");
        for of in ["XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME"] {
            script.env(of, home);
        }
        let mut child = script.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut stdout = child.stdout.take().unwrap();
        let (sender, written) = channel();
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = stdout.read(&mut bytes) {
                if sender.send(bytes[..count].to_vec()).is_err() {
                    return;
                }
            }
        });
        Self { child, written, screen: String::new() }
    }

    /// Waits for a text.
    fn until(&mut self, text: &str) {
        let begun = Instant::now();
        while !self.screen.contains(text) {
            let more = self.written.recv_timeout(PATIENCE.saturating_sub(begun.elapsed()));
            let more = more.unwrap_or_else(|error| panic!("{error}: no {text:?} in {}", self.screen));
            self.screen += &String::from_utf8_lossy(&more);
        }
    }

    fn type_text(&mut self, text: &str) {
        self.child.stdin.as_mut().unwrap().write_all(text.as_bytes()).unwrap();
    }

    /// Waits until the program has ended; how it did, and all that it has shown.
    fn end(mut self) -> (ExitStatus, String) {
        let rest: Vec<u8> = self.written.iter().flatten().collect();
        self.screen += &String::from_utf8_lossy(&rest);
        (self.child.wait().unwrap(), std::mem::take(&mut self.screen))
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_terminal_shows_the_pods_of_then() {
    let name = "a_terminal_shows_the_pods_of_then";
    if kubectl_is_missing() {
        return;
    }
    // Each waits for keys, in the terminal.
    let (client, events, keys) = match std::env::var(K9S) {
        Ok(k9s) => (format!("{k9s} --namespace {NAMESPACE} --command pods"), ":events\r", ":quit\r"),
        Err(_) => {
            let line = format!(
                "kubectl get pods --namespace {NAMESPACE}; read line; kubectl get events --namespace {NAMESPACE}"
            );
            (format!("sh -c '{line}; read line'"), "\r", "\r")
        }
    };
    let Some(server) = control_plane::shared_or_skip(name) else { return };
    let mut town = Town::open(server, NAMESPACE).await;
    town.record().await;
    furnished(&town).await;
    let then = town.recorded(&lists(&town)).await.to_string();
    let pods = format!("/api/v1/namespaces/{}/pods", town.namespace);
    send(&town.admin, "DELETE", &format!("{pods}/web-1"), json!({"gracePeriodSeconds": 0})).await;
    let spec = json!({"containers": [{"name": "web", "image": "web:2"}]});
    town.post(&pods, json!({"metadata": {"name": "web-3"}, "spec": spec})).await;
    town.recorded(&lists(&town)).await;

    let program = env!("CARGO_BIN_EXE_kubediff");
    let (history, home) = (town.history(), town.folder.path().to_owned());
    for (time, there, not_there) in
        [(&*then, ["web-1", "web-2"], "web-3"), ("now", ["web-2", "web-3"], "web-1")]
    {
        let line = format!("{program} at {time} --history {} -- {client}", history.display());
        let home = home.clone();
        let shown = tokio::task::spawn_blocking(move || {
            let mut terminal = Terminal::open(&line, &home);
            there.iter().for_each(|pod| terminal.until(pod));
            // The Event is about a pod that is not there any more.
            let pods = terminal.screen.clone();
            terminal.type_text(events);
            terminal.until("Scheduled");
            terminal.type_text(keys);
            (terminal.end(), pods)
        });
        let ((status, screen), pods) = shown.await.unwrap();
        assert!(status.success() && !pods.contains(not_there), "{time}: {status} {screen}");
    }
    town.close().await;
}
