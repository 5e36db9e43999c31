//! Messages to a stand-in for Slack that enforces its limits.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use expect_test::expect;
use kubediff_delivery::{Policy, Slack, SlackOptions, Target};
use serde_json::{Value, json};

use crate::log::Memory;
use crate::running::{Running, quick};
use crate::server::{Act, Seen, Server};

/// The least time between two messages in the stand-in's channel.
const PACE: Duration = Duration::from_millis(20);

/// A channel as Slack has it: a pace, a limit of length, names of messages, threads.
#[derive(Default)]
struct Channel {
    last: Option<Instant>,
    /// How many messages came too early.
    early: usize,
    messages: Vec<Value>,
    edits: Vec<Value>,
    /// Messages that somebody has deleted.
    deleted: Vec<String>,
}

impl Channel {
    fn post(&mut self, seen: &Seen) -> Act {
        if seen.headers["authorization"] != "Bearer xoxb-secret" {
            return refuse("invalid_auth");
        }
        let message: Value = serde_json::from_slice(&seen.body).expect("JSON");
        if seen.path.ends_with("chat.update") {
            return self.edit(message);
        }
        if message["channel"] != "C1" {
            return refuse("channel_not_found");
        }
        if self.last.is_some_and(|last| last.elapsed() < PACE) {
            self.early += 1;
            return Act::RetryAfter(429, "1".to_owned());
        }
        if message["text"].as_str().is_none_or(|text| text.chars().count() > 40_000) {
            return refuse("msg_too_long");
        }
        if self.deleted.iter().any(|ts| message["thread_ts"] == ts.as_str()) {
            return refuse("thread_not_found");
        }
        self.last = Some(Instant::now());
        self.messages.push(message);
        let ts = format!("ts-{}", self.messages.len());
        Act::Json(json!({ "ok": true, "ts": ts, "channel": "C1-id" }).to_string())
    }

    fn edit(&mut self, message: Value) -> Act {
        if message["channel"] != "C1-id" {
            return refuse("channel_not_found");
        }
        if self.deleted.iter().any(|ts| message["ts"] == ts.as_str()) {
            return refuse("message_not_found");
        }
        self.edits.push(message);
        Act::Json(json!({ "ok": true }).to_string())
    }
}

fn refuse(error: &str) -> Act {
    Act::Json(json!({ "ok": false, "error": error }).to_string())
}

async fn channel() -> (Server, Arc<Mutex<Channel>>) {
    let channel: Arc<Mutex<Channel>> = Arc::default();
    let posts = channel.clone();
    (Server::with(move |seen| posts.lock().expect("no panic").post(seen)).await, channel)
}

fn bot(server: &Server, token: &str, channel: &str) -> Slack {
    let target = Target::Bot { token: token.into(), channel: channel.into() };
    assert!(!format!("{target:?}").contains("xoxb"));
    Slack::new(target, &SlackOptions { api: Some(server.base().into()), ..SlackOptions::default() })
        .expect("a sink")
}

/// As people get it, faster.
fn chat() -> Policy {
    Policy {
        pace: PACE + PACE / 10,
        first_wait: PACE,
        longest_wait: PACE,
        longest_asked_wait: PACE,
        ..Policy::chat()
    }
}

fn texts(channel: &Mutex<Channel>) -> Vec<String> {
    let messages = &channel.lock().expect("no panic").messages;
    messages.iter().map(|message| message["text"].as_str().expect("text").to_owned()).collect()
}

