//! The request of a write.

use http::Request;
use http::header::{ACCEPT, CONTENT_TYPE};
use informer::kube::client;
use informer::kube::core::request;
use informer::{ObjectKey, ResourceType, path_segment};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::WriteError;
use super::answer::Answer;
use super::attempt::Attempt;
use super::form::Form;
use super::options::Options;
use crate::request::collection;

impl<'a> Attempt<'a> {
    /// A write of an object that has a name.
    pub(super) fn on(
        verb: &'static str,
        resource: &'a ResourceType,
        key: Option<&'a ObjectKey>,
    ) -> Result<(Self, &'a ObjectKey), WriteError> {
        let namespace = key.and_then(ObjectKey::namespace);
        let this = Self { verb, resource, namespace, name: key.map(ObjectKey::name), subresource: None };
        this.check()?;
        Ok((this, key.ok_or_else(|| this.unnamed())?))
    }

    /// No object has such a name, and a server or proxy may read it as another path, though it is escaped: a deletion of `.`
    /// as one of the collection.
    pub(super) fn check(&self) -> Result<(), WriteError> {
        for (field, text) in [("metadata.namespace", self.namespace), ("metadata.name", self.name)] {
            if text.is_some_and(|text| matches!(text, "." | "..") || text.contains('/')) {
                return Err(self.no_name(field));
            }
        }
        Ok(())
    }

    pub(super) fn key(&self) -> Result<ObjectKey, WriteError> {
        self.check()?;
        let key = self.name.and_then(|name| ObjectKey::new(self.namespace, name).ok());
        key.ok_or_else(|| self.unnamed())
    }

    /// The request: kube's builders know neither every form nor every option.
    pub(super) fn request(
        &self,
        form: Form,
        options: &Options,
        body: &impl Serialize,
    ) -> Result<Request<Vec<u8>>, WriteError> {
        let mut path = collection(self.resource, self.namespace).url_path;
        let of_collection = form == Form::New && self.subresource.is_none();
        for part in [self.name.filter(|_| !of_collection), self.subresource].into_iter().flatten() {
            path.push('/');
            path.push_str(&path_segment(part));
        }
        let body = serde_json::to_vec(body).map_err(|error| self.failed(client::Error::SerdeError(error)))?;
        Request::builder()
            .method(form.method())
            .uri(format!("{path}?{}", options.query(form)))
            .header(ACCEPT, "application/json")
            .header(CONTENT_TYPE, form.content_type())
            .body(body)
            .map_err(|error| self.failed(client::Error::BuildRequest(request::Error::BuildRequest(error))))
    }

    pub(super) fn typed<K: DeserializeOwned>(&self, answer: Answer) -> Result<K, WriteError> {
        answer.decode().map_err(|error| self.failed(error))
    }
}
