//! Answers requests: parses a write, runs it in a turn, and renders the response.

mod duplicates;
mod reviews;
mod subresources;

use std::sync::Arc;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderValue, WARNING};
use http::request::Parts;
use http::{Method, Request, Response, StatusCode};
use http_body_util::BodyExt;
use serde_json::Value;
use serve::{Body, Object, Reason, Resource, ResourceRequest, Route, Serve, Status, route};

use crate::controllers::in_turn;
use crate::core::Core;
use crate::object::Meta;
use crate::refusal::method_not_allowed;
use crate::turn::{Target, Turn};
use crate::write::{APPLY, DeleteOptions, Deleted, FieldValidation, Patch, WriteOptions, input, scale};
use duplicates::duplicate_fields;

/// The response to a write, before it is encoded.
struct Answer {
    code: StatusCode,
    payload: Payload,
    warnings: Vec<String>,
}

enum Payload {
    Object(Arc<Resource>, Arc<Object>),
    Json(Value),
    Made(Response<Body>),
}

impl Answer {
    fn object(code: StatusCode, target: &Target, object: Arc<Object>) -> Self {
        Self { code, payload: Payload::Object(Arc::clone(&target.resource), object), warnings: Vec::new() }
    }

    fn json(code: StatusCode, value: Value) -> Self {
        Self { code, payload: Payload::Json(value), warnings: Vec::new() }
    }

    fn warning(self, warnings: Vec<String>) -> Self {
        Self { warnings, ..self }
    }
}

/// Answers any request.
pub(crate) async fn handle(core: &Arc<Core>, serve: &Serve, request: Request<Bytes>) -> Response<Body> {
    let (mut parts, body) = request.into_parts();
    let answer = answer(core, serve, &mut parts, body).await;
    serve.encoded(&parts.headers, answer)
}

async fn answer(core: &Arc<Core>, serve: &Serve, parts: &mut Parts, body: Bytes) -> Response<Body> {
    let Route::Resource(asked) = route(&parts.uri) else { return serve.read(parts).await };
    if let Some(answer) = kubelet(core, &asked) {
        return answer.unwrap_or_else(|status| Serve::refusal(&status));
    }
    let is_scale = asked.subresource.as_deref() == Some("scale");
    let is_write = matches!(parts.method, Method::POST | Method::PUT | Method::PATCH | Method::DELETE);
    let is_read = !is_write && (!is_scale || parts.method != Method::GET);
    if is_read {
        return serve.read(parts).await;
    }
    let resources = core.resources();
    let resource = resources.find(&asked.group, &asked.version, &asked.plural).cloned();
    let Some(resource) = resource.filter(|resource| resource.namespaced || asked.namespace.is_none()) else {
        return serve.read(parts).await;
    };
    let body = match input::as_json(&resource, parts, body) {
        Ok(body) => body,
        Err(status) => return Serve::refusal(&status),
    };
    let answered = if parts.method == Method::DELETE && asked.name.is_none() {
        delete_collection(core, serve, &resource, &asked, parts, &body).await
    } else {
        Writing { core, serve, resource: Arc::clone(&resource), asked: &asked, parts, body: &body }.answer()
    };
    match answered {
        Ok(answer) => render(serve, &resource, answer, parts),
        Err(status) => Serve::refusal(&status),
    }
}

/// Answers requests that a real server passes on to the kubelet of a pod's node.
fn kubelet(core: &Arc<Core>, asked: &ResourceRequest) -> Option<Result<Response<Body>, Status>> {
    let below = asked.subresource.as_deref()?;
    if asked.plural != "pods" || !matches!(below, "log" | "exec" | "attach" | "portforward") {
        return None;
    }
    let resource = core.resources().find(&asked.group, &asked.version, &asked.plural).cloned()?;
    let target = Target::new(core, &resource, asked.namespace.as_deref()?, asked.name.as_deref()?)?;
    Some(subresources::kubelet(&target, below).map(|()| {
        let mut log = Response::new(serve::full(""));
        *log.status_mut() = StatusCode::NO_CONTENT;
        log
    }))
}

fn render(serve: &Serve, resource: &Resource, answer: Answer, parts: &Parts) -> Response<Body> {
    let mut response = match answer.payload {
        Payload::Object(resource, object) => serve.object(&resource, &object, parts, answer.code),
        Payload::Json(value) if answer.code.is_success() => {
            serve.document_for(resource, &parts.headers, answer.code, &value)
        }
        Payload::Json(value) => Serve::document(answer.code, &value),
        Payload::Made(response) => response,
    };
    for warning in answer.warnings {
        let quoted = Value::from(warning).to_string();
        if let Ok(value) = HeaderValue::from_str(&format!("299 - {quoted}")) {
            response.headers_mut().append(WARNING, value);
        }
    }
    response
}

