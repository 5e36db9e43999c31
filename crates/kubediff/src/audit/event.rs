//! Audit events: what a request did, and whose it was. Only metadata is read, and bodies are not even parsed.
//!
//! <https://kubernetes.io/docs/reference/config-api/apiserver-audit.v1/>

use std::borrow::Cow;

use informer::Selector;
use jiff::{SignedDuration, Timestamp};
use kubediff_history::User;
use serde::Deserialize;

/// The longest text of a user that is kept, in characters, and the most groups.
const TEXT: usize = 256;
const GROUPS: usize = 32;
/// No clock of an API server is so far ahead, and no request takes so long.
const FAR: SignedDuration = SignedDuration::from_hours(1);

/// A request that may have changed an object.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Write {
    /// The id of the request.
    pub(crate) id: String,
    pub(crate) user: User,
    pub(crate) action: Action,
    /// `deployments.apps`.
    pub(crate) resource: String,
    pub(crate) namespace: Option<String>,
    /// The name; `None` where the server makes it up, and of many.
    pub(crate) name: Option<String>,
    /// The version that the request was about, where it says so.
    pub(crate) rv: Option<String>,
    /// The field manager that the server notes for it; empty where it notes none.
    pub(crate) manager: String,
    /// Whether it went through the subresource `status`.
    pub(crate) is_status: bool,
    /// Between these times it was carried out, by the clock of the server.
    pub(crate) from: Timestamp,
    pub(crate) to: Timestamp,
}

/// The effect of a request.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Action {
    Create,
    Update,
    Delete,
    /// Of all objects that a selector takes.
    DeleteMany(Selector),
}

/// The writes among some events.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Read {
    pub(crate) writes: Vec<Write>,
    /// How many events there were that have another form than an audit event.
    pub(crate) malformed: u64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Event<'a> {
    #[serde(rename = "auditID")]
    audit_id: String,
    #[serde(borrow)]
    stage: Cow<'a, str>,
    #[serde(borrow)]
    verb: Cow<'a, str>,
    #[serde(borrow, rename = "requestURI")]
    request_uri: Cow<'a, str>,
    user: Person,
    impersonated_user: Option<Person>,
    #[serde(default, rename = "sourceIPs")]
    source_ips: Vec<String>,
    #[serde(default)]
    user_agent: String,
    object_ref: Option<ObjectRef>,
    response_status: Option<ResponseStatus>,
    request_received_timestamp: Timestamp,
    stage_timestamp: Timestamp,
}

#[derive(Deserialize)]
struct Person {
    #[serde(default)]
    username: String,
    #[serde(default)]
    groups: Vec<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[derive(Default)]
struct ObjectRef {
    resource: String,
    namespace: String,
    name: String,
    api_group: String,
    resource_version: String,
    subresource: String,
}

#[derive(Deserialize)]
struct ResponseStatus {
    #[serde(default)]
    code: u16,
}

#[derive(Deserialize)]
struct List<'a> {
    #[serde(borrow)]
    items: Vec<&'a serde_json::value::RawValue>,
}

/// The writes of an `EventList`, or of one `Event`. `None` for what is neither.
pub(crate) fn events(json: &[u8]) -> Option<Read> {
    let list: Option<List<'_>> = serde_json::from_slice(json).ok();
    let mut read = Read::default();
    match list {
        Some(list) => list.items.iter().for_each(|item| read.add(item.get())),
        None => {
            let one: &serde_json::value::RawValue = serde_json::from_slice(json).ok()?;
            read.add(one.get());
        }
    }
    Some(read)
}

impl Read {
    fn add(&mut self, json: &str) {
        match serde_json::from_str::<Event<'_>>(json).map(Event::write) {
            Ok(None) => {}
            Ok(Some(write)) if write.is_sound(Timestamp::now()) => self.writes.push(write),
            _ => self.malformed += 1,
        }
    }
}

impl Write {
    /// Whether it names a user and times that there are.
    fn is_sound(&self, now: Timestamp) -> bool {
        !self.user.name.is_empty()
            && self.user.impersonator.as_deref() != Some("")
            && self.to.duration_since(now) <= FAR
            && self.to.duration_since(self.from).abs() <= FAR
    }
}

impl Event<'_> {
    /// The write; `None` for a request that changes nothing, was refused or has not ended.
    fn write(self) -> Option<Write> {
        let code = self.response_status.as_ref()?.code;
        if self.stage != "ResponseComplete" || !(200..300).contains(&code) {
            return None;
        }
        let of = self.object_ref?;
        let query = self.request_uri.split_once('?').map_or("", |(_, query)| query);
        let parameter = |name: &str| {
            let mut all = form_urlencoded::parse(query.as_bytes());
            all.find(|(key, _)| key == name).map(|(_, value)| value.into_owned())
        };
        let action = match (&*self.verb, &*of.subresource) {
            ("create", "eviction") => Action::Delete,
            // The server notes no manager for it.
            ("create", "binding") => Action::Update,
            (_, "" | "status" | "scale" | "ephemeralcontainers" | "resize" | "finalize" | "approval") => {
                match &*self.verb {
                    "create" => Action::Create,
                    // A patch or an update may have created the object.
                    "update" | "patch" if code == 201 => Action::Create,
                    "update" | "patch" => Action::Update,
                    "delete" => Action::Delete,
                    "deletecollection" => {
                        let selector = parameter("labelSelector").unwrap_or_default();
                        Action::DeleteMany(selector.parse().ok()?)
                    }
                    _ => return None,
                }
            }
            _ => return None,
        };
        if parameter("dryRun").is_some_and(|dry_run| !dry_run.is_empty()) {
            return None;
        }
        // As kube-apiserver makes it: `managerOrUserAgent` of its handlers, and `unknown` for nothing.
        let agent = || self.user_agent.split('/').next().unwrap_or_default().chars().take(128).collect();
        let manager = match of.subresource == "binding" {
            true => String::new(),
            false => Some(parameter("fieldManager").unwrap_or_default())
                .filter(|name| !name.is_empty())
                .or_else(|| Some(agent()).filter(|name: &String| !name.is_empty()))
                .unwrap_or_else(|| "unknown".to_owned()),
        };
        let (person, impersonator) = match self.impersonated_user {
            Some(person) => (person, Some(short(self.user.username))),
            None => (self.user, None),
        };
        let some = |text: String| Some(short(text)).filter(|text| !text.is_empty());
        let user = User {
            name: short(person.username),
            groups: person.groups.into_iter().take(GROUPS).map(short).collect(),
            agent: some(self.user_agent),
            address: self.source_ips.into_iter().next().and_then(some),
            impersonator,
            probable: false,
        };
        let resource = match &*of.api_group {
            "" => of.resource,
            group => format!("{}.{group}", of.resource),
        };
        let filled = |text: String| Some(text).filter(|text| !text.is_empty());
        // A namespace is in no namespace, whatever its reference says.
        let namespace = filled(of.namespace).filter(|_| resource != "namespaces");
        Some(Write {
            id: self.audit_id,
            user,
            action,
            resource,
            namespace,
            name: filled(of.name),
            rv: filled(of.resource_version),
            manager,
            is_status: of.subresource == "status",
            from: self.request_received_timestamp,
            to: self.stage_timestamp,
        })
    }
}

fn short(text: String) -> String {
    match text.char_indices().nth(TEXT) {
        Some((end, _)) => text.get(..end).unwrap_or_default().to_owned(),
        None => text,
    }
}
