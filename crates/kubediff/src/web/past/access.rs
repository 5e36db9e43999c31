//! Who may read what of the past: those who may get and list it now.

use std::sync::Arc;

use http::StatusCode;
use kubediff_history::{KindName, Sight};
use serve::{Reason, Resource, ResourceRequest, Status};

use super::content::Form;
use super::status::of_problem;
use crate::web::viewer::Viewer;
use crate::web::wanted::Wanted;

/// The resource as a history names it.
pub(super) fn kind_name(resource: &Resource) -> KindName {
    let group = if Form::of(resource) == Form::NewEvent { "" } else { &resource.group };
    KindName { group: Some(group.to_owned()), resource: resource.plural.to_string() }
}

/// What a request does, in the word for its right.
pub(super) fn verb(request: &ResourceRequest) -> &'static str {
    let asked = request.query.get("watch").unwrap_or_default();
    match (&request.name, request.watch || matches!(asked, "1" | "true")) {
        (_, true) => "watch",
        (Some(_), false) => "get",
        (None, false) => "list",
    }
}

/// The one object that a request is about.
pub(super) fn name(request: &ResourceRequest) -> Option<&str> {
    let selector = || request.query.get("fieldSelector")?.strip_prefix("metadata.name=");
    request.name.as_deref().or_else(selector).filter(|name| !name.contains(','))
}

/// The part of the history that somebody may see, if these objects are all in it; `None` for all of it.
pub(super) async fn sight(
    viewer: &Viewer,
    verb: &str,
    resource: &Resource,
    namespace: Option<&str>,
    name: Option<&str>,
) -> Result<Option<Arc<Sight>>, Status> {
    let kind = kind_name(resource);
    let wanted = Wanted::of_resource(&kind, namespace, name);
    let seen = match viewer.seen(&wanted).await {
        Ok(seen) => seen,
        Err(problem) if problem.status == StatusCode::FORBIDDEN => {
            return Err(forbidden(viewer, verb, resource, namespace, name));
        }
        Err(problem) => return Err(of_problem(problem)),
    };
    let is_covered = seen.sight.as_deref().is_none_or(|sight| covers(sight, &kind, namespace, name));
    if is_covered { Ok(seen.sight) } else { Err(forbidden(viewer, verb, resource, namespace, name)) }
}

/// Whether a sight has all these objects. A list of what somebody may see of them would look like all there were.
fn covers(sight: &Sight, kind: &KindName, namespace: Option<&str>, name: Option<&str>) -> bool {
    sight.rights.iter().any(|right| {
        right.resource == *kind
            && right.namespace.as_deref().is_none_or(|of| Some(of) == namespace)
            && right.name.as_deref().is_none_or(|of| Some(of) == name)
    })
}

/// In the words of API servers.
fn forbidden(
    viewer: &Viewer,
    verb: &str,
    resource: &Resource,
    namespace: Option<&str>,
    name: Option<&str>,
) -> Status {
    let object = name.map(|name| format!(" {name:?}")).unwrap_or_default();
    let place = match namespace {
        Some(namespace) => format!("in the namespace {namespace:?}"),
        None => "at the cluster scope".to_owned(),
    };
    let message = format!(
        "{}{object} is forbidden: User {:?} cannot {verb} resource {:?} in API group {:?} {place}: the past needs the rights that the cluster \
         gives now, to get and to list",
        resource.qualified_name(),
        viewer.name().as_deref().unwrap_or_default(),
        resource.plural,
        resource.group
    );
    Status::new(Reason::Forbidden, message).about(&resource.group, &resource.plural, name.unwrap_or_default())
}
