//! The entrance of a page on this machine: it lets in those who have the link, and asks what is behind it for them: a file, or the daemon in a
//! cluster.

use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use jiff::Zoned;
use serve::{Body, compressed, full};

use super::door::{Admission, Door};
use super::problem::Problem;
use super::remote::Remote;
use super::routes::{Routes, moved, refusal};
use super::viewer::Viewer;

/// Nothing but the page's own files runs in it, and no other page shows it.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
form-action 'self'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types kubediff";

/// A response with the headers that keep other pages out, and without a body for HEAD.
pub(super) fn hardened(mut response: Response<Body>, is_head: bool) -> Response<Body> {
    let headers = response.headers_mut();
    for (name, value) in [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
        (header::HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    // An answer with a tag says by itself whether a browser may keep it.
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    if is_head {
        *response.body_mut() = full(Bytes::new());
    }
    response
}

/// The entrance of a page.
pub(super) struct Entrance {
    door: Door,
    behind: Behind,
}

/// The source of the answers.
pub(super) enum Behind {
    File(Routes),
    Daemon(Box<Remote>),
}

impl Behind {
    /// Answers somebody who may see everything.
    pub(super) async fn answer(&self, request: &Request<Bytes>) -> Response<Body> {
        match self {
            Self::File(routes) => routes.answer(request, &Viewer::Owner).await,
            Self::Daemon(remote) => remote.answer(request).await,
        }
    }

    /// Its name: that of the cluster, or of the daemon.
    pub(super) fn name(&self) -> String {
        match self {
            Self::File(routes) => routes.store().cluster.clone(),
            Self::Daemon(remote) => remote.name(),
        }
    }
}

impl Entrance {
    pub(super) fn new(door: Door, behind: Behind) -> Self {
        Self { door, behind }
    }

    /// Answers a request.
    pub(super) async fn answer(&self, request: Request<Bytes>) -> Response<Body> {
        let (is_head, headers) = (request.method() == Method::HEAD, request.headers().clone());
        hardened(compressed(&headers, self.admitted(request).await).await, is_head)
    }

    async fn admitted(&self, request: Request<Bytes>) -> Response<Body> {
        let path = request.uri().path();
        let refused = |problem| refusal(path, problem, &Zoned::now());
        if !matches!(*request.method(), Method::GET | Method::HEAD) {
            let problem = Problem::new(StatusCode::METHOD_NOT_ALLOWED, "The page answers GET alone");
            return refused(problem.hint("Nothing can be changed here."));
        }
        match self.door.admit(&request) {
            Admission::Elsewhere => {
                let problem =
                    Problem::new(StatusCode::MISDIRECTED_REQUEST, "This is not the host of the page");
                return refused(problem.hint("Open the link that `kubediff ui` prints."));
            }
            Admission::Enters(cookie) => {
                let mut response = moved("/");
                if let Ok(cookie) = HeaderValue::from_str(&cookie) {
                    response.headers_mut().insert(header::SET_COOKIE, cookie);
                }
                return response;
            }
            // They hold nothing of the cluster, and the page of a refusal has them.
            Admission::Outside if path.starts_with("/static/") => {}
            Admission::Outside => {
                self.door.invite();
                let problem = Problem::new(StatusCode::FORBIDDEN, "This browser has not entered by the link");
                let hint = "A link works once. `kubediff ui` prints another one where it runs: open that.";
                return refused(problem.hint(hint));
            }
            Admission::Inside => {}
        }
        self.behind.answer(&request).await
    }
}
