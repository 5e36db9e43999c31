//! Changes by a JSON patch, for callers in this crate.

use http::HeaderValue;
use http::header::CONTENT_TYPE;
use informer::kube::core::params::{Patch, PatchParams};
use informer::path_segment;
use serde_json::{Value, json};

use super::{Attempt, Request, Target, WriteError, Writer};

impl Writer {
    /// Changes an object by a JSON patch ([RFC 6902](https://www.rfc-editor.org/rfc/rfc6902)), if it is the incarnation that
    /// `target` names. The patch is applied to the object as it is then: tests in it are the only other preconditions.
    ///
    /// # Errors
    ///
    /// A test that fails is a conflict. The server answers it with 422, as it does an object that is not valid: the patch must
    /// not make one invalid.
    pub(crate) async fn json_patch<K>(
        &self,
        target: impl Target<K>,
        operations: impl IntoIterator<Item = Value>,
    ) -> Result<(), WriteError> {
        let (resource, key, seen) = (target.resource(), target.key(), target.seen());
        let attempt = Attempt {
            verb: "patch",
            resource: &resource,
            namespace: key.namespace(),
            name: Some(key.name()),
        };
        attempt.check()?;
        let uid =
            seen.uid.map(|uid| json!({ "op": "test", "path": "/metadata/uid", "value": uid.to_string() }));
        let patch: Value = uid.into_iter().chain(operations).collect();
        let parameters =
            PatchParams { field_manager: Some(self.shared.name.to_string()), ..PatchParams::default() };
        // kube-core has JSON patches only with a feature that brings a crate for applying them.
        let mut request =
            attempt.collection().patch(&path_segment(key.name()), &parameters, &Patch::Merge(patch));
        if let Ok(request) = &mut request {
            let json_patch = HeaderValue::from_static("application/json-patch+json");
            request.headers_mut().insert(CONTENT_TYPE, json_patch);
        }
        match self.send(attempt, Request::default(), request).await {
            Err(error) if error.code() == Some(422) => Err(attempt.changed()),
            answer => answer.map(drop),
        }
    }
}
