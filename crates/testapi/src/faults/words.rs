//! The messages of the real server's refusals.

use http::{HeaderValue, Response, StatusCode, header};
use serve::{Body, Reason, Serve, Status, full};

use super::fault::{Refusal, internal_error};
use crate::call::{Call, Target, Verb};
use crate::refusal::{self, FieldError};
use serve::builtin;

const CONTINUE_EXPIRED: &str = "The provided continue parameter is too old to display a consistent list result. \
    You can start a new list without the continue parameter.";

/// The response to a refused request.
pub(crate) fn refuse(refusal: Refusal, call: &Call) -> Response<Body> {
    let target = call.target.as_ref();
    let status = match refusal {
        Refusal::Unauthorized => Status::new(Reason::Unauthorized, "Unauthorized"),
        Refusal::Forbidden => forbidden(call),
        Refusal::NotFound => match target.and_then(|target| Some((target, target.name.as_ref()?))) {
            Some((target, name)) => Status::not_found(&target.group, &target.resource, name),
            None => no_resource(),
        },
        Refusal::Conflict => conflict(call),
        Refusal::Expired => expired(call),
        Refusal::Invalid => invalid(call),
        Refusal::TooManyRequests { retry_after } => return too_many_requests(retry_after),
        Refusal::NotReady { retry_after } => {
            Status::new(Reason::TooManyRequests, "storage is (re)initializing").retry_after(retry_after)
        }
        Refusal::InternalError => internal_error("etcdserver: request timed out"),
        Refusal::Unavailable => {
            let mut response = answer(&Status::new(Reason::ServiceUnavailable, "apiserver is shutting down"));
            response.headers_mut().insert(header::RETRY_AFTER, 1.into());
            return response;
        }
        Refusal::Timeout => {
            Status::new(Reason::Timeout, "Timeout: request did not complete within the allotted timeout")
                .about("", "", "")
        }
    };
    answer(&status)
}

/// A `Status` as a response.
pub(crate) fn answer(status: &Status) -> Response<Body> {
    Serve::refusal(status)
}

/// The response for a path whose group is not served.
pub(crate) fn no_page() -> Response<Body> {
    plain(StatusCode::NOT_FOUND, "404 page not found\n")
}

/// The response for a resource that is not served.
pub(crate) fn no_resource() -> Status {
    Status::new(Reason::NotFound, "the server could not find the requested resource").about("", "", "")
}

fn too_many_requests(retry_after: u32) -> Response<Body> {
    let mut response = plain(StatusCode::TOO_MANY_REQUESTS, "Too many requests, please try again later.\n");
    response.headers_mut().insert(header::RETRY_AFTER, retry_after.into());
    response
}

fn plain(code: StatusCode, text: &'static str) -> Response<Body> {
    let mut response = Response::new(full(text));
    *response.status_mut() = code;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

fn forbidden(call: &Call) -> Status {
    let (user, verb) = (&call.user, call.verb.as_str());
    let Some(target) = &call.target else {
        let verb = call.method.as_str().to_lowercase();
        let message = format!("forbidden: User {user:?} cannot {verb} path {:?}", call.path);
        return Status::new(Reason::Forbidden, message).about("", "", "");
    };
    let resource = match &target.subresource {
        Some(subresource) => format!("{}/{subresource}", target.resource),
        None => target.resource.clone(),
    };
    let place = match &target.namespace {
        Some(namespace) => format!("in the namespace {namespace:?}"),
        None => "at the cluster scope".to_owned(),
    };
    let message = format!(
        "{} is forbidden: User {user:?} cannot {verb} resource {resource:?} in API group {:?} {place}",
        subject(target),
        target.group,
    );
    about(target, Reason::Forbidden, message)
}

fn conflict(call: &Call) -> Status {
    let Some(target) = &call.target else {
        return Status::new(Reason::Conflict, "the server reported a conflict");
    };
    if call.verb == Verb::Create {
        return about(target, Reason::AlreadyExists, format!("{} already exists", subject(target)));
    }
    let message = format!(
        "Operation cannot be fulfilled on {}: the object has been modified; please apply your changes to the latest \
         version and try again",
        subject(target)
    );
    about(target, Reason::Conflict, message)
}

fn expired(call: &Call) -> Status {
    if call.query.get("continue").is_some() {
        return Status::new(Reason::Expired, CONTINUE_EXPIRED);
    }
    match call.query.get("resourceVersion").and_then(|revision| revision.parse().ok()) {
        Some(asked) if call.verb == Verb::Watch => Status::expired(asked, asked + 1),
        _ => Status::new(Reason::Expired, "The resourceVersion for the provided list is too old."),
    }
}

fn invalid(call: &Call) -> Status {
    if call.is_streaming_list() {
        let cause = "Forbidden: sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled";
        let message = format!("ListOptions.meta.k8s.io \"\" is invalid: sendInitialEvents: {cause}");
        return Status::new(Reason::Invalid, message).about("meta.k8s.io", "ListOptions", "").cause(
            "FieldValueForbidden",
            cause,
            "sendInitialEvents",
        );
    }
    let error = FieldError::required("metadata.name", "name or generateName is required");
    let Some(target) = &call.target else { return refusal::invalid("", "", "", &[error]) };
    // The kind of a custom resource is not known here.
    let kind = builtin::kind(&target.group, &target.resource);
    let kind = kind.as_deref().unwrap_or(&target.resource);
    refusal::invalid(&target.group, kind, name(target), &[error])
}

fn about(target: &Target, reason: Reason, message: String) -> Status {
    Status::new(reason, message).about(&target.group, &target.resource, name(target))
}

fn name(target: &Target) -> &str {
    target.name.as_deref().unwrap_or_default()
}

/// `pods`, `deployments.apps "cart"`
fn subject(target: &Target) -> String {
    match &target.name {
        Some(name) => format!("{} {name:?}", target.qualified()),
        None => target.qualified(),
    }
}
