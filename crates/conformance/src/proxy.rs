//! A proxy between informers and their server whose connections can be cut at will. TLS passes through untouched.

use std::net::SocketAddr;
use std::pin::pin;

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::within;

/// Carries connections to one server, for as long as this lives.
pub struct Proxy {
    address: SocketAddr,
    control: watch::Sender<Control>,
    open: watch::Receiver<usize>,
    accepting: JoinHandle<()>,
}

/// Faults for connections, which are numbered from 1.
#[derive(Debug, Clone, Copy, Default)]
struct Control {
    /// The last connection so far.
    last: u64,
    /// Connections up to this one end.
    cut: u64,
    /// Connections up to this one stay open, but carry nothing.
    frozen: u64,
    /// New ones are turned away.
    refuses: bool,
}

impl Proxy {
    /// A proxy to `server`, on its own port.
    ///
    /// # Panics
    ///
    /// When there is no port.
    pub async fn to(server: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let (control, _) = watch::channel(Control::default());
        let (count, open) = watch::channel(0);
        let accepting = tokio::spawn(accept(listener, server, control.clone(), count));
        Self { address, control, open, accepting }
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Ends all connections in the middle of whatever they carry. New ones work.
    pub fn cut(&self) {
        self.control.send_modify(|control| control.cut = control.last);
    }

    /// Ends all connections, and turns new ones away.
    pub fn refuse(&self) {
        self.control.send_modify(|control| {
            control.cut = control.last;
            control.refuses = true;
        });
    }

    /// Lets new connections through again.
    pub fn resume(&self) {
        self.control.send_modify(|control| control.refuses = false);
    }

    /// Leaves all connections open without carrying anything any more, as a router does that has forgotten them.
    /// New ones work.
    pub fn freeze(&self) {
        self.control.send_modify(|control| control.frozen = control.last);
    }

    /// How many connections there are.
    pub fn connections(&self) -> usize {
        *self.open.borrow()
    }

    /// Waits until there are no connections.
    ///
    /// # Panics
    ///
    /// When there still are.
    pub async fn idle(&self) {
        within("the end of all connections", self.until(|open| open == 0)).await;
    }

    /// Waits until there are as many connections as `is_it` says.
    pub async fn until(&self, is_it: impl Fn(usize) -> bool) {
        // The other end lives as long as this proxy.
        let _ = self.open.clone().wait_for(|open| is_it(*open)).await;
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.accepting.abort();
        self.cut();
    }
}

async fn accept(
    listener: TcpListener,
    server: SocketAddr,
    control: watch::Sender<Control>,
    open: watch::Sender<usize>,
) {
    while let Ok((client, _)) = listener.accept().await {
        let mut number = 0;
        control.send_modify(|control| {
            control.last += 1;
            number = control.last;
        });
        if control.borrow().refuses {
            continue;
        }
        let (control, open) = (control.subscribe(), open.clone());
        open.send_modify(|open| *open += 1);
        tokio::spawn(async move {
            carry(number, client, server, control).await;
            open.send_modify(|open| *open -= 1);
        });
    }
}

async fn carry(
    number: u64,
    mut client: TcpStream,
    server: SocketAddr,
    mut control: watch::Receiver<Control>,
) {
    let Ok(mut server) = TcpStream::connect(server).await else { return };
    let mut thaw = control.clone();
    let mut copying = pin!(copy_bidirectional(&mut client, &mut server));
    // Errors end the connection, which is all there is to do about them.
    tokio::select! {
        _ = &mut copying => return,
        _ = control.wait_for(|control| number <= control.cut) => return,
        _ = thaw.wait_for(|control| number <= control.frozen) => {}
    }
    let _ = control.wait_for(|control| number <= control.cut).await;
}
