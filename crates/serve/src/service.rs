//! Answers requests.

use std::sync::Arc;
use std::time::SystemTime;

use futures_util::stream;
use http::header::{CONTENT_TYPE, HeaderValue};
use http::request::Parts;
use http::{HeaderMap, Method, Response, StatusCode};
use serde::Deserialize;
use serde_json::Value;

use crate::answer::Document;

use crate::negotiate::{Encoding, Format};
use crate::parameters::Parameters;
use crate::render::Renderer;
use crate::{
    Body, Catalog, Object, Query, Reason, Resource, ResourceRequest, Route, ServeOptions, Status, answer,
    discovery, full, get, list, negotiate, openapi, protobuf, route, watch,
};

/// Answers requests about the objects of a catalog.
///
/// It answers reads. Writes are up to the owner of the objects, who uses [`object`](Self::object) and
/// [`refusal`](Self::refusal) for the responses.
pub struct Serve {
    catalog: Arc<dyn Catalog>,
    options: ServeOptions,
}

/// Of the catalog only its version is shown.
impl std::fmt::Debug for Serve {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Serve({})", self.catalog.version().git_version)
    }
}

impl Serve {
    /// Serves a catalog.
    pub fn new(catalog: Arc<dyn Catalog>, options: ServeOptions) -> Self {
        Self { catalog, options }
    }

    /// Answers a GET, and other methods with 405.
    ///
    /// Returns the head of the response once its status is known; the body of a watch goes on until its timeout. Cancel
    /// safe.
    pub async fn read(&self, parts: &Parts) -> Response<Body> {
        self.encoded(&parts.headers, self.read_in_json(parts).await)
    }

    async fn read_in_json(&self, parts: &Parts) -> Response<Body> {
        match route(&parts.uri) {
            Route::Resource(request) => {
                self.resource(&request, parts).await.unwrap_or_else(|status| Self::refusal(&status))
            }
            // Health ignores the method.
            Route::Version if parts.method != Method::GET => Self::refusal(&no_such_method()),
            Route::Discovery(_) | Route::OpenApi(_)
                if !matches!(parts.method, Method::GET | Method::HEAD)
                    && discovery::only_reads(&self.catalog.resources(), parts.uri.path()) =>
            {
                Self::refusal(&no_such_method())
            }
            Route::OpenApi(path) => match path.strip_prefix("/openapi/v3") {
                Some(below) => openapi::answer(&*self.catalog, below.trim_matches('/'), &parts.headers),
                None => self.nothing(&path),
            },
            Route::Version | Route::Health | Route::Discovery(_) | Route::Unknown => {
                discovery::answer(&*self.catalog, parts.uri.path(), &parts.headers)
                    .unwrap_or_else(|| self.nothing(parts.uri.path()))
            }
        }
    }

    /// Whether a client accepts objects of a resource in any format. Call it before a write, after which a refusal is too
    /// late.
    ///
    /// # Errors
    ///
    /// 406, in the words of the real server.
    pub fn acceptable(&self, resource: &Resource, headers: &HeaderMap) -> Result<(), Status> {
        negotiate::format(headers, &*self.catalog, resource, true).map(drop)
    }

    /// An object in a format that the client accepts. If the client accepts none, JSON is sent: a write that succeeded
    /// must not look as if it failed. A representation of lists is refused nevertheless, as the real server does.
    pub fn object(
        &self,
        resource: &Resource,
        object: &Object,
        parts: &Parts,
        code: StatusCode,
    ) -> Response<Body> {
        let query = Query::parse(parts.uri.query().unwrap_or_default());
        let format = negotiate::format(&parts.headers, &*self.catalog, resource, true).unwrap_or_default();
        let fitting = format.with_rows(&query).and_then(|format| {
            negotiate::one(&format.representation, resource)?;
            Ok(format)
        });
        match fitting {
            Ok(format) => {
                let (content_type, text) = alone(resource, object, format, SystemTime::now());
                answer::answer(code, content_type, full(text))
            }
            Err(status) => Self::refusal(&status),
        }
    }

