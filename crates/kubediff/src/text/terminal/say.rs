//! Messages of kubediff itself, on standard error.

use std::io::{self, Write};

use super::escape;

/// Writes a message about the work of the program. Some texts come from a server, so they are escaped.
pub(crate) fn say(text: &str) {
    // Standard error may be closed; there is no other place to report to.
    let _ = writeln!(io::stderr(), "kubediff: {}", escape(text));
}
