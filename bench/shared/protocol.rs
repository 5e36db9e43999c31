//! The lines of `bench/PROTOCOL.md`: commands on stdin, answers on stdout.

use serde_json::{Value, json};

use crate::memory;

pub type Failure = Box<dyn std::error::Error + Send + Sync>;

/// One run of the program.
pub trait Answers {
    async fn answer(&mut self, command: &str, parameters: Value) -> Result<Value, Failure>;
}

/// Answers each line of stdin with one line, until stdin ends.
pub async fn serve(version: String, mut session: impl Answers) -> Result<(), Failure> {
    println!("{}", json!({ "event": "started", "version": version }));
    let mut lines = lines();
    while let Some(line) = lines.recv().await {
        let answer = match line.split_once(' ').unwrap_or((&line, "{}")) {
            ("collect", _) => Ok(json!({ "event": "collected", "heapBytes": memory::collect() })),
            (command, parameters) => session.answer(command, serde_json::from_str(parameters)?).await,
        };
        let failed = |error: Failure| json!({ "event": "failed", "reason": error.to_string() });
        println!("{}", answer.unwrap_or_else(failed));
    }
    Ok(())
}

/// The lines of stdin, read by a thread of its own.
fn lines() -> tokio::sync::mpsc::Receiver<String> {
    let (sender, receiver) = tokio::sync::mpsc::channel(1);
    std::thread::spawn(move || {
        for line in std::io::stdin().lines().map_while(Result::ok) {
            if sender.blocking_send(line).is_err() {
                return;
            }
        }
    });
    receiver
}
