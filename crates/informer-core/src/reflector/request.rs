//! The requests of a reflector.

use std::fmt;

use crate::ResourceVersion;

/// One request: the parameters of the protocol. The transport adds path, selectors and encoding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    /// GET of the collection.
    List(ListRequest),
    /// GET of the collection with `watch=true` and bookmarks allowed.
    Watch(WatchRequest),
}

/// The parameters of a LIST.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ListRequest {
    /// `resourceVersion`; left out when unset.
    pub resource_version: ResourceVersion,
    /// `resourceVersionMatch=NotOlderThan`: needed where a limit would otherwise make the version an exact one.
    pub not_older_than: bool,
    /// `limit`.
    pub limit: Option<u32>,
    /// `continue`.
    pub continue_token: Option<String>,
}

/// The parameters of a WATCH.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WatchRequest {
    /// `resourceVersion`; left out when unset.
    pub resource_version: ResourceVersion,
    /// `timeoutSeconds`.
    pub timeout_seconds: u64,
    /// `sendInitialEvents=true&resourceVersionMatch=NotOlderThan`: a streaming list (KEP-3157).
    pub initial_events: bool,
}

impl Request {
    /// The query parameters, in a fixed order.
    pub fn query(&self) -> Vec<(&'static str, String)> {
        let mut query = Vec::new();
        match self {
            Self::List(list) => {
                if let Some(limit) = list.limit {
                    query.push(("limit", limit.to_string()));
                }
                if let Some(token) = &list.continue_token {
                    query.push(("continue", token.clone()));
                }
                push_version(&mut query, &list.resource_version, list.not_older_than);
            }
            Self::Watch(watch) => {
                query.push(("watch", "true".to_owned()));
                query.push(("allowWatchBookmarks", "true".to_owned()));
                query.push(("timeoutSeconds", watch.timeout_seconds.to_string()));
                if watch.initial_events {
                    query.push(("sendInitialEvents", "true".to_owned()));
                }
                push_version(&mut query, &watch.resource_version, watch.initial_events);
            }
        }
        query
    }
}

fn push_version(query: &mut Vec<(&'static str, String)>, version: &ResourceVersion, not_older_than: bool) {
    if !version.is_unset() {
        query.push(("resourceVersion", version.to_string()));
    }
    if not_older_than {
        query.push(("resourceVersionMatch", "NotOlderThan".to_owned()));
    }
}

impl fmt::Display for Request {
    /// As in `LIST rv="10" limit=500`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::List(list) => {
                write!(f, "LIST rv={:?}", list.resource_version)?;
                if list.not_older_than {
                    write!(f, " not-older-than")?;
                }
                if let Some(limit) = list.limit {
                    write!(f, " limit={limit}")?;
                }
                if let Some(token) = &list.continue_token {
                    write!(f, " continue={token}")?;
                }
                Ok(())
            }
            Self::Watch(watch) => {
                write!(f, "WATCH rv={:?}", watch.resource_version)?;
                if watch.initial_events {
                    write!(f, " initial-events")?;
                }
                Ok(())
            }
        }
    }
}
