//! Responses in protobuf: the framing around the messages that the catalog writes. Each object is in an envelope that
//! names its kind (`runtime.Unknown` after four bytes), each event of a watch follows its length in four bytes.

use std::fmt;
use std::sync::Arc;
use std::vec;

use bytes::Bytes;

use crate::render::ListMeta;
use crate::representation::Representation;
use crate::wire::{self, message, text};
use crate::{Catalog, Object, Protobuf, Resource, Status, json};

pub(crate) const CONTENT_TYPE: &str = "application/vnd.kubernetes.protobuf";
/// The media type of a watch.
pub(crate) const STREAM: &str = "application/vnd.kubernetes.protobuf;stream=watch";

const MAGIC: &[u8] = b"k8s\0";

/// The approximate size of a chunk.
const CHUNK: usize = 128 * 1024;

/// How much of a list is kept while its length is computed. The rest is made twice and never held.
const KEPT: usize = 16 << 20;

/// Writes objects of one resource in one representation.
#[derive(Clone)]
pub(crate) struct Messages {
    api_version: String,
    kind: String,
    list_kind: String,
    object: Arc<dyn Protobuf>,
    status: Arc<dyn Protobuf>,
    metadata_only: bool,
}

impl fmt::Debug for Messages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Messages({} {})", self.api_version, self.kind)
    }
}

impl Messages {
    /// `None` for what has no messages: tables, and custom resources except for their metadata.
    pub(crate) fn of(
        catalog: &dyn Catalog,
        resource: &Resource,
        representation: &Representation,
    ) -> Option<Self> {
        let status = catalog.protobuf("v1", "Status")?;
        match representation {
            Representation::Whole if !resource.typed_items => {
                let api_version = resource.api_version();
                Some(Self {
                    object: catalog.protobuf(&api_version, &resource.kind)?,
                    api_version,
                    kind: resource.kind.to_string(),
                    list_kind: resource.list_kind.to_string(),
                    status,
                    metadata_only: false,
                })
            }
            Representation::Metadata { version, .. } => Some(Self {
                object: catalog.protobuf("meta.k8s.io/v1", "PartialObjectMetadata")?,
                api_version: format!("meta.k8s.io/{version}"),
                kind: "PartialObjectMetadata".to_string(),
                list_kind: "PartialObjectMetadataList".to_string(),
                status,
                metadata_only: true,
            }),
            Representation::Whole | Representation::Table { .. } => None,
        }
    }

    /// An object by itself.
    pub(crate) fn object(&self, body: &[u8], out: &mut Vec<u8>) {
        envelope(&self.api_version, &self.kind, out, |out| self.content(body, out));
    }

    /// An event of a watch.
    pub(crate) fn event(&self, change: &str, body: &[u8], out: &mut Vec<u8>) {
        frame(change, out, |out| self.object(body, out));
    }

    /// The event that says why a watch ends.
    pub(crate) fn error(&self, status: &Status, out: &mut Vec<u8>) {
        let text = status.to_json().to_string();
        frame("ERROR", out, |out| document("v1", "Status", &text, &*self.status, out));
    }

    fn content(&self, body: &[u8], out: &mut Vec<u8>) {
        if !self.metadata_only {
            self.object.write(body, out);
            return;
        }
        let metadata = json::member(body, "metadata").map_or(&b"{}"[..], |range| &body[range]);
        self.object.write(&[b"\"metadata\":", metadata, b"}"].concat(), out);
    }

    fn item(&self, object: &Object, out: &mut Vec<u8>) {
        message(2, out, |out| self.content(&object.body, out));
    }

