//! Lists: of the newest state, of an earlier one, in pages.

use std::sync::Arc;
use std::vec;

use bytes::Bytes;
use http::Response;
use serde_json::json;

use crate::fresh::until_fresh;
use crate::negotiate::{Encoding, Format};
use crate::parameters::{Parameters, VersionMatch};
use crate::render::{ListMeta, Renderer};
use crate::representation::Representation;
use crate::token::Token;
use crate::{
    Body, Collection, CollectionError, Object, Range, Reason, Resource, ResourceRequest, ServeOptions,
    Status, answer, discovery, negotiate, protobuf,
};

/// The approximate size of a chunk.
const CHUNK: usize = 128 * 1024;

/// Answers a list. `gzip`: whether the client accepts compressed responses.
pub(crate) async fn list(
    resource: &Resource,
    collection: &dyn Collection,
    request: &ResourceRequest,
    parameters: Parameters,
    format: Format,
    gzip: bool,
    options: &ServeOptions,
) -> Result<Response<Body>, Status> {
    let version = parameters
        .version()
        .map_err(|error| Status::bad_request(format!("invalid resource version: {error}")))?;
    let one_namespace = request.namespace.is_some() || !resource.namespaced;
    let mut range = Range { namespace: request.namespace.as_deref().map(Box::from), after: None };
    let mut token = None;
    if !parameters.continue_token.is_empty() {
        let read = Token::decode(&parameters.continue_token, !one_namespace)?;
        if version > 0 {
            return Err(Status::bad_request(
                "specifying resource version is not allowed when using continue",
            ));
        }
        let (namespace, name) = &read.after;
        let namespace =
            if one_namespace { request.namespace.as_deref().unwrap_or_default() } else { namespace };
        range.after = Some((namespace.into(), name.as_str().into()));
        token = Some(read);
    }

    // A list of one named object is handled like a get: it has no pages, and no state that pages must share.
    let single = token.is_none() && one_namespace && parameters.selection.exact_name().is_some();
    let at = match (&token, parameters.version_match) {
        (Some(token), _) => token.revision,
        (None, Some(VersionMatch::Exact)) => Some(version),
        (None, None) if parameters.limit > 0 && version > 0 && !single => Some(version),
        _ => None,
    };
    until_fresh(collection, at.unwrap_or(version), options.fresh_timeout).await?;

    let listing = match collection.list(&range, at).await {
        Ok(listing) => listing,
        Err(CollectionError::Expired { .. }) => return expired(token),
        Err(CollectionError::Gone) => return Err(discovery::not_here()),
        Err(CollectionError::Failed(status)) => return Err(status),
    };

    // The real server answers "any version" from its cache as a whole, whatever the limit.
    let whole = options.watch_cache && parameters.resource_version == "0";
    let limit = if whole { 0 } else { parameters.limit };
    let total = listing.objects.len();
    let mut selected = Vec::new();
    let mut last = None;
    for (seen, object) in listing.objects.into_iter().enumerate() {
        if parameters.selection.matches(&object) {
            selected.push(object);
        }
        if limit > 0 && selected.len() >= limit {
            last = selected.last().filter(|_| seen + 1 < total).cloned();
            break;
        }
    }
    let format = format.with_rows(&request.query)?;
    // Only lists of typed objects say of which shard they are, although all are filtered.
    let says_shard = !resource.typed_items && matches!(format.representation, Representation::Whole);
    let selection = &parameters.selection;
    let meta = ListMeta {
        revision: listing.revision,
        // The remaining items are counted without applying selectors, so the count is sent only without selectors.
        remaining: last.as_ref().filter(|_| selection.is_everything()).map(|_| total - limit),
        continue_token: last.map(|last| {
            let namespace = if one_namespace { String::new() } else { last.namespace.to_string() };
            Token { revision: Some(listing.revision), after: (namespace, last.name.to_string()) }.encode()
        }),
        shard: selection.shard().filter(|_| says_shard).map(ToString::to_string),
    };
    negotiate::several(&format.representation, resource)?;
    let gzip_from = options.gzip_from.filter(|_| gzip);
    Ok(match format.encoding {
        Encoding::Json => {
            let renderer = Renderer::new(resource, format.representation);
            answer::chunks(Text::new(renderer, &meta, selected), "application/json", gzip_from)
        }
        Encoding::Protobuf(messages) => {
            answer::chunks(messages.list(&meta, selected).await, protobuf::CONTENT_TYPE, gzip_from)
        }
    })
}

fn expired(token: Option<Token>) -> Result<Response<Body>, Status> {
    let Some(token) = token else {
        return Err(Status::new(Reason::Expired, "The resourceVersion for the provided list is too old."));
    };
    let status = Status::new(
        Reason::Expired,
        "The provided continue parameter is too old to display a consistent list result. You can start a new list \
         without the continue parameter, or use the continue token in this response to retrieve the remainder of the \
         results. Continuing with the provided token results in an inconsistent list - objects that were created, \
         modified, or deleted between the time the first chunk was returned and now may show up in the list.",
    );
    let mut text = status.to_json();
    text["metadata"] = json!({ "continue": Token { revision: None, ..token }.encode() });
    Ok(answer::status_text(&status, &text))
}

/// The text of a list, chunk by chunk.
struct Text {
    renderer: Renderer,
    objects: vec::IntoIter<Arc<Object>>,
    /// Text that was made and not taken yet.
    buffer: Vec<u8>,
    begun: bool,
    ended: bool,
}

impl Text {
    fn new(renderer: Renderer, meta: &ListMeta, objects: Vec<Arc<Object>>) -> Self {
        let mut buffer = Vec::new();
        renderer.list_head(meta, &mut buffer);
        Self { renderer, objects: objects.into_iter(), buffer, begun: false, ended: false }
    }
}

impl Iterator for Text {
    type Item = Bytes;

    fn next(&mut self) -> Option<Bytes> {
        if self.ended {
            return None;
        }
        while self.buffer.len() < CHUNK {
            let Some(object) = self.objects.next() else {
                let end = if self.begun { "]" } else { self.renderer.no_items() };
                self.buffer.extend_from_slice(end.as_bytes());
                self.buffer.extend_from_slice(b"}\n");
                self.ended = true;
                break;
            };
            self.buffer.push(if self.begun { b',' } else { b'[' });
            self.begun = true;
            self.renderer.item(&object, &mut self.buffer);
        }
        let next = if self.ended { Vec::new() } else { Vec::with_capacity(self.buffer.capacity()) };
        Some(Bytes::from(std::mem::replace(&mut self.buffer, next)))
    }
}
