//! Streams of NATS JetStream: each record is a message, in the order of the log.

mod append;
mod connect;
mod message;
mod setup;
mod tail;

use std::fmt;
use std::time::Duration;

use tokio::time::sleep;

use crate::answer::Answer;
use crate::client::SinkError;
use crate::drive::Sink;
use crate::record::{Parcel, Record};
use append::{Appended, Failure};
use connect::{Access, Connected};
use message::Messages;
use setup::Setup;
use tail::{Found, Tail};

/// The waits for a server while nothing is sent.
const FIRST_WAIT: Duration = Duration::from_secs(1);
const LONGEST_WAIT: Duration = Duration::from_secs(15);

/// How a stream is reached.
#[derive(Clone)]
pub struct JetStreamOptions {
    /// The servers: `nats://HOST:PORT`, or `tls://HOST:PORT`.
    pub servers: Vec<String>,
    /// The stream; that of the cluster, `KUBEDIFF_CLUSTER`, by default.
    pub stream: Option<String>,
    /// The cluster, for the source of events and the subjects of messages.
    pub cluster: Box<str>,
    /// The credentials.
    pub login: Login,
    /// Certificates to trust besides those of the machine, in PEM. With some, the connection has to be encrypted.
    pub ca: Option<Vec<u8>>,
    /// Whether a stream that does not exist is created.
    pub create: bool,
    /// How long the server may take for an answer; 5 s by default.
    pub timeout: Duration,
}

/// The credentials for a NATS server.
#[derive(Clone, Default)]
pub enum Login {
    /// None.
    #[default]
    Open,
    /// A token.
    Token(Box<str>),
    /// A name and a password.
    Password {
        /// The name.
        user: Box<str>,
        /// The password.
        password: Box<str>,
    },
    /// The text of a file of credentials, as `nsc generate creds` writes it.
    Credentials(Box<str>),
}

impl Default for JetStreamOptions {
    fn default() -> Self {
        Self {
            servers: Vec::new(),
            stream: None,
            cluster: "kubediff".into(),
            login: Login::default(),
            ca: None,
            create: false,
            timeout: Duration::from_secs(5),
        }
    }
}

/// A stream of NATS JetStream, for a delivery in [the order of the log](crate::Policy::stream).
///
/// Each record is a CloudEvent in binary mode. Many are under way at a time: each names the sequence of the one before
/// (`Nats-Expected-Last-Sequence`), so that none can overtake another, and the stream takes none of a writer that does not know its end.
///
/// The stream itself says where it is: its last message has the number (`Kubediff-Number`) up to which it has the log. What it has is
/// not sent again, whether or not it was acknowledged; an end that it has lost is.
pub struct JetStream {
    access: Access,
    setup: Setup,
    messages: Messages,
    ids: Ids,
    connected: Option<Connected>,
    /// The end of the stream, if it is known.
    at: Option<Tail>,
    /// What the stream is known to have. What it has lost is found once.
    known: Option<Tail>,
    /// The stream has lost what it had after this number, and nobody has asked for it yet.
    lost: Option<u64>,
}

/// The ids of the log's records.
type Ids = Box<dyn Fn(u64) -> String + Send + Sync>;

impl fmt::Debug for JetStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JetStream")
            .field("stream", &self.setup.name)
            .field("at", &self.at)
            .finish_non_exhaustive()
    }
}

impl JetStream {
    /// Sets a stream up. Nothing is sent.
    ///
    /// # Errors
    ///
    /// If an address, the credentials or a certificate are wrong.
    pub fn new(options: JetStreamOptions) -> Result<Self, SinkError> {
        let JetStreamOptions { servers, stream, cluster, login, ca, create, timeout } = options;
        let messages = Messages::of(&cluster);
        let name = stream.unwrap_or_else(|| format!("KUBEDIFF_{}", message::token(&cluster)));
        Ok(Self {
            access: Access::new(&servers, login, ca.as_deref(), timeout)?,
            setup: Setup { name, subjects: messages.subjects(), create },
            messages,
            ids: Box::new(|_| String::new()),
            connected: None,
            at: None,
            known: None,
            lost: None,
        })
    }

