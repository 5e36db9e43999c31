//! Requests as HTTP.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use futures_util::FutureExt;
use http::HeaderValue;
use http::header::{ACCEPT, ACCEPT_ENCODING, USER_AGENT};
use informer_core::Scope;
use informer_core::reflector::Request;
use informer_core::share::Share;
use tokio::sync::Mutex;
use tokio::time::timeout;

use super::Core;
use crate::inner::exchange::Exchange;
use crate::options::settings::{ListOptionsTweak, Representation};
use crate::server::Link;
use crate::transport::{PROTOBUF, Response, TransportError};

const JSON: &str = "application/json";

type Query = Vec<(String, String)>;

const NOT_RETURNED: &str =
    "the function that tweaks list options has not returned; nothing is requested until it returns";

/// The common parts of all requests of an informer.
pub(super) struct Requests {
    core: Arc<Core>,
    link: Arc<Link>,
    representation: Representation,
    takes_protobuf: bool,
    /// Held by the running call of the user's tweak until it returns. An attempt that times out cannot end that call, so
    /// further ones wait for it: each call beside it would hold a thread for blocking work.
    tweaking: Arc<Mutex<()>>,
}

impl Requests {
    pub(super) fn new(
        core: Arc<Core>,
        link: Link,
        representation: Representation,
        takes_protobuf: bool,
    ) -> Self {
        let link = Arc::new(link);
        Self { core, link, representation, takes_protobuf, tweaking: Arc::default() }
    }

    /// Whether requests ask for protobuf from now on.
    pub(super) fn take_protobuf(&mut self, takes_protobuf: bool) {
        self.takes_protobuf = takes_protobuf;
    }

    /// The way to the server.
    pub(super) fn link(&self) -> &Link {
        &self.link
    }

    pub(super) fn send(&self, request: &Request, scope: &Scope, refresh_credentials: bool) -> Exchange {
        // New releases add fields to objects, but not to their metadata.
        let unless_newer = self.takes_protobuf && self.representation == Representation::Whole;
        let (core, path) = (self.core.clone(), self.core.served().path(scope));
        let (link, tweaking) = (self.link.clone(), self.tweaking.clone());
        let (query, accept) = (self.query(request), self.accept(request));
        let response = async move {
            let limit = core.settings.reflector.response_timeout;
            let query = match core.settings.tweak.clone() {
                None => query,
                Some(tweak) => {
                    let tweaked = timeout(limit / 2, tweaked(&core, tweak, tweaking, query)).await;
                    tweaked.unwrap_or_else(|_| Err(TransportError::new(NOT_RETURNED, None)))?
                }
            };
            let mut http = core.http_request(&path, query, accept)?;
            link.ready(limit / 2).await?;
            // The refresh comes after the wait: it refreshes the credentials that the transport has by then.
            if refresh_credentials {
                core.server.transport().refresh_credentials().await?;
            }
            if unless_newer && core.server.may_be_newer_than_protobuf(limit).await {
                http.headers_mut().insert(ACCEPT, HeaderValue::from_static(JSON));
            }
            let response: Response = link.send(http, limit / 2).await?;
            let counters = core.counters.clone();
            Ok(response.inspect_bytes(move |bytes| counters.received_bytes.add(bytes as u64)))
        };
        Exchange::Sent(response.boxed())
    }

    fn query(&self, request: &Request) -> Query {
        let named = |(name, value): (&str, String)| (name.to_owned(), value);
        let mut query: Query = request.query().into_iter().map(named).collect();
        query.extend(self.core.selection.query());
        if self.core.settings.asks_for_share {
            let share = self.core.selection.share().and_then(Share::selector);
            query.extend(share.map(|selector| ("shardSelector".to_owned(), selector)));
        }
        query
    }

    /// Asks for protobuf if the objects have such a form. Custom resources have it only for their metadata. If the server
    /// turns out to be newer, whole objects are requested in JSON all the same.
    fn accept(&self, request: &Request) -> String {
        let form = match (self.representation, request) {
            (Representation::Whole, _) => "",
            (Representation::Metadata, Request::List(_)) => {
                ";as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
            }
            (Representation::Metadata, Request::Watch(_)) => ";as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
        };
        let mut accept = String::new();
        if self.takes_protobuf {
            accept.push_str(&format!("{PROTOBUF}{form},"));
        }
        accept.push_str(&format!("{JSON}{form}"));
        if !form.is_empty() {
            // A server that cannot convert objects to metadata sends them whole.
            accept.push_str(&format!(",{JSON}"));
        }
        accept
    }
}

/// Runs the tweak, which is user code and may block, on a thread for blocking work: one call at a time.
async fn tweaked(
    core: &Arc<Core>,
    tweak: ListOptionsTweak,
    tweaking: Arc<Mutex<()>>,
    mut query: Query,
) -> Result<Query, TransportError> {
    let resource = core.served();
    let before = selectors(&query);
    let turn = tweaking.lock_owned().await;
    let tweaked = core.runtime().blocking(move || {
        // Released by the call itself: the attempt may be gone by then.
        let _turn = turn;
        catch_unwind(AssertUnwindSafe(|| tweak(&resource, &mut query))).ok()?;
        Some(query)
    });
    let panicked = || TransportError::new("the function that tweaks list options panicked", None);
    let query = tweaked.await.flatten().ok_or_else(panicked)?;
    if selectors(&query) != before {
        core.hides_objects();
    }
    Ok(query)
}

/// The parameters by which a server selects objects.
fn selectors(query: &Query) -> Query {
    let selects = |name: &str| matches!(name, "labelSelector" | "fieldSelector" | "shardSelector");
    query.iter().filter(|(name, _)| selects(name)).cloned().collect()
}

impl Core {
    fn http_request(
        &self,
        path: &str,
        query: Query,
        accept: String,
    ) -> Result<http::Request<Vec<u8>>, TransportError> {
        let query = form_urlencoded::Serializer::new(String::new()).extend_pairs(query).finish();
        let encoding = if self.settings.gzip { "gzip" } else { "identity" };
        http::Request::get(format!("{path}?{query}"))
            .header(ACCEPT, accept)
            .header(ACCEPT_ENCODING, encoding)
            .header(USER_AGENT, self.settings.user_agent.clone())
            .body(Vec::new())
            .map_err(|error| TransportError::new("the request is invalid", Some(Box::from(error))))
    }
}
