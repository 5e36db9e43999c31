//! The body of a response on its way, through stages that each apply one fault.
//!
//! ```text
//! the answer -> [Lines] -> stage -> stage -> ... -> HTTP
//!               where a stage looks at events
//! ```
//!
//! A stage buffers no more than the event, or the chunk, that it inspects.

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body as _, Frame};
use serde_json::Value;
use serve::Body;
use tokio::sync::mpsc;
use tokio::time::{Sleep, sleep};

use super::framing::{Border, Framing};

/// A pause before a connection breaks: the bytes sent so far leave the buffers of HTTP, which are lost with the
/// connection.
const SETTLE: Duration = Duration::from_millis(20);

/// The next step of a response.
#[derive(Debug)]
pub(super) enum Step {
    Bytes(Bytes),
    /// Sends the bytes so far, and waits.
    Wait(Duration),
    /// The last step.
    Finish(Finish),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Finish {
    /// A proper end.
    End,
    /// The connection breaks.
    Cut,
    /// No more bytes, and the connection stays open.
    Stall,
}

/// A stage applies one fault to a response.
pub(super) trait Stage: Send {
    /// Called before the first step.
    fn start(&mut self, _out: &mut VecDeque<Step>) {}

    /// Passes a step on, changed or unchanged.
    fn take(&mut self, step: Step, out: &mut VecDeque<Step>);
}

/// A change to a running response.
#[derive(Debug, Clone)]
pub(super) enum Order {
    Finish(Finish),
    /// Inserts an event into a watch.
    Event(Value),
    /// Inserts a line of text.
    Text(String),
}

/// The body that HTTP gets.
pub(super) struct Flow {
    source: Body,
    stages: Vec<Box<dyn Stage>>,
    orders: Option<mpsc::UnboundedReceiver<Order>>,
    /// Orders that wait until an event is complete.
    held: VecDeque<Order>,
    next: VecDeque<Step>,
    waiting: Option<Pin<Box<Sleep>>>,
    finish: Option<Finish>,
    started: bool,
    framing: Framing,
    border: Border,
    /// The boundaries of events are not visible, because the response is compressed.
    opaque: bool,
}

impl Flow {
    pub(super) fn new(source: Body, stages: Vec<Box<dyn Stage>>, framing: Framing) -> Self {
        Self {
            source,
            stages,
            orders: None,
            held: VecDeque::new(),
            next: VecDeque::new(),
            waiting: None,
            finish: None,
            started: false,
            framing,
            border: Border::new(framing),
            opaque: false,
        }
    }

    /// Accepts orders while it runs. An `opaque` response is compressed.
    pub(super) fn with_orders(mut self, orders: mpsc::UnboundedReceiver<Order>, opaque: bool) -> Self {
        (self.orders, self.opaque) = (Some(orders), opaque);
        self
    }

    /// Passes steps through all stages from `from` on.
    fn feed(&mut self, from: usize, steps: VecDeque<Step>) {
        let mut steps = steps;
        for stage in &mut self.stages[from..] {
            let mut out = VecDeque::with_capacity(steps.len());
            for step in steps {
                stage.take(step, &mut out);
            }
            steps = out;
        }
        self.next.extend(steps);
    }

    fn start(&mut self) {
        for index in 0..self.stages.len() {
            let mut out = VecDeque::new();
            self.stages[index].start(&mut out);
            self.feed(index + 1, out);
        }
    }

    /// Takes orders from the channel; `true` if one has become the next step.
    fn poll_orders(&mut self, context: &mut Context<'_>) -> bool {
        if let Some(orders) = &mut self.orders {
            while let Poll::Ready(order) = orders.poll_recv(context) {
                match order {
                    Some(order) => self.held.push_back(order),
                    None => {
                        self.orders = None;
                        break;
                    }
                }
            }
        }
        let waits = match self.held.front() {
            None => return false,
            Some(Order::Finish(Finish::Cut | Finish::Stall)) => false,
            Some(Order::Finish(Finish::End)) => !self.border.is_reached() && !self.opaque,
            Some(Order::Event(_) | Order::Text(_)) => !self.border.is_reached() || self.finish.is_some(),
        };
        if waits {
            return false;
        }
        match self.held.pop_front() {
            Some(Order::Event(event)) => self.next.push_front(Step::Bytes(self.framing.event(&event))),
            Some(Order::Text(text)) => {
                self.next.push_front(Step::Bytes(self.framing.framed(text.as_bytes())))
            }
            Some(Order::Finish(finish)) => {
                self.next.clear();
                self.next.extend(finishing(finish));
            }
            None => {}
        }
        true
    }

    fn poll_step(&mut self, context: &mut Context<'_>) -> Poll<Option<io::Result<Bytes>>> {
        loop {
            let ordered = self.poll_orders(context);
            if let Some(waiting) = &mut self.waiting
                && !ordered
            {
                ready!(waiting.as_mut().poll(context));
            }
            self.waiting = None;
            match self.finish {
                Some(Finish::End) => return Poll::Ready(None),
                Some(Finish::Cut) => {
                    return Poll::Ready(Some(Err(io::ErrorKind::ConnectionReset.into())));
                }
                Some(Finish::Stall) if !ordered => return Poll::Pending,
                Some(Finish::Stall) | None => self.finish = None,
            }
            match self.next.pop_front() {
                Some(Step::Bytes(bytes)) if bytes.is_empty() => {}
                Some(Step::Bytes(bytes)) => {
                    self.border.sent(&bytes);
                    return Poll::Ready(Some(Ok(bytes)));
                }
                Some(Step::Wait(Duration::ZERO)) => {
                    context.waker().wake_by_ref();
                    return Poll::Pending;
                }
                Some(Step::Wait(time)) => self.waiting = Some(Box::pin(sleep(time))),
                Some(Step::Finish(finish)) => self.finish = Some(finish),
                None if !self.started => {
                    self.started = true;
                    self.start();
                }
                None => {
                    let step = match ready!(Pin::new(&mut self.source).poll_frame(context)) {
                        None => Step::Finish(Finish::End),
                        Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                        Some(Ok(frame)) => match frame.into_data() {
                            Ok(bytes) => Step::Bytes(bytes),
                            // Trailers, which no response of the API has.
                            Err(_) => continue,
                        },
                    };
                    match self.stages.is_empty() {
                        true => self.next.push_back(step),
                        false => self.feed(0, VecDeque::from([step])),
                    }
                }
            }
        }
    }
}

impl http_body::Body for Flow {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        let next = ready!(self.get_mut().poll_step(context));
        Poll::Ready(next.map(|result| result.map(Frame::data)))
    }
}

/// The steps that end a response.
pub(super) fn finishing(finish: Finish) -> impl Iterator<Item = Step> {
    let settle = (finish == Finish::Cut).then_some(Step::Wait(SETTLE));
    settle.into_iter().chain([Step::Finish(finish)])
}
