//! Lists: of the newest state, of an earlier one, in pages.

use std::sync::Arc;
use std::vec;

use bytes::Bytes;
use futures_util::stream;
use http::Response;
use serde_json::json;

use crate::collection::in_memory;
use crate::fresh::until_fresh;
use crate::negotiate::{Encoding, Format};
use crate::parameters::{Parameters, VersionMatch};
use crate::render::{ListMeta, Renderer};
use crate::representation::Representation;
use crate::selector::Selection;
use crate::token::Token;
use crate::{
    Body, Collection, CollectionError, Listing, Object, Objects, Range, Reason, Resource, ResourceRequest,
    ServeOptions, Status, answer, discovery, negotiate, protobuf,
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
    let Listing { revision, count, objects } = listing;
    let selection = parameters.selection;
    let is_everything = selection.is_everything();
    let shard = selection.shard().map(ToString::to_string);
    let mut items = Items { objects, selection: Some(selection), batch: Vec::new().into_iter() };
    let mut end = None;
    if parameters.limit > 0 && !whole {
        let page = items.page(parameters.limit, options.page_bytes).await.map_err(broken)?;
        end = page.last().filter(|_| page.seen < count).map(|last| (Arc::clone(last), count - page.seen));
        items = Items::of(page.selected);
    }
    let format = format.with_rows(&request.query)?;
    // Only lists of typed objects say of which shard they are, although all are filtered.
    let says_shard = !resource.typed_items && matches!(format.representation, Representation::Whole);
    let meta = ListMeta {
        revision,
        // The remaining items are counted without applying selectors, so the count is sent only without selectors.
        remaining: end.as_ref().filter(|_| is_everything).map(|(_, left)| *left),
        continue_token: end.map(|(last, _)| {
            let namespace = if one_namespace { String::new() } else { last.namespace.to_string() };
            Token { revision: Some(revision), after: (namespace, last.name.to_string()) }.encode()
        }),
        shard: shard.filter(|_| says_shard),
    };
    negotiate::several(&format.representation, resource)?;
    let gzip_from = options.gzip_from.filter(|_| gzip);
    let answer = match format.encoding {
        Encoding::Json => {
            let renderer = Renderer::new(resource, format.representation, collection.now());
            let text = stream::try_unfold(Text::new(renderer, &meta, items), |mut text| async move {
                Ok(text.next().await?.map(|chunk| (chunk, text)))
            });
            answer::chunks(text, "application/json", gzip_from).await
        }
        Encoding::Protobuf(messages) => {
            let selected = items.page(usize::MAX, None).await.map_err(broken)?.selected;
            let messages = stream::iter(messages.list(&meta, selected).await.map(Ok));
            answer::chunks(messages, protobuf::CONTENT_TYPE, gzip_from).await
        }
    };
    answer.map_err(broken)
}

/// Why the objects of a list cannot be read, before anything of the response is sent.
pub(crate) fn broken(error: CollectionError) -> Status {
    match error {
        CollectionError::Expired { .. } => too_old(),
        CollectionError::Gone => discovery::not_here(),
        CollectionError::Failed(status) => status,
    }
}

fn too_old() -> Status {
    Status::new(Reason::Expired, "The resourceVersion for the provided list is too old.")
}

fn expired(token: Option<Token>) -> Result<Response<Body>, Status> {
    let Some(token) = token else {
        return Err(too_old());
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

/// The selected objects of a list.
struct Items {
    objects: Box<dyn Objects>,
    /// `None` where they are selected already.
    selection: Option<Selection>,
    batch: vec::IntoIter<Arc<Object>>,
}

/// The beginning of a list, in memory.
struct Page {
    selected: Vec<Arc<Object>>,
    /// How many objects were looked at.
    seen: usize,
    is_full: bool,
}

impl Page {
    /// The object with which the page ends before the list does.
    fn last(&self) -> Option<&Arc<Object>> {
        self.selected.last().filter(|_| self.is_full)
    }
}

impl Items {
    fn of(selected: Vec<Arc<Object>>) -> Self {
        Self { objects: in_memory(selected), selection: None, batch: Vec::new().into_iter() }
    }

    /// The next object of the batch.
    fn next(&mut self) -> Option<Arc<Object>> {
        let selection = &self.selection;
        self.batch.find(|object| selection.as_ref().is_none_or(|selection| selection.matches(object)))
    }

    /// Takes the next batch; whether there is one.
    async fn more(&mut self) -> Result<bool, CollectionError> {
        self.batch = self.objects.next().await?.into_iter();
        Ok(!self.batch.as_slice().is_empty())
    }

    /// The first objects: this many, or fewer if they have so many bytes.
    async fn page(&mut self, limit: usize, bytes: Option<usize>) -> Result<Page, CollectionError> {
        let mut page = Page { selected: Vec::new(), seen: 0, is_full: false };
        let (mut taken, mut length) = (0, 0);
        while self.more().await? {
            taken += self.batch.len();
            while let Some(object) = self.next() {
                length += object.body.len();
                page.selected.push(object);
                if page.selected.len() >= limit || bytes.is_some_and(|most| length >= most) {
                    page.is_full = true;
                    page.seen = taken - self.batch.len();
                    return Ok(page);
                }
            }
        }
        page.seen = taken;
        Ok(page)
    }
}

/// The text of a list, chunk by chunk.
struct Text {
    renderer: Renderer,
    items: Items,
    /// Text that was made and not taken yet.
    buffer: Vec<u8>,
    begun: bool,
    ended: bool,
}

impl Text {
    fn new(renderer: Renderer, meta: &ListMeta, items: Items) -> Self {
        let mut buffer = Vec::new();
        renderer.list_head(meta, &mut buffer);
        Self { renderer, items, buffer, begun: false, ended: false }
    }

    async fn next(&mut self) -> Result<Option<Bytes>, CollectionError> {
        if self.ended {
            return Ok(None);
        }
        while self.buffer.len() < CHUNK {
            if let Some(object) = self.items.next() {
                self.buffer.push(if self.begun { b',' } else { b'[' });
                self.begun = true;
                self.renderer.item(&object, &mut self.buffer);
            } else if !self.items.more().await? {
                let end = if self.begun { "]" } else { self.renderer.no_items() };
                self.buffer.extend_from_slice(end.as_bytes());
                self.buffer.extend_from_slice(b"}\n");
                self.ended = true;
                break;
            }
        }
        let next = if self.ended { Vec::new() } else { Vec::with_capacity(self.buffer.capacity()) };
        Ok(Some(Bytes::from(std::mem::replace(&mut self.buffer, next))))
    }
}
