//! Refusals of what cannot be done in the past.

use http::Method;
use http::request::Parts;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use kubediff_history::{KindName, Reader, Scope};
use serve::{Reason, ResourceRequest, Route, Status};

use super::moment::When;
use crate::ask::period::unwatched_kinds;
use crate::web::problem::Problem;

/// Subresources of which a history has nothing.
const LIVE: &[(&str, &str)] = &[
    ("log", "logs are not in the history"),
    ("exec", "commands cannot be run in the past"),
    ("attach", "nothing can be attached to in the past"),
    ("portforward", "ports of the past cannot be reached"),
    ("proxy", "servers of the past cannot be reached"),
];

/// The place of a refusal.
#[derive(Clone)]
pub(super) struct Context {
    pub(super) cluster: String,
    pub(super) when: When,
}

impl Context {
    /// `prod as of 2026-11-23T14:05:00Z`.
    fn words(&self) -> String {
        let cluster = &self.cluster;
        match self.when {
            When::Now => format!("the recorded state of {cluster}"),
            When::At(time) => format!("{cluster} as of {time}"),
            When::After(number) => format!("{cluster} as of record {number}"),
        }
    }

    /// Refuses what would change something, and what needs something that runs.
    pub(super) fn reads_only(&self, parts: &Parts, route: &Route) -> Result<(), Status> {
        let refused = |why: String| {
            let status = Status::new(Reason::MethodNotAllowed, format!("this is {}: {why}", self.words()));
            match route {
                Route::Resource(it) => {
                    status.about(&it.group, &it.plural, it.name.as_deref().unwrap_or_default())
                }
                _ => status,
            }
        };
        if let Route::Resource(request) = route
            && let Some(below) = &request.subresource
            && let Some((_, why)) = LIVE.iter().find(|(name, _)| below.split('/').next() == Some(name))
        {
            return Err(refused((*why).to_owned()));
        }
        if matches!(parts.method, Method::GET | Method::HEAD) {
            return Ok(());
        }
        let dry_run = parts.uri.query().unwrap_or_default().contains("dryRun=");
        let why = match dry_run {
            true => {
                "nothing can be changed in the past, not even for a trial; `kubediff diff` compares two times, and `kubediff get -o yaml` \
                 prints objects to compare"
            }
            false => "nothing can be changed in the past",
        };
        Err(refused(why.to_owned()))
    }

    /// Refuses a built-in resource of which the history has nothing, because nobody watched it.
    pub(super) fn watched(
        &self,
        reader: &mut Reader,
        asked: &ResourceRequest,
        at: Timestamp,
        zone: &TimeZone,
    ) -> Result<Result<(), Status>, Problem> {
        let ResourceRequest { group, plural, .. } = asked;
        let kind = KindName { group: Some(group.clone()), resource: plural.clone() };
        let scope = Scope { kinds: vec![kind], ..Scope::default() };
        let unwatched = unwatched_kinds(&reader.standing()?, &scope, at, zone);
        if unwatched.is_empty() {
            return Ok(Ok(()));
        }
        let text = format!("this is {}: {}", self.words(), unwatched.join("; "));
        let name = asked.name.as_deref().unwrap_or_default();
        Ok(Err(Status::new(Reason::Forbidden, text).about(group, plural, name)))
    }
}
