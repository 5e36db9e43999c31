//! The requests for the leases of all members, each with its time limit.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use http::{Method, StatusCode};
use informer::share::ShareBy;
use informer::transport::Transport;
use informer::{ApiStatus, error_chain};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::timeout;

use super::access::{ACKNOWLEDGED, LEAVING, MAP, Names, OF};
use super::logic::Look;
use super::map::Found;
use super::members::FoundMember;
use crate::election::{API_VERSION, ElectionError, Lease, Marks, exchange};

/// Carries the requests of one member.
pub(super) struct Requests {
    transport: Arc<dyn Transport>,
    names: Names,
    by: ShareBy,
    limit: Duration,
}

/// Why a request has no result.
#[derive(Debug)]
pub(super) enum Problem {
    /// It may pass.
    Passing(String),
    /// Trying again will not help, as far as one can know.
    Lasting(ElectionError),
}

/// The leases at one moment.
#[derive(Debug)]
pub(super) struct Leases {
    pub(super) look: Look,
    /// The lease of the map, if there is one.
    map: Option<Lease>,
    /// The leases of members.
    members: BTreeMap<String, Lease>,
}

#[derive(Deserialize)]
struct List {
    #[serde(default)]
    items: Vec<Lease>,
}

impl Requests {
    pub(super) fn new(transport: Arc<dyn Transport>, names: Names, by: ShareBy, limit: Duration) -> Self {
        Self { transport, names, by, limit }
    }

    pub(super) fn names(&self) -> &Names {
        &self.names
    }

    /// Lists the leases. No resourceVersion: the newest state, all of one moment.
    /// <https://kubernetes.io/docs/reference/using-api/api-concepts/#semantics-for-get-and-list>
    pub(super) async fn look(&self) -> Result<Leases, Problem> {
        let Names { namespace, shards, .. } = &self.names;
        // The slash of the label's name is `%2F`, `=` is `%3D`.
        let label = OF.replace('/', "%2F");
        let path = format!("{}?labelSelector={label}%3D{shards}", collection(namespace));
        let list: List = self.ask(Method::GET, path, None::<&Value>).await?;
        let mut map = None;
        let mut members = BTreeMap::new();
        for lease in list.items {
            if lease.name() == shards {
                map = Some(lease);
            } else if let Some(member) = self.names.member(lease.name()) {
                members.insert(member.to_owned(), lease);
            }
        }
        if map.is_none() {
            map = self.unlabelled().await?;
        }
        let look = Look {
            map: self.read_map(map.as_ref()),
            members: members.iter().map(|(member, lease)| (member.clone(), found(lease))).collect(),
        };
        Ok(Leases { look, map, members })
    }

    /// The lease of the map, if somebody has removed its label.
    async fn unlabelled(&self) -> Result<Option<Lease>, Problem> {
        let path = format!("{}/{}", collection(&self.names.namespace), self.names.shards);
        match self.ask(Method::GET, path, None::<&Value>).await {
            Ok(lease) => Ok(Some(lease)),
            Err(Problem::Lasting(error)) if error.api_status().is_some_and(|status| status.code == 404) => {
                Ok(None)
            }
            Err(problem) => Err(problem),
        }
    }

    fn read_map(&self, lease: Option<&Lease>) -> Found {
        let Some(lease) = lease else { return Found::Nothing };
        let found = Found::read(lease.annotation(MAP).unwrap_or_default(), self.by);
        match found {
            // It was not read together with the leases of the members.
            Found::Map(_) if lease.label(OF) != Some(&self.names.shards) => Found::Nothing,
            found => found,
        }
    }

    /// Writes a map if the lease of the map is still the one that was found. Returns whether it was.
    pub(super) async fn write_map(&self, leases: &Leases, text: String) -> Result<bool, Problem> {
        let marks = Marks {
            labels: [(OF, self.names.shards.clone())].into(),
            annotations: [(MAP, Some(text))].into(),
        };
        let collection = collection(&self.names.namespace);
        let (method, path, lease) = match &leases.map {
            Some(lease) => (Method::PUT, format!("{collection}/{}", self.names.shards), lease.clone()),
            None => (Method::POST, collection, Lease::new(&self.names.shards)),
        };
        match self.ask::<Value>(method, path, Some(&lease.marked(&marks))).await {
            Ok(_) => Ok(true),
            Err(Problem::Lasting(error))
                if error.api_status().is_some_and(|status| matches!(status.code, 404 | 409)) =>
            {
                Ok(false)
            }
            Err(problem) => Err(problem),
        }
    }

    /// Deletes the lease of a member, if it is still the one that was found.
    pub(super) async fn delete(&self, leases: &Leases, member: &str) -> Result<(), Problem> {
        let Some((uid, version)) = leases.members.get(member).and_then(Lease::incarnation) else {
            return Ok(());
        };
        let path = format!("{}/{}", collection(&self.names.namespace), self.names.lease_of(member));
        let options = json!({
            "apiVersion": "v1", "kind": "DeleteOptions",
            "preconditions": { "uid": uid, "resourceVersion": version },
        });
        self.ask::<Value>(Method::DELETE, path, Some(&options)).await.map(drop)
    }

    async fn ask<A: for<'de> Deserialize<'de>>(
        &self,
        method: Method,
        path: String,
        body: Option<&(impl serde::Serialize + Sync)>,
    ) -> Result<A, Problem> {
        let exchange = exchange(&*self.transport, method, path, body);
        let (status, body) = match timeout(self.limit, exchange).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(error)) => return Err(Problem::Passing(error_chain(&error))),
            Err(_) => return Err(Problem::Passing(format!("no answer within {:?}", self.limit))),
        };
        let leases = || format!("{}/{}", self.names.namespace, self.names.shards);
        if status.is_success() {
            let answer = serde_json::from_slice(&body);
            return answer.map_err(|error| Problem::Lasting(ElectionError::malformed(&leases(), &error)));
        }
        let refusal = ApiStatus::from_body(status.as_u16(), &body);
        match status {
            StatusCode::UNAUTHORIZED => {
                // The next request has new credentials, or fails for a reason that says more.
                let _ = self.transport.refresh_credentials().await;
                Err(Problem::Passing(refusal.message))
            }
            StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_MANY_REQUESTS => {
                Err(Problem::Passing(refusal.message))
            }
            _ if status.is_client_error() => {
                Err(Problem::Lasting(ElectionError::refused(&leases(), refusal)))
            }
            _ => Err(Problem::Passing(format!("{status}: {}", refusal.message))),
        }
    }
}

fn collection(namespace: &str) -> String {
    format!("/apis/{API_VERSION}/namespaces/{namespace}/leases")
}

fn found(lease: &Lease) -> FoundMember {
    FoundMember {
        record: lease.record(),
        acknowledged: lease.annotation(ACKNOWLEDGED).and_then(|text| text.parse().ok()),
        leaving: lease.annotation(LEAVING).is_some(),
    }
}
