//! Connections. Their bytes arrive in any pieces, late, in part, or never.

use std::borrow::Cow;
use std::time::Duration;

use informer_core::Time;
use informer_core::reflector::Request;

use crate::doubt::Doubt;
use crate::protobuf;
use crate::render;
use crate::truth::{Key, State};

/// A request that waits this long, for the end of an outage or for an answer, has failed.
const PATIENCE: Duration = Duration::from_secs(30);

/// Names one connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LinkId(pub(crate) u64);

/// The connection of one request.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) id: LinkId,
    /// The requested namespace; all namespaces if `None`.
    pub(crate) namespace: Option<u8>,
    /// The epoch of the server when it answered.
    pub(crate) epoch: usize,
    head: Option<Head>,
    /// When the request was sent.
    pub(crate) since: Time,
    /// The version of the resource that is requested.
    pub(crate) resource: u8,
    /// The request, while it waits for the end of an outage.
    parked: Option<Request>,
    /// The request was never sent.
    pub(crate) has_given_up: bool,
    /// Whether the response is encoded in protobuf.
    pub(crate) protobuf: bool,
    bytes: Vec<u8>,
    taken: usize,
    end: Option<End>,
    /// Bytes arrive without a step.
    pub(crate) flows: bool,
    /// Nothing arrives any more, not even the end.
    pub(crate) is_dead: bool,
    /// The keys with a damaged or wrong state in the response.
    pub(crate) doubts: Vec<(Key, Doubt)>,
    /// The listed keys whose item is undecodable except for the key.
    pub(crate) kept_unread: Vec<Key>,
    /// The states in the response. The server's may be other ones after a revision.
    pub(crate) said: Vec<(Key, State)>,
    /// The offset of the line break behind each event after which a watch does not resume.
    last_words: Vec<usize>,
    pub(crate) watch: Option<Watch>,
}

/// The server's state of a watch.
#[derive(Debug)]
pub(crate) struct Watch {
    /// The version up to which the watch has all events.
    pub(crate) sent: u64,
    pub(crate) bookmark_at: Time,
    pub(crate) ends_at: Time,
    /// When the bookmark at the end of the initial events is due, if it is not sent yet.
    pub(crate) initial_end_at: Option<Time>,
    pub(crate) last_line: String,
    /// It is a streaming list, which may break before its end.
    pub(crate) is_list: bool,
}

/// The head of a response.
#[derive(Debug)]
pub(crate) enum Head {
    Unreachable,
    Refused { code: u16, retry_after: Option<u64>, body: String },
    Accepted,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Clean,
    Broken,
}

/// The bytes or end that arrive at once.
#[derive(Debug)]
pub(crate) enum Arrival {
    Head(Head),
    Bytes(Vec<u8>),
    End,
    Broken,
}

impl Link {
    pub(crate) fn new(id: LinkId, namespace: Option<u8>, epoch: usize, head: Head, flows: bool) -> Self {
        Self {
            id,
            namespace,
            epoch,
            head: Some(head),
            since: Time::ZERO,
            resource: 1,
            parked: None,
            has_given_up: false,
            protobuf: false,
            bytes: Vec::new(),
            taken: 0,
            end: None,
            flows,
            is_dead: false,
            doubts: Vec::new(),
            kept_unread: Vec::new(),
            said: Vec::new(),
            last_words: Vec::new(),
            watch: None,
        }
    }

    /// A request that waits for the end of an outage.
    pub(crate) fn parked(
        id: LinkId,
        epoch: usize,
        since: Time,
        (namespace, resource): (Option<u8>, u8),
        request: Request,
    ) -> Self {
        let link = Self::new(id, namespace, epoch, Head::Unreachable, true);
        Self { since, resource, parked: Some(request), ..link }
    }

    pub(crate) fn unpark(&mut self) -> Option<((Option<u8>, u8), Request)> {
        Some(((self.namespace, self.resource), self.parked.take()?))
    }

    /// When a request that waits for the end of an outage fails.
    pub(crate) fn gives_up_at(&self) -> Option<Time> {
        self.parked.as_ref().map(|_| self.since + PATIENCE)
    }

    pub(crate) fn tick(&mut self, now: Time) {
        if self.gives_up_at().is_some_and(|at| at <= now) {
            (self.parked, self.has_given_up) = (None, true);
        }
    }

    /// Whether a request was sent long ago, and has no answer.
    pub(crate) fn is_unanswered(&self, now: Time) -> bool {
        let waits = self.parked.is_none() && !self.has_given_up && self.head.is_some();
        waits && now.since(self.since) >= PATIENCE
    }

    pub(crate) fn push(&mut self, text: &str) {
        if self.end.is_none() {
            let text = &*match self.resource {
                1 => Cow::Borrowed(text),
                _ => Cow::Owned(render::in_second_version(text)),
            };
            if self.protobuf {
                self.bytes.extend(protobuf::translated(text));
            } else {
                self.bytes.extend_from_slice(text.as_bytes());
            }
        }
    }

    /// Sends an event after which the watch does not resume.
    pub(crate) fn push_last_word(&mut self, text: &str) {
        self.push(text);
        self.last_words.push(self.bytes.len().saturating_sub(1));
    }

    /// Whether the response ends just before the line break of such an event. The engine decodes a JSON event at the
    /// end of a response without its line break. A protobuf frame has none.
    pub(crate) fn ends_with_last_word(&self) -> bool {
        !self.protobuf && self.last_words.contains(&self.taken)
    }

    /// The server sends no more. The bytes that it sent still arrive.
    pub(crate) fn finish(&mut self) {
        self.end.get_or_insert(End::Clean);
        self.watch = None;
    }

    /// The bytes on their way are lost, and the response ends like a complete one.
    pub(crate) fn cut_short(&mut self) {
        self.lose(End::Clean);
    }

    /// The bytes on their way are lost, and the response ends with an error.
    pub(crate) fn break_off(&mut self) {
        self.lose(End::Broken);
    }

    fn lose(&mut self, end: End) {
        self.bytes.truncate(self.taken);
        self.end = Some(end);
        self.watch = None;
        if matches!(self.head, Some(Head::Accepted)) {
            self.head = Some(Head::Unreachable);
        }
    }

    pub(crate) fn is_open(&self) -> bool {
        !self.is_dead && self.end.is_none() && self.parked.is_none()
    }

    /// Takes what arrives next, at most this many bytes.
    pub(crate) fn take(&mut self, most: usize) -> Option<Arrival> {
        if self.is_dead || self.parked.is_some() {
            return None;
        }
        if let Some(head) = self.head.take() {
            return Some(Arrival::Head(head));
        }
        let left = self.bytes.len() - self.taken;
        if left > 0 {
            let count = left.min(most);
            if count == 0 {
                return None;
            }
            let bytes = self.bytes.get(self.taken..self.taken + count).unwrap_or_default().to_vec();
            self.taken += count;
            return Some(Arrival::Bytes(bytes));
        }
        match self.end? {
            End::Clean => Some(Arrival::End),
            End::Broken => Some(Arrival::Broken),
        }
    }
}
