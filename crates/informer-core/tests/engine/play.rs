//! An engine whose commands a test records and carries out.

use std::sync::Arc;
use std::time::Duration;

use informer_core::engine::{Command, Compute, Engine, Input, RequestId, Response, Start};
use informer_core::reader::Expected;
use informer_core::wire::ApiStatus;
use informer_core::{PlainStorage, Scope, Shelf, Time};

pub(crate) struct Play {
    pub(crate) engine: Engine,
    now: Time,
    /// The commands since they were last taken, one line each.
    record: Vec<String>,
    requests: Vec<(Scope, RequestId)>,
    /// User code that waits. It runs at once unless [`Play::holds`] is set.
    held: Vec<Compute>,
    pub(crate) holds: bool,
    /// Long dispatches wait for a tick.
    pub(crate) slices: bool,
    /// The number of requests that refresh credentials.
    pub(crate) refreshes: usize,
}

pub(crate) fn pods() -> Expected {
    Expected { api_version: "v1".to_owned(), kind: "Pod".to_owned(), or_kind: None }
}

pub(crate) fn namespace(name: &str) -> Scope {
    Scope::Namespace(name.into())
}

pub(crate) fn pod(namespace: &str, name: &str, version: u64) -> String {
    format!(
        r#"{{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"{name}","namespace":"{namespace}","resourceVersion":"{version}"}}}}"#
    )
}

impl Play {
    /// Nothing has begun.
    pub(crate) fn new() -> Self {
        let engine = Engine::new(Shelf::cold(Arc::new(PlainStorage)));
        let (record, requests, held) = Default::default();
        Self { engine, now: Time::ZERO, record, requests, held, holds: false, slices: false, refreshes: 0 }
    }

    /// Begins with these scopes. Each one operation may wait for user code, which every object runs.
    pub(crate) fn with_user_code(scopes: impl IntoIterator<Item = Scope>) -> Self {
        let mut play = Self::new();
        play.start_with_user_code(scopes);
        play
    }

    /// The same, after other inputs.
    pub(crate) fn start_with_user_code(&mut self, scopes: impl IntoIterator<Item = Scope>) {
        let mut start = Start::new(pods(), scopes);
        start.transform = Some(Arc::new(|object| {
            object.without_managed_fields().map(Some).map_err(|error| error.to_string())
        }));
        start.queued_operations = 1;
        self.input(Input::Start(Box::new(start)));
    }

    pub(crate) fn input(&mut self, input: Input<'_>) {
        self.engine.handle(self.now, input);
        loop {
            while let Some(command) = self.engine.poll_command() {
                self.command(command);
            }
            if !self.holds
                && let Some(compute) = self.held.pop()
            {
                self.engine.handle(self.now, Input::Computed(Box::new(compute.run())));
            } else if self.engine.has_work() && !self.slices {
                self.engine.handle(self.now, Input::Tick);
            } else {
                return;
            }
        }
    }

    fn command(&mut self, command: Command) {
        self.record.push(match command {
            Command::Send { id, request, scope, refresh_credentials } => {
                self.refreshes += usize::from(refresh_credentials);
                self.requests.retain(|(of, _)| *of != scope);
                self.requests.push((scope.clone(), id));
                format!("{scope:?} {request}")
            }
            Command::Compute(compute) => {
                self.held.push(*compute);
                return;
            }
            Command::Wake(wakers) => {
                wakers.into_iter().for_each(std::task::Waker::wake);
                return;
            }
            other => format!("{other:?}"),
        });
    }

    pub(crate) fn respond(&mut self, scope: &Scope, response: Response<'_>) {
        let id = self.requests.iter().find(|(of, _)| of == scope).map(|(_, id)| *id);
        self.input(Input::Response(id.expect("a request"), response));
    }

    pub(crate) fn list(&mut self, scope: &Scope, version: u64, items: &[String]) {
        let items = items.join(",");
        let body = format!(
            r#"{{"kind":"PodList","apiVersion":"v1","metadata":{{"resourceVersion":"{version}"}},"items":[{items}]}}"#
        );
        self.respond(scope, Response::Accepted { protobuf: false });
        self.respond(scope, Response::Bytes(body.as_bytes()));
        self.respond(scope, Response::End);
    }

    pub(crate) fn event(&mut self, scope: &Scope, object: &str) {
        let line = format!("{{\"type\":\"MODIFIED\",\"object\":{object}}}\n");
        self.respond(scope, Response::Bytes(line.as_bytes()));
    }

    pub(crate) fn accept(&mut self, scope: &Scope) {
        self.respond(scope, Response::Accepted { protobuf: false });
    }

    pub(crate) fn refuse(&mut self, scope: &Scope, code: u16, reason: &str) {
        let body = format!(r#"{{"kind":"Status","status":"Failure","reason":"{reason}","code":{code}}}"#);
        self.respond(scope, Response::Refused(ApiStatus::from_body(code, body.as_bytes())));
    }

    /// User code returns, and later one runs at once.
    pub(crate) fn user_code_returns(&mut self) {
        self.holds = false;
        self.input(Input::Tick);
    }

    /// User code returns, and later one waits.
    pub(crate) fn user_code_returns_once(&mut self) {
        let compute = self.held.pop().expect("user code runs");
        self.input(Input::Computed(Box::new(compute.run())));
    }

    pub(crate) fn pass(&mut self, time: Duration) {
        self.now = self.now + time;
        self.input(Input::Tick);
    }

    /// Lets deadlines pass one after the other for this long.
    pub(crate) fn run(&mut self, time: Duration) {
        let end = self.now + time;
        while let Some(at) = self.engine.deadline().filter(|at| *at <= end) {
            self.now = self.now.max(at);
            self.input(Input::Tick);
        }
        self.now = end;
    }

    /// The commands since the last call that begin with this.
    pub(crate) fn take(&mut self, beginning: &str) -> Vec<String> {
        let record = std::mem::take(&mut self.record);
        record.into_iter().filter(|line| line.starts_with(beginning)).collect()
    }
}
