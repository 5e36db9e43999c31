//! The program `testapi`.

use std::process::Stdio;

use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

use crate::client::within;

struct Program {
    child: Child,
    /// Its output, up to the address.
    said: Vec<String>,
}

impl Program {
    async fn start(arguments: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_testapi"));
        command.args(arguments).stdout(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut said: Vec<String> = Vec::new();
        while !said.last().is_some_and(|line| line.starts_with("http")) {
            said.push(within(lines.next_line()).await.unwrap().expect("it says its address"));
        }
        Self { child, said }
    }

    fn address(&self) -> &str {
        self.said.last().unwrap().split_once("://").unwrap().1
    }
}

#[cfg(unix)]
#[tokio::test]
async fn it_says_where_it_is_serves_what_was_asked_for_and_ends_on_ctrl_c() {
    let directory = std::path::PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let kubeconfig = directory.join(format!("testapi-{}.kubeconfig", std::process::id()));
    let path = kubeconfig.to_str().unwrap();
    let arguments = ["--load", "1500", "--faults", "none,timeout=1,share=0", "--kubeconfig", path];
    let mut program = Program::start(&arguments).await;
    assert!(program.said[0].starts_with("loaded 1500 pods in "), "{:?}", program.said);
    assert_eq!(program.said[1], format!("kubeconfig: {path}"));
    assert_eq!(program.said[2], "faults: any: met 0 times random from seed 0: none,timeout=1,share=0");
    let config = std::fs::read_to_string(&kubeconfig).unwrap();
    let mode =
        std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&kubeconfig).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600, "nobody else reads it");
    std::fs::remove_file(&kubeconfig).unwrap();
    assert!(config.contains(&format!("server: \"http://{}\"", program.address())), "{config}");

    let stream = tokio::net::TcpStream::connect(program.address()).await.unwrap();
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(hyper_util::rt::TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    let path = "/api/v1/namespaces/shop-1/pods?limit=500";
    let ask = crate::client::request(http::Method::GET, path, &[], "");
    let answer = within(sender.send_request(ask)).await.unwrap();
    let bytes = within(http_body_util::BodyExt::collect(answer.into_body())).await.unwrap().to_bytes();
    let list: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
    assert_eq!(list["items"].as_array().map(Vec::len), Some(500));

    let pid = program.child.id().unwrap().to_string();
    assert!(Command::new("kill").args(["-INT", &pid]).status().await.unwrap().success());
    assert!(within(program.child.wait()).await.unwrap().success());
}

#[tokio::test]
async fn it_refuses_what_it_does_not_understand() {
    for arguments in [&["--faults", "bang=1"][..], &["--kubernetes", "20"], &["--load", "-1"]] {
        let output = Command::new(env!("CARGO_BIN_EXE_testapi")).args(arguments).output();
        let output = within(output).await.unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(!output.stderr.is_empty());
    }
}
