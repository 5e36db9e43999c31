//! A network in front of a server: it can be slow, and fall silent.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::mpsc::channel;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::{Error, io};

/// Passes bytes on between clients and a server on this machine, as long as the process lives.
#[derive(Debug, Clone)]
pub struct Network {
    port: u16,
    line: Arc<(Mutex<Line>, Condvar)>,
}

#[derive(Debug, Default)]
struct Line {
    is_silent: bool,
    /// How often it was silent: the connections of before are broken.
    silences: u32,
    delay: Duration,
    bytes_per_second: Option<u32>,
}

impl Network {
    /// A network in front of the server at this port.
    ///
    /// # Errors
    ///
    /// When there is no free port.
    pub fn before(server: u16) -> Result<Self, Error> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(io("listen"))?;
        let port = listener.local_addr().map_err(io("listen"))?.port();
        let network = Self { port, line: Arc::default() };
        let own = network.clone();
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                if own.line().is_silent {
                    continue;
                }
                // A server that refuses is a connection that ends.
                let _ = own.connect(client, server);
            }
        });
        Ok(network)
    }

    /// Its port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// From now on, each message takes so long, and so many bytes pass in a second.
    pub fn slow(&self, delay: Duration, bytes_per_second: u32) {
        (self.line().delay, self.line().bytes_per_second) = (delay, Some(bytes_per_second));
    }

    /// From now on, nothing arrives, and nobody is told.
    pub fn fall_silent(&self) {
        self.line().is_silent = true;
    }

    /// Connections can be made again. Those of before are broken.
    pub fn speak(&self) {
        let mut line = self.line();
        (line.is_silent, line.silences) = (false, line.silences + 1);
        self.line.1.notify_all();
    }

    fn line(&self) -> MutexGuard<'_, Line> {
        self.line.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn connect(&self, client: TcpStream, server: u16) -> std::io::Result<()> {
        let server = TcpStream::connect((Ipv4Addr::LOCALHOST, server))?;
        let of = self.line().silences;
        for stream in [&client, &server] {
            stream.set_nodelay(true)?;
        }
        for (from, to) in [(client.try_clone()?, server.try_clone()?), (server, client)] {
            let network = self.clone();
            thread::spawn(move || network.pass(from, to, of));
        }
        Ok(())
    }

    /// Passes one direction on until one side ends, or the network has been silent.
    fn pass(&self, from: TcpStream, mut to: TcpStream, of: u32) {
        let (sender, received) = channel();
        let Ok(mut source) = from.try_clone() else { return };
        thread::spawn(move || {
            let mut buffer = [0; 16 << 10];
            while let Ok(count @ 1..) = source.read(&mut buffer) {
                let bytes = buffer.get(..count).unwrap_or_default().to_vec();
                if sender.send((Instant::now(), bytes)).is_err() {
                    return;
                }
            }
        });
        for (at, bytes) in received {
            let line = self.line.1.wait_while(self.line(), |line| line.is_silent);
            let (delay, rate) = match line {
                Ok(line) if line.silences == of => (line.delay, line.bytes_per_second),
                _ => break,
            };
            thread::sleep((at + delay).saturating_duration_since(Instant::now()));
            let seconds = rate.map_or(0.0, |rate| bytes.len() as f64 / f64::from(rate));
            thread::sleep(Duration::from_secs_f64(seconds));
            if to.write_all(&bytes).is_err() {
                break;
            }
        }
        // One that has ended is shut.
        let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
    }
}
