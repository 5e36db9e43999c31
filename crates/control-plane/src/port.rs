//! Ports that a server keeps while it does not run.

use std::hash::{BuildHasher, RandomState};
use std::iter::repeat_with;
use std::net::{Ipv4Addr, TcpListener};

/// Linux hands out ports from 32768 on to whoever asks for any port, and to outgoing connections.
const FIRST: u64 = 10_000;
const END: u64 = 32_000;

/// A free port on 127.0.0.1 for a server that ends and starts again: nobody who asks for any port gets it meanwhile.
pub fn free_port() -> u16 {
    let any = repeat_with(|| RandomState::new().hash_one(0)).map(|random| FIRST + random % (END - FIRST));
    let mut ports = any.filter_map(|port| u16::try_from(port).ok());
    let free = ports.find(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok());
    // The iterator does not end.
    free.unwrap_or_default()
}
