//! Lists that are read while they are sent.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};

use futures_util::future::{BoxFuture, ready};
use http::Method;
use http_body_util::BodyExt as _;
use serde_json::json;
use serve::{
    Batch, Catalog, Collection, CollectionError, Events, Listing, Object, Objects, Range, Resource,
    Resources, Serve, ServeOptions, ServerVersion,
};

use crate::client::{PODS, accepting, answer, get, send};
use crate::model::{Served, World};

/// Objects of a batch, and the bytes of one.
const MADE: usize = 10;
const BYTES: usize = 10_000;

/// Pods that are made when they are asked for.
#[derive(Clone)]
struct Stock {
    count: usize,
    /// The batch at which an error comes.
    fails_at: usize,
    read: Arc<AtomicUsize>,
}

impl Stock {
    fn new(count: usize) -> Self {
        Self { count, fails_at: usize::MAX, read: Arc::default() }
    }

    fn serve(&self, page_bytes: Option<usize>) -> Serve {
        let mut options = ServeOptions::default();
        options.page_bytes = page_bytes;
        Serve::new(Arc::new(self.clone()), options)
    }

    fn batches(&self) -> usize {
        self.read.load(Ordering::Relaxed)
    }
}

struct Made(Stock, usize);

impl Objects for Made {
    fn next(&mut self) -> BoxFuture<'_, Result<Vec<Arc<Object>>, CollectionError>> {
        if self.0.read.fetch_add(1, Ordering::Relaxed) == self.0.fails_at {
            return Box::pin(ready(Err(CollectionError::Expired { oldest: 9 })));
        }
        let from = self.1;
        self.1 = self.0.count.min(from + MADE);
        let object = |at| {
            let name = format!("p{at:05}");
            let made = "1970-01-01T00:00:00Z";
            let meta = json!({ "name": name, "namespace": "shop", "creationTimestamp": made, "x": "x".repeat(BYTES) });
            let labels = [("even", (at % 2 == 0).to_string())].into_iter().collect();
            let body = format!("\"metadata\":{meta}}}").into();
            Arc::new(Object { namespace: "shop".into(), name: name.into(), revision: 7, labels, body })
        };
        Box::pin(ready(Ok((from..self.1).map(object).collect())))
    }
}

impl Collection for Stock {
    fn revision(&self) -> u64 {
        7
    }

    fn now(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(90)
    }

    fn get<'a>(
        &'a self,
        _: &'a str,
        _: &'a str,
        _: Option<u64>,
    ) -> BoxFuture<'a, Result<Option<Arc<Object>>, CollectionError>> {
        Box::pin(ready(Ok(None)))
    }

    fn list<'a>(
        &'a self,
        range: &'a Range,
        _: Option<u64>,
    ) -> BoxFuture<'a, Result<Listing, CollectionError>> {
        let from = range.after.as_ref().map_or(0, |(_, name)| name[1..].parse::<usize>().unwrap() + 1);
        let objects = Box::new(Made(self.clone(), from));
        Box::pin(ready(Ok(Listing { revision: 7, count: self.count - from, objects })))
    }

    fn events(&self, _: u64) -> Result<Box<dyn Events>, CollectionError> {
        Ok(Box::new(Later))
    }
}

/// No events, half a minute later.
struct Later;

impl Events for Later {
    fn next(&mut self) -> BoxFuture<'_, Result<Batch, CollectionError>> {
        Box::pin(std::future::pending())
    }

    fn revision(&self) -> u64 {
        7
    }

    fn now(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(120)
    }
}

impl Catalog for Stock {
    fn resources(&self) -> Arc<Resources> {
        Served(World::new()).resources()
    }

    fn collection(&self, _: &Resource) -> Option<Arc<dyn Collection>> {
        Some(Arc::new(self.clone()))
    }

    fn version(&self) -> ServerVersion {
        Served(World::new()).version()
    }
}

