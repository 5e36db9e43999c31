//! The API of the cluster as it was: `/at/TIME/api/v1/pods` and the like, for kubectl and other clients of Kubernetes.
//!
//! A version of the past is ten times the number of its record: one sequence for all resources, in which a record that stands for two events
//! has room for both.

mod access;
mod content;
mod encoded;
mod events;
mod keys;
mod moment;
mod objects;
mod refusal;
mod remarks;
mod resources;
mod review;
mod schemas;
mod status;
mod view;

use std::sync::Arc;

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderName, HeaderValue, Method, Request, Response, StatusCode, header};
use jiff::Zoned;
use kubediff_history::Reader;
use serve::{
    Body, Catalog, Collection, Resource, ResourceRequest, Resources, Route, Serve, ServeOptions,
    ServerVersion, Status, builtin, route,
};

use super::address;
use super::problem::Problem;
use super::store::{Seen, Store};
use super::viewer::Viewer;
use crate::history::documents;
use keys::KeyCache;
use moment::When;
use objects::Recorded;
use resources::Known;
use schemas::Schemas;
use status::of_problem;
use view::View;

/// A page of a list has so many bytes of objects at most.
const PAGE: usize = 8 << 20;
/// The answer says which record was the last one.
pub(super) const RECORD: HeaderName = HeaderName::from_static("kubediff-record");

/// The API of all times of a history.
pub(super) struct Past {
    store: Arc<Store>,
    known: Arc<Known>,
    keys: Arc<KeyCache>,
}

/// The parts of the address of a request to the past.
pub(super) struct Address<'a> {
    /// As it is written.
    time: &'a str,
    /// The path at the API server of that time.
    path: &'a str,
}

impl<'a> Address<'a> {
    /// `None` for an address of the page.
    pub(super) fn of(path: &'a str) -> Option<Self> {
        let (time, rest) = path.strip_prefix("/at/")?.split_once('/')?;
        let is_api = matches!(
            rest.split('/').next().unwrap_or_default(),
            "api" | "apis" | "version" | "openapi" | "healthz" | "livez" | "readyz"
        );
        let path = path.get("/at/".len() + time.len()..)?;
        (is_api && !time.is_empty()).then_some(Self { time, path })
    }
}

/// A request, as the API server of that time would get it.
struct Asking<'a> {
    parts: &'a Parts,
    body: &'a Bytes,
    route: Route,
}

/// The refusal of a request.
pub(super) fn refused(problem: Problem) -> Response<Body> {
    Serve::refusal(&of_problem(problem))
}

impl Past {
    pub(super) fn new(store: Arc<Store>) -> Self {
        Self { store, known: Arc::default(), keys: Arc::default() }
    }

    /// Answers a request.
    pub(super) async fn answer(
        &self,
        request: &Request<Bytes>,
        address: &Address<'_>,
        viewer: &Viewer,
    ) -> Response<Body> {
        let (mut parts, ()) = Request::new(()).into_parts();
        (parts.method, parts.headers) = (request.method().clone(), request.headers().clone());
        let query = request.uri().query().map(|query| format!("?{query}")).unwrap_or_default();
        // An address that was one with the time is one without it.
        parts.uri = format!("{}{query}", address.path).parse().unwrap_or_default();
        let asking = Asking { parts: &parts, body: request.body(), route: route(&parts.uri) };
        match self.answered(&asking, address.time, viewer).await {
            Ok(response) => response,
            Err(status) => Serve::refusal(&status),
        }
    }

