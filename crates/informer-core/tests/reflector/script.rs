//! A small language for what happens to a reflector, and a record of what it does about it.
//!
//! One line per input; `+30s` lets time pass. The record has one line per output, and the cache's changes as they come out
//! of a real store. A new case is five lines.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use informer_core::internals::{Bookmark, ListMeta};
use informer_core::reflector::{
    EventKind, Input, Output, Reflector, ReflectorConfig, Report, Resume, Status, StoreOperation, Trust, Why,
};
use informer_core::store::SourcePoint;
use informer_core::wire::ApiStatus;
use informer_core::{Cache, Change, Delta, Object, Origin, ResourceVersion, Scope, SourceId, Store, Time};

/// A reflector, a store that it feeds, and the time.
pub(crate) struct Play {
    reflector: Reflector,
    store: Store,
    cache: Cache,
    source: SourceId,
    staging: Option<informer_core::store::Replace>,
    now: Time,
    record: String,
}

/// Plays a script with the default settings and returns the record.
pub(crate) fn play(script: &str) -> String {
    play_with(ReflectorConfig::default(), script)
}

/// Plays a script and returns the record.
pub(crate) fn play_with(config: ReflectorConfig, script: &str) -> String {
    let mut play = Play::new(config);
    play.script(script);
    play.record
}

impl Play {
    pub(crate) fn new(config: ReflectorConfig) -> Self {
        let mut store = Store::new();
        let source = store.add_source(Scope::All);
        let cache = store.cache();
        let reflector = Reflector::new(config, 1);
        Self { reflector, store, cache, source, staging: None, now: Time::ZERO, record: String::new() }
    }

    /// One whose cache was loaded, with objects as in a script's `items`.
    pub(crate) fn resuming(from: Resume, objects: &str) -> Self {
        let mut store = Store::new();
        let (Resume::Watch(version) | Resume::List(version)) = &from;
        let objects = objects.split(' ').filter(|item| !item.is_empty()).map(object);
        let source = store.load(
            [SourcePoint { resource_version: version.clone(), ..SourcePoint::nothing(Scope::All) }],
            objects,
        )[0];
        let reflector = Reflector::resuming(ReflectorConfig::default(), 1, from);
        Self { reflector, cache: store.cache(), store, source, ..Self::new(ReflectorConfig::default()) }
    }

