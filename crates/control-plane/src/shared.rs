//! One control plane for all tests of a binary.

use std::env;
use std::sync::OnceLock;

use crate::binary::note;
use crate::{ControlPlane, Error};

/// Returns the control plane that all callers in this process share, with the defaults of [`Builder`]. The
/// first caller starts it; it ends with the process.
///
/// Tests that share it leave it as it is (no restarts, no compaction) and keep to a namespace of their own.
///
/// # Errors
///
/// Those of [`Builder::start`], to every caller.
///
/// [`Builder`]: crate::Builder
/// [`Builder::start`]: crate::Builder::start
pub fn shared() -> Result<&'static ControlPlane, &'static Error> {
    static SHARED: OnceLock<Result<ControlPlane, Error>> = OnceLock::new();
    SHARED.get_or_init(|| ControlPlane::builder().start()).as_ref()
}

/// As [`shared`], for a test that is to be left out on a machine without a Go toolchain:
///
/// ```no_run
/// let Some(control_plane) = control_plane::shared_or_skip("lists_pods") else { return };
/// ```
///
/// # Panics
///
/// If there is no control plane for any other reason, and, where the variable `CI` is `true`, for this one:
/// there a test that is left out would look like one that passed.
#[must_use]
#[expect(clippy::panic, reason = "it is called by tests, which report a failure by a panic")]
pub fn shared_or_skip(test: &str) -> Option<&'static ControlPlane> {
    match shared() {
        Ok(control_plane) => Some(control_plane),
        Err(Error::GoMissing) if env::var_os("CI").is_none_or(|ci| ci != "true") => {
            note(&format!("{test} left out: no Go toolchain"));
            None
        }
        Err(error) => panic!("{test} needs a control plane: {}", with_causes(error)),
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