/// A write request.
struct Writing<'a> {
    core: &'a Core,
    serve: &'a Serve,
    resource: Arc<Resource>,
    asked: &'a ResourceRequest,
    parts: &'a Parts,
    body: &'a [u8],
}

impl Writing<'_> {
    fn answer(&self) -> Result<Answer, Status> {
        let verb = match (&self.parts.method, &self.asked.name) {
            (&Method::POST, None) => "create",
            (&Method::POST, Some(_)) if self.asked.subresource.is_some() => "create",
            // The handler of custom resources decides by the method alone.
            (&Method::POST, Some(_)) if self.resource.typed_items => "create",
            (&Method::PUT | &Method::PATCH, None) if self.resource.typed_items => {
                return Err(Status::bad_request("name must be provided"));
            }
            (&Method::GET, Some(_)) => "get",
            (&Method::PUT, Some(_)) => "update",
            (&Method::PATCH, Some(_)) => "patch",
            (&Method::DELETE, Some(_)) => "delete",
            _ => return Err(method_not_allowed()),
        };
        if self.resource.namespaced && self.asked.namespace.is_none() {
            return Err(method_not_allowed());
        }
        let Some(subresource) = self.asked.subresource.as_deref() else {
            if !self.resource.allows(verb) {
                return Err(method_not_allowed());
            }
            self.serve.acceptable(&self.resource, &self.parts.headers)?;
            return self.write(verb);
        };
        let known = self.resource.subresources.iter().find(|known| *known.name == *subresource);
        let Some(known) = known else {
            // For an unknown subresource of a custom resource, the server reports the object as not found.
            return Err(if self.resource.typed_items {
                self.target()?.not_found()
            } else {
                no_resource().about("", "", "")
            });
        };
        if !known.verbs.iter().any(|allowed| **allowed == *verb) {
            return Err(method_not_allowed());
        }
        self.serve.acceptable(&self.resource, &self.parts.headers)?;
        match subresource {
            "scale" => self.scale(verb),
            "status" | "finalize" | "approval" | "ephemeralcontainers" | "resize" => self.write(verb),
            name => {
                let (target, options) = (self.target()?, self.options(verb)?);
                in_turn(self.core, |turn| subresources::subresource(turn, &target, name, self.body, &options))
                    .map(|(code, value)| Answer::json(code, value))
            }
        }
    }

    fn target(&self) -> Result<Target, Status> {
        let namespace = self.asked.namespace.as_deref().unwrap_or_default();
        let name = self.asked.name.as_deref().unwrap_or_default();
        let target = Target::new(self.core, &self.resource, namespace, name).ok_or_else(no_resource)?;
        Ok(Target { status: self.asked.subresource.as_deref() == Some("status"), ..target })
    }

    fn options(&self, verb: &str) -> Result<WriteOptions, Status> {
        let kind = match verb {
            "create" => "CreateOptions",
            "update" => "UpdateOptions",
            _ => "PatchOptions",
        };
        let mut options = WriteOptions::read(kind, &self.asked.query, &self.parts.headers)?;
        options.subresource = self.asked.subresource.clone();
        Ok(options)
    }

    /// Writes the object itself, or its status.
    fn write(&self, verb: &str) -> Result<Answer, Status> {
        if verb == "create" && !self.resource.allows("list") {
            let object = input::object(&self.resource, &self.parts.headers, self.body)?;
            let answer = reviews::review(&self.resource, object)?;
            return Ok(Answer::json(StatusCode::CREATED, answer));
        }
        let target = self.target()?;
        if verb == "delete" {
            let options = DeleteOptions::read(&self.asked.query, self.body)?;
            return in_turn(self.core, |turn| delete(turn, &target, &options));
        }
        let options = self.options(verb)?;
        let code = |created| if created { StatusCode::CREATED } else { StatusCode::OK };
        if verb == "patch" {
            let patch = self.patch(&target)?;
            patch
                .check(&options, self.asked.query.get("fieldManager").is_some_and(|name| !name.is_empty()))?;
            return in_turn(self.core, |turn| {
                let (object, created) = turn.patch(&target, &patch, &options)?;
                Ok(Answer::object(code(created), &target, object).warning(turn.warnings.take()))
            });
        }
        let object = input::object(&self.resource, &self.parts.headers, self.body)?;
        input::check_values(&target, &object)?;
        let warnings = self.check_fields(&target, &object, &options)?;
        let written = in_turn(self.core, |turn| match verb {
            "create" => turn.create(&target, object, &options).map(|object| (object, true)),
            _ => turn.update(&target, object, &options),
        });
        // A refused write returns warnings too.
        Ok(match written {
            Ok((object, created)) => Answer::object(code(created), &target, object).warning(warnings),
            Err(status) => Answer::json(status.code, status.to_json()).warning(warnings),
        })
    }

    fn patch(&self, target: &Target) -> Result<Patch, Status> {
        let content_type = self.parts.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        Patch::read(target, content_type.unwrap_or_default(), self.body).map_err(|status| {
            // The server looks up the object before it parses the patch, so 404 comes before 400.
            let creates = content_type.is_some_and(|sent| sent.starts_with(APPLY));
            let is_read = !creates && status.reason == Reason::BadRequest && target.current().is_none();
            if is_read { target.not_found() } else { status }
        })
    }

    /// Warnings about fields that the schema does not have.
    fn check_fields(
        &self,
        target: &Target,
        object: &Value,
        options: &WriteOptions,
    ) -> Result<Vec<String>, Status> {
        let duplicates = match options.validation {
            FieldValidation::Ignore => Vec::new(),
            _ => duplicate_fields(self.body),
        };
        input::check_fields(target, object, &duplicates, options)
    }

    fn scale(&self, verb: &str) -> Result<Answer, Status> {
        let target = self.target()?;
        if verb == "get" {
            let object = target.current().ok_or_else(|| target.not_found())?;
            return Ok(Answer::json(StatusCode::OK, scale::scale(&target, &object)?));
        }
        let options = self.options(verb)?;
        let object = if verb == "patch" {
            let patch = self.patch(&target)?;
            in_turn(self.core, |turn| turn.patch_scale(&target, &patch, &options))?
        } else {
            let scale = input::parse("Scale", self.body)?;
            in_turn(self.core, |turn| turn.update_scale(&target, &scale, &options))?
        };
        Ok(Answer::json(StatusCode::OK, scale::scale(&target, &object)?))
    }
}

