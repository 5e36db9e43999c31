//! The faults of one request.

use std::sync::Arc;

use http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use http_body_util::BodyExt;
use serve::Body;
use tokio::sync::mpsc;

use super::fault::Fault;
use super::flow::{Flow, Order, Stage};
use super::framing::{Framing, accept_json_only};
use super::rule::Hit;
use super::stage::{self, OneByOne};
use super::words;
use crate::{Call, Verb};

/// The operations on the server that faults need.
pub(crate) trait Control: Sync {
    /// Closes the connection of the request.
    fn disconnect(&self);
    /// Closes all connections.
    fn disconnect_all(&self);
    /// Discards the history.
    fn compact(&self);
}

/// The faults of one request, in effect.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(super) call: Arc<Call>,
    pub(super) hits: Vec<Hit>,
}

/// The Accept header of a client that wants tables.
const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io";

impl Plan {
    /// Changes the request so that the faults can read and change its response.
    pub(crate) fn prepare(&self, headers: &mut HeaderMap) {
        if self.hits.iter().any(|hit| hit.fault().reads_content()) {
            headers.remove(header::ACCEPT_ENCODING);
            // Faults can change events in any encoding, but other responses only as uncompressed JSON.
            if self.call.verb != Verb::Watch {
                accept_json_only(headers);
            }
        }
        for hit in self.hits.iter().filter(|hit| *hit.fault() == Fault::AsTable) {
            headers.insert(header::ACCEPT, HeaderValue::from_static(TABLE));
            hit.fire();
        }
    }

    /// Applies the faults before the request is served. Returns a response if it is not served at all.
    pub(crate) async fn before(&self, control: &impl Control) -> Option<Response<Body>> {
        for hit in &self.hits {
            match hit.fault() {
                Fault::Delay(time) => {
                    hit.fire();
                    tokio::time::sleep(*time).await;
                }
                Fault::Compact => {
                    control.compact();
                    hit.fire();
                }
                Fault::Disconnect => {
                    hit.fire();
                    control.disconnect();
                    std::future::pending::<()>().await;
                }
                Fault::DisconnectAll => {
                    hit.fire();
                    control.disconnect_all();
                    std::future::pending::<()>().await;
                }
                Fault::Hang => {
                    hit.fire();
                    std::future::pending::<()>().await;
                }
                Fault::Refuse(refusal) => {
                    hit.fire();
                    return Some(words::refuse(*refusal, &self.call));
                }
                Fault::Answer(status) => {
                    hit.fire();
                    return Some(words::answer(status));
                }
                _ => {}
            }
        }
        None
    }

    /// The response with its faults. `orders` may change it while it runs.
    pub(super) fn apply(
        &self,
        response: Response<Body>,
        orders: Option<mpsc::UnboundedReceiver<Order>>,
    ) -> Response<Body> {
        let is_watch = self.call.verb == Verb::Watch && response.status() == StatusCode::OK;
        let framing = Framing::of(response.headers());
        let stages = self.stages(is_watch, framing);
        if stages.is_empty() && orders.is_none() {
            return response;
        }
        let (mut parts, body) = response.into_parts();
        // The faults may change the length.
        parts.headers.remove(header::CONTENT_LENGTH);
        let mut flow = Flow::new(body, stages, framing);
        if let Some(orders) = orders {
            flow = flow.with_orders(orders, parts.headers.contains_key(header::CONTENT_ENCODING));
        }
        Response::from_parts(parts, flow.boxed_unsync())
    }

    /// Faults of content come first, then those of the end, then those of the pace.
    fn stages(&self, is_watch: bool, framing: Framing) -> Vec<Box<dyn Stage>> {
        let mut hits: Vec<&Hit> = self.hits.iter().collect();
        hits.sort_by_key(|hit| match hit.fault() {
            Fault::Chunks { .. } | Fault::Slow { .. } => 2,
            Fault::CutAfter(_) | Fault::EndAfter(_) | Fault::StallAfter(_) | Fault::ErrorAfter(..) => 1,
            _ => 0,
        });
        let by_events = is_watch && hits.iter().any(|hit| hit.fault().reads_content());
        let one_by_one = by_events.then(|| Box::new(OneByOne::new(framing)) as Box<dyn Stage>);
        let stages = hits
            .into_iter()
            .filter(|hit| is_watch || !hit.fault().is_for_watches())
            .filter_map(|hit| stage::of(hit.fault(), hit.clone(), is_watch.then_some(framing)));
        one_by_one.into_iter().chain(stages).collect()
    }
}
