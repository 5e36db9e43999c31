//! Spans, log lines and the time limit of reconciliations.

use std::fmt::Debug;
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;

use informer_controller::{Context, Controller, Failure, Outcome};
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::json;
use testapi::Patch;
use tracing::dispatcher::Dispatch;
use tracing::field::{Field, Visit};
use tracing::instrument::WithSubscriber;
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::NoSubscriber;
use tracing::{Event, Metadata, Subscriber};

use crate::support::{Stop, map, maps};
use crate::wireless::{Wireless, pass};

/// Lines of what it hears of this crate: spans, their records and events, with all fields.
#[derive(Clone)]
struct Log(Arc<Mutex<Vec<String>>>);

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0.push_str(&format!(" {}={value:?}", field.name()));
    }
}

impl Log {
    /// A second subscriber lives as long as the tests. With a single one, tracing asks whether a span or an event is
    /// of interest on the thread that comes to it first; that may be another test's, which has no subscriber, and its
    /// answer holds for all threads.
    fn new() -> Self {
        static OTHER: LazyLock<Dispatch> = LazyLock::new(|| Dispatch::new(NoSubscriber::new()));
        LazyLock::force(&OTHER);
        Self(Arc::default())
    }

    fn line(&self, first: String, fields: impl FnOnce(&mut Line)) {
        let mut line = Line(first);
        fields(&mut line);
        self.0.lock().unwrap().push(line.0);
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }
}

impl Subscriber for Log {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "informer_controller::controller::telling"
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        self.line(format!("span {}", span.metadata().name()), |line| span.record(line));
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, values: &Record<'_>) {
        self.line("record".to_owned(), |line| values.record(line));
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        self.line(event.metadata().level().to_string(), |line| event.record(line));
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

fn about<'a>(lines: &'a [String], start: &str) -> Vec<&'a str> {
    lines.iter().map(String::as_str).filter(|line| line.starts_with(start)).collect()
}

/// It fails three times, twice for the same reason, and then never again.
#[tokio::test(start_paused = true)]
async fn a_reconciliation_is_a_span_and_a_failure_is_a_warning_once() {
    let log = Log::new();
    let world = Wireless::with(&maps(), [map("shop", "a")]);
    let informer = world.factory().informer::<ConfigMap>();
    let (stop, stopped) = Stop::pair();
    let reconcile = async |context: Context<ConfigMap>| match context.failures() {
        0 | 1 => Err(std::io::Error::other("the bucket is locked").into()),
        2 => Err(std::io::Error::other("the bucket is full").into()),
        _ => Ok(Outcome::Done),
    };
    let run = Controller::new("test", &informer).until(stopped).run(world.client(), reconcile);
    let running = tokio::spawn(run.with_subscriber(log.clone()));
    pass(Duration::from_secs(10)).await;
    stop.and_wait(running).await.unwrap();
    let lines = log.take();
    let spans = about(&lines, "span reconcile");
    assert_eq!(spans.len(), 4, "{lines:#?}");
    assert!(spans[0].contains(r#"controller="test" key=shop/a causes={Initial} attempt=1"#), "{}", spans[0]);
    assert!(spans[3].contains("causes={Retry} attempt=4"), "{}", spans[3]);
    let results = ["failed", "failed", "failed", "done"].map(|result| format!("record result={result:?}"));
    assert_eq!(about(&lines, "record"), results);
    let warnings = about(&lines, "WARN");
    assert_eq!(warnings.len(), 2, "{warnings:#?}");
    assert!(
        warnings[0].contains(r#"error="the bucket is locked" attempt=1 retry_in=5ms"#),
        "{}",
        warnings[0]
    );
    assert!(warnings[1].contains(r#"error="the bucket is full" attempt=3 retry_in=20ms"#), "{}", warnings[1]);
    let repeated = about(&lines, "DEBUG").into_iter().filter(|line| line.contains("failed as before"));
    assert_eq!(repeated.count(), 1);
    let ended = about(&lines, "DEBUG").into_iter().filter(|line| line.contains("reconciled result="));
    assert_eq!(ended.filter(|line| line.contains("duration=")).count(), 4, "{lines:#?}");
}

#[tokio::test(start_paused = true)]
async fn a_reason_to_give_up_is_an_error_once() {
    let log = Log::new();
    let world = Wireless::with(&maps(), [map("shop", "a")]);
    let informer = world.factory().informer::<ConfigMap>();
    let (stop, stopped) = Stop::pair();
    let reconcile = async |_: Context<ConfigMap>| Err(Failure::give_up("the name is malformed"));
    let run = Controller::new("test", &informer).until(stopped).run(world.client(), reconcile);
    let running = tokio::spawn(run.with_subscriber(log.clone()));
    pass(Duration::from_secs(10)).await;
    world.0.patch(&maps(), "shop", "a", &Patch::Merge(json!({ "data": { "of": "changed" } }))).unwrap();
    pass(Duration::from_secs(10)).await;
    stop.and_wait(running).await.unwrap();
    let lines = log.take();
    assert_eq!(about(&lines, "record"), [r#"record result="gave_up""#; 2]);
    let errors = about(&lines, "ERROR");
    assert!(errors.len() == 1 && errors[0].contains("the name is malformed"), "{errors:#?}");
}

#[tokio::test(start_paused = true)]
async fn a_reconciliation_that_hangs_is_dropped_at_its_limit_and_tried_again() {
    let world = Wireless::with(&maps(), [map("shop", "a"), map("shop", "b")]);
    let informer = world.factory().informer::<ConfigMap>();
    let (stop, stopped) = Stop::pair();
    let controller =
        Controller::new("test", &informer).reconcile_limit(Duration::from_secs(5)).until(stopped);
    let handle = controller.handle();
    let reconcile = async |context: Context<ConfigMap>| {
        if context.key().name() == "a" && context.failures() == 0 {
            std::future::pending::<()>().await;
        }
        Ok(Outcome::Done)
    };
    let running = tokio::spawn(controller.run(world.client(), reconcile));
    pass(Duration::from_secs(4)).await;
    let count = |result| {
        let all = handle.metrics().reconciles;
        all.into_iter().find(|(name, _)| *name == result).unwrap().1
    };
    assert_eq!(count("done"), 0, "the only worker is busy");
    pass(Duration::from_secs(4)).await;
    assert_eq!((count("timed_out"), count("done")), (1, 2));
    stop.and_wait(running).await.unwrap();
}
