//! How fast the server sends, over loopback.
//!
//!     cargo run --release -p testapi-serve --example sending
//!
//! Measures megabytes per second for one list of 20,000 objects of 9 KB, and changes per second to 10 watchers, for
//! small objects and for such large ones. The server has one thread.

#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "an example prints, and panics on a surprise"
)]

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use serve::http::{Server, ServerOptions};
use serve::{
    Batch, Catalog, Change, Collection, CollectionError, Columns, Event, Events, Listing, Object, Range,
    Resource, Resources, Serve, ServeOptions, ServerVersion,
};
use tokio::sync::watch;

const OBJECTS: usize = 20_000;
const BYTES: usize = 9_000;
const WATCHERS: usize = 10;

struct Pods {
    listed: Vec<Arc<Object>>,
    happened: Mutex<Vec<Event>>,
    newest: watch::Sender<u64>,
}

fn object(number: u64, bytes: usize) -> Arc<Object> {
    let name = format!("pod-{number:06}");
    let head = format!(
        r#""metadata":{{"name":"{name}","namespace":"shop","resourceVersion":"{number}"}},"spec":{{"filler":""#
    );
    let filler = "0123456789abcdef".repeat(bytes.saturating_sub(head.len()) / 16);
    Arc::new(Object {
        namespace: "shop".into(),
        name: name.into(),
        revision: number,
        labels: serve::Labels::default(),
        body: format!("{head}{filler}\"}}}}").into(),
    })
}

impl Pods {
    fn change(&self, bytes: usize) {
        let mut happened = self.happened.lock().unwrap();
        let revision = *self.newest.borrow() + 1;
        let object = object(revision, bytes);
        happened.push(Event { change: Change::Modified, previous: Some(Arc::clone(&object)), object });
        drop(happened);
        self.newest.send_replace(revision);
    }
}

struct Served(Arc<Pods>);

impl Collection for Served {
    fn revision(&self) -> u64 {
        *self.0.newest.borrow()
    }

    fn get<'a>(
        &'a self,
        _namespace: &'a str,
        _name: &'a str,
        _at: Option<u64>,
    ) -> BoxFuture<'a, Result<Option<Arc<Object>>, CollectionError>> {
        Box::pin(async { Ok(None) })
    }

    fn list<'a>(
        &'a self,
        _range: &'a Range,
        _at: Option<u64>,
    ) -> BoxFuture<'a, Result<Listing, CollectionError>> {
        Box::pin(async { Ok(Listing::of(self.revision(), self.0.listed.clone())) })
    }

    fn events(&self, after: u64) -> Result<Box<dyn Events>, CollectionError> {
        let newest = self.0.newest.subscribe();
        let told = self.0.happened.lock().unwrap().len();
        Ok(Box::new(Following { pods: Arc::clone(&self.0), after, told, newest }))
    }
}

struct Following {
    pods: Arc<Pods>,
    after: u64,
    told: usize,
    newest: watch::Receiver<u64>,
}

impl Events for Following {
    fn next(&mut self) -> BoxFuture<'_, Result<Batch, CollectionError>> {
        Box::pin(async {
            loop {
                let events = self.pods.happened.lock().unwrap()[self.told..].to_vec();
                if !events.is_empty() {
                    self.told += events.len();
                    self.after += events.len() as u64;
                    return Ok(Batch { events });
                }
                self.newest.changed().await.expect("the pods exist");
            }
        })
    }

    fn revision(&self) -> u64 {
        self.after
    }
}

impl Catalog for Served {
    fn resources(&self) -> Arc<Resources> {
        let pods = Resource {
            group: "".into(),
            version: "v1".into(),
            plural: "pods".into(),
            singular: "pod".into(),
            kind: "Pod".into(),
            list_kind: "PodList".into(),
            namespaced: true,
            short_names: Vec::new(),
            categories: Vec::new(),
            verbs: ["get", "list", "watch"].map(Box::from).to_vec(),
            subresources: Vec::new(),
            selectable: Vec::new(),
            columns: Columns::BuiltIn,
            typed_items: false,
            stored_version: None,
        };
        Arc::new([Arc::new(pods)].into_iter().collect())
    }

