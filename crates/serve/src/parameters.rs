//! The parameters of a list or a watch, parsed from the query and validated as the server does.

use http::StatusCode;
use kube_selector::ShardSelector;

use crate::selector::{Read, Selection};
use crate::{Reason, Resource, ResourceRequest, ServeOptions, Status};

/// The parameters of a list or a watch.
#[derive(Debug, Clone)]
pub(crate) struct Parameters {
    pub(crate) watch: bool,
    pub(crate) selection: Selection,
    pub(crate) resource_version: String,
    pub(crate) version_match: Option<VersionMatch>,
    /// 0 for no limit.
    pub(crate) limit: usize,
    pub(crate) continue_token: String,
    pub(crate) timeout_seconds: Option<i64>,
    pub(crate) bookmarks: bool,
    pub(crate) initial_events: Option<bool>,
}

/// The value of `resourceVersionMatch`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum VersionMatch {
    Exact,
    NotOlderThan,
}

impl Parameters {
    pub(crate) fn read(
        request: &ResourceRequest,
        resource: &Resource,
        options: &ServeOptions,
    ) -> Result<Self, Status> {
        let query = &request.query;
        let text = |name: &str| query.get(name).unwrap_or_default();
        let flag = |name: &str| query.get(name).map(is_true);
        let timeout_seconds = query.get("timeoutSeconds").map(integer).transpose()?;
        let limit = query.get("limit").map(integer).transpose()?.unwrap_or(0);
        let selectors = Read::parse(text("labelSelector"), text("fieldSelector"))?;
        let mut initial_events = flag("sendInitialEvents");
        let mut version_match = text("resourceVersionMatch");
        let watch = request.watch || flag("watch").unwrap_or(false);
        // The path may ask for a watch without the query, and the rules check the query.
        let asked_to_watch = flag("watch").unwrap_or(false);
        let resource_version = text("resourceVersion");
        if options.streaming_lists
            && asked_to_watch
            && initial_events.is_none()
            && version_match.is_empty()
            && matches!(resource_version, "" | "0")
        {
            (initial_events, version_match) = (Some(true), "NotOlderThan");
        }
        let rules = Rules {
            version_match,
            resource_version,
            continued: !text("continue").is_empty(),
            initial_events: initial_events.is_some(),
        };
        let broken = if asked_to_watch { rules.of_a_watch(options) } else { rules.of_a_list() };
        if !broken.is_empty() {
            return Err(invalid(&broken));
        }
        let shard = match text("shardSelector") {
            "" => None,
            selector if options.shard_selectors => Some(selector.parse::<ShardSelector>().map_err(no_shard)?),
            _ => None,
        };
        let mut selection = selectors.of(resource, shard)?;
        if let Some(name) = &request.name {
            selection = selection.only(name)?;
        }
        Ok(Self {
            watch,
            selection,
            resource_version: resource_version.to_string(),
            version_match: match version_match {
                "Exact" => Some(VersionMatch::Exact),
                "NotOlderThan" => Some(VersionMatch::NotOlderThan),
                _ => None,
            },
            limit: usize::try_from(limit).unwrap_or(0),
            continue_token: text("continue").to_string(),
            timeout_seconds,
            bookmarks: flag("allowWatchBookmarks").unwrap_or(false),
            initial_events,
        })
    }

    /// `resourceVersion` as a number, 0 if unset or "0"; the error is in the server's words.
    pub(crate) fn version(&self) -> Result<u64, String> {
        parse_version(&self.resource_version)
    }
}

/// A real server answers with an error that it did not foresee: it has no reason, and the code 500.
fn no_shard(why: String) -> Status {
    Status::new(Reason::Unknown, format!("invalid shard selector: {why}"))
}

/// A version as a number, 0 if unset or "0"; the error is in the server's words.
pub(crate) fn parse_version(text: &str) -> Result<u64, String> {
    if text.is_empty() {
        return Ok(0);
    }
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| digits).ok_or_else(|| {
        let why = if digits { "value out of range" } else { "invalid syntax" };
        format!("resourceVersion: Invalid value: {text:?}: strconv.ParseUint: parsing {text:?}: {why}")
    })
}