    pub(crate) fn script(&mut self, script: &str) {
        for line in script.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let _ = writeln!(self.record, "> {line}");
            self.line(line);
        }
    }

    /// Plays what comes before the story; returns its record, which is not part of the story's.
    pub(crate) fn skip(&mut self, script: &str) -> String {
        let kept = self.record.len();
        self.script(script);
        self.record.split_off(kept)
    }

    pub(crate) fn into_record(self) -> String {
        self.record
    }

    pub(crate) fn reflector(&self) -> &Reflector {
        &self.reflector
    }

    pub(crate) fn now(&self) -> Time {
        self.now
    }

    fn line(&mut self, line: &str) {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        match word {
            "start" => self.input(Input::Start),
            "schema" => self.input(Input::Relist(Why::SchemaChanged)),
            "stop" => self.input(Input::Stop),
            "wake" => self.input(Input::Wake),
            "released" => self.input(Input::Released),
            "stall" => self.input(Input::Stalled),
            "accept" => self.input(Input::Accepted),
            "refuse" => self.input(Input::Refused(status(rest))),
            "error" => self.input(Input::ErrorEvent(status(rest))),
            "unreachable" => self.input(Input::Unreachable(rest.to_owned())),
            "garbage" => self.input(Input::Undecodable("garbage".into())),
            "break" => self.input(Input::Broken("reset".into())),
            "end" => self.input(Input::End),
            "head" => self.input(Input::ListStart(list_meta(rest))),
            "items" => rest.split(' ').filter(|item| !item.is_empty()).for_each(|item| self.item(item)),
            "done" => self.input(Input::ListEnd(list_meta(rest))),
            "unreadable" => {
                let key = rest.parse().ok();
                self.input(Input::Unreadable { key, reason: "of another kind".into() });
            }
            "added" => self.input(Input::Event(EventKind::Added, object(rest))),
            "modified" => self.input(Input::Event(EventKind::Modified, object(rest))),
            "deleted" => self.input(Input::Event(EventKind::Deleted, object(rest))),
            "gone" => {
                let (key, version) = rest.split_once('@').unwrap();
                self.input(Input::Gone(EventKind::Modified, key.parse().unwrap(), version.into()));
            }
            "bookmark" => {
                let (version, end) = rest.split_once(' ').unwrap_or((rest, ""));
                let initial_events_end = end == "end";
                self.input(Input::Bookmark(Bookmark {
                    resource_version: version.into(),
                    initial_events_end,
                }));
            }
            "cache" => self.cache_line(),
            wait if wait.starts_with('+') => self.wait(&wait[1..]),
            // Lets the reflector's own next deadline pass.
            "deadline" => {
                let deadline = self.reflector.deadline().expect("a deadline");
                self.now = self.now.max(deadline);
                self.input(Input::Tick);
            }
            other => panic!("no such line: {other}"),
        }
    }

    /// As a driver does: what the cache has already is told as unchanged.
    fn item(&mut self, item: &str) {
        let object = object(item);
        if self.reflector.trusts_versions() != Trust::Nothing
            && self.cache.is_unchanged(object.key().as_str(), object.resource_version())
        {
            self.input(Input::Unchanged(object.key().clone()));
        } else {
            self.input(Input::Item(object));
        }
    }

    fn wait(&mut self, duration: &str) {
        let (number, unit) = duration.split_at(duration.find(|digit: char| digit.is_alphabetic()).unwrap());
        let number: f64 = number.parse().unwrap();
        let seconds = match unit {
            "ms" => number / 1000.0,
            "s" => number,
            "m" => number * 60.0,
            other => panic!("no such unit: {other}"),
        };
        self.now = self.now + Duration::from_secs_f64(seconds);
        self.input(Input::Tick);
    }

    pub(crate) fn input(&mut self, input: Input) {
        self.reflector.handle(self.now, input);
        while let Some(output) = self.reflector.poll_output() {
            self.output(output);
        }
        self.store.validate();
    }

    fn output(&mut self, output: Output) {
        let line = match output {
            Output::Send(request) => request.to_string(),
            Output::Cancel => "cancel".to_owned(),
            Output::RefreshCredentials => "refresh credentials".to_owned(),
            Output::Status(Status::Retrying { cause, attempt, wait }) => {
                // The exact wait is random; that it lies on its curve is the backoff's own test.
                assert!(wait >= Duration::from_millis(800), "{wait:?}");
                format!("retrying {attempt}: {cause}")
            }
            Output::Status(status) => status.to_string(),
            Output::Report(Report::Disconnected(cause)) => format!("disconnected: {cause}"),
            Output::Report(Report::ServerRestored { seen, now }) => {
                format!("server restored: {seen} -> {now}")
            }
            Output::Report(Report::Quarantined { key, reason }) => {
                format!("quarantined {}: {reason}", key.map_or_else(|| "?".into(), |key| key.to_string()))
            }
            Output::Report(Report::Unsteady { key }) => format!("unsteady {key}"),
            Output::Report(report) => format!("reports {report:?}"),
            Output::Store(operation) => return self.store(operation),
        };
        let _ = writeln!(self.record, "  {line}");
    }

    fn store(&mut self, operation: StoreOperation) {
        let changes: Vec<Change> = match operation {
            StoreOperation::BeginReplace { trust_versions, .. } => {
                self.staging = Some(match trust_versions {
                    true => self.store.begin_replace(self.source),
                    false => self.store.begin_restored_replace(self.source),
                });
                return;
            }
            StoreOperation::Discard => {
                self.staging = None;
                let _ = writeln!(self.record, "  discard");
                return;
            }
            StoreOperation::Keep(key) => return self.staging.as_mut().unwrap().keep_cached(&key),
            StoreOperation::Stage(object) => return self.staging.as_mut().unwrap().stage(object),
            StoreOperation::Unstage(object) => return self.staging.as_mut().unwrap().delete(object),
            StoreOperation::UnstageKey(key, version) => {
                return self.staging.as_mut().unwrap().delete_key(&key, &version);
            }
            StoreOperation::Commit { resource_version } => {
                let _ = writeln!(self.record, "  commit {resource_version:?}");
                self.store.commit(self.staging.take().unwrap(), resource_version).unwrap().collect()
            }
            StoreOperation::Upsert(object) => self.store.upsert(self.source, object).into_iter().collect(),
            StoreOperation::Delete(object) => self.store.delete(self.source, object).into_iter().collect(),
            StoreOperation::DeleteKey(key, version) => {
                self.store.delete_key(self.source, &key, &version).into_iter().collect()
            }
            StoreOperation::Bookmark(version) => {
                self.store.bookmark(self.source, &version);
                return;
            }
            StoreOperation::Confirm => {
                let _ = writeln!(self.record, "  confirm");
                return self.store.confirm(self.source);
            }
        };
        for change in changes {
            let source = if change.origin == Origin::List { " by list" } else { "" };
            let _ = match change.delta {
                Delta::Added(new) => writeln!(self.record, "  + {new:?}{source}"),
                Delta::Updated { old, new } => writeln!(self.record, "  ~ {old:?} -> {new:?}{source}"),
                Delta::Deleted { last, .. } => writeln!(self.record, "  - {last:?}{source}"),
            };
        }
    }

    fn cache_line(&mut self) {
        let snapshot = self.cache.snapshot();
        let objects: Vec<_> = snapshot.page(None, usize::MAX).map(|object| format!("{object:?}")).collect();
        let _ = writeln!(self.record, "  {} at {:?}", objects.join(" "), snapshot.resource_version());
    }
}

