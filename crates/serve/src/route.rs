//! Parses the path of a request.

use http::Uri;

/// The target of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Route {
    /// Objects: a collection, one object, or a subresource.
    Resource(ResourceRequest),
    /// `/version`
    Version,
    /// `/healthz`, `/livez`, `/readyz` and below.
    Health,
    /// `/api`, `/apis` and the lists of groups and resources below them; the path.
    Discovery(String),
    /// `/openapi/v3` and below; the path.
    OpenApi(String),
    /// No path of an API server.
    Unknown,
}

/// A request about objects of one resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResourceRequest {
    /// The group of the API, empty for the core.
    pub group: String,
    /// The version of the API.
    pub version: String,
    /// The resource's name in paths. For `/api/v1/namespaces/shop` and `/api/v1/namespaces/shop/status` it is
    /// `namespaces`, with the name `shop` and no namespace.
    pub plural: String,
    /// The namespace, if the path has one.
    pub namespace: Option<String>,
    /// The name of an object, if the path has one.
    pub name: Option<String>,
    /// The subresource, up to the end of the path: `status`, `scale`, `proxy/index.html`.
    pub subresource: Option<String>,
    /// Whether the path has `/watch/`, which old clients use instead of `?watch=true`.
    pub watch: bool,
    /// The query.
    pub query: Query,
}

/// The parameters of a request, decoded, in order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Query(Vec<(String, String)>);

impl Query {
    /// Parses a query string.
    pub fn parse(text: &str) -> Self {
        Self(form_urlencoded::parse(text.as_bytes()).into_owned().collect())
    }

    /// The value of a parameter; the first, if it is repeated.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.iter().find_map(|(candidate, value)| (candidate == name).then_some(value))
    }

    /// All parameters.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }
}

/// Parses a path. Whether the resource exists, only the catalog knows.
///
/// ```
/// use serve::{Route, route};
///
/// let uri = "/apis/apps/v1/namespaces/shop/deployments/cart/scale".parse().unwrap();
/// let Route::Resource(request) = route(&uri) else { unreachable!() };
/// assert_eq!((request.group.as_str(), request.plural.as_str()), ("apps", "deployments"));
/// assert_eq!(request.subresource.as_deref(), Some("scale"));
/// ```
pub fn route(uri: &Uri) -> Route {
    let path = uri.path();
    let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
    match parts.as_slice() {
        ["version"] => Route::Version,
        ["healthz" | "livez" | "readyz", ..] => Route::Health,
        ["openapi", ..] => Route::OpenApi(path.to_string()),
        ["api"] | ["api", _] | ["apis"] | ["apis", _] | ["apis", _, _] => Route::Discovery(path.to_string()),
        ["api", version, rest @ ..] => resource("", version, rest, uri),
        ["apis", group, version, rest @ ..] => resource(group, version, rest, uri),
        _ => Route::Unknown,
    }
}

fn resource(group: &str, version: &str, rest: &[&str], uri: &Uri) -> Route {
    let (watch, rest) = match rest {
        ["watch", rest @ ..] if !rest.is_empty() => (true, rest),
        _ => (false, rest),
    };
    // Below a namespace are its objects, except the subresources of the namespace itself.
    let (namespace, rest) = match rest {
        ["namespaces", _, "status" | "finalize"] => (None, rest),
        // An empty namespace means all of them.
        ["namespaces", "", below @ ..] if !below.is_empty() => (None, below),
        ["namespaces", namespace, below @ ..] if !below.is_empty() => (Some(*namespace), below),
        _ => (None, rest),
    };
    let [plural, below @ ..] = rest else { return Route::Unknown };
    let (name, subresource) = match below {
        [] => (None, None),
        [name] => (Some(*name), None),
        [name, subresource @ ..] => (Some(*name), Some(subresource.join("/"))),
    };
    if rest.iter().chain(&namespace).any(|part| part.is_empty()) {
        return Route::Unknown;
    }
    Route::Resource(ResourceRequest {
        group: decoded(group),
        version: decoded(version),
        plural: decoded(plural),
        namespace: namespace.map(decoded),
        name: name.map(decoded),
        subresource: subresource.as_deref().map(decoded),
        watch,
        query: Query::parse(uri.query().unwrap_or_default()),
    })
}

/// Decodes `%2F` and the like; malformed codes stay as they are.
fn decoded(part: &str) -> String {
    let mut bytes = Vec::with_capacity(part.len());
    let mut rest = part.as_bytes();
    while let [first, tail @ ..] = rest {
        let code = match (first, tail) {
            (b'%', [high, low, ..]) => (char::from(*high).to_digit(16))
                .zip(char::from(*low).to_digit(16))
                .and_then(|(high, low)| u8::try_from(high * 16 + low).ok()),
            _ => None,
        };
        bytes.push(code.unwrap_or(*first));
        rest = if code.is_some() { &tail[2..] } else { tail };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
