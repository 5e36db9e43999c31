//! Warnings about a configuration: valid settings that are unwise.

use std::fmt;

use super::place::Place;

/// Something in a configuration that is allowed, but unwise. Prints with its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning {
    /// Where.
    pub place: Place,
    /// The text.
    pub note: Note,
}

/// The unwise settings.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Note {
    /// A secret stands in the file.
    #[error(
        "a secret stands in the file, for all who may read it: put it into an environment variable or a file of its own, and \
         write `{{env: NAME}}` or `{{file: PATH}}` here"
    )]
    SecretInFile,
    /// The server does not have the resource.
    #[error("the server has no resource {name}{}", instead(.watched_as.as_ref()))]
    NotServed {
        /// As the configuration has it.
        name: String,
        /// The version of it that the server has.
        watched_as: Option<String>,
    },
    /// No route leads to a sink.
    #[error("no route leads to this sink: name it in the `sinks` of a route, or take it out")]
    NoRoute,
    /// The address of a receiver of OpenTelemetry has another path than that for logs.
    #[error(
        "receivers of OpenTelemetry take logs at the path /v1/logs: another one is right only if the receiver is set up so"
    )]
    OtlpPath,
    /// A route that takes everything stands before it.
    #[error(
        "no change gets here: routes[{0}] takes all of them; move it to the end, or let it `continue: true`"
    )]
    NeverReached(usize),
    /// The diff mode of arriqaaq/kubediff reported updates only.
    #[error(
        "creations and deletions are reported, too, which the diff mode of arriqaaq/kubediff left out; the object is the new \
         one, which was the old one there; `kubediff config convert` writes a file in which you can choose"
    )]
    ArriqaaqDiffMode,
    /// The `noop` of arriqaaq/kubediff wrote to the log, where all changes are anyway.
    #[error(
        "it has no effect of its own: all changes are written to standard output, as arriqaaq/kubediff did"
    )]
    ArriqaaqNoOp,
}

fn instead(watched_as: Option<&String>) -> String {
    match watched_as {
        Some(name) => format!(": {name} is used instead, which it has"),
        None => ": nothing matches it until it does".to_owned(),
    }
}

impl Warning {
    pub(super) fn new(place: Place, note: Note) -> Self {
        Self { place, note }
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.note)
    }
}
