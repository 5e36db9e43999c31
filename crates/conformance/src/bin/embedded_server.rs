//! The embedded server in its own process, for tests that measure theirs. Writes its kubeconfig to the file named by
//! its argument, prints its URL, and ends with its standard input.

#![allow(clippy::print_stdout, clippy::expect_used, reason = "only tests use this")]

use std::io::Read;

use testapi::TestApi;

#[tokio::main]
async fn main() {
    let kubeconfig = std::env::args_os().nth(1).expect("a file");
    let api = TestApi::builder().tls().token(conformance::TOKEN, "admin").start().await.expect("a server");
    // A server that remembers nothing of its early days, as the real one.
    api.compact();
    std::fs::write(kubeconfig, api.kubeconfig()).expect("a file");
    println!("{}", api.url());
    let end = tokio::task::spawn_blocking(|| std::io::stdin().read_to_end(&mut Vec::new()));
    end.await.expect("no panic").expect("standard input");
}
