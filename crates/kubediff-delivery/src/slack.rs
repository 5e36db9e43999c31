//! Slack: a message for each record, changes of one object in one thread, one message for a story, digests for a delivery that is far behind.

mod message;
mod threads;

use std::time::Duration;

use reqwest::{Client, Url};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::answer::Answer;
use crate::client::{self, SinkError};
use crate::drive::Sink;
use crate::record::{Parcel, Record};

use message::{brief, text};
use threads::Threads;

/// The address of the Web API.
const API: &str = "https://slack.com/api/";

/// The message of a story is edited for so long after its last milestone.
const STORY: Duration = Duration::from_secs(24 * 3600);

/// Messages in a channel of Slack. Deliver with [`Policy::chat`](crate::Policy::chat): Slack takes about
/// [one message a second](https://docs.slack.dev/apis/web-api/rate-limits) in a channel.
#[derive(Debug)]
pub struct Slack {
    client: Client,
    target: Target,
    api: Url,
    /// None with an incoming webhook, which does not tell what a message is called.
    threads: Option<Threads>,
    /// The messages of stories.
    stories: Threads,
    /// The channel by its id, which an edit needs, as soon as Slack has told it.
    channel: Option<Box<str>>,
}

/// How Slack is reached.
#[derive(Clone)]
pub enum Target {
    /// By [`chat.postMessage`](https://docs.slack.dev/reference/methods/chat.postMessage), as a bot with the scope `chat:write`.
    Bot {
        /// The bot's token, `xoxb-...`.
        token: Box<str>,
        /// The channel's id (`C0123456789`), or its name.
        channel: Box<str>,
    },
    /// By an [incoming webhook](https://docs.slack.dev/messaging/sending-messages-using-incoming-webhooks): without threads.
    Webhook {
        /// Its address, which is a secret.
        url: Box<str>,
    },
}

/// Without the secrets.
impl std::fmt::Debug for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Bot { channel, .. } => {
                f.debug_struct("Bot").field("channel", channel).finish_non_exhaustive()
            }
            Self::Webhook { .. } => f.debug_struct("Webhook").finish_non_exhaustive(),
        }
    }
}

/// How messages are sent.
#[derive(Debug, Clone)]
pub struct SlackOptions {
    /// Changes of one object are replies to its last message for so long after it; 10 min by default, zero for no threads.
    pub thread: Duration,
    /// The limit of a whole request; 10 s by default.
    pub timeout: Duration,
    /// Another address of the Web API, for GovSlack and for tests.
    pub api: Option<Box<str>>,
    /// Certificates to trust besides those of the machine, in PEM.
    pub ca: Option<Vec<u8>>,
}

impl Default for SlackOptions {
    fn default() -> Self {
        Self { thread: Duration::from_secs(10 * 60), timeout: Duration::from_secs(10), api: None, ca: None }
    }
}

#[derive(Serialize)]
struct Message<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    channel: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thread_ts: Option<&'a str>,
    text: &'a str,
    unfurl_links: bool,
    unfurl_media: bool,
}

/// An answer of the Web API.
#[derive(Deserialize)]
struct Posted {
    ok: bool,
    /// The name of the message.
    ts: Option<Box<str>>,
    channel: Option<Box<str>>,
    error: Option<Box<str>>,
}

impl Slack {
    /// Sets a channel up. Nothing is sent.
    ///
    /// # Errors
    ///
    /// If the address or a certificate is wrong.
    pub fn new(target: Target, options: &SlackOptions) -> Result<Self, SinkError> {
        let has_threads = matches!(target, Target::Bot { .. }) && !options.thread.is_zero();
        let api = match &target {
            Target::Bot { .. } => client::url(options.api.as_deref().unwrap_or(API))?,
            Target::Webhook { url } => client::url(url)?,
        };
        Ok(Self {
            client: client::client(options.timeout, options.ca.as_deref())?,
            target,
            api,
            threads: has_threads.then(|| Threads::new(options.thread)),
            stories: Threads::new(STORY),
            channel: None,
        })
    }

