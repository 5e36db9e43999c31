//! Why a request has no answer, in words.

use std::error::Error;
use std::io;
use std::iter::successors;

/// Without the address, which may be a secret.
pub(super) fn in_words(error: reqwest::Error) -> Box<str> {
    if error.is_timeout() {
        return "no answer in time".into();
    }
    let error = error.without_url();
    let first: &dyn Error = &error;
    let causes: Vec<&dyn Error> = successors(Some(first), |&error| error.source()).collect();
    if causes.iter().any(|cause| cause.to_string() == "dns error") {
        return "the host's name cannot be resolved".into();
    }
    let io = causes.iter().find_map(|cause| cause.downcast_ref::<io::Error>());
    // "Connection refused", without the number that systems add.
    let kind = io.map(io::Error::kind).filter(|kind| *kind != io::ErrorKind::Other);
    let last = causes.last().map(ToString::to_string).unwrap_or_default();
    match kind {
        Some(kind) if error.is_connect() => kind.to_string().into(),
        // rustls says so of an answer that is not TLS.
        _ if last.starts_with("received corrupt message") => {
            "the server does not speak TLS: is its address http://?".into()
        }
        _ => last.into(),
    }
}