/// `a@5` is object `a` at version 5; `a@5#x` with another content.
fn object(text: &str) -> Arc<Object> {
    let (name, version) = text.split_once('@').unwrap_or((text, ""));
    let (version, content) = version.split_once('#').unwrap_or((version, ""));
    let json = format!(
        r#"{{"metadata":{{"name":"{name}","uid":"{name}","resourceVersion":"{version}"}},"spec":"{content}"}}"#
    );
    Arc::new(Object::from_json(json.as_bytes()).unwrap())
}

/// `410 Expired`, or `504 Timeout` with words that older servers put into the message, or a `retry-after=5`.
fn status(text: &str) -> ApiStatus {
    let mut words = text.splitn(3, ' ');
    let code: u16 = words.next().unwrap().parse().unwrap();
    let reason = words.next().unwrap_or("");
    let rest = words.next().unwrap_or("");
    let details = match rest {
        "cause=type" => r#","details":{"causes":[{"reason":"ResourceVersionTooLarge"}]}"#.to_owned(),
        "cause=message" => r#","details":{"causes":[{"message":"Too large resource version"}]}"#.to_owned(),
        "message" => r#","message":"Too large resource version: 20, current: 15""#.to_owned(),
        _ => match rest.strip_prefix("retry-after=") {
            Some(seconds) => format!(r#","details":{{"retryAfterSeconds":{seconds}}}"#),
            None => String::new(),
        },
    };
    let body =
        format!(r#"{{"kind":"Status","status":"Failure","code":{code},"reason":"{reason}"{details}}}"#);
    ApiStatus::from_body(code, body.as_bytes())
}

/// `rv=10 continue=x`.
fn list_meta(text: &str) -> ListMeta {
    let mut meta = ListMeta::default();
    for word in text.split(' ') {
        match word.split_once('=') {
            Some(("rv", version)) => meta.resource_version = ResourceVersion::new(version),
            Some(("continue", token)) => meta.continue_token = Some(token.to_owned()),
            _ => {}
        }
    }
    meta
}
