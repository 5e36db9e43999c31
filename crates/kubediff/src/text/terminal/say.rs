//! Messages of kubediff itself, on standard error.

use std::cell::RefCell;
use std::io::{self, Write};

use super::escape;

thread_local! {
    static CLUSTER: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Messages of this thread are about this cluster from now on: there are others.
pub(crate) fn speak_of(cluster: &str) {
    CLUSTER.set(Some(cluster.to_owned()));
}

/// Writes a message about the work of the program. Some texts come from a server, so they are escaped.
pub(crate) fn say(text: &str) {
    let cluster = CLUSTER.with_borrow(|cluster| cluster.as_ref().map(|cluster| format!("{cluster}: ")));
    let text = cluster.unwrap_or_default() + text;
    // Standard error may be closed; there is no other place to report to.
    let _ = writeln!(io::stderr(), "kubediff: {}", escape(&text));
}
