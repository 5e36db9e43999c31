//! The parts of a request that tests look at.

use std::collections::BTreeMap;

pub(super) struct Request {
    /// As in the log: `LIST /api/v1/pods`.
    pub(super) line: String,
    /// `pods`; of other paths the end, as in `version`.
    pub(super) plural: String,
    /// `pods/shop`
    pub(super) place: String,
    pub(super) is_watch: bool,
}

impl Request {
    pub(super) fn read(request: &http::Request<Vec<u8>>) -> Self {
        let path = request.uri().path();
        let segments: Vec<_> = path.split('/').skip(1).collect();
        // After `/api/v1`, or `/apis/group/version`.
        let below = segments.get(if segments[0] == "apis" { 3 } else { 2 }..).unwrap_or_default();
        let (namespace, below) = match below {
            ["namespaces", namespace, below @ ..] if !below.is_empty() => (*namespace, below),
            _ => ("", below),
        };
        let plural = (*below.first().or(segments.last()).unwrap()).to_owned();
        let query = form_urlencoded::parse(request.uri().query().unwrap_or_default().as_bytes());
        let query: BTreeMap<_, _> = query.into_owned().collect();
        let is_watch = query.contains_key("watch");
        let verb = match below {
            [_] if is_watch => "WATCH",
            [_] => "LIST",
            _ => "GET",
        };
        let mut line = format!("{verb} {path}");
        for (name, value) in &query {
            match name.as_str() {
                "watch" => {}
                "timeoutSeconds" => line += " timeoutSeconds",
                name => line += &format!(" {name}={value}"),
            }
        }
        if request.headers().get("accept").is_some_and(|it| it.to_str().unwrap().contains("as=Partial")) {
            line += " (metadata)";
        }
        Self { line, place: format!("{plural}/{namespace}"), plural, is_watch }
    }
}

/// The request as the API gets it. It asks for plain JSON, in which tests have objects that fit no schema, and its watch has
/// no end.
pub(super) fn plain(mut request: http::Request<Vec<u8>>) -> http::Request<bytes::Bytes> {
    let query = request.uri().query().unwrap_or_default().split('&');
    let query: Vec<_> = query.filter(|it| !it.starts_with("timeoutSeconds=")).collect();
    let uri = format!("{}?{}", request.uri().path(), query.join("&"));
    *request.uri_mut() = uri.parse().unwrap();
    let headers = request.headers_mut();
    headers.remove("accept-encoding");
    if let Some(accept) = headers.get_mut("accept") {
        let json = accept.to_str().unwrap().split(',').filter(|it| !it.contains("protobuf"));
        *accept = json.collect::<Vec<_>>().join(",").parse().unwrap();
    }
    request.map(Into::into)
}
