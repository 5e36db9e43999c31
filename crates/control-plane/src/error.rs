//! What can go wrong with a control plane.

use std::io;
use std::path::{Path, PathBuf};

/// Why there is no control plane, or why it did not do as it was told.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The machine has no Go toolchain. The one case in which a test may be left out.
    #[error("`go` was not found; install Go and put it on the PATH, the control plane is built with it")]
    GoMissing,

    /// Neither variable that says where to keep the built binary is set.
    #[error("there is no directory for caches; set INFORMER_CACHE_DIR, XDG_CACHE_HOME or HOME")]
    NoCacheDirectory,

    /// A file operation failed.
    #[error("could not {action} {}", path.display())]
    File {
        /// What was tried.
        action: &'static str,
        /// What it was tried on.
        path: PathBuf,
        /// Why it failed.
        source: io::Error,
    },

    /// A program could not be run at all.
    #[error("could not run {}", program.display())]
    Run {
        /// The program.
        program: PathBuf,
        /// Why it failed.
        source: io::Error,
    },

    /// The Go module does not say from which Kubernetes to build.
    #[error("{} requires no release of k8s.io/kubernetes; add one such as v1.36.3", go_mod.display())]
    KubernetesVersion {
        /// The file that should say so.
        go_mod: PathBuf,
    },

    /// `go` failed.
    #[error("`{command}` failed in {}:\n{output}", directory.display())]
    Go {
        /// The command line.
        command: String,
        /// Where it ran.
        directory: PathBuf,
        /// What it said.
        output: String,
    },

    /// The control plane ended: it did not start, or it fell over.
    #[error("the control plane ended by itself: {output}")]
    Ended {
        /// What it said, which includes the last lines of the log that matters.
        output: String,
    },

    /// The control plane could not carry out a command.
    #[error("the control plane failed to {command}: {reason}")]
    Command {
        /// The command.
        command: &'static str,
        /// What the control plane said.
        reason: String,
    },

    /// The control plane said something that is not in its protocol.
    #[error(
        "the control plane said {line:?}, which this crate does not understand; build both from one source"
    )]
    Protocol {
        /// What it said.
        line: String,
        /// What is wrong with it.
        source: serde_json::Error,
    },
}

impl Error {
    /// For `map_err`: a failed file operation, with the file's name.
    pub(crate) fn file(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::File { action, path: path.to_owned(), source }
    }
}
