//! An engine that is fed with the bytes of responses.

use std::sync::Arc;

use informer_core::engine::{
    Command, Compute, Engine, Input, RequestId, Response, Start, Subscriber, TransformFn,
};
use informer_core::mailbox::{Delivery, Mode, Notice, WhenFull};
use informer_core::reader::Expected;
use informer_core::reflector::{Cause, ReflectorConfig, Report, Status};
use informer_core::saved::{self, Saved};
use informer_core::share::Share;
use informer_core::wire::{ApiStatus, Limits};
use informer_core::{Cache, Delta, PlainStorage, Scope, Shelf, Time};

pub(crate) struct Rig {
    engine: Engine,
    subscriber: Arc<Subscriber>,
    /// One line per request, change, and report since it was last taken.
    record: Vec<String>,
    request: Option<RequestId>,
    /// The number of changed schemas.
    schemas: u64,
    now: Time,
    /// User code that waits, where it does.
    held: Option<Vec<Compute>>,
}

impl Rig {
    pub(crate) fn new(config: ReflectorConfig, transform: Option<TransformFn>) -> Self {
        Self::with_saved(config, transform, None)
    }

    /// Begins with what was saved.
    pub(crate) fn with_saved(
        config: ReflectorConfig,
        transform: Option<TransformFn>,
        saved: Option<Saved>,
    ) -> Self {
        Self::with_share(config, transform, saved, None)
    }

    /// Keeps only a share of the objects.
    pub(crate) fn with_share(
        config: ReflectorConfig,
        transform: Option<TransformFn>,
        saved: Option<Saved>,
        share: Option<Share>,
    ) -> Self {
        let mut engine = Engine::new(Shelf::cold(Arc::new(PlainStorage)));
        if let Some(saved) = saved {
            engine.load(saved, &[Scope::All]);
        }
        let mode = Mode::Every { capacity: 1_000, when_full: WhenFull::Coalesce };
        let subscriber = engine.fanout().subscribe(Delivery { mode, ..Delivery::default() }).unwrap();
        subscriber.with_mailbox(|mailbox| mailbox.join(Vec::new(), 0));
        let mut rig = Self {
            engine,
            subscriber,
            record: Vec::new(),
            request: None,
            schemas: 0,
            now: Time::ZERO,
            held: None,
        };
        let expected = Expected { api_version: "v1".to_owned(), kind: "Pod".to_owned(), or_kind: None };
        let mut start = Start::new(expected, [Scope::All]);
        start.reflector = config;
        start.transform = transform;
        start.share = share;
        start.limits = Limits { item_bytes: 2_000 };
        start.seed = 1;
        rig.input(Input::Start(Box::new(start)));
        rig
    }

    /// A cache with these items at version 10, and a watch.
    pub(crate) fn watching(items: &[&str], transform: Option<TransformFn>) -> Self {
        let mut rig = Self::new(ReflectorConfig::default(), transform);
        rig.list(10, items);
        rig.accepted();
        rig.take_record();
        rig
    }

    /// How many items and events were left out.
    pub(crate) fn outside(&self) -> u64 {
        self.engine.counters().outside_share.get()
    }

    pub(crate) fn cache(&self) -> &Cache {
        self.engine.cache()
    }

