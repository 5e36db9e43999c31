//! A TCP relay in front of a server. A cut breaks its connections and refuses new ones, as a machine does on which
//! nothing listens.

use std::io;
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use tooling::Error;

/// Below the ports that systems use for outgoing connections. Otherwise a client that connects to the closed port could
/// get this very port as its own, and be connected to itself.
const PORTS: std::ops::Range<u16> = 20_000..30_000;
const SCHEME: &str = "https://";

pub(crate) struct Relay {
    kubeconfig: String,
    server: SocketAddr,
    own: SocketAddr,
    /// `None` while it is cut.
    accepting: Option<Accepting>,
}

/// The thread that accepts connections, and the connections that it has accepted.
struct Accepting {
    thread: JoinHandle<()>,
    is_over: Arc<AtomicBool>,
    connections: Arc<Mutex<Vec<TcpStream>>>,
}

impl Relay {
    /// A relay in front of the server of a kubeconfig.
    pub(crate) fn start(kubeconfig: &Path) -> Result<Self, Error> {
        let text = std::fs::read_to_string(kubeconfig).map_err(Error::io(kubeconfig))?;
        let authority = text.split_once(SCHEME).map_or("", |(_, rest)| rest);
        let authority =
            authority.split(|c: char| c.is_whitespace() || "/\"'".contains(c)).next().unwrap_or_default();
        let server: SocketAddr =
            authority.parse().map_err(|error| Error::format("the address of the server", error))?;
        // Each process begins to look at another port, so that two processes seldom try the same one.
        let first = usize::try_from(std::process::id()).unwrap_or_default() % PORTS.len();
        let free =
            PORTS.cycle_from(first).find_map(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, port)).ok());
        let listener = free.ok_or_else(|| Error::missing("a free port", "end some programs"))?;
        let own = listener.local_addr().map_err(|error| Error::format("a port", error))?;
        let kubeconfig = text.replace(authority, &own.to_string());
        Ok(Self { kubeconfig, server, own, accepting: Some(Accepting::start(listener, server)) })
    }

    /// The server's kubeconfig, with the relay's address in place of the server's.
    pub(crate) fn write_kubeconfig(&self, file: &Path) -> Result<(), Error> {
        std::fs::write(file, &self.kubeconfig).map_err(Error::io(file))
    }

    /// Breaks all connections and refuses new ones.
    pub(crate) fn cut(&mut self) {
        if let Some(accepting) = self.accepting.take() {
            accepting.end(self.own);
        }
    }

    /// Accepts connections again.
    pub(crate) fn restore(&mut self) -> Result<(), Error> {
        let listener = TcpListener::bind(self.own)
            .map_err(|error| Error::Found(format!("the relay's port was taken meanwhile: {error}")))?;
        self.accepting = Some(Accepting::start(listener, self.server));
        Ok(())
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.cut();
    }
}

/// Every port once, beginning with a given one.
trait CycleFrom {
    fn cycle_from(&self, first: usize) -> impl Iterator<Item = u16>;
}

impl CycleFrom for std::ops::Range<u16> {
    fn cycle_from(&self, first: usize) -> impl Iterator<Item = u16> {
        self.clone().skip(first).chain(self.clone().take(first))
    }
}

impl Accepting {
    fn start(listener: TcpListener, server: SocketAddr) -> Self {
        let (is_over, connections) = (Arc::new(AtomicBool::new(false)), Arc::new(Mutex::new(Vec::new())));
        let (over, accepted) = (is_over.clone(), connections.clone());
        let thread = std::thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                if over.load(Ordering::SeqCst) {
                    return;
                }
                // If the server refuses the connection, the client's connection is closed too.
                let _ = relay(client, server, &accepted);
            }
        });
        Self { thread, is_over, connections }
    }

    fn end(self, own: SocketAddr) {
        self.is_over.store(true, Ordering::SeqCst);
        // The thread waits for a connection, so this one wakes it up.
        drop(TcpStream::connect(own));
        let _ = self.thread.join();
        for connection in self.connections.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
            let _ = connection.shutdown(Shutdown::Both);
        }
    }
}

/// Copies both directions, each in a thread that ends with the connection.
fn relay(client: TcpStream, server: SocketAddr, accepted: &Mutex<Vec<TcpStream>>) -> io::Result<()> {
    let server = TcpStream::connect(server)?;
    for stream in [&client, &server] {
        stream.set_nodelay(true)?;
    }
    accepted
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .extend([client.try_clone()?, server.try_clone()?]);
    for (mut from, mut to) in [(client.try_clone()?, server.try_clone()?), (server, client)] {
        std::thread::spawn(move || {
            let _ = io::copy(&mut from, &mut to);
            let _ = to.shutdown(Shutdown::Both);
            let _ = from.shutdown(Shutdown::Both);
        });
    }
    Ok(())
}

/// How many connections were refused on this machine until now, including those of other processes.
pub(crate) fn refused_connections() -> Result<u64, Error> {
    let path = Path::new("/proc/net/snmp");
    let text = std::fs::read_to_string(path).map_err(Error::io(path))?;
    let mut lines = text.lines().filter(|line| line.starts_with("Tcp:"));
    let (names, values) = (lines.next().unwrap_or_default(), lines.next().unwrap_or_default());
    let mut fields = names.split(' ').zip(values.split(' '));
    let failed = fields.find(|(name, _)| *name == "AttemptFails").and_then(|(_, value)| value.parse().ok());
    failed.ok_or_else(|| Error::format(path.display().to_string(), "there are no AttemptFails"))
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::io::{Read, Write};

    use super::*;

    #[test]
    fn a_relay_passes_on_until_it_is_cut_and_again_when_it_is_restored() {
        let server = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let directory = std::env::temp_dir().join(format!("relay-{}", std::process::id()));
        std::fs::write(&directory, format!("server: \"https://{}\"\n", server.local_addr().unwrap()))
            .unwrap();
        let mut relay = Relay::start(&directory).unwrap();
        std::fs::remove_file(&directory).unwrap();
        assert!(relay.kubeconfig.contains(&relay.own.to_string()));

        let ask = |relay: &Relay| {
            let mut client = TcpStream::connect(relay.own).unwrap();
            let (mut accepted, _) = server.accept().unwrap();
            client.write_all(b"?").unwrap();
            let mut heard = [0];
            accepted.read_exact(&mut heard).unwrap();
            assert_eq!(heard, *b"?");
            client
        };
        let mut client = ask(&relay);
        relay.cut();
        assert!(!matches!(client.read(&mut [0]), Ok(1..)));
        let before = refused_connections().unwrap();
        assert_eq!(TcpStream::connect(relay.own).unwrap_err().kind(), io::ErrorKind::ConnectionRefused);
        assert!(refused_connections().unwrap() > before);
        relay.restore().unwrap();
        ask(&relay);
    }
}
