//! Writes what a server sends, in JSON.

use std::fmt::Write as _;

use informer_core::ResourceVersion;

use crate::plan::{Error, Spoil};
use crate::truth::{Change, Key, Record, State, namespace};

const KIND: &str = r#""kind":"Pod","apiVersion":"v1","#;

/// Versions from here on are written as text, not as numbers. A reader can only compare them for equality.
pub(crate) const OPAQUE: u64 = 1 << 40;

/// A text that all objects share, so that packing saves memory.
pub(crate) const NOTE: &str = "kept by the simulation, in which every object says the same";
/// The text that a transform puts in its place.
pub(crate) const SHORT_NOTE: &str = "cut short";

/// A version as the server writes it.
pub(crate) fn version(number: u64) -> String {
    match number.checked_sub(OPAQUE) {
        Some(opaque) => format!("x{opaque}"),
        None => number.to_string(),
    }
}

/// The number behind a version; 0 if the version is unset.
pub(crate) fn number(version: &ResourceVersion) -> u64 {
    parsed(&version.to_string()).unwrap_or_default()
}

/// The number behind a version that the server wrote.
pub(crate) fn parsed(version: &str) -> Option<u64> {
    match version.strip_prefix('x') {
        Some(opaque) => Some(OPAQUE + opaque.parse::<u64>().ok()?),
        None => version.parse().ok(),
    }
}

/// An object. Watches and lists of custom resources send it with its type (`typed`).
pub(crate) fn object(key: Key, state: State, typed: bool) -> String {
    damaged(key, state, typed, None)
}

fn damaged(key: Key, state: State, typed: bool, spoil: Option<Spoil>) -> String {
    let State { uid, version, value } = state;
    let version = self::version(version);
    let kind = match spoil {
        Some(Spoil::Kind) => r#""kind":"Secret","apiVersion":"v1","#,
        _ if typed => KIND,
        _ => "",
    };
    let name =
        if spoil == Some(Spoil::Nameless) { String::new() } else { format!(r#""name":"p{}","#, key.0) };
    let (quote, version) = if spoil == Some(Spoil::Version) { ("", "7") } else { ("\"", &*version) };
    let app = label(value);
    let space = namespace(key.namespace());
    format!(
        r#"{{{kind}"metadata":{{{name}"namespace":"{space}","uid":"{uid}","resourceVersion":{quote}{version}{quote},"labels":{{"app":"{app}"}},"annotations":{{"note":"{NOTE}"}}}},"spec":{{"v":{value}}}}}"#
    )
}

/// The object that a transform makes of it.
pub(crate) fn shortened(key: Key, state: State) -> String {
    object(key, state, true).replace(NOTE, SHORT_NOTE)
}

/// An item of a list. Damage that only an event can have becomes a damaged version.
pub(crate) fn item(key: Key, state: State, typed: bool, spoil: Option<Spoil>) -> String {
    let spoil = spoil.map(|spoil| match spoil {
        Spoil::Kind | Spoil::Nameless => spoil,
        _ => Spoil::Version,
    });
    damaged(key, state, typed, spoil)
}

/// An event of a watch, as one line.
pub(crate) fn event(record: &Record, spoil: Option<Spoil>) -> String {
    let kind = match record.change {
        _ if spoil == Some(Spoil::Type) => "MOVED",
        Change::Added => "ADDED",
        Change::Modified => "MODIFIED",
        Change::Deleted => "DELETED",
    };
    let mut line = frame(kind, &damaged(record.key, record.state, true, spoil));
    if spoil == Some(Spoil::Half) {
        line.truncate(line.len() / 2);
        line.push('\n');
    }
    line
}

pub(crate) fn bookmark(version: u64, initial_events_end: bool) -> String {
    let end = if initial_events_end { r#","annotations":{"k8s.io/initial-events-end":"true"}"# } else { "" };
    frame(
        "BOOKMARK",
        &format!(r#"{{{KIND}"metadata":{{"resourceVersion":"{}"{end}}}}}"#, self::version(version)),
    )
}

fn frame(kind: &str, object: &str) -> String {
    format!("{{\"type\":\"{kind}\",\"object\":{object}}}\n")
}

/// A list, or a page of a list.
pub(crate) fn list(version: u64, next: Option<&str>, items: &[String], custom: bool) -> String {
    let mut metadata = format!(r#""metadata":{{"resourceVersion":"{}""#, self::version(version));
    if let Some(next) = next {
        let _ = write!(metadata, r#","continue":"{next}","remainingItemCount":1"#);
    }
    metadata.push('}');
    let items = format!(r#""items":[{}]"#, items.join(","));
    let head = r#""kind":"PodList","apiVersion":"v1","#;
    if custom { format!("{{{head}{items},{metadata}}}") } else { format!("{{{head}{metadata},{items}}}") }
}

/// The body of a refusal.
pub(crate) fn status(code: u16, reason: &str, message: &str, details: &str) -> String {
    format!(
        r#"{{"kind":"Status","apiVersion":"v1","metadata":{{}},"status":"Failure","message":"{message}","reason":"{reason}","details":{{{details}}},"code":{code}}}"#
    )
}

/// "Too large resource version", in the forms of different Kubernetes versions.
pub(crate) fn too_large(form: u8) -> String {
    let (message, details) = match form % 3 {
        0 => (
            "Timeout: Too large resource version: 9, current: 5",
            r#""causes":[{"reason":"ResourceVersionTooLarge","message":"Too large resource version"}],"retryAfterSeconds":1"#,
        ),
        1 => ("Timeout", r#""causes":[{"message":"Too large resource version"}],"retryAfterSeconds":1"#),
        _ => ("Timeout: Too large resource version: 9, current: 5", r#""retryAfterSeconds":1"#),
    };
    status(504, "Timeout", message, details)
}

pub(crate) fn expired() -> String {
    status(410, "Expired", "too old resource version", "")
}

pub(crate) fn error_event(error: Error) -> String {
    let object = match error {
        Error::Expired => expired(),
        Error::Gone => status(410, "Gone", "too old", ""),
        Error::Internal => status(500, "InternalError", "etcd event", ""),
        Error::StoreRead => status(500, "StoreReadError", "unable to read", ""),
        Error::TooManyRequests => status(429, "TooManyRequests", "later", r#""retryAfterSeconds":3"#),
        Error::Timeout => status(504, "Timeout", "etcd", ""),
        Error::Nonsense => "{}".to_owned(),
    };
    frame("ERROR", &object)
}

/// A body that is no list.
pub(crate) fn nonsense(which: u8) -> String {
    match which % 5 {
        0 => status(500, "InternalError", "not today", ""),
        1 => r#"{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"1"},"rows":[]}"#
            .into(),
        2 => "no healthy upstream".into(),
        3 => String::new(),
        _ => r#"{"kind":"Pod","apiVersion":"v1","metadata":{"name":"p0","namespace":"a"}}"#.into(),
    }
}

/// The same objects as another version of their resource.
pub(crate) fn in_second_version(text: &str) -> String {
    text.replace(r#"Pod","apiVersion":"v1""#, r#"Pod","apiVersion":"v2""#)
        .replace(r#"PodList","apiVersion":"v1""#, r#"PodList","apiVersion":"v2""#)
}

/// The label value that an informer with a selector selects.
pub(crate) const SELECTED: &str = "odd";

pub(crate) fn label(value: u32) -> &'static str {
    if value.is_multiple_of(2) { "even" } else { "odd" }
}