fn delete(turn: &Turn<'_>, target: &Target, options: &DeleteOptions) -> Result<Answer, Status> {
    match turn.delete(target, options)? {
        Deleted::Waiting(object) => {
            let code = if options.accepted { StatusCode::ACCEPTED } else { StatusCode::OK };
            Ok(Answer::object(code, target, object))
        }
        Deleted::Gone(object) if Deleted::answers_object(target) => {
            Ok(Answer::object(StatusCode::OK, target, object))
        }
        Deleted::Gone(object) => Ok(Answer::json(StatusCode::OK, Deleted::status(target, &object))),
    }
}

/// Deletes the objects of a list with the same parameters, and answers with that list.
async fn delete_collection(
    core: &Arc<Core>,
    serve: &Serve,
    resource: &Arc<Resource>,
    asked: &ResourceRequest,
    parts: &Parts,
    body: &[u8],
) -> Result<Answer, Status> {
    if !resource.allows("deletecollection") || resource.namespaced && asked.namespace.is_none() {
        return Err(method_not_allowed());
    }
    serve.acceptable(resource, &parts.headers)?;
    let options = DeleteOptions::read(&asked.query, body)?;
    let mut get = Request::new(()).into_parts().0;
    get.uri = parts.uri.clone();
    let answer = serve.read(&get).await;
    let code = answer.status();
    let list = answer.into_body().collect().await.map(|body| body.to_bytes()).unwrap_or_default();
    let list: Value = serde_json::from_slice(&list).unwrap_or_default();
    if code != StatusCode::OK {
        return Ok(Answer::json(code, list));
    }
    get.headers.clone_from(&parts.headers);
    let shown = serve.read(&get).await;
    let namespace = asked.namespace.as_deref().unwrap_or_default();
    in_turn(core, |turn| {
        for item in list["items"].as_array().into_iter().flatten() {
            let Some(target) = Target::new(core, resource, namespace, Meta(item).name()) else { continue };
            match turn.delete(&target, &options) {
                Err(status) if status.code != StatusCode::NOT_FOUND => return Err(status),
                _ => {}
            }
        }
        Ok(())
    })?;
    Ok(Answer { code: shown.status(), payload: Payload::Made(shown), warnings: Vec::new() })
}

fn no_resource() -> Status {
    Status::new(serve::Reason::NotFound, "the server could not find the requested resource")
}
