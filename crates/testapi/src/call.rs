//! A request, as the log and fault matchers see it.

use http::{Method, header, request::Parts};
use serve::{Query, Route, route};

/// The verb of a request, as in the API's authorization.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Verb {
    /// Reads one object. Also any other read, such as `/version`.
    Get,
    /// Reads a collection.
    List,
    /// Watches a collection, streaming lists included.
    Watch,
    /// `POST`
    Create,
    /// `PUT`
    Update,
    /// `PATCH`, server-side apply included.
    Patch,
    /// Deletes one object.
    Delete,
    /// Deletes a collection.
    DeleteCollection,
}

/// A request.
#[derive(Debug, Clone)]
pub struct Call {
    /// The request's number on this server, counted from 1.
    pub number: u64,
    /// The HTTP method.
    pub method: Method,
    /// The verb.
    pub verb: Verb,
    /// The path, without the query.
    pub path: String,
    /// The query.
    pub query: Query,
    /// The objects of the request; `None` for discovery and other documents.
    pub target: Option<Target>,
    /// The user; `system:anonymous` without credentials.
    pub user: String,
    /// The `User-Agent` header.
    pub user_agent: String,
}

/// The objects that a request is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// The group of the API, empty for the core.
    pub group: String,
    /// The version of the API.
    pub version: String,
    /// The resource's plural name.
    pub resource: String,
    /// The namespace. A request about a Namespace object has the object's own name here.
    pub namespace: Option<String>,
    /// The name, from the path or from a field selector that allows one name only.
    pub name: Option<String>,
    /// `status`, `scale`.
    pub subresource: Option<String>,
}

impl Verb {
    /// The verb in messages: `deletecollection`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::List => "list",
            Self::Watch => "watch",
            Self::Create => "create",
            Self::Update => "update",
            Self::Patch => "patch",
            Self::Delete => "delete",
            Self::DeleteCollection => "deletecollection",
        }
    }

    /// Whether it only reads.
    pub fn is_read(self) -> bool {
        matches!(self, Self::Get | Self::List | Self::Watch)
    }
}

impl Call {
    pub(crate) fn new(number: u64, user: String, parts: &Parts) -> Self {
        let mut query = Query::parse(parts.uri.query().unwrap_or_default());
        let watch = query.get("watch").is_some_and(|value| value != "false" && value != "0");
        let mut old_watch = false;
        let mut target = None;
        if let Route::Resource(request) = route(&parts.uri) {
            old_watch = request.watch;
            query = request.query;
            let name = request.name.or_else(|| selected_name(&query));
            let is_namespace = request.plural == "namespaces" && request.group.is_empty();
            target = Some(Target {
                namespace: request.namespace.or_else(|| name.clone().filter(|_| is_namespace)),
                group: request.group,
                version: request.version,
                resource: request.plural,
                name,
                subresource: request.subresource,
            });
        }
        // A collection that a selector narrows to one name is still a collection.
        let collection = target.is_some() && !names_an_object(parts);
        let verb = match parts.method {
            Method::POST => Verb::Create,
            Method::PUT => Verb::Update,
            Method::PATCH => Verb::Patch,
            Method::DELETE if collection => Verb::DeleteCollection,
            Method::DELETE => Verb::Delete,
            _ if collection && watch || old_watch => Verb::Watch,
            _ if collection => Verb::List,
            _ => Verb::Get,
        };
        let user_agent = parts.headers.get(header::USER_AGENT).and_then(|value| value.to_str().ok());
        Self {
            number,
            method: parts.method.clone(),
            verb,
            path: parts.uri.path().to_owned(),
            query,
            target,
            user,
            user_agent: user_agent.unwrap_or_default().to_owned(),
        }
    }

    /// The resource, if any: `pods`, `deployments.apps`.
    pub fn resource(&self) -> Option<String> {
        self.target.as_ref().map(Target::qualified)
    }

    /// Whether it asks for a streaming list (`sendInitialEvents`).
    pub fn is_streaming_list(&self) -> bool {
        self.verb == Verb::Watch && self.query.get("sendInitialEvents") == Some("true")
    }
}

/// `WATCH /api/v1/pods?watch=true`
impl std::fmt::Display for Call {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.verb.as_str().to_uppercase(), self.path)?;
        for (index, (name, value)) in self.query.iter().enumerate() {
            write!(f, "{}{name}={value}", if index == 0 { '?' } else { '&' })?;
        }
        Ok(())
    }
}

impl Target {
    /// `pods`, `deployments.apps`.
    pub fn qualified(&self) -> String {
        if self.group.is_empty() {
            self.resource.clone()
        } else {
            format!("{}.{}", self.resource, self.group)
        }
    }

    /// Whether the resource matches `wanted`: `pods` of any group, or `deployments.apps`.
    pub(crate) fn is(&self, wanted: &str) -> bool {
        match wanted.split_once('.') {
            None => self.resource == wanted,
            Some((resource, group)) => self.resource == resource && self.group == group,
        }
    }
}

fn names_an_object(parts: &Parts) -> bool {
    matches!(route(&parts.uri), Route::Resource(request) if request.name.is_some())
}

/// The name that a field selector asks for, if it allows one only.
fn selected_name(query: &Query) -> Option<String> {
    query.get("fieldSelector")?.split(',').find_map(|requirement| {
        let value = requirement.strip_prefix("metadata.name=")?;
        Some(value.strip_prefix('=').unwrap_or(value).to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(method: Method, uri: &str) -> Call {
        let (parts, ()) = http::Request::builder().method(method).uri(uri).body(()).unwrap().into_parts();
        Call::new(1, "jane".to_owned(), &parts)
    }

    #[test]
    fn the_verb_is_what_authorization_calls_it() {
        let cases = [
            (Method::GET, "/api/v1/pods", Verb::List),
            (Method::GET, "/api/v1/pods?watch=true", Verb::Watch),
            (Method::GET, "/api/v1/pods?watch=1", Verb::Watch),
            (Method::GET, "/api/v1/pods?watch=false", Verb::List),
            (Method::GET, "/api/v1/watch/pods", Verb::Watch),
            (Method::GET, "/api/v1/watch/namespaces/a/pods/b", Verb::Watch),
            (Method::GET, "/api/v1/namespaces/a/pods/b?watch=true", Verb::Get),
            (Method::GET, "/api/v1/namespaces/a/pods/b", Verb::Get),
            (Method::GET, "/api/v1/namespaces/a", Verb::Get),
            (Method::GET, "/version", Verb::Get),
            (Method::DELETE, "/api/v1/namespaces/a/pods", Verb::DeleteCollection),
            (Method::DELETE, "/api/v1/namespaces/a/pods/b", Verb::Delete),
            (Method::PATCH, "/apis/apps/v1/namespaces/a/deployments/b/scale", Verb::Patch),
        ];
        for (method, uri, verb) in cases {
            assert_eq!(call(method, uri).verb, verb, "{uri}");
        }
    }

    #[test]
    fn a_selector_for_one_name_names_it() {
        let call = call(Method::GET, "/api/v1/namespaces/a/pods?watch=1&fieldSelector=metadata.name%3Db");
        assert_eq!((call.verb, call.target.unwrap().name.as_deref()), (Verb::Watch, Some("b")));
    }

    #[test]
    fn a_resource_is_named_with_or_without_its_group() {
        let target = call(Method::GET, "/apis/apps/v1/deployments").target.unwrap();
        assert!(target.is("deployments") && target.is("deployments.apps"));
        assert!(!target.is("deployments.extensions") && !target.is("pods"));
    }
}
