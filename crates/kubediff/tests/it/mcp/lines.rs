//! What is no message of the protocol, and how the program ends.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

use crate::page::browser::NOW;
use crate::queries::shop::Shop;

/// A running server, and its streams.
struct Server {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Server {
    fn at(shop: &Shop) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kubediff"));
        command.args(["mcp", "--history"]).arg(&shop.path).args(["--now", NOW]).env("TZ", "UTC");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        Self { input: child.stdin.take(), child, output }
    }

    fn say(&mut self, line: &[u8]) {
        let input = self.input.as_mut().unwrap();
        input.write_all(line).unwrap();
        input.write_all(b"\n").unwrap();
    }

    fn request(&mut self, id: u32, method: &str, params: Value) {
        let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        self.say(message.to_string().as_bytes());
    }

    /// The answer to a request. Each line before it is a message, too.
    fn answer(&mut self, id: u32) -> Value {
        loop {
            let mut line = String::new();
            assert_ne!(self.output.read_line(&mut line).unwrap(), 0, "the output ended");
            let message: Value = serde_json::from_str(&line).unwrap();
            assert_eq!(message["jsonrpc"], "2.0", "{line}");
            if message["id"] == id {
                return message;
            }
            assert!(message["error"].is_object(), "{line}");
        }
    }

    fn begin(&mut self) {
        let client = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "0"}});
        self.request(1, "initialize", client);
        assert_eq!(self.answer(1)["result"]["serverInfo"]["name"], "kubediff");
        self.say(json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string().as_bytes());
    }

    /// Ends the input: the exit code, the rest of the output, and what was said to people.
    fn end(mut self) -> (i32, String, String) {
        drop(self.input.take());
        let (mut rest, mut said) = (String::new(), String::new());
        self.output.read_to_string(&mut rest).unwrap();
        self.child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        (self.child.wait().unwrap().code().unwrap(), rest, said)
    }
}

/// Lines that are no message.
fn noise() -> Vec<Vec<u8>> {
    let mut lines: Vec<Vec<u8>> = [
        "garbage",
        "",
        "{",
        "[]",
        "null",
        "12",
        "{}",
        r#"{"jsonrpc":"2.0"}"#,
        r#"{"jsonrpc":"1.0","id":7,"method":"tools/list"}"#,
    ]
    .map(|line| line.as_bytes().to_vec())
    .into();
    lines.push(vec![0xff, 0xfe, 0]);
    lines.push(format!("{{\"jsonrpc\":\"2.0\",\"id\":8,\"method\":{}", "[".repeat(100_000)).into_bytes());
    lines.push(vec![b'x'; 3 << 20]);
    lines
}

#[test]
fn lines_that_are_no_messages_end_nothing() {
    let shop = Shop::open();
    let mut server = Server::at(&shop);
    noise().iter().for_each(|line| server.say(line));
    server.begin();
    noise().iter().for_each(|line| server.say(line));
    server.request(2, "tools/call", json!({"name": "changes", "arguments": {"limit": 1}}));
    assert_eq!(server.answer(2)["result"]["isError"], false);
    for (id, method, params) in [
        (3, "tools/call", json!({"name": "changes", "arguments": "all"})),
        (4, "tools/call", json!({})),
        (5, "resources/read", json!({"uri": "file:///etc/passwd"})),
        (6, "no/such", json!({})),
    ] {
        server.request(id, method, params);
        // Requests whose form is wrong have no id that can be answered.
        if id > 4 {
            assert!(server.answer(id)["error"]["code"].is_i64(), "{method}");
        }
    }
    server.request(9, "ping", json!({}));
    assert!(server.answer(9)["result"].is_object());
    let (code, rest, said) = server.end();
    assert_eq!((code, rest.as_str()), (0, ""));
    assert!(said.contains("an assistant can ask the history of prod") && said.lines().count() == 1, "{said}");
}

#[test]
fn the_program_ends_with_its_input() {
    let shop = Shop::open();
    let (code, rest, said) = Server::at(&shop).end();
    assert_eq!((code, rest.as_str()), (0, ""), "{said}");
    // A request on its way is answered.
    let mut server = Server::at(&shop);
    server.begin();
    server.request(2, "tools/call", json!({"name": "changes", "arguments": {}}));
    let (code, rest, said) = server.end();
    let answer: Value = serde_json::from_str(&rest).unwrap_or_else(|error| panic!("{error}: {rest}{said}"));
    assert_eq!((code, &answer["id"], &answer["result"]["isError"]), (0, &json!(2), &json!(false)));
    // Somebody who does not speak the protocol is told so.
    let mut server = Server::at(&shop);
    server.say(br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    let (code, rest, said) = server.end();
    assert_eq!((code, rest.as_str()), (1, ""));
    assert!(said.contains("something else than the Model Context Protocol"), "{said}");
}
