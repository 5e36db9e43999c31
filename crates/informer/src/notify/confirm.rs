//! Asks the server whether an object still exists.

use std::sync::Arc;

use futures_util::future::{BoxFuture, FutureExt};
use http::header::{ACCEPT, ACCEPT_ENCODING};
use informer_core::wire::ApiStatus;
use informer_core::{Object, ObjectKey, Uid};

use crate::inner::Core;
use crate::inner::ending::Work;
use crate::notify::existence::{Ask, ConfirmError, Existence};
use crate::transport::TransportError;

/// The uid is part of the metadata. A server that cannot convert objects to metadata sends them whole.
const METADATA: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json";

/// The limit for an error body: a Status is short.
const STATUS_LIMIT: usize = 64 * 1024;

impl Ask for Core {
    fn existence(
        self: Arc<Self>,
        key: ObjectKey,
        uid: Uid,
    ) -> BoxFuture<'static, Result<Existence, ConfirmError>> {
        let stopped = ConfirmError::stopped(&key);
        if self.life.is_stopped() {
            return futures_util::future::ready(Err(stopped)).boxed();
        }
        let limit = self.settings.reflector.response_timeout;
        let (running, stop) = (self.life.running(Work::Confirmation), self.life.stop_token());
        let runtime = self.runtime().clone();
        let asked = async move {
            let _running = running;
            tokio::time::timeout(limit, ask(&self, &key, &uid))
                .await
                .unwrap_or_else(|late| Err(ConfirmError::unreachable(&key, late)))
        };
        // Connections belong to the informer's runtime, not to the caller's.
        let asked = runtime.run(async move { stop.run_until_cancelled_owned(asked).await });
        async move { asked.await.flatten().unwrap_or(Err(stopped)) }.boxed()
    }
}

async fn ask(core: &Core, key: &ObjectKey, uid: &Uid) -> Result<Existence, ConfirmError> {
    let unreachable = |error| ConfirmError::unreachable(key, error);
    let request = http::Request::get(core.served().object_path(key))
        .header(ACCEPT, METADATA)
        .header(ACCEPT_ENCODING, "identity")
        .body(Vec::new())
        .map_err(|error| TransportError::new("the request is invalid", Some(Box::from(error))));
    let response = core.ask(request.map_err(unreachable)?).await.map_err(unreachable)?;
    let code = response.head.status;
    let limit = if code.is_success() { core.settings.item_limit } else { STATUS_LIMIT };
    let body = response.collect(limit).await.map_err(unreachable)?;
    if !code.is_success() {
        let status = ApiStatus::from_body(code.as_u16(), &body);
        // A 404 without a reason concerns the path: the server does not serve this version of the resource.
        let is_gone = status.is_not_found() && status.reason == "NotFound";
        return if is_gone { Ok(Existence::Gone) } else { Err(ConfirmError::refused(key, status)) };
    }
    let object = Object::from_json(&body).map_err(|error| ConfirmError::unreachable(key, error))?;
    let is_it = uid.is_unset() || object.uid() == uid;
    Ok(if is_it {
        Existence::Exists { resource_version: object.resource_version().clone() }
    } else {
        Existence::Recreated { uid: object.uid().clone() }
    })
}