/// The response to a malformed version where the server does not expect one: an internal error.
pub(crate) fn version_error(message: String) -> Status {
    let mut status = Status::new(Reason::Unknown, message);
    status.code = StatusCode::INTERNAL_SERVER_ERROR;
    status
}

/// A flag as the server parses it: everything but a clear no is a yes.
fn is_true(text: &str) -> bool {
    !(text == "0" || text.eq_ignore_ascii_case("false"))
}

fn integer(text: &str) -> Result<i64, Status> {
    text.parse().map_err(|_| {
        let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
        let number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        let why = if number { "value out of range" } else { "invalid syntax" };
        Status::bad_request(format!("strconv.ParseInt: parsing {text:?}: {why}"))
    })
}

/// The inputs of the rules about `resourceVersionMatch` and `sendInitialEvents`.
struct Rules<'a> {
    version_match: &'a str,
    resource_version: &'a str,
    continued: bool,
    initial_events: bool,
}

/// A violated rule: reason, field, message.
type Broken = (&'static str, &'static str, String);

impl Rules<'_> {
    fn of_a_list(&self) -> Vec<Broken> {
        let mut broken = Vec::new();
        if !self.version_match.is_empty() {
            if self.resource_version.is_empty() {
                broken.push(forbidden_match("is forbidden unless resourceVersion is provided"));
            }
            if self.continued {
                broken.push(forbidden_match("is forbidden when continue is provided"));
            }
            if !matches!(self.version_match, "Exact" | "NotOlderThan") {
                broken.push(unsupported(self.version_match, r#""Exact", "NotOlderThan", """#));
            }
            if self.version_match == "Exact" && self.resource_version == "0" {
                broken.push(forbidden_match("\"exact\" is forbidden for resourceVersion \"0\""));
            }
        }
        if self.initial_events {
            broken.push(forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list"));
        }
        broken
    }

    fn of_a_watch(&self, options: &ServeOptions) -> Vec<Broken> {
        let mut broken = Vec::new();
        if self.initial_events {
            if self.version_match != "NotOlderThan" {
                broken.push(forbidden(
                    "resourceVersionMatch",
                    "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
                ));
            }
            if !options.streaming_lists {
                broken.push(forbidden(
                    "sendInitialEvents",
                    "sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled",
                ));
            }
        }
        if !self.version_match.is_empty() {
            if !self.initial_events {
                broken.push(forbidden_match("is forbidden for watch unless sendInitialEvents is provided"));
            }
            if self.version_match != "NotOlderThan" {
                broken.push(unsupported(self.version_match, r#""NotOlderThan""#));
            }
            if self.continued {
                broken.push(forbidden_match("is forbidden when continue is provided"));
            }
        }
        broken
    }
}

fn forbidden(field: &'static str, message: &str) -> Broken {
    ("FieldValueForbidden", field, format!("Forbidden: {message}"))
}

fn forbidden_match(message: &str) -> Broken {
    forbidden("resourceVersionMatch", &format!("resourceVersionMatch {message}"))
}

fn unsupported(value: &str, supported: &str) -> Broken {
    let message = format!("Unsupported value: {value:?}: supported values: {supported}");
    ("FieldValueNotSupported", "resourceVersionMatch", message)
}

fn invalid(broken: &[Broken]) -> Status {
    let said: Vec<String> = broken.iter().map(|(_, field, message)| format!("{field}: {message}")).collect();
    let said = match said.as_slice() {
        [one] => one.clone(),
        several => format!("[{}]", several.join(", ")),
    };
    let status = Status::new(Reason::Invalid, format!("ListOptions.meta.k8s.io \"\" is invalid: {said}"))
        .about("meta.k8s.io", "ListOptions", "");
    broken.iter().fold(status, |status, (reason, field, message)| status.cause(reason, message, field))
}
