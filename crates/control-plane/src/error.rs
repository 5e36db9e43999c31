//! The errors of a control plane.

use std::io;
use std::path::{Path, PathBuf};

use crate::release::{NotARelease, Release};

/// Why a control plane does not exist, or did not do what it was asked for.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The machine has no Go toolchain. The only case in which a test may be skipped.
    #[error("`go` was not found; install Go and put it on the PATH: the control plane is built with it")]
    GoMissing,

    /// No variable names a directory for the built binary.
    #[error("no directory for caches; set INFORMER_CACHE_DIR, XDG_CACHE_HOME or HOME")]
    NoCacheDirectory,

    /// A file operation failed.
    #[error("could not {action} {}", path.display())]
    File {
        /// The operation.
        action: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// Why it failed.
        source: io::Error,
    },

    /// A program could not be started.
    #[error("could not run {}", program.display())]
    Run {
        /// The program.
        program: PathBuf,
        /// Why it failed.
        source: io::Error,
    },

    /// The Go module names no release of Kubernetes.
    #[error("{} requires no release of k8s.io/kubernetes; add one such as v1.37.2", go_mod.display())]
    KubernetesVersion {
        /// The file that should name it.
        go_mod: PathBuf,
    },

    /// A text that should name a release does not.
    #[error(transparent)]
    NotARelease(#[from] NotARelease),

    /// The Go modules of a release are not to be had.
    #[error(
        "Kubernetes {release} is not to be had: {reason}\n`go list -m -versions k8s.io/kubernetes` lists the releases"
    )]
    NoSuchRelease {
        /// The release.
        release: Release,
        /// The message of Go.
        reason: String,
    },

    /// `go` answered with something else than expected.
    #[error("`{command}` answered what this crate does not understand")]
    GoAnswer {
        /// The command line.
        command: &'static str,
        /// The reason.
        source: serde_json::Error,
    },

    /// `go` failed.
    #[error("`{command}` failed in {}:\n{output}", directory.display())]
    Go {
        /// The command line.
        command: String,
        /// Where it ran.
        directory: PathBuf,
        /// Its output.
        output: String,
    },

    /// The control plane exited: it did not start, or it crashed.
    #[error("the control plane exited: {output}")]
    Ended {
        /// Its output, which includes the last lines of the log that matters.
        output: String,
    },

    /// The control plane could not carry out a command.
    #[error("the control plane failed to {command}: {reason}")]
    Command {
        /// The command.
        command: &'static str,
        /// The control plane's answer.
        reason: String,
    },

    /// The control plane answered with something that is not in its protocol.
    #[error(
        "the control plane answered {line:?}, which this crate does not understand; build both from one source"
    )]
    Protocol {
        /// The answer.
        line: String,
        /// The reason.
        source: serde_json::Error,
    },
}

impl Error {
    /// For `map_err`: a failed file operation, with the file's name.
    pub(crate) fn file(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::File { action, path: path.to_owned(), source }
    }
}
