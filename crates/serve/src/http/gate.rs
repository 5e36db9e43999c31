//! A server's listening port: open, or closed but still reserved.

use std::io;
use std::net::SocketAddr;
use std::task::{Context, Poll, Waker};

use parking_lot::Mutex;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::runtime::Handle;

/// The listen backlog; clients come in bursts.
const BACKLOG: u32 = 1024;

#[derive(Debug)]
pub(super) struct Gate {
    address: SocketAddr,
    runtime: Handle,
    /// Bound, never listening: reserves the port while the gate is closed, so that clients are refused and no other
    /// process gets it.
    _port: TcpSocket,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    listener: Option<TcpListener>,
    /// The task that waits for a connection; opening the gate wakes it.
    waiting: Option<Waker>,
}

impl Gate {
    pub(super) fn open(address: SocketAddr) -> io::Result<(Self, SocketAddr)> {
        let port = socket(address)?;
        port.bind(address)?;
        let address = port.local_addr()?;
        let listener = listen(address)?;
        let state = Mutex::new(State { listener: Some(listener), waiting: None });
        Ok((Self { address, runtime: Handle::current(), _port: port, state }, address))
    }

    pub(super) fn close(&self) {
        self.state.lock().listener = None;
    }

    pub(super) fn reopen(&self) -> io::Result<()> {
        let mut state = self.state.lock();
        if state.listener.is_none() {
            let _context = self.runtime.enter();
            state.listener = Some(listen(self.address)?);
            if let Some(waiting) = state.waiting.take() {
                waiting.wake();
            }
        }
        Ok(())
    }

    /// The next connection; waits while the gate is closed.
    pub(super) fn accept(&self) -> impl Future<Output = io::Result<(TcpStream, SocketAddr)>> + Send {
        std::future::poll_fn(|context| self.poll_accept(context))
    }

    fn poll_accept(&self, context: &mut Context<'_>) -> Poll<io::Result<(TcpStream, SocketAddr)>> {
        let mut state = self.state.lock();
        state.waiting = Some(context.waker().clone());
        state.listener.as_ref().map_or(Poll::Pending, |listener| listener.poll_accept(context))
    }
}

fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = socket(address)?;
    // Connections of an earlier server on this port may still be in TIME_WAIT. The reserving socket does not set it:
    // any other process that does could take the port while nothing listens.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

fn socket(address: SocketAddr) -> io::Result<TcpSocket> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    // The reserving socket and the listening one are two.
    #[cfg(unix)]
    socket.set_reuseport(true)?;
    Ok(socket)
}