#[tokio::test]
async fn each_change_is_a_message_and_changes_of_one_object_are_in_a_thread() {
    let (server, channel) = channel().await;
    let log = Memory::of([7, 8, 7]);
    let running = Running::start(&log, bot(&server, "xoxb-secret", "C1"), chat());
    log.reaches(3).await;
    channel.lock().expect("no panic").deleted.push("ts-1".to_owned());
    log.append([7]);
    log.reaches(4).await;
    running.stop().await;
    let messages = Value::Array(channel.lock().expect("no panic").messages.clone());
    expect![[r#"
        [
          {
            "channel": "C1",
            "text": "updated ConfigMap shop/object-7: n 0 -&gt; 1\n```\n- n: 0\n+ n: 1\n```",
            "unfurl_links": false,
            "unfurl_media": false
          },
          {
            "channel": "C1",
            "text": "updated ConfigMap shop/object-8: n 1 -&gt; 2\n```\n- n: 1\n+ n: 2\n```",
            "unfurl_links": false,
            "unfurl_media": false
          },
          {
            "channel": "C1",
            "text": "updated ConfigMap shop/object-7: n 2 -&gt; 3\n```\n- n: 2\n+ n: 3\n```",
            "thread_ts": "ts-1",
            "unfurl_links": false,
            "unfurl_media": false
          },
          {
            "channel": "C1",
            "text": "updated ConfigMap shop/object-7: n 3 -&gt; 4\n```\n- n: 3\n+ n: 4\n```",
            "unfurl_links": false,
            "unfurl_media": false
          }
        ]"#]]
    .assert_eq(&format!("{messages:#}"));
}

#[tokio::test]
async fn a_story_is_one_message_that_is_edited_and_has_its_moments_as_replies() {
    let (server, channel) = channel().await;
    let log = Memory::of([]);
    let running = Running::start(&log, bot(&server, "xoxb-secret", "C1"), chat());
    log.tell(7, "Deployment shop/cart: image 1 -> 2; rolling out", "- image: 1\n+ image: 2");
    log.reaches(1).await;
    log.tell(7, "Deployment shop/cart: image 1 -> 2; failing", "- image: 1\n+ image: 2");
    log.reaches(2).await;
    channel.lock().expect("no panic").deleted.push("ts-1".to_owned());
    log.tell(7, "Deployment shop/cart: image 1 -> 2; rolled back by #9", "");
    log.reaches(3).await;
    running.stop().await;
    let Channel { messages, edits, .. } = &*channel.lock().expect("no panic");
    let line = |message: &Value| {
        let place = message["ts"].as_str().or(message["thread_ts"].as_str()).unwrap_or("new");
        format!("{place} {:?}\n", message["text"].as_str().expect("text"))
    };
    let posted: String = messages.iter().map(line).collect();
    // An edit is sent again with its reply, if the reply came too early.
    let mut edited: Vec<String> = edits.iter().map(line).collect();
    edited.dedup();
    let edited = edited.concat();
    expect![[r#"
        posted:
        new "Deployment shop/cart: image 1 -&gt; 2; rolling out\n```\n- image: 1\n+ image: 2\n```"
        ts-1 "Deployment shop/cart: image 1 -&gt; 2; failing"
        new "Deployment shop/cart: image 1 -&gt; 2; rolled back by #9"
        edited:
        ts-1 "Deployment shop/cart: image 1 -&gt; 2; failing\n```\n- image: 1\n+ image: 2\n```"
    "#]]
    .assert_eq(&format!("posted:\n{posted}edited:\n{edited}"));
    assert!(log.settled.borrow().dead.is_empty());
}

#[tokio::test]
async fn who_is_far_behind_sends_digests_that_name_every_change() {
    let (server, channel) = channel().await;
    let log = Memory::of(1..=250);
    let running = Running::start(&log, bot(&server, "xoxb-secret", "C1"), chat());
    log.reaches(250).await;
    running.stop().await;
    let texts = texts(&channel);
    for number in 1..=250 {
        let name = format!("object-{number}:");
        assert_eq!(texts.iter().filter(|text| text.contains(&name)).count(), 1, "{name}");
    }
    let heads: Vec<&str> = texts.iter().filter_map(|text| text.lines().next()).take(4).collect();
    expect![[r#"
        3 messages: [
            "100 changes:",
            "100 changes:",
            "50 changes:",
        ]"#]]
    .assert_eq(&format!("{} messages: {heads:#?}", texts.len()));
    assert!(log.settled.borrow().dead.is_empty());
}

#[tokio::test]
async fn a_pace_that_is_too_fast_is_slowed_down_and_nothing_is_lost() {
    let (server, channel) = channel().await;
    let log = Memory::of(1..=10);
    let policy = Policy { pace: Duration::ZERO, ..chat() };
    let running = Running::start(&log, bot(&server, "xoxb-secret", "C1"), policy);
    log.reaches(10).await;
    running.stop().await;
    assert_eq!(texts(&channel).len(), 10);
    assert!(channel.lock().expect("no panic").early > 0);
}

#[tokio::test]
async fn a_wrong_token_or_channel_is_told_by_slacks_name_and_loses_nothing() {
    let (server, _channel) = channel().await;
    let mut said = Vec::new();
    for (token, channel) in [("xoxb-other", "C1"), ("xoxb-secret", "C2")] {
        let log = Memory::of([1]);
        let mut running = Running::start(&log, bot(&server, token, channel), chat());
        said.push(running.trouble().await);
        running.stop().await;
        assert_eq!(*log.settled.borrow(), kubediff_delivery::Settled::default());
    }
    expect!["invalid_auth, channel_not_found"].assert_eq(&said.join(", "));
}

#[tokio::test]
async fn a_message_is_readable_and_cannot_call_people() {
    let (server, channel) = channel().await;
    let log = Memory::of([]);
    let details: String = (0..600).map(|line| format!("+ line {line} <!channel> & ```\n")).collect();
    log.say(1, "updated ConfigMap shop/a: <!here> & more", "- a: 1\n+ a: <@U1>");
    log.say(2, &"long ".repeat(200), &details);
    let running = Running::start(&log, bot(&server, "xoxb-secret", "C1"), chat());
    log.reaches(2).await;
    running.stop().await;
    let texts = texts(&channel);
    expect![[r#"
        updated ConfigMap shop/a: &lt;!here&gt; &amp; more
        ```
        - a: 1
        + a: &lt;@U1&gt;
        ```"#]]
    .assert_eq(&texts[0]);
    assert!(texts[1].len() < 4_100, "{}", texts[1].len());
    let end: Vec<&str> = texts[1].lines().rev().take(3).collect();
    expect![[r#"
        [
            "… and 503 more lines",
            "```",
            "+ line 96 &lt;!channel&gt; &amp; '''",
        ]"#]]
    .assert_eq(&format!("{end:#?}"));
    assert_eq!(texts[1].matches("```").count(), 2);
}

#[tokio::test]
async fn an_incoming_webhook_gets_the_text_alone() {
    let server = Server::start([200, 400, 200, 400].map(Act::Status)).await;
    let log = Memory::of([1, 2, 3]);
    let sink =
        Slack::new(Target::Webhook { url: server.url().into() }, &SlackOptions::default()).expect("a sink");
    let running = Running::start(&log, sink, Policy { batch: 1, refusals: 1, ..quick() });
    let settled = log.reaches(3).await;
    running.stop().await;
    assert_eq!(
        settled.dead.iter().map(|dead| (dead.number, &*dead.reason)).collect::<Vec<_>>(),
        [(2, "400")]
    );
    expect![[r#"{"text":"updated ConfigMap shop/object-1: n 0 -&gt; 1\n```\n- n: 0\n+ n: 1\n```","unfurl_links":false,"unfurl_media":false}"#]].assert_eq(&String::from_utf8_lossy(&server.seen()[0].body));
}
