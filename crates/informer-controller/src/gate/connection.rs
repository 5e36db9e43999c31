//! Connections that carry bytes only while a gate is open.
//!
//! They are the lowest layer, below TLS and proxies: bytes that pass the check here are handed to the socket by the next call.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, Either, Fuse, select};
use http::Uri;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::client::legacy::connect::{Connected, Connection};
use tower::{BoxError, Service};

use super::{Gate, NotLeading};

/// Opens connections that a gate watches over.
#[derive(Clone)]
pub(super) struct GatedConnector<C> {
    inner: C,
    gate: Gate,
}

impl<C> GatedConnector<C> {
    pub(super) fn new(inner: C, gate: Gate) -> Self {
        Self { inner, gate }
    }
}

impl<C> Service<Uri> for GatedConnector<C>
where
    C: Service<Uri, Future: Send + 'static, Error: Into<BoxError>>,
    C::Response: Send + 'static,
{
    type Response = Gated<C::Response>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, server: Uri) -> Self::Future {
        if let Err(refusal) = self.gate.check() {
            return futures_util::future::ready(Err(refusal.into())).boxed();
        }
        let gate = self.gate.clone();
        let connecting = self.inner.call(server);
        async move {
            match select(Box::pin(connecting), gate.closed().boxed()).await {
                Either::Left((io, closed)) => {
                    Ok(Gated { io: io.map_err(Into::into)?, gate, closed: closed.fuse() })
                }
                Either::Right((refusal, _)) => Err(refusal.into()),
            }
        }
        .boxed()
    }
}

/// A connection that a gate watches over.
pub(super) struct Gated<C> {
    io: C,
    gate: Gate,
    closed: Fuse<BoxFuture<'static, NotLeading>>,
}

impl<C> Gated<C> {
    /// Whether bytes may pass now. If so, the task is woken when the gate closes.
    fn admit(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        // Only for the wake-up: the clock decides, and it is read last.
        let _ = self.closed.poll_unpin(context);
        self.gate.check().map_err(io::Error::other)
    }
}

impl<C: Read + Unpin> Read for Gated<C> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        self.admit(context)?;
        Pin::new(&mut self.io).poll_read(context, buffer)
    }
}

impl<C: Write + Unpin> Write for Gated<C> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.admit(context)?;
        Pin::new(&mut self.io).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.admit(context)?;
        Pin::new(&mut self.io).poll_write_vectored(context, bytes)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.admit(context)?;
        Pin::new(&mut self.io).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(context)
    }
}

impl<C: Connection> Connection for Gated<C> {
    fn connected(&self) -> Connected {
        self.io.connected()
    }
}
