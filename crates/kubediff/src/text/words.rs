//! Messages for people about failures of the server.

use std::error::Error;

use informer::{ApiStatus, Cause, DiscoveryError, error_chain};

/// Where requests go, and with which credentials.
#[derive(Debug, Clone)]
pub(crate) struct Server {
    /// `https://10.0.0.1:6443`.
    pub(crate) address: String,
    /// `token`, `certificate`; `None` without any.
    pub(crate) credentials: Option<&'static str>,
}

impl Server {
    /// Why the resources of the server are unknown.
    pub(crate) fn no_discovery(&self, error: &DiscoveryError) -> String {
        match error.status() {
            Some(status) => format!("{}: {}", self.address, self.status(status)),
            None => self.unreachable(&innermost(error)),
        }
    }

    /// Why a request failed that is neither discovery nor a list or watch.
    pub(crate) fn request(&self, error: &kube_client::Error) -> String {
        match error {
            kube_client::Error::Api(status) => format!("{}: {}", self.address, status.message),
            error => self.unreachable(&innermost(error)),
        }
    }

    /// Why a watch or list ended.
    pub(crate) fn cause(&self, cause: &Cause) -> String {
        match cause {
            Cause::Unreachable(reason) => self.unreachable(reason),
            Cause::Broken(_) => format!("{}: the connection broke", self.address),
            Cause::Refused(status) => format!("{}: {}", self.address, self.status(status)),
            cause => cause.to_string(),
        }
    }

    /// An answer with an error.
    pub(crate) fn status(&self, status: &ApiStatus) -> String {
        match (status.code, self.credentials) {
            (401, Some(credentials)) => {
                format!("401: the {credentials} was not accepted; log in again, or choose another user")
            }
            (401, None) => "401: the server wants credentials, and the kubeconfig has none".to_owned(),
            _ => status.to_string(),
        }
    }

    fn unreachable(&self, reason: &str) -> String {
        let reason = plain(reason);
        // The reason says itself what it is about: a credential plugin, for example.
        if reason.starts_with("the credential plugin") {
            reason
        } else {
            format!("{}: {reason}", self.address)
        }
    }
}

/// The end of a chain of causes, which says most; all of it where the end alone would be unclear.
fn innermost(error: &(dyn Error + 'static)) -> String {
    let mut cause: &(dyn Error + 'static) = error;
    loop {
        if cause.to_string().starts_with("the credential plugin") {
            return error_chain(cause);
        }
        match cause.source() {
            Some(source) => cause = source,
            None => return cause.to_string(),
        }
    }
}

/// The texts of libraries around a reason.
const WRAPPINGS: &[&str] = &[
    "the request failed: ",
    "the credentials cannot be read: ",
    "the server did not report its resources: ",
    "ServiceError: ",
    "HyperError: ",
    "client error (Connect): ",
    "client error (SendRequest): ",
    "tcp connect error: ",
    "dns error: ",
    "error trying to connect: ",
    "connection error: ",
];

/// The texts of libraries and the system for a connection that the server closed in the middle of a request.
const BROKEN: &[&str] = &[
    "connection closed before message completed",
    "Connection reset by peer",
    "Broken pipe",
    "connection error",
    "operation was canceled",
    "unexpected end of file",
];

/// A reason without what libraries write around it: `connection refused`.
fn plain(reason: &str) -> String {
    let mut reason = reason.trim();
    while let Some(rest) = WRAPPINGS.iter().find_map(|wrapping| reason.strip_prefix(wrapping)) {
        reason = rest;
    }
    // `(os error 111)` is for programmers.
    let reason = reason.split(" (os error ").next().unwrap_or(reason);
    if BROKEN.iter().any(|broken| reason.eq_ignore_ascii_case(broken)) {
        return "the connection broke".to_owned();
    }
    let unknown = "invalid peer certificate: UnknownIssuer";
    if let Some(before) = reason.strip_suffix(unknown) {
        return format!(
            "{before}the server's certificate is from an authority that the kubeconfig does not name"
        );
    }
    let mut letters = reason.chars();
    match letters.next() {
        Some(first) if letters.clone().next().is_some_and(char::is_lowercase) => {
            first.to_lowercase().chain(letters).collect()
        }
        _ => reason.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::plain;

    #[test]
    fn reasons_are_plain() {
        for (wrapped, expected) in [
            (
                "client error (Connect): tcp connect error: Connection refused (os error 111)",
                "connection refused",
            ),
            ("no answer within 30 s", "no answer within 30 s"),
            (
                "client error (SendRequest): connection closed before message completed",
                "the connection broke",
            ),
            ("connection error: Connection reset by peer (os error 104)", "the connection broke"),
            ("TLS handshake: eof", "TLS handshake: eof"),
        ] {
            assert_eq!(plain(wrapped), expected);
        }
    }
}
