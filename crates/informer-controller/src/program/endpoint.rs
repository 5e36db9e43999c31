//! `/livez`, `/readyz` and `/metrics`.

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode, header};
use http_body_util::Full;
use informer::{Informer, Object};
use tokio_util::sync::CancellationToken;

use crate::controller::Runnable;
use crate::election::Election;
use crate::handle::ControllerHandle;
use crate::metrics::{FactoryMetrics, Format, ProgramMetrics};

/// The state of a program, as it is asked for.
pub(super) struct Endpoint {
    controllers: Vec<ControllerHandle>,
    /// Each once.
    informers: Vec<Informer<Object>>,
    election: Option<Election>,
    stopping: CancellationToken,
}

impl Endpoint {
    pub(super) fn new(
        controllers: &[Runnable],
        others: &[Informer<Object>],
        election: Option<Election>,
        stopping: CancellationToken,
    ) -> Self {
        let mut informers: Vec<Informer<Object>> = Vec::new();
        for informer in controllers.iter().flat_map(|controller| &controller.informers).chain(others) {
            if !informers.iter().any(|other| other.shares_cache_with(informer)) {
                informers.push(informer.clone());
            }
        }
        let controllers = controllers.iter().map(|controller| controller.handle.clone()).collect();
        Self { controllers, informers, election, stopping }
    }

    pub(super) fn answer<B>(&self, request: &Request<B>) -> Response<Full<Bytes>> {
        const TEXT: &str = "text/plain; charset=utf-8";
        if !matches!(*request.method(), Method::GET | Method::HEAD) {
            return response(StatusCode::METHOD_NOT_ALLOWED, TEXT, "only GET is answered here\n".to_owned());
        }
        match request.uri().path() {
            "/livez" | "/healthz" => response(StatusCode::OK, TEXT, "ok\n".to_owned()),
            "/readyz" => match self.why_not_ready() {
                None => response(StatusCode::OK, TEXT, format!("ok{}\n", self.role())),
                Some(reason) => response(StatusCode::SERVICE_UNAVAILABLE, TEXT, reason),
            },
            "/metrics" => {
                let format = Format::OpenMetrics;
                response(StatusCode::OK, format.content_type(), self.metrics().to_text(format))
            }
            _ => {
                let there = "there are /livez, /readyz and /metrics\n";
                response(StatusCode::NOT_FOUND, TEXT, there.to_owned())
            }
        }
    }

    /// A line for each reason.
    fn why_not_ready(&self) -> Option<String> {
        if self.stopping.is_cancelled() {
            return Some("the program is stopping\n".to_owned());
        }
        let waiting = self.informers.iter().filter(|informer| !informer.is_synced());
        let reasons: String = waiting
            .map(|informer| format!("{} is not synced: {}\n", informer.resource().plural, informer.status()))
            .collect();
        Some(reasons).filter(|reasons| !reasons.is_empty())
    }

    /// Whether this process leads, in words; empty without an election.
    fn role(&self) -> String {
        let Some(election) = &self.election else { return String::new() };
        let status = election.status();
        match status.leader {
            _ if status.is_leading() => ": leader".to_owned(),
            Some(leader) => format!(": standby, {leader} leads"),
            None => ": standby".to_owned(),
        }
    }

    fn metrics(&self) -> ProgramMetrics {
        ProgramMetrics::of(
            FactoryMetrics::of_informers(&self.informers),
            self.controllers.iter().map(ControllerHandle::metrics),
            self.election.iter().map(Election::metrics),
        )
    }
}

fn response(status: StatusCode, content: &'static str, text: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(text)));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static(content));
    response
}