    async fn answered(
        &self,
        asking: &Asking<'_>,
        time: &str,
        viewer: &Viewer,
    ) -> Result<Response<Body>, Status> {
        let time = address::text(time).unwrap_or_default();
        let user = viewer.name();
        // Which resources there are, and until when, everybody may know who may be here.
        let known = self.known.clone();
        let (when, at, described) = self
            .ask(Seen { sight: None, user }, move |reader, now| {
                let when = When::read(&time, now)?;
                let at = when.moment(reader, now)?;
                Ok((when, at, known.at(reader, at).map_err(of_problem)?))
            })
            .await?;
        let resources = described.resources.clone();
        let context = refusal::Context { cluster: self.store.cluster.clone(), when };
        if asking.parts.method == Method::POST
            && let Route::Resource(request) = &asking.route
            && review::is_one(request)
        {
            return review::answer(request, asking.body, &asking.parts.headers, &resources, viewer).await;
        }
        context.reads_only(asking.parts, &asking.route)?;
        let mut seen = Seen { sight: None, user: viewer.name() };
        let mut remarks = Vec::new();
        if let Route::Resource(request) = &asking.route
            && let Some(resource) = resources.find(&request.group, &request.version, &request.plural)
        {
            let verb = access::verb(request);
            let (namespace, name) = (request.namespace.as_deref(), access::name(request));
            seen.sight = access::sight(viewer, verb, resource, namespace, name).await?;
            // Once for a list.
            if request.query.get("continue").unwrap_or_default().is_empty() {
                let (resource, namespace) = (resource.clone(), request.namespace.clone());
                let known = self.known.clone();
                remarks = self
                    .ask(seen.clone(), move |reader, now| {
                        let time = if when == When::Now { now.timestamp() } else { at.time };
                        remarks::about(reader, &known, &resource, namespace.as_deref(), time, now.time_zone())
                            .map_err(of_problem)
                    })
                    .await?;
            }
        }
        if let Route::Resource(request) = &asking.route
            && resources.find(&request.group, &request.version, &request.plural).is_none()
            && let Some(resource) = built_in(request)
        {
            // Why it was not watched is for those who may read it.
            let (namespace, name) = (request.namespace.as_deref(), access::name(request));
            let sight = access::sight(viewer, access::verb(request), &resource, namespace, name).await?;
            let asked = request.clone();
            let watched = move |reader: &mut Reader, now: &Zoned| {
                context.watched(reader, &asked, at.time, now.time_zone()).map_err(of_problem)?
            };
            self.ask(Seen { sight, user: viewer.name() }, watched).await?;
        }
        let mut release = None;
        if matches!(asking.route, Route::Version) {
            let question = move |reader: &mut Reader, now: &Zoned| {
                let release = reader.document(documents::VERSION, at.number).map_err(status::of_error)?;
                let has_release = release.is_some();
                let remarks = remarks::about_all(reader, at.time, now.time_zone(), has_release);
                Ok((release, remarks.map_err(of_problem)?))
            };
            let (document, doubts) = self.ask(seen.clone(), question).await?;
            release = document.and_then(|document| serde_json::from_slice(&document).ok());
            remarks = doubts;
        }
        let schemas = match &asking.route {
            Route::OpenApi(path) => {
                let path = schemas::path(path).map(str::to_owned);
                self.ask(seen.clone(), move |reader, _| {
                    Schemas::read(reader, at, path.as_deref()).map_err(of_problem)
                })
                .await?
            }
            _ => Schemas::default(),
        };
        let view = View {
            store: self.store.clone(),
            seen: Seen { user: seen.user, sight: seen.sight },
            keys: self.keys.clone(),
            at,
            is_now: when == When::Now,
            known: described,
            schemas,
        };
        let mut options = ServeOptions::default();
        options.page_bytes = Some(PAGE);
        let mut response = match release {
            Some(release) => Serve::document(StatusCode::OK, &release),
            None => Serve::new(Arc::new(Shared(Arc::new(view))), options).read(asking.parts).await,
        };
        let headers = response.headers_mut();
        headers.insert(RECORD, HeaderValue::from(at.number.0));
        for remark in remarks {
            headers.append(header::WARNING, remark);
        }
        Ok(response)
    }

    async fn ask<T: Send + 'static>(
        &self,
        seen: Seen,
        question: impl FnOnce(&mut Reader, &Zoned) -> Result<T, Status> + Send + 'static,
    ) -> Result<T, Status> {
        let answer = self.store.ask(seen, |asked| Ok(question(asked.reader, &asked.now)));
        answer.await.map_err(of_problem)?
    }
}

/// The resource of a request among those that servers have of their own.
fn built_in(request: &ResourceRequest) -> Option<Arc<Resource>> {
    let is_it = |it: &Arc<Resource>| *it.group == *request.group && *it.plural == *request.plural;
    builtin::resources().into_iter().find(is_it)
}

/// A view as the catalog of one request.
struct Shared(Arc<View>);

impl Catalog for Shared {
    fn resources(&self) -> Arc<Resources> {
        self.0.known.resources.clone()
    }

    fn collection(&self, resource: &Resource) -> Option<Arc<dyn Collection>> {
        Some(Arc::new(Recorded::new(self.0.clone(), resource)))
    }

    /// The release of the built-in resources, for a history that does not say which one its cluster had.
    fn version(&self) -> ServerVersion {
        let (major, minor) = kube_table::builtin::RELEASE;
        ServerVersion { major, minor, git_version: format!("v{major}.{minor}.0+kubediff") }
    }

    fn schemas(&self, group: &str, version: &str) -> Option<serde_json::Value> {
        self.0.schemas.of(group, version)
    }
}
