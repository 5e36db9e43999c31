//! A layer that refuses requests after the end of a term, in front of any client.

use std::pin::pin;
use std::task::{Context, Poll};

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, Either, ready, select};
use tower::{BoxError, Layer, Service};

use super::Gate;

/// A tower layer that lets requests pass while a gate is open, and drops those under way when it closes.
///
/// It is weaker than [`Gate::client`]: it checks when the request is handed to the service below. That service may still
/// connect, shake hands or wait before it sends the request.
#[derive(Debug, Clone)]
pub(super) struct GateLayer(Gate);

impl GateLayer {
    /// A layer with this gate.
    pub(super) fn new(gate: Gate) -> Self {
        Self(gate)
    }
}

impl<S> Layer<S> for GateLayer {
    type Service = Gated<S>;

    fn layer(&self, inner: S) -> Gated<S> {
        Gated { inner, gate: self.0.clone() }
    }
}

/// A service behind a [`GateLayer`].
#[derive(Debug, Clone)]
pub(super) struct Gated<S> {
    inner: S,
    gate: Gate,
}

impl<S, R> Service<R> for Gated<S>
where
    S: Service<R, Future: Send + 'static, Error: Into<BoxError>>,
    S::Response: Send + 'static,
{
    type Response = S::Response;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<S::Response, BoxError>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, request: R) -> Self::Future {
        if let Err(refusal) = self.gate.check() {
            return ready(Err(refusal.into())).boxed();
        }
        let gate = self.gate.clone();
        let answering = self.inner.call(request);
        async move {
            // An answer that has come is passed on, even if the gate has closed since: the request was carried out.
            match select(pin!(answering), pin!(gate.closed())).await {
                Either::Left((Ok(answer), _)) => Ok(answer),
                // The closed gate below may be the cause, and libraries between hide it.
                Either::Left((Err(error), _)) => Err(match gate.check() {
                    Ok(()) => error.into(),
                    Err(refusal) => refusal.into(),
                }),
                Either::Right((refusal, _)) => Err(refusal.into()),
            }
        }
        .boxed()
    }
}
