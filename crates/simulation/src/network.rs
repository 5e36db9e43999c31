//! Connections: bytes on their way, which may come in any pieces, late, in part, or never.

use informer_core::Time;

use crate::doubt::Doubt;
use crate::protobuf;
use crate::truth::{Key, State};

/// Names one connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LinkId(pub(crate) u64);

/// One request's connection, seen from the network.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) id: LinkId,
    /// The namespace that was asked for; all if none.
    pub(crate) namespace: Option<u8>,
    /// The past that the server had when it answered.
    pub(crate) epoch: usize,
    head: Option<Head>,
    /// Whether what is said is said in protobuf.
    pub(crate) protobuf: bool,
    bytes: Vec<u8>,
    taken: usize,
    end: Option<End>,
    /// Passes bytes by itself.
    pub(crate) flows: bool,
    /// Passes nothing ever again, the end included.
    pub(crate) is_dead: bool,
    /// Whose states were damaged on this connection, or lies.
    pub(crate) doubts: Vec<(Key, Doubt)>,
    /// Items of a list that cannot be read, though it can be told which they are.
    pub(crate) kept_unread: Vec<Key>,
    /// The states that its objects have on the way: a revision may have given them other values since.
    pub(crate) said: Vec<(Key, State)>,
    /// Where the bytes of each event end after which a watch does not resume, but for the line break.
    last_words: Vec<usize>,
    pub(crate) watch: Option<Watch>,
}

/// What a server knows of a watch that it serves.
#[derive(Debug)]
pub(crate) struct Watch {
    /// Events up to here were sent, or are of the past.
    pub(crate) sent: u64,
    pub(crate) bookmark_at: Time,
    pub(crate) ends_at: Time,
    /// When the end of the initial events is told, if they have one and it was not yet.
    pub(crate) initial_end_at: Option<Time>,
    pub(crate) last_line: String,
    /// It began as a list, which may come to nothing.
    pub(crate) is_list: bool,
}

/// How an answer begins.
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

/// What arrives.
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

    pub(crate) fn push(&mut self, text: &str) {
        if self.end.is_none() {
            if self.protobuf {
                self.bytes.extend(protobuf::translated(text));
            } else {
                self.bytes.extend_from_slice(text.as_bytes());
            }
        }
    }

    /// Sends an event after which a watch does not resume.
    pub(crate) fn push_last_word(&mut self, text: &str) {
        self.push(text);
        self.last_words.push(self.bytes.len().saturating_sub(1));
    }

    /// Whether the end that arrives completes an event after which a watch does not resume: of such a line in JSON, all but
    /// its line break has arrived. (A frame of protobuf is complete before any end.)
    pub(crate) fn ends_with_last_word(&self) -> bool {
        !self.protobuf && self.last_words.contains(&self.taken)
    }

    /// No more will be sent; what was sent arrives.
    pub(crate) fn finish(&mut self) {
        self.end.get_or_insert(End::Clean);
        self.watch = None;
    }

    /// What was sent and has not arrived is lost, and then the response ends as responses do.
    pub(crate) fn cut_short(&mut self) {
        self.lose(End::Clean);
    }

    /// The same, and it can be seen.
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
        !self.is_dead && self.end.is_none()
    }

    /// What arrives next, of at most so many bytes.
    pub(crate) fn take(&mut self, most: usize) -> Option<Arrival> {
        if self.is_dead {
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