    /// A list, chunk by chunk. Its length comes first, so all items are written once to compute it; that loop yields to
    /// other tasks.
    pub(crate) async fn list(self, meta: &ListMeta, objects: Vec<Arc<Object>>) -> List {
        let mut kept = Vec::new();
        let mut first_left = objects.len();
        let mut length = 0;
        let mut item = Vec::new();
        let mut since_pause = 0;
        for (at, object) in objects.iter().enumerate() {
            item.clear();
            self.item(object, &mut item);
            length += item.len();
            since_pause += item.len();
            if kept.len() < KEPT {
                kept.extend_from_slice(&item);
            } else {
                first_left = first_left.min(at);
            }
            if since_pause > CHUNK {
                since_pause = 0;
                tokio::task::yield_now().await;
            }
        }
        let mut metadata = Vec::new();
        message(1, &mut metadata, |out| list_meta(meta, out));
        let mut ready = MAGIC.to_vec();
        message(1, &mut ready, |out| type_meta(&self.api_version, &self.list_kind, out));
        wire::varint(2 << 3 | 2, &mut ready);
        wire::varint((metadata.len() + length) as u64, &mut ready);
        ready.extend_from_slice(&metadata);
        ready.extend_from_slice(&kept);
        let ended = first_left == objects.len();
        if ended {
            tail(&mut ready);
        }
        let mut left = objects;
        left.drain(..first_left);
        List { messages: self, ready: ready.into(), left: left.into_iter(), ended }
    }
}

/// The chunks of a list.
pub(crate) struct List {
    messages: Messages,
    /// The head and the first items.
    ready: Bytes,
    left: vec::IntoIter<Arc<Object>>,
    ended: bool,
}

impl Iterator for List {
    type Item = Bytes;

    fn next(&mut self) -> Option<Bytes> {
        if !self.ready.is_empty() {
            return Some(self.ready.split_to(self.ready.len().min(CHUNK)));
        }
        if self.ended {
            return None;
        }
        let mut buffer = Vec::with_capacity(CHUNK + CHUNK / 4);
        while buffer.len() < CHUNK {
            let Some(object) = self.left.next() else {
                tail(&mut buffer);
                self.ended = true;
                break;
            };
            self.messages.item(&object, &mut buffer);
        }
        Some(buffer.into())
    }
}

/// An API object that belongs to no resource, from its JSON.
pub(crate) fn document(api_version: &str, kind: &str, json: &str, writer: &dyn Protobuf, out: &mut Vec<u8>) {
    let members = json.trim().strip_prefix('{').unwrap_or("}");
    envelope(api_version, kind, out, |out| writer.write(members.as_bytes(), out));
}

fn envelope(api_version: &str, kind: &str, out: &mut Vec<u8>, content: impl FnOnce(&mut Vec<u8>)) {
    out.extend_from_slice(MAGIC);
    message(1, out, |out| type_meta(api_version, kind, out));
    message(2, out, content);
    tail(out);
}

fn type_meta(api_version: &str, kind: &str, out: &mut Vec<u8>) {
    text(1, api_version, out);
    text(2, kind, out);
}

/// Ends an envelope without content encoding and content type.
fn tail(out: &mut Vec<u8>) {
    text(3, "", out);
    text(4, "", out);
}

fn list_meta(meta: &ListMeta, out: &mut Vec<u8>) {
    text(1, "", out);
    text(2, &meta.revision.to_string(), out);
    text(3, meta.continue_token.as_deref().unwrap_or_default(), out);
    if let Some(remaining) = meta.remaining {
        wire::varint(4 << 3, out);
        wire::varint(remaining as u64, out);
    }
    if let Some(shard) = &meta.shard {
        message(5, out, |out| text(1, shard, out));
    }
}

/// A `WatchEvent`, which has no envelope itself.
fn frame(change: &str, out: &mut Vec<u8>, object: impl FnOnce(&mut Vec<u8>)) {
    let begin = out.len();
    out.extend_from_slice(&[0; 4]);
    text(1, change, out);
    message(2, out, |out| message(1, out, object));
    let length = u32::try_from(out.len() - begin - 4).unwrap_or(u32::MAX);
    out[begin..begin + 4].copy_from_slice(&length.to_be_bytes());
}
