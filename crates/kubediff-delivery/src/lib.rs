//! Delivers the numbered records of a log to one sink, at least once and in the order of each object.
//!
//! # What decides
//!
//! [`Delivery`] is a state machine without I/O and without a clock. A driver asks for the next [`Action`], carries it out, and
//! passes on what came of it:
//!
//! ```
//! use std::time::Instant;
//! use kubediff_delivery::{Action, Answer, Delivery, Entry, Policy};
//!
//! let now = Instant::now();
//! let mut delivery = Delivery::new(Policy::default(), 1, 0);
//! delivery.grown(2); // The log has records up to number 2.
//!
//! let Action::Read { after: 0, .. } = delivery.next(now) else { panic!() };
//! let read = [(1, 7), (2, 8)].map(|(number, object)| Entry { number, object, namespace: 0, bytes: 900 });
//! delivery.read(read, 2)?;
//!
//! let Action::Send(batch) = delivery.next(now) else { panic!() };
//! assert_eq!(batch.numbers, [1, 2]);
//! delivery.answered(Answer::Accepted, now);
//!
//! let Action::Store(settled) = delivery.next(now) else { panic!() };
//! assert_eq!(settled.position, 2);
//! # Ok::<(), kubediff_delivery::Disorder>(())
//! ```
//!
//! # What is promised
//!
//! - **At least once**: each record is accepted by the sink, or is a dead letter, before the position passes it. After a crash the
//!   driver starts from the stored position, and sends again what was accepted but not stored.
//! - **In order per object**: no record is sent before the earlier ones of its object were accepted or became dead letters. The next
//!   record of the object then names what is missing ([`Batch::missing`]).
//! - **A sink that is down loses nothing**: a record becomes a dead letter only if the sink refuses it alone, or fails with it
//!   again and again while it takes others.
//! - **No namespace holds up the others**: a namespace is suspect while the sink refuses a record of it, or fails with one, and accepts
//!   none. Batches have no records of suspect namespaces; between two batches, one of those is tried alone. They wait ever longer when
//!   nothing else is accepted, and the first record of any other namespace need not.
//! - **Bounded memory**: at most [`Policy::window`] records and [`Policy::window_bytes`] bytes are held.
//!
//! A sink that keeps one order of all records, as a stream does, gets them in the order of their numbers ([`Policy::stream`]): it may have
//! [the front of a batch](Answer::Partly), and what it [has lost](Sink::lost) is sent again.
//!
//! Records of suspect namespaces make room in memory, and are read again. The position waits for them: after a crash, what was
//! accepted after it is sent again.
//!
//! One limit: a record with which the sink always fails looks like a sink that is down as long as no other object has records. The
//! delivery waits then, and loses nothing.
//!
//! # With I/O
//!
//! [`Driver`] connects a delivery with a [`Log`] and a [`Sink`]; [`Webhook`], [`Slack`], [`File`] and [`Lines`] are sinks.

mod answer;
mod client;
mod delivery;
mod drive;
mod file;
#[cfg(feature = "jetstream")]
mod jetstream;
mod json;
mod lines;
mod policy;
mod record;
mod slack;
mod webhook;
mod window;

pub use answer::Answer;
pub use client::{SinkError, is_url};
pub use delivery::{Action, Batch, DeadLetter, Delivery, Settled};
pub use drive::{DriveError, Driver, Log, Page, Sink, Status};
pub use file::{File, FileOptions};
#[cfg(feature = "jetstream")]
pub use jetstream::{JetStream, JetStreamOptions, Login};
pub use lines::Lines;
pub use policy::Policy;
pub use record::{Event, Parcel, Place, Record};
pub use slack::{Slack, SlackOptions, Target};
pub use webhook::{Form, Key, KeyError, Webhook, WebhookOptions};
pub use window::{Disorder, Entry};