    /// The response to a write that is no object of the resource, a Status or a Scale, in the encoding in which the
    /// client would get the object.
    pub fn document_for(
        &self,
        resource: &Resource,
        headers: &HeaderMap,
        code: StatusCode,
        object: &Value,
    ) -> Response<Body> {
        let format = negotiate::format(headers, &*self.catalog, resource, true).unwrap_or_default();
        let mut answer = match negotiate::part(&format.representation, resource, object) {
            Ok(part) => Self::document(code, part.as_ref().unwrap_or(object)),
            Err(status) => return Self::refusal(&status),
        };
        let document = answer.extensions_mut().remove::<Document>();
        match format.encoding {
            Encoding::Json => answer,
            Encoding::Protobuf(_) => match document {
                Some(document) => self.in_protobuf(&document, protobuf::CONTENT_TYPE, answer),
                None => answer,
            },
        }
    }

    /// A refusal in JSON, until it is [`encoded`](Self::encoded).
    pub fn refusal(status: &Status) -> Response<Body> {
        answer::status(status)
    }

    /// An API object that belongs to no resource, in JSON until it is [`encoded`](Self::encoded).
    pub fn document(code: StatusCode, object: &Value) -> Response<Body> {
        answer::json(code, format!("{object}\n"))
    }

    /// Converts a refusal or a document to protobuf, if the client wants that and the catalog has its messages. Other
    /// responses keep their encoding.
    pub fn encoded(&self, headers: &HeaderMap, mut answer: Response<Body>) -> Response<Body> {
        let Some(document) = answer.extensions_mut().remove::<Document>() else { return answer };
        match document.protobuf_type(headers) {
            Some(media_type) => self.in_protobuf(&document, media_type, answer),
            None => answer,
        }
    }

    fn in_protobuf(
        &self,
        document: &Document,
        media_type: &'static str,
        mut answer: Response<Body>,
    ) -> Response<Body> {
        #[derive(Deserialize, Default)]
        #[serde(rename_all = "camelCase", default)]
        struct Kind {
            api_version: String,
            kind: String,
        }
        let text = std::str::from_utf8(&document.text).unwrap_or_default();
        let Kind { api_version, kind } = serde_json::from_str(text).unwrap_or_default();
        let Some(writer) = self.catalog.protobuf(&api_version, &kind) else { return answer };
        let mut bytes = Vec::new();
        protobuf::document(&api_version, &kind, text, &*writer, &mut bytes);
        *answer.body_mut() = full(bytes);
        answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
        answer
    }

    /// The response to a path that does not exist: an API object if the group has built-in kinds; other groups have no
    /// handler that would send one.
    fn nothing(&self, path: &str) -> Response<Body> {
        let mut parts = path.trim_matches('/').split('/');
        let group = match (parts.next(), parts.next()) {
            (Some("api"), Some(_)) => "",
            (Some("apis"), Some(group)) => group,
            _ => return discovery::unknown_path(),
        };
        let resources = self.catalog.resources();
        let known = resources.iter().any(|resource| *resource.group == *group && !resource.typed_items);
        if known { answer::status(&discovery::not_here()) } else { discovery::unknown_path() }
    }

