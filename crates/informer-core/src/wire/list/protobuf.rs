//! The items of a list in protobuf: messages of their kind, without envelopes. The list has one.

use informer_protobuf::wire::Value;

use super::super::ApiStatus;
use super::super::error::WireErrorKind;
use super::super::protobuf::{Header, MAGIC, NoField, fields, key_of_part, text};
use super::super::window::Window;
use super::{Found, ListMeta, too_long};
use crate::ResourceVersion;

/// How far a list in protobuf has been read: the next expected token.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) enum ProtobufList {
    #[default]
    Magic,
    /// A field of the envelope before the list.
    Envelope,
    /// A field of the list, of which this many bytes have not been read yet.
    List(u64),
    /// A field of the envelope after the list, or the end.
    Behind,
}

/// No part of a list other than an item is longer than this.
const MAX_HEAD: usize = 64 << 10;

impl ProtobufList {
    pub(super) fn is_complete(&self, window: &Window) -> bool {
        *self == Self::Behind && !window.is_skipping() && window.unread().is_empty()
    }

    pub(super) fn advance(
        &mut self,
        window: &mut Window,
        meta: &mut ListMeta,
        limit: usize,
    ) -> Result<Option<Found>, WireErrorKind> {
        while window.skip_rest()? {
            match *self {
                Self::Magic if window.unread().starts_with(MAGIC) => {
                    window.take(MAGIC.len());
                    *self = Self::Envelope;
                }
                // A body that is not protobuf may be shorter than the magic bytes.
                Self::Magic if MAGIC.starts_with(window.unread()) => return Ok(None),
                Self::Magic => {
                    let what = "it does not begin with the magic bytes of Kubernetes' protobuf";
                    return Err(window.malformed(what));
                }
                Self::List(0) => *self = Self::Behind,
                Self::List(left) => {
                    let Some(header) = header(window)? else { return Ok(None) };
                    let whole = header.following.saturating_add(header.bytes as u64);
                    let Some(left) = left.checked_sub(whole) else {
                        return Err(window.malformed("a field is longer than its list"));
                    };
                    let found = match header.number {
                        1 => window.next_bytes(header.bytes, header.following, MAX_HEAD)?.map(|metadata| {
                            read_metadata(window.get(metadata), meta);
                            Found::Meta
                        }),
                        2 => match window.next_bytes(header.bytes, header.following, limit) {
                            Ok(item) => item.map(Found::Item),
                            Err(cause) => {
                                *self = Self::List(left);
                                return Err(too_long(cause, window, key_of_part));
                            }
                        },
                        _ => {
                            skip(header, window);
                            *self = Self::List(left);
                            continue;
                        }
                    };
                    if found.is_some() {
                        *self = Self::List(left);
                    }
                    return Ok(found);
                }
                Self::Envelope | Self::Behind => {
                    let Some(header) = header(window)? else { return Ok(None) };
                    if !self.envelope_field(header, window, meta)? {
                        return Ok(None);
                    }
                    if let Self::List(_) = self {
                        return Ok(Some(Found::Meta));
                    }
                }
            }
        }
        Ok(None)
    }

    /// Reads a field of the envelope. Returns whether it has arrived.
    fn envelope_field(
        &mut self,
        header: Header,
        window: &mut Window,
        meta: &mut ListMeta,
    ) -> Result<bool, WireErrorKind> {
        let is_behind = *self == Self::Behind;
        match (header.number, meta.kind.as_deref()) {
            (1, _) if !is_behind => {
                let Some(types) = window.next_bytes(header.bytes, header.following, MAX_HEAD)? else {
                    return Ok(false);
                };
                for field in fields(window.get(types)) {
                    let text = text(field.value).map(str::to_owned);
                    match field.number {
                        1 => meta.api_version = text,
                        2 => meta.kind = text,
                        _ => {}
                    }
                }
            }
            (2, _) if is_behind => return Err(window.malformed("the envelope has two contents")),
            (2, Some("Status")) => {
                let Some(status) = window.next_bytes(header.bytes, header.following, MAX_HEAD)? else {
                    return Ok(false);
                };
                let status = ApiStatus::from_protobuf(200, window.get(status));
                return Err(WireErrorKind::Status(status.into()));
            }
            (2, Some("Table")) => return Err(WireErrorKind::Table),
            (2, Some(kind)) if kind.ends_with("List") => {
                window.take(header.bytes);
                *self = Self::List(header.following);
            }
            (2, _) => return Err(WireErrorKind::NotAList),
            // The encoding of the content within the envelope, which must be none.
            (3, _) if header.following > 0 => {
                return Err(window.malformed("its content has an unknown encoding"));
            }
            _ => skip(header, window),
        }
        Ok(true)
    }
}

fn header(window: &Window) -> Result<Option<Header>, WireErrorKind> {
    Header::read(window.unread()).map_err(|NoField| window.malformed("a field is expected"))
}

fn skip(header: Header, window: &mut Window) {
    window.take(header.bytes);
    window.skip(header.following);
}

fn read_metadata(metadata: &[u8], meta: &mut ListMeta) {
    for field in fields(metadata) {
        match (field.number, field.value) {
            (2, value) => meta.resource_version = ResourceVersion::new(text(value).unwrap_or_default()),
            (3, value) => {
                meta.continue_token = text(value).filter(|token| !token.is_empty()).map(str::to_owned);
            }
            (4, Value::Varint(count)) => meta.remaining_item_count = Some(count),
            _ => {}
        }
    }
}