    /// Posts a message, and returns its name.
    async fn post(&mut self, thread: Option<&str>, text: &str) -> Result<Option<Box<str>>, Answer> {
        let Target::Bot { token, channel } = &self.target else {
            let response =
                client::send(self.client.post(self.api.clone()).json(&message(None, None, text))).await?;
            return match client::judge(&response) {
                Answer::Accepted => Ok(None),
                other => Err(other),
            };
        };
        let posted = self.call("chat.postMessage", token, &message(Some(channel), thread, text)).await?;
        if !posted.ok {
            return Err(judge(posted.error));
        }
        self.channel = posted.channel;
        Ok(posted.ts)
    }

    /// Replaces the text of a message by [`chat.update`](https://docs.slack.dev/reference/methods/chat.update). Returns whether Slack allows
    /// it: the message may be deleted. A new message then shows whether the sink is well.
    async fn edit(&self, ts: &str, text: &str) -> Result<bool, Answer> {
        let (Target::Bot { token, .. }, Some(channel)) = (&self.target, &self.channel) else {
            return Ok(false);
        };
        let edited =
            self.call("chat.update", token, &json!({ "channel": channel, "ts": ts, "text": text })).await?;
        match judge(edited.error) {
            busy @ Answer::Busy { .. } if !edited.ok => Err(busy),
            _ => Ok(edited.ok),
        }
    }

    async fn call(&self, method: &str, token: &str, body: &impl Serialize) -> Result<Posted, Answer> {
        let url =
            self.api.join(method).map_err(|_| Answer::Unavailable { reason: "no such address".into() })?;
        let response = client::send(self.client.post(url).bearer_auth(token).json(body)).await?;
        match client::judge(&response) {
            Answer::Accepted => {}
            other => return Err(other),
        }
        response.json().await.map_err(client::unavailable)
    }

    /// The first milestone of a story is a message. The next ones edit it, and are replies to it.
    async fn tell(&mut self, story: u64, parcel: &Parcel<'_>) -> Result<(), Answer> {
        let text = text(parcel);
        let message = match self.stories.of(story) {
            Some(ts) if self.edit(&ts, &text).await? => {
                self.post(Some(&ts), &brief(parcel)).await?;
                Some(ts)
            }
            _ => self.post(None, &text).await?,
        };
        if let Some(ts) = message {
            self.stories.note(story, ts);
        }
        Ok(())
    }
}

impl Sink for Slack {
    async fn send(&mut self, parcel: Parcel<'_>) -> Answer {
        if let [Record { story: Some(story), .. }] = parcel.records[..] {
            return self.tell(*story, &parcel).await.err().unwrap_or(Answer::Accepted);
        }
        let text = text(&parcel);
        // A digest is of many objects.
        let object = match parcel.records[..] {
            [record] => Some(record.entry.object),
            _ => None,
        };
        let thread = object.and_then(|object| self.threads.as_mut()?.of(object));
        let posted = match self.post(thread.as_deref(), &text).await {
            // Somebody has deleted the message.
            Err(Answer::Refused { reason }) if thread.is_some() && &*reason == "thread_not_found" => {
                self.post(None, &text).await
            }
            posted => posted,
        };
        match posted {
            Ok(ts) => {
                if let (Some(threads), Some(object), Some(ts)) = (&mut self.threads, object, thread.or(ts)) {
                    threads.note(object, ts);
                }
                Answer::Accepted
            }
            Err(answer) => answer,
        }
    }
}

fn message<'a>(channel: Option<&'a str>, thread: Option<&'a str>, text: &'a str) -> Message<'a> {
    Message { channel, thread_ts: thread, text, unfurl_links: false, unfurl_media: false }
}

/// The meaning of an error of the Web API. Its names are those of `chat.postMessage` and `chat.update`.
fn judge(error: Option<Box<str>>) -> Answer {
    let reason = error.unwrap_or_default();
    match &*reason {
        "ratelimited" | "rate_limited" => Answer::Busy { wait: None },
        "msg_too_long" | "no_text" | "invalid_arguments" | "invalid_charset" | "thread_not_found" => {
            Answer::Refused { reason }
        }
        // Of the server, the token, the channel or the workspace.
        _ => Answer::Unavailable { reason },
    }
}
