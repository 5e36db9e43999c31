//! Sends a span for each reconciliation to OpenTelemetry.
//!
//! `cargo run -p informer-controller --example traces`
//!
//! The controller is a small one: it writes to each ConfigMap of the namespace `traces` how many keys it has. The
//! spans are printed. A program in a cluster gives [`traced`] the exporter of `opentelemetry_otlp` instead.

use std::error::Error;
use std::sync::Arc;

use informer::SharedInformerFactory;
use informer::kube::Config;
use informer_controller::{Context, Controller, Failure, Outcome, Program, Reconcile, with};
use k8s_openapi::api::core::v1::ConfigMap;
use opentelemetry::trace::TracerProvider;
use opentelemetry_sdk::trace::{SdkTracerProvider, SpanExporter};
use serde_json::json;
use tracing::{Subscriber, info};
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::layer::{Layer, SubscriberExt};
use tracing_subscriber::registry::Registry;

const KEYS: &str = "traces.example.com/keys";

/// A log line of the program: it is an event of the span.
async fn reconcile(_: Arc<()>, context: Context<ConfigMap>) -> Result<Outcome, Failure> {
    let Some(map) = context.object() else { return Ok(Outcome::Done) };
    let keys = map.data.as_ref().map_or(0, |data| data.len()).to_string();
    if map.metadata.annotations.as_ref().and_then(|it| it.get(KEYS)) != Some(&keys) {
        info!(keys, "counted");
        context.writer().patch(map, json!({ "metadata": { "annotations": { KEYS: keys } } })).await?;
    }
    Ok(Outcome::Done)
}

/// The controller, which is to run, and its reconciler.
fn counting(factory: &SharedInformerFactory) -> (Controller<ConfigMap>, impl Reconcile<ConfigMap> + use<>) {
    let maps = factory.in_namespace("traces").informer::<ConfigMap>();
    (Controller::new("traces", &maps), with((), reconcile))
}

/// Log lines on standard output, and spans, with their log lines, to an exporter.
///
/// The provider is to be shut down at the end: it then sends the spans that it still has.
fn traced(exporter: impl SpanExporter + 'static) -> (impl Subscriber + Send + Sync, SdkTracerProvider) {
    let provider = SdkTracerProvider::builder().with_batch_exporter(exporter).build();
    let spans = tracing_opentelemetry::layer().with_tracer(provider.tracer("traces"));
    let spans = spans.with_filter(LevelFilter::INFO);
    let lines = tracing_subscriber::fmt::layer().with_filter(LevelFilter::INFO);
    (Registry::default().with(spans).with(lines), provider)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let (subscriber, provider) = traced(opentelemetry_stdout::SpanExporter::default());
    tracing::subscriber::set_global_default(subscriber)?;
    let config = Config::infer().await?;
    let (controller, reconciler) = counting(&SharedInformerFactory::new(config.clone())?);
    Program::new(config).run([controller.with(reconciler)]).await?;
    Ok(provider.shutdown()?)
}

#[cfg(test)]
mod tests {
    use opentelemetry_sdk::trace::InMemorySpanExporter;
    use serde_json::Value;
    use testapi::{Gvr, TestApi};
    use tokio::sync::oneshot;

    use super::*;

    #[tokio::test]
    async fn each_reconciliation_is_a_span_with_its_object_and_its_result() -> Result<(), Box<dyn Error>> {
        let map = |name: &str| {
            json!({
                "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "namespace": "traces", "name": name },
                "data": { "a": "1", "b": "2" },
            })
        };
        let server = TestApi::builder().objects([map("one"), map("two")]).start().await?;
        let exporter = InMemorySpanExporter::default();
        let (subscriber, provider) = traced(exporter.clone());
        // Of the whole process: a controller has tasks of its own.
        tracing::subscriber::set_global_default(subscriber)?;
        let (controller, reconciler) = counting(&SharedInformerFactory::new(server.config())?);
        let maps = Gvr::new("v1", "configmaps");
        let (stop, stopped) = oneshot::channel::<()>();
        let program = Program::new(server.config()).until(async { stopped.await.unwrap_or_default() });
        let program = tokio::spawn(program.run([controller.with(reconciler)]));
        for name in ["one", "two"] {
            let is_counted = |it: &Value| it["metadata"]["annotations"][KEYS] == "2";
            server.api().wait_for(&maps, "traces", name, is_counted).await?;
        }
        let _ = stop.send(());
        program.await??;
        provider.force_flush()?;

        let spans = exporter.get_finished_spans()?;
        for key in ["traces/one", "traces/two"] {
            let has = |span: &opentelemetry_sdk::trace::SpanData, name: &str, value: &str| {
                span.attributes.iter().any(|it| it.key.as_str() == name && it.value.as_str() == value)
            };
            let first = spans.iter().find(|span| span.name == "reconcile" && has(span, "key", key));
            let first = first.ok_or("a reconciliation has no span")?;
            assert!(has(first, "controller", "traces") && has(first, "result", "done"), "{first:?}");
            assert!(has(first, "attempt", "1"), "{first:?}");
            assert!(first.events.iter().any(|event| event.name == "counted"), "{first:?}");
        }
        Ok(())
    }
}
