//! The listener under more connections than it keeps.

use std::net::TcpStream;

use http::StatusCode;

use super::{Set, get, on_thread};

/// The third attack: connections that ask nothing made the probes fail.
#[tokio::test(flavor = "multi_thread")]
async fn k5_a_probe_is_answered_whoever_else_is_connected() {
    let set = Set::new().await;
    set.configure("watch: {resources: [cm]}\nsinks: {out: stdout}\n");
    let (daemon, address) = set.serve().await;
    let host = address.trim_start_matches("http://").to_owned();
    let silent: Vec<TcpStream> = (0..600).map(|_| TcpStream::connect(&*host).unwrap()).collect();
    for _ in 0..3 {
        assert_eq!(get(&address, "/readyz").await.0, StatusCode::OK);
    }
    // The oldest were closed.
    let mut byte = [0];
    let ended = silent.iter().filter(|stream| {
        stream.set_nonblocking(true).unwrap();
        matches!(stream.peek(&mut byte), Ok(0))
    });
    assert!(ended.count() >= 600 - 256, "of 600");
    on_thread(move || daemon.end_with("-TERM")).await;
}