#[tokio::test]
async fn a_client_decides_how_fast_objects_are_read() {
    for encoding in ["identity", "gzip"] {
        let stock = Stock::new(10_000);
        let response = send(&stock.serve(None), Method::GET, PODS, &[("accept-encoding", encoding)]).await;
        assert_eq!(response.status(), 200);
        assert!(stock.batches() < 10, "{} of 1,000 batches were read before the client", stock.batches());
        let mut body = response.into_body();
        let _first = body.frame().await.unwrap().unwrap();
        assert!(stock.batches() < 500, "{} batches for one chunk", stock.batches());
        if encoding == "identity" {
            assert!(stock.batches() < 10);
        }
        let mut count = 1;
        while let Some(chunk) = body.frame().await {
            chunk.unwrap();
            count += 1;
        }
        assert!(count > 1);
        assert_eq!(stock.batches(), 1_001);
    }
}

#[tokio::test]
async fn selected_objects_come_in_pages_and_as_a_whole() {
    let serve = Stock::new(100).serve(None);
    let even: Vec<String> = (0..100).step_by(2).map(|at| format!("shop/p{at:05}")).collect();
    assert_eq!(get(&serve, &format!("{PODS}?labelSelector=even%3Dtrue")).await.names(), even);
    let (mut found, mut token) = (Vec::new(), String::new());
    loop {
        let uri = format!("{PODS}?labelSelector=even%3Dtrue&limit=7&continue={token}");
        let page = get(&serve, &uri).await;
        assert!(page.names().len() <= 7);
        found.extend(page.names());
        assert!(page.json()["metadata"].get("remainingItemCount").is_none());
        match page.json()["metadata"]["continue"].as_str() {
            Some(next) if !next.is_empty() => token = next.to_owned(),
            _ => break,
        }
    }
    assert_eq!(found, even);
}

#[tokio::test]
async fn a_page_ends_before_it_takes_too_much_memory() {
    let stock = Stock::new(100);
    let serve = stock.serve(Some(12 * BYTES));
    let (mut found, mut token, mut pages) = (0, String::new(), 0);
    loop {
        let page = get(&serve, &format!("{PODS}?limit=90&continue={token}")).await;
        found += page.names().len();
        pages += 1;
        match page.json()["metadata"]["continue"].as_str() {
            Some(next) if !next.is_empty() => token = next.to_owned(),
            _ => break,
        }
        assert_eq!(page.json()["metadata"]["remainingItemCount"], 100 - found);
    }
    assert_eq!((found, pages), (100, 9));
}

#[tokio::test]
async fn a_list_that_cannot_be_read_is_refused_or_breaks_off() {
    let early = Stock { fails_at: 0, ..Stock::new(1_000) };
    let refused = get(&early.serve(None), PODS).await;
    assert_eq!(
        (refused.code, refused.message().as_str()),
        (410, "The resourceVersion for the provided list is too old.")
    );
    let late = Stock { fails_at: 60, ..Stock::new(1_000) };
    let response = send(&late.serve(None), Method::GET, PODS, &[]).await;
    assert_eq!(response.status(), 200);
    assert!(response.into_body().collect().await.is_err());
}

#[tokio::test]
async fn ages_are_seen_from_the_time_of_the_collection() {
    let serve = Stock::new(1).serve(None);
    let table = "application/json;as=Table;g=meta.k8s.io;v=v1";
    let rows = accepting(&serve, PODS, table).await.json()["rows"].clone();
    let cells = rows[0]["cells"].as_array().unwrap().clone();
    assert!(cells.contains(&json!("90s")), "{cells:?}");
    let head = answer(send(&serve, Method::GET, PODS, &[("accept", "application/json")]).await).await;
    assert_eq!(head.code, 200);
}

#[tokio::test(start_paused = true)]
async fn ages_in_a_watch_are_seen_from_the_time_of_its_events() {
    let serve = Stock::new(1).serve(None);
    let path = format!("{PODS}?watch=1&resourceVersion=0&timeoutSeconds=5");
    let event = accepting(&serve, &path, "application/json;as=Table;g=meta.k8s.io;v=v1").await.json();
    let cells = event["object"]["rows"][0]["cells"].as_array().unwrap().clone();
    assert!(cells.contains(&json!("2m")), "{cells:?}");
}
