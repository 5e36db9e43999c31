//! An assistant: the SDK's client, and a running `kubediff mcp` that it has started.

use std::path::Path;
use std::process::Stdio;

use rmcp::model::{CallToolRequestParams, CallToolResult};
use rmcp::service::RunningService;
use rmcp::{RoleClient, ServiceExt};
use serde_json::Value;
use tokio::process::{Child, Command};

/// The most bytes of an answer.
pub(crate) const MOST: usize = 64 << 10;

/// An assistant and its server.
pub(crate) struct Assistant {
    pub(crate) client: RunningService<RoleClient, ()>,
    child: Child,
}

/// The command, as a client's settings have it.
pub(crate) fn command(history: &Path, now: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kubediff"));
    command.args(["mcp", "--history"]).arg(history).args(["--now", now]).env("TZ", "UTC");
    command
}

impl Assistant {
    /// Asks a history at a time that stands still.
    pub(crate) async fn at(history: &Path, now: &str) -> Self {
        Self::of(command(history, now)).await
    }

    pub(crate) async fn of(mut command: Command) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).kill_on_drop(true);
        let mut child = command.spawn().unwrap();
        let streams = (child.stdout.take().unwrap(), child.stdin.take().unwrap());
        Self { client: ().serve(streams).await.unwrap(), child }
    }

    pub(crate) async fn call(&self, tool: &str, arguments: &Value) -> CallToolResult {
        let request = CallToolRequestParams::new(tool.to_owned());
        let request = request.with_arguments(arguments.as_object().unwrap().clone());
        self.client.call_tool(request).await.unwrap()
    }

    /// The answer of a tool: it has what every answer has, and no more than it may.
    pub(crate) async fn ask(&self, tool: &str, arguments: Value) -> Value {
        let text = self.text(tool, &arguments).await;
        let answer: Value = serde_json::from_str(&text).unwrap();
        for list in ["gaps", "doubts", "left_out"] {
            assert!(answer[list].is_array(), "{tool} {arguments}: {list}: {text}");
        }
        assert!(answer["coverage"]["from"].is_string(), "{tool} {arguments}: {text}");
        answer
    }

    /// The text of an answer.
    pub(crate) async fn text(&self, tool: &str, arguments: &Value) -> String {
        let result = self.call(tool, arguments).await;
        let text = text(&result);
        assert_eq!(result.is_error, Some(false), "{tool} {arguments}: {text}");
        assert!(text.len() <= MOST, "{tool} {arguments}: {} bytes", text.len());
        text
    }

    /// The refusal of a question, which says what to do.
    pub(crate) async fn refusal(&self, tool: &str, arguments: Value) -> Value {
        let result = self.call(tool, &arguments).await;
        let text = text(&result);
        assert_eq!(result.is_error, Some(true), "{tool} {arguments}: {text}");
        let refusal: Value = serde_json::from_str(&text).unwrap();
        assert!(refusal["hint"].as_str().is_some_and(|hint| hint.len() > 10), "{text}");
        refusal
    }

    /// All entries of a list, part by part.
    pub(crate) async fn all(&self, tool: &str, arguments: Value, list: &str) -> (Vec<Value>, usize) {
        let (mut entries, mut asked, mut parts) = (Vec::new(), arguments, 0);
        loop {
            let answer = self.ask(tool, asked.clone()).await;
            entries.extend(answer["answer"][list].as_array().unwrap().iter().cloned());
            parts += 1;
            assert!(parts < 1_000, "{tool} {asked}: no end");
            match &answer["next"] {
                Value::Null => return (entries, parts),
                next => asked["cursor"] = next.clone(),
            }
        }
    }

    /// Ends the input of the server; how it ends then.
    pub(crate) async fn leave(mut self) -> std::process::ExitStatus {
        self.client.cancel().await.unwrap();
        self.child.wait().await.unwrap()
    }
}

fn text(result: &CallToolResult) -> String {
    let [content] = result.content.as_slice() else { panic!("{result:?}") };
    assert_eq!(result.structured_content, None);
    content.as_text().unwrap().text.clone()
}