    fn collection(&self, _resource: &Resource) -> Option<Arc<dyn Collection>> {
        Some(Arc::new(Self(Arc::clone(&self.0))))
    }

    fn version(&self) -> ServerVersion {
        ServerVersion { major: 1, minor: 36, git_version: "v1.36.3".to_string() }
    }
}

fn main() {
    let pods = Arc::new(Pods {
        listed: (0..OBJECTS as u64).map(|number| object(number, BYTES)).collect(),
        happened: Mutex::new(Vec::new()),
        newest: watch::Sender::new(1_000_000),
    });
    let (send_address, address) = std::sync::mpsc::channel();
    let served = Arc::clone(&pods);
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async move {
            let serve = Arc::new(Serve::new(Arc::new(Served(served)), ServeOptions::default()));
            let server = Server::bind(ServerOptions {
                address: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
                ..ServerOptions::default()
            });
            let server = server.await.unwrap();
            send_address.send(server.address()).unwrap();
            let _serving = server.serve(move |request: http::Request<bytes::Bytes>, _connection| {
                let serve = Arc::clone(&serve);
                async move { serve.read(&request.into_parts().0).await }
            });
            std::future::pending::<()>().await;
        });
    });
    let address = address.recv().unwrap();

    for _ in 0..3 {
        list(address);
    }
    watch(address, &pods, 1_000, 100_000);
    watch(address, &pods, BYTES, 30_000);
}

fn list(address: SocketAddr) {
    let mut stream = open(address, "/api/v1/pods", "close");
    let begun = Instant::now();
    let mut buffer = vec![0; 256 * 1024];
    let mut bytes = 0;
    loop {
        let read = stream.read(&mut buffer).unwrap();
        if read == 0 {
            break;
        }
        bytes += read;
    }
    println!("list: {} MB at {:.0} MB/s", bytes / 1_000_000, megabytes_a_second(bytes, begun.elapsed()));
}

fn watch(address: SocketAddr, pods: &Pods, bytes: usize, changes: u32) {
    let begin = *pods.newest.borrow();
    let mut streams: Vec<TcpStream> = (0..WATCHERS)
        .map(|_| open(address, &format!("/api/v1/pods?watch=1&resourceVersion={begin}"), "keep-alive"))
        .collect();
    let mut buffer = vec![0; 256 * 1024];
    for stream in &mut streams {
        // The head of the response: the watch is open.
        assert!(stream.read(&mut buffer).unwrap() > 0);
    }
    let begun = Instant::now();
    let readers: Vec<_> = streams
        .into_iter()
        .map(|mut stream| {
            std::thread::spawn(move || {
                let mut buffer = vec![0; 256 * 1024];
                let (mut events, mut bytes) = (0_i64, 0);
                while events < i64::from(changes) {
                    let read = stream.read(&mut buffer).unwrap();
                    assert!(read > 0, "the watch ended");
                    bytes += read;
                    // Lines of chunked encoding end with both, events with one.
                    let ends = memchr::memchr_iter(b'\n', &buffer[..read]).count();
                    let borders = memchr::memchr_iter(b'\r', &buffer[..read]).count();
                    events += ends as i64 - borders as i64;
                }
                bytes
            })
        })
        .collect();
    for _ in 0..changes {
        pods.change(bytes);
    }
    let made = begun.elapsed();
    let sent: usize = readers.into_iter().map(|reader| reader.join().unwrap()).sum();
    let told = begun.elapsed();
    println!(
        "watch: {changes} changes of {bytes} bytes, made in {made:.2?}, told to {WATCHERS} watchers after {told:.2?}: \
         {:.0} changes/s, {:.0} MB/s in all",
        f64::from(changes) / told.as_secs_f64(),
        megabytes_a_second(sent, told)
    );
}

fn open(address: SocketAddr, path: &str, connection: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: {connection}\r\n\r\n").unwrap();
    stream
}

fn megabytes_a_second(bytes: usize, elapsed: Duration) -> f64 {
    bytes as f64 / 1e6 / elapsed.as_secs_f64()
}
