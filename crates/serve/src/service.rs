//! Requests to answers.

use std::sync::Arc;

use http::request::Parts;
use http::{Method, Response, StatusCode};

use crate::negotiate::Format;
use crate::parameters::Parameters;
use crate::render::Renderer;
use crate::{
    Body, Catalog, Object, Query, Reason, Resource, ResourceRequest, Route, ServeOptions, Status, answer,
    discovery, full, get, list, negotiate, route, watch,
};

/// Answers requests about the objects of a catalog.
///
/// It answers what reads; writes are for whoever owns the objects, with [`object`](Self::object) and
/// [`refusal`](Self::refusal) for the answers.
pub struct Serve {
    catalog: Arc<dyn Catalog>,
    options: ServeOptions,
}

impl Serve {
    /// Serves a catalog.
    pub fn new(catalog: Arc<dyn Catalog>, options: ServeOptions) -> Self {
        Self { catalog, options }
    }

    /// Answers a GET completely, and other methods by saying that they are not allowed.
    ///
    /// The head of the answer comes when it is known that there is an answer; the body of a watch goes on until its
    /// time is over. Cancel safe.
    pub async fn read(&self, parts: &Parts) -> Response<Body> {
        match route(&parts.uri) {
            Route::Resource(request) => {
                self.resource(&request, parts).await.unwrap_or_else(|status| Self::refusal(&status))
            }
            // Health is told whatever the method.
            Route::Version if parts.method != Method::GET => Self::refusal(&no_such_method()),
            Route::Discovery(_) | Route::OpenApi(_)
                if !matches!(parts.method, Method::GET | Method::HEAD)
                    && discovery::only_reads(&self.catalog.resources(), parts.uri.path()) =>
            {
                Self::refusal(&no_such_method())
            }
            Route::Version | Route::Health | Route::Discovery(_) | Route::OpenApi(_) | Route::Unknown => {
                discovery::answer(&*self.catalog, parts.uri.path(), &parts.headers)
                    .unwrap_or_else(|| self.nothing(parts.uri.path()))
            }
        }
    }

    /// An object in the form that the client accepts. What the client does not accept at all is sent in JSON: a write
    /// that was done is not to look as if it was not.
    pub fn object(
        &self,
        resource: &Resource,
        object: &Object,
        parts: &Parts,
        code: StatusCode,
    ) -> Response<Body> {
        let query = Query::parse(parts.uri.query().unwrap_or_default());
        let format = negotiate::format(&parts.headers, resource, true)
            .and_then(|format| format.with_rows(&query))
            .unwrap_or_default();
        let (content_type, text) = alone(resource, object, format);
        answer::answer(code, content_type, full(text))
    }

    /// A refusal, in JSON whatever the client accepts.
    pub fn refusal(status: &Status) -> Response<Body> {
        answer::status(status)
    }

    /// What is said of a path that leads nowhere. The group says it as an object of the API where it has built-in
    /// kinds; elsewhere there is nobody who would.
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
        // What can only be created, a review or a binding, has a collection to be sent to and nothing else.
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
                // Who serves custom resources has no paths of its own for what is below them.
                None if resource.typed_items => {
                    let name = request.name.as_deref().unwrap_or_default();
                    return Err(Status::not_found(&resource.group, &resource.plural, name));
                }
                None => return Ok(self.nothing(parts.uri.path())),
            },
        };
        let allowed = match (below, &request.name, request.watch) {
            // What is below an object and is of a kind of its own, its owner has to make.
            (Some(below), ..) => {
                below.group_version_kind.is_none() && below.verbs.iter().any(|verb| **verb == *"get")
            }
            (None, _, true) => resource.allows("watch"),
            (None, Some(_), false) => resource.allows("get"),
            (None, None, false) => resource.allows("list"),
        };
        // Of custom resources a HEAD is a GET, and whatever has `/watch/` in its path is a watch.
        let reads = parts.method == Method::GET
            || (resource.typed_items && (parts.method == Method::HEAD || request.watch));
        if !reads || !allowed {
            return Err(not_allowed(&resource));
        }
        let one = request.name.is_some() && !request.watch;
        let format = negotiate::format(&parts.headers, &resource, one)?;
        let collection = self.catalog.collection(&resource).ok_or_else(discovery::not_here)?;
        let collection = &*collection;
        match &request.name {
            Some(name) if !request.watch => {
                let object = get::get(&resource, collection, request, name, &self.options).await?;
                negotiate::one(&format.form, &resource)?;
                let (content_type, text) = alone(&resource, &object, format.with_rows(&request.query)?);
                let gzip_from = self.options.gzip_from.filter(|_| negotiate::accepts_gzip(&parts.headers));
                Ok(answer::chunks(std::iter::once(text.into()), content_type, gzip_from))
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

/// An object as all there is in an answer, and what it is.
fn alone(resource: &Resource, object: &Object, format: Format) -> (&'static str, Vec<u8>) {
    let renderer = Renderer::new(resource, format);
    let mut text = Vec::with_capacity(object.body.len() + 128);
    renderer.object(object, &mut text);
    text.push(b'\n');
    (renderer.content_type(), text)
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
