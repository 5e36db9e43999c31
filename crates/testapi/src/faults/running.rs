//! Running watches and actions on them.

use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::fault::StreamError;
use super::flow::{Finish, Order};
use super::matcher::Matcher;
use crate::Call;

/// The watches that were running when this was created.
///
/// Each method returns the number of its watches. An action that needs the end of an event waits for it.
#[derive(Debug, Clone)]
pub struct Running(Vec<Live>);

#[derive(Debug, Clone)]
struct Live {
    call: Arc<Call>,
    orders: mpsc::UnboundedSender<Order>,
}

/// All watches of a server.
#[derive(Debug, Default)]
pub(super) struct Watches(Mutex<Vec<Live>>);

impl Running {
    /// The number of watches.
    pub fn count(&self) -> usize {
        self.0.iter().filter(|live| !live.orders.is_closed()).count()
    }

    /// The requests of these watches.
    pub fn calls(&self) -> impl Iterator<Item = &Call> {
        self.0.iter().map(|live| &*live.call)
    }

    /// Ends the watches properly, like a server.
    pub fn end(&self) -> usize {
        self.order([Order::Finish(Finish::End)])
    }

    /// Breaks the connections of the watches.
    pub fn cut(&self) -> usize {
        self.order([Order::Finish(Finish::Cut)])
    }

    /// Stalls the watches: sends nothing more and keeps the connections open.
    pub fn stall(&self) -> usize {
        self.order([Order::Finish(Finish::Stall)])
    }

    /// Ends the watches with an ERROR event. Compressed watches are counted but not changed.
    pub fn error(&self, error: StreamError) -> usize {
        let event = json!({ "type": "ERROR", "object": error.status().to_json() });
        self.order([Order::Event(event), Order::Finish(Finish::End)])
    }

    /// Inserts an event of the script between those of the server. Compressed watches are counted but not changed.
    pub fn event(&self, event: &Value) -> usize {
        self.order([Order::Event(event.clone())])
    }

    /// Inserts a line, which need not be JSON; in protobuf, a message of these bytes.
    pub fn line(&self, text: &str) -> usize {
        self.order([Order::Text(text.to_owned())])
    }

    fn order<const N: usize>(&self, orders: [Order; N]) -> usize {
        let sent = |live: &&Live| orders.iter().all(|order| live.orders.send(order.clone()).is_ok());
        self.0.iter().filter(sent).count()
    }
}

impl Watches {
    /// Registers a watch until the receiver is dropped.
    pub(super) fn add(&self, call: Arc<Call>) -> mpsc::UnboundedReceiver<Order> {
        let (orders, receiver) = mpsc::unbounded_channel();
        let mut all = self.0.lock();
        all.retain(|live| !live.orders.is_closed());
        all.push(Live { call, orders });
        receiver
    }

    pub(super) fn matching(&self, matcher: &Matcher) -> Running {
        let all = self.0.lock();
        let running = all.iter().filter(|live| !live.orders.is_closed() && matcher.matches(&live.call));
        Running(running.cloned().collect())
    }
}