    /// Answers a list.
    pub(crate) fn list(&mut self, version: impl std::fmt::Display, items: &[&str]) {
        let head = r#"{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"#;
        self.accepted();
        self.bytes(format!(r#"{head}"{version}"}},"items":[{}]}}"#, items.join(",")).as_bytes());
        self.response(Response::End);
    }

    /// Answers a list of a custom resource, whose version comes behind its items.
    pub(crate) fn custom_list(&mut self, version: u64, items: &[&str]) {
        let items = items.join(",");
        self.accepted();
        let body = format!(
            r#"{{"kind":"PodList","apiVersion":"v1","items":[{items}],"metadata":{{"resourceVersion":"{version}"}}}}"#
        );
        self.bytes(body.as_bytes());
        self.response(Response::End);
    }

    /// Refuses the request: its version is gone.
    pub(crate) fn expired(&mut self) {
        let body = br#"{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410}"#;
        self.response(Response::Refused(ApiStatus::from_body(410, body)));
    }

    /// Brings one line of a watch.
    pub(crate) fn line(&mut self, line: &str) {
        self.bytes(format!("{line}\n").as_bytes());
    }

    /// Brings one event of a watch.
    pub(crate) fn event(&mut self, kind: &str, object: &str) {
        self.line(&format!(r#"{{"type":"{kind}","object":{object}}}"#));
    }

    pub(crate) fn accepted(&mut self) {
        self.response(Response::Accepted { protobuf: false });
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.response(Response::Bytes(bytes));
    }

    fn response(&mut self, response: Response<'_>) {
        if let Some(id) = self.request {
            self.input(Input::Response(id, response));
        }
    }

    pub(crate) fn schema_changed(&mut self) {
        self.schemas += 1;
        self.input(Input::Schema(&format!("schema {}", self.schemas)));
    }

    pub(crate) fn saved(&self) -> Vec<u8> {
        let mut file = Vec::new();
        saved::save(&mut file, &[], &self.engine.checkpoint().unwrap()).unwrap();
        file
    }

    /// Lets the engine's next deadline pass.
    pub(crate) fn deadline(&mut self) {
        self.now = self.now.max(self.engine.deadline().unwrap());
        self.input(Input::Tick);
    }

    /// The keys of the undecodable objects.
    pub(crate) fn quarantined(&self) -> Vec<String> {
        self.engine.quarantine().all().into_iter().map(|held| held.key.to_string()).collect()
    }

    /// Lets user code run only when asked to.
    pub(crate) fn hold_computes(&mut self) {
        self.held = Some(Vec::new());
    }

    /// Runs the user code that was held back.
    pub(crate) fn compute(&mut self) {
        while let Some(compute) = self.held.as_mut().and_then(Vec::pop) {
            self.input(Input::Computed(Box::new(compute.run())));
        }
    }

    pub(crate) fn now(&self) -> Time {
        self.now
    }

    fn input(&mut self, input: Input<'_>) {
        self.engine.handle(self.now, input);
        while let Some(command) = self.engine.poll_command() {
            self.command(command);
        }
    }

    fn command(&mut self, command: Command) {
        let line = match command {
            Command::Send { id, request, .. } => {
                self.request = Some(id);
                request.to_string()
            }
            Command::Cancel(id) => {
                self.request.take_if(|request| *request == id);
                return;
            }
            Command::Compute(compute) => {
                return match &mut self.held {
                    Some(held) => held.push(*compute),
                    None => self.input(Input::Computed(Box::new(compute.run()))),
                };
            }
            Command::SourceStatus(_, Status::Retrying { .. }) => "retrying".to_owned(),
            Command::Report(_, Report::Quarantined { key, .. }) => {
                format!("quarantined {}", key.map(|key| key.to_string()).unwrap_or_default())
            }
            Command::Report(_, Report::Unsteady { key }) => format!("unsteady {key}"),
            Command::Report(_, Report::Disconnected(Cause::Undecodable(reason))) => reason,
            Command::Applied { .. } => return self.notices(),
            _ => return,
        };
        self.record.push(line);
    }

    fn notices(&mut self) {
        while let Some(notice) = self.subscriber.take() {
            let Notice::Change { change, .. } = notice else { continue };
            self.record.push(match change.delta {
                Delta::Added(new) => format!("+ {new:?}"),
                Delta::Updated { old, new } => format!("~ {old:?} -> {new:?}"),
                Delta::Deleted { last, .. } => format!("- {last:?}"),
            });
        }
    }

    pub(crate) fn take_record(&mut self) -> Vec<String> {
        std::mem::take(&mut self.record)
    }

    /// The versions that anybody could take the cache to have: what would be saved, and what readers see.
    pub(crate) fn claimed(&self) -> [String; 2] {
        let checkpoint = self.engine.checkpoint().unwrap();
        [checkpoint.sources[0].resource_version.to_string(), self.cache().resource_version().to_string()]
    }
}

/// A pod with some other content.
pub(crate) fn pod(name: &str, version: u64) -> String {
    format!(
        r#"{{"kind":"Pod","apiVersion":"v1","metadata":{{"name":"{name}","uid":"{name}","resourceVersion":"{version}","labels":{{"app":"{name}"}}}},"spec":{{}}}}"#
    )
}