    /// Continues a log, with the [tail](Sink::tail) that was stored last. `ids` has the id of each of its records.
    #[must_use]
    pub fn continues(
        mut self,
        tail: Option<&str>,
        ids: impl Fn(u64) -> String + Send + Sync + 'static,
    ) -> Self {
        self.known = tail.and_then(|tail| Tail::read(tail, &self.setup.name));
        self.ids = Box::new(ids);
        self
    }

    /// Connects unless it is connected, and finds the end of the stream unless it is known.
    async fn find(&mut self) -> Result<(), Box<str>> {
        if self.connected.as_ref().is_some_and(Connected::is_broken) {
            self.leave();
        }
        if self.connected.is_none() {
            self.connected = Some(self.access.connect().await?);
        }
        let (Some(connected), None) = (&self.connected, self.at) else { return Ok(()) };
        let found = tail::find(&connected.context, &self.setup, &self.ids, self.known).await;
        match found.map_err(|reason| connected.heard(reason)) {
            Ok(Found { at, is_ours, has_lost }) => {
                if has_lost {
                    self.lost = Some(at.number);
                    self.messages.unnamed = self.known.map_or(0, |known| known.number);
                }
                if has_lost || is_ours {
                    self.known = Some(at);
                }
                self.at = Some(at);
                Ok(())
            }
            // It may be that of the connection.
            Err(reason) => {
                self.leave();
                Err(reason)
            }
        }
    }

    fn leave(&mut self) {
        (self.connected, self.at) = (None, None);
    }

    async fn append(&mut self, parcel: &Parcel<'_>) -> Answer {
        // Whoever drops this future does not know where the stream is.
        let (Some(connected), Some(at)) = (&self.connected, self.at.take()) else {
            return Answer::Unavailable { reason: Failure::Broken.to_string().into() };
        };
        let is_there = |record: &&&Record| !parcel.is_late && record.entry.number <= at.number;
        let accepted = parcel.records.iter().take_while(is_there).count();
        let mut appended = Appended { at, accepted };
        let ended = tokio::select! {
            ended = append::append(&connected.context, &mut self.messages, parcel, &mut appended) => ended,
            () = connected.broken() => Err(Failure::Broken),
        };
        let ended = ended.map_err(|failure| (connected.heard(failure.to_string().into()), failure));
        if appended.accepted > accepted {
            self.known = Some(appended.at);
        }
        let is_known = matches!(ended, Ok(()) | Err((_, Failure::Refused(_))));
        self.at = is_known.then_some(appended.at);
        let rest = match ended {
            Ok(()) => return Answer::Accepted,
            Err((_, Failure::Refused(reason))) => Answer::Refused { reason },
            Err((reason, failure)) => {
                if matches!(failure, Failure::Broken | Failure::Silent) {
                    self.leave();
                }
                Answer::Unavailable { reason }
            }
        };
        Answer::Partly { accepted: appended.accepted, rest: Box::new(rest) }
    }
}

impl Sink for JetStream {
    async fn send(&mut self, parcel: Parcel<'_>) -> Answer {
        match self.find().await {
            Ok(()) => match self.lost {
                Some(number) => {
                    let stream = &self.setup.name;
                    let reason = format!("the stream {stream} has lost its messages after number {number}");
                    Answer::Unavailable { reason: reason.into() }
                }
                None => self.append(&parcel).await,
            },
            Err(reason) => Answer::Unavailable { reason },
        }
    }

    async fn lost(&mut self) -> u64 {
        let mut wait = FIRST_WAIT;
        loop {
            if self.find().await.is_err() {
                sleep(wait).await;
                wait = LONGEST_WAIT.min(wait * 2);
                continue;
            }
            if let Some(number) = self.lost.take() {
                return number;
            }
            wait = FIRST_WAIT;
            if let Some(connected) = &self.connected {
                connected.broken().await;
            }
        }
    }

    fn tail(&self) -> Option<Box<str>> {
        self.known.map(|known| known.write(&self.setup.name))
    }
}
