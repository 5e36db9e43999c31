//! One control plane for all tests of a binary.

use std::borrow::Borrow;
use std::env;
use std::sync::OnceLock;

use crate::binary::note;
use crate::{ControlPlane, Error};

/// If set, tests do without a real server.
const NO_CONTROL_PLANE: &str = "INFORMER_NO_CONTROL_PLANE";

/// Returns the control plane that all callers in this process share, with the defaults of [`Builder`]. The
/// first caller starts it; it ends with the process.
///
/// Tests that share it must not change it (no restarts, no compaction), and work in a namespace of their own.
///
/// # Errors
///
/// The errors of [`Builder::start`], to every caller.
///
/// [`Builder`]: crate::Builder
/// [`Builder::start`]: crate::Builder::start
pub fn shared() -> Result<&'static ControlPlane, &'static Error> {
    static SHARED: OnceLock<Result<ControlPlane, Error>> = OnceLock::new();
    SHARED.get_or_init(|| ControlPlane::builder().start()).as_ref()
}

/// As [`shared`], for a test that is skipped on a machine without a Go toolchain, and where the variable
/// `INFORMER_NO_CONTROL_PLANE` is set:
///
/// ```no_run
/// let Some(control_plane) = control_plane::shared_or_skip("lists_pods") else { return };
/// ```
///
/// # Panics
///
/// If the control plane does not start for any other reason, and, where the variable `CI` is `true`, without Go: in CI
/// a skipped test would look like one that passed.
#[must_use]
pub fn shared_or_skip(test: &str) -> Option<&'static ControlPlane> {
    or_skip(test, shared)
}

/// Starts a control plane, or reports that the test is skipped.
#[expect(clippy::panic, reason = "it is called by tests, which report a failure by a panic")]
pub(crate) fn or_skip<T, E: Borrow<Error>>(test: &str, start: impl FnOnce() -> Result<T, E>) -> Option<T> {
    if env::var_os(NO_CONTROL_PLANE).is_some() {
        note(&format!("{test} skipped: {NO_CONTROL_PLANE} is set"));
        return None;
    }
    match start() {
        Ok(control_plane) => Some(control_plane),
        Err(error) => match error.borrow() {
            Error::GoMissing if env::var_os("CI").is_none_or(|ci| ci != "true") => {
                note(&format!("{test} skipped: no Go toolchain"));
                None
            }
            error => panic!("{test} needs a server: {}", with_causes(error)),
        },
    }
}

fn with_causes(error: &Error) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        text.push_str(&format!(": {error}"));
        cause = error.source();
    }
    text
}