    async fn resource(&self, request: &ResourceRequest, parts: &Parts) -> Result<Response<Body>, Status> {
        let resources = self.catalog.resources();
        let Some(resource) = resources.find(&request.group, &request.version, &request.plural) else {
            return Ok(self.nothing(parts.uri.path()));
        };
        // A resource that can only be created, a review or a binding, has nothing to read.
        let kept = ["get", "list", "update", "patch", "delete"].iter().any(|verb| resource.allows(verb));
        let misplaced = match (&request.namespace, resource.namespaced) {
            (Some(_), false) => true,
            (None, true) => request.name.is_some() || !kept,
            _ => request.name.is_some() && !kept,
        };
        let across = resource.typed_items && resource.namespaced && request.namespace.is_none();
        let misplaced =
            misplaced || (across && !request.watch && !matches!(parts.method, Method::GET | Method::HEAD));
        if misplaced {
            return Ok(self.nothing(parts.uri.path()));
        }
        let resource = Arc::clone(resource);
        let below = match &request.subresource {
            None => None,
            Some(name) => match resource.subresources.iter().find(|known| *known.name == **name) {
                Some(known) => Some(known),
                // Custom resources have no paths of their own for unknown subresources.
                None if resource.typed_items => {
                    let name = request.name.as_deref().unwrap_or_default();
                    return Err(Status::not_found(&resource.group, &resource.plural, name));
                }
                None => return Ok(self.nothing(parts.uri.path())),
            },
        };
        let allowed = match (below, &request.name, request.watch) {
            // A subresource of another kind is up to the owner of the objects.
            (Some(below), ..) => {
                below.group_version_kind.is_none() && below.verbs.iter().any(|verb| **verb == *"get")
            }
            (None, _, true) => resource.allows("watch"),
            (None, Some(_), false) => resource.allows("get"),
            (None, None, false) => resource.allows("list"),
        };
        // For custom resources a HEAD is a GET, and every path with `/watch/` is a watch.
        let reads = parts.method == Method::GET
            || (resource.typed_items && (parts.method == Method::HEAD || request.watch));
        if !reads || !allowed {
            return Err(not_allowed(&resource));
        }
        let one = request.name.is_some() && !request.watch;
        let format = negotiate::format(&parts.headers, &*self.catalog, &resource, one)?;
        let collection = self.catalog.collection(&resource).ok_or_else(discovery::not_here)?;
        let collection = &*collection;
        match &request.name {
            Some(name) if !request.watch => {
                let object = get::get(&resource, collection, request, name, &self.options).await?;
                negotiate::one(&format.representation, &resource)?;
                let format = format.with_rows(&request.query)?;
                let (content_type, text) = alone(&resource, &object, format, collection.now());
                let gzip_from = self.options.gzip_from.filter(|_| negotiate::accepts_gzip(&parts.headers));
                let text = stream::iter([Ok(text.into())]);
                answer::chunks(text, content_type, gzip_from).await.map_err(list::broken)
            }
            _ => {
                let gzip = negotiate::accepts_gzip(&parts.headers);
                let parameters = Parameters::read(request, &resource, &self.options)?;
                if parameters.watch {
                    watch::watch(&resource, collection, request, parameters, format, gzip, &self.options)
                        .await
                } else {
                    list::list(&resource, collection, request, parameters, format, gzip, &self.options).await
                }
            }
        }
    }
}

/// An object as the whole response, with its media type.
fn alone(resource: &Resource, object: &Object, format: Format, now: SystemTime) -> (&'static str, Vec<u8>) {
    let mut bytes = Vec::with_capacity(object.body.len() + 128);
    match format.encoding {
        Encoding::Json => {
            Renderer::new(resource, format.representation, now).object(object, &mut bytes);
            bytes.push(b'\n');
            ("application/json", bytes)
        }
        Encoding::Protobuf(messages) => {
            messages.object(&object.body, &mut bytes);
            (protobuf::CONTENT_TYPE, bytes)
        }
    }
}

fn not_allowed(resource: &Resource) -> Status {
    if resource.typed_items {
        let message = format!(" is not supported on resources of kind {:?}", resource.qualified_name());
        return Status::new(Reason::MethodNotAllowed, message).about(&resource.group, &resource.plural, "");
    }
    no_such_method()
}

fn no_such_method() -> Status {
    Status::new(Reason::MethodNotAllowed, "the server does not allow this method on the requested resource")
        .about("", "", "")
}
