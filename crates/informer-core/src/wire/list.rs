//! Cuts a list response into its items as it arrives.

use std::fmt;
use std::ops::Range;

use serde::Deserialize;

use super::cursor::Cursor;
use super::error::WireErrorKind;
use super::window::Window;
use super::{ApiStatus, WireError, key_of_part};
use crate::ResourceVersion;

/// Limits on what is accepted from a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The longest item of a list, or event of a watch, in bytes.
    pub item_bytes: usize,
}

impl Default for Limits {
    /// Items of up to 16 MiB, which is ten times what a server stores.
    fn default() -> Self {
        Self { item_bytes: 16 << 20 }
    }
}

/// The metadata of a list.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ListMeta {
    /// Such as `PodList`.
    pub kind: Option<String>,
    /// Such as `v1`; the items have the same.
    pub api_version: Option<String>,
    /// The version of the collection that the list shows.
    pub resource_version: ResourceVersion,
    /// The token of the next page, if one follows.
    pub continue_token: Option<String>,
    /// The number of items on the pages that follow, if the server says so.
    pub remaining_item_count: Option<u64>,
}

impl ListMeta {
    /// The kind of the items: the list's own without its `List`.
    pub fn item_kind(&self) -> Option<&str> {
        self.kind.as_deref()?.strip_suffix("List").filter(|kind| !kind.is_empty())
    }
}

/// One part of a list response.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum ListPart<'a> {
    /// The list's metadata so far. For built-in resources the server sends it before the items, for others after them.
    Meta(&'a ListMeta),
    /// The JSON of one item.
    Item(&'a [u8]),
}

/// Takes the body of a list response, in chunks of any size, and returns its items one by one.
///
/// The decoder holds no more than the chunk and one incomplete item. It reads an item's content only to find its end.
///
/// ```
/// use informer_core::internals::{ListDecoder, ListPart};
/// use informer_core::wire::Limits;
///
/// let mut list = ListDecoder::new(Limits::default());
/// let mut names = Vec::new();
/// for chunk in [br#"{"kind":"PodList","metadata":{"resourceVersion":"9"},"items":[{"metadata":{"na"#.as_slice(),
///               br#"me":"cart"}},{"metadata":{"name":"till"}}]}"#] {
///     list.push(chunk);
///     while let Some(part) = list.next()? {
///         if let ListPart::Item(json) = part {
///             names.push(informer_core::wire::scan_object(json)?.name().to_owned());
///         }
///     }
/// }
/// assert_eq!(names, ["cart", "till"]);
/// assert_eq!(list.finish()?.resource_version, "9".into());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct ListDecoder {
    window: Window,
    limits: Limits,
    state: State,
    member: Member,
    seen_items: bool,
    meta: ListMeta,
    /// The members other than a list's, needed if the body is a Status.
    status: Vec<u8>,
    failed: Option<WireError>,
    skips_long_items: bool,
    /// Whether an item that is too long is arriving.
    skipping: bool,
}

/// The next expected token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    List,
    FirstMember,
    Member,
    Colon,
    Value,
    AfterValue,
    FirstItem,
    Item,
    AfterItem,
    Nothing,
}

/// The member of the list whose value is expected.
#[derive(PartialEq, Eq)]
enum Member {
    Kind,
    ApiVersion,
    Metadata,
    Items,
    Other(Box<[u8]>),
}

/// No Status is longer than this.
const MAX_STATUS: usize = 64 << 10;

impl ListDecoder {
    /// A decoder for one list response.
    pub fn new(limits: Limits) -> Self {
        Self {
            window: Window::default(),
            limits,
            state: State::List,
            member: Member::Items,
            seen_items: false,
            meta: ListMeta::default(),
            status: Vec::new(),
            failed: None,
            skips_long_items: false,
            skipping: false,
        }
    }

    /// Makes the decoder skip an item that exceeds the limit, without holding it, if the part within the limit has its key.
    /// [`ListDecoder::next`] reports the item once ([`WireError::skipped`]) and continues after it. Otherwise one such item
    /// would make every list of the resource fail.
    #[must_use]
    pub fn skipping_long_items(mut self) -> Self {
        self.skips_long_items = true;
        self
    }

    /// Takes the next chunk of the body.
    pub fn push(&mut self, chunk: &[u8]) {
        self.window.push(chunk);
    }

    /// The next part, or `None` if another chunk is needed.
    ///
    /// # Errors
    ///
    /// When the response is not a list of objects, is malformed, or exceeds a limit. Each further call returns the same
    /// error, except after a skipped item.
    #[expect(clippy::should_implement_trait, reason = "an Iterator cannot lend its items")]
    pub fn next(&mut self) -> Result<Option<ListPart<'_>>, WireError> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        match self.advance() {
            Ok(Some(Found::Item(item))) => Ok(Some(ListPart::Item(self.window.get(item)))),
            Ok(Some(Found::Meta)) => Ok(Some(ListPart::Meta(&self.meta))),
            Ok(None) => {
                self.window.relax();
                Ok(None)
            }
            Err(cause @ WireErrorKind::Skipped { .. }) => Err(cause.into()),
            Err(cause) => Err(self.failed.insert(cause.into()).clone()),
        }
    }

    /// The list's metadata so far.
    pub fn meta(&self) -> &ListMeta {
        &self.meta
    }

    /// The bytes that the decoder holds.
    pub fn held_bytes(&self) -> usize {
        self.window.capacity()
    }

    /// Ends the body, after the last part was taken. Returns the list's metadata. The decoder is then ready for the next
    /// page.
    ///
    /// # Errors
    ///
    /// As [`ListDecoder::next`], and when the list is incomplete.
    pub fn finish(&mut self) -> Result<ListMeta, WireError> {
        if self.failed.is_none() && self.state != State::Nothing {
            self.failed = Some(WireErrorKind::Truncated { at: self.window.received() }.into());
        }
        self.next()?;
        self.window.clear();
        self.state = State::List;
        self.skipping = false;
        self.seen_items = false;
        self.status.clear();
        Ok(std::mem::take(&mut self.meta))
    }

    fn advance(&mut self) -> Result<Option<Found>, WireErrorKind> {
        if self.skipping {
            if !self.window.skip_value()? {
                return Ok(None);
            }
            self.skipping = false;
            self.state = State::AfterItem;
        }
        while let Some(byte) = self.window.peek() {
            match (self.state, byte) {
                (State::List, b'{') => self.pass_to(State::FirstMember),
                (State::FirstMember | State::AfterValue, b'}') => {
                    self.pass_to(State::Nothing);
                    self.check_kind()?;
                }
                (State::AfterValue, b',') => self.pass_to(State::Member),
                (State::FirstMember | State::Member, b'"') => {
                    let Some(name) = self.next_value()? else { return Ok(None) };
                    self.member = self.member_named(name)?;
                    self.state = State::Colon;
                }
                (State::Colon, b':') => self.pass_to(State::Value),
                (State::Value | State::FirstItem | State::Item, b',' | b':' | b'}')
                | (State::Value | State::Item, b']') => return Err(self.malformed(self.state.expectation())),
                (State::Value, b'[') if self.member == Member::Items => self.pass_to(State::FirstItem),
                (State::Value, _) => {
                    let Some(value) = self.next_value()? else { return Ok(None) };
                    self.state = State::AfterValue;
                    self.read(value)?;
                    if self.member == Member::Metadata {
                        return Ok(Some(Found::Meta));
                    }
                }
                (State::FirstItem | State::AfterItem, b']') => self.pass_to(State::AfterValue),
                (State::AfterItem, b',') => self.pass_to(State::Item),
                // Any value is an item here: one that is not an object is an error of that item alone.
                (State::FirstItem | State::Item, _) => {
                    let Some(item) = self.next_value().map_err(|cause| self.skip(cause))? else {
                        return Ok(None);
                    };
                    self.state = State::AfterItem;
                    return Ok(Some(Found::Item(item)));
                }
                (state, _) => return Err(self.malformed(state.expectation())),
            }
        }
        Ok(None)
    }

    fn pass_to(&mut self, state: State) {
        self.window.pass();
        self.state = state;
    }

    fn next_value(&mut self) -> Result<Option<Range<usize>>, WireErrorKind> {
        self.window.next_value(self.limits.item_bytes)
    }

    /// Skips an item that is too long, if its key is known.
    fn skip(&mut self, cause: WireErrorKind) -> WireErrorKind {
        let WireErrorKind::TooLong { limit, .. } = cause else { return cause };
        if !self.skips_long_items {
            return cause;
        }
        let Some(key) = key_of_part(self.window.allowed_part(limit)) else { return cause };
        self.skipping = true;
        WireErrorKind::Skipped { key, limit }
    }

    fn malformed(&self, what: &'static str) -> WireErrorKind {
        WireErrorKind::Malformed { what, at: self.window.at() }
    }

    fn member_named(&mut self, name: Range<usize>) -> Result<Member, WireErrorKind> {
        let raw = self.window.get(name);
        let text = Cursor::new(raw).text().map_err(|_| self.malformed("a member's name is expected"))?;
        Ok(match &*text.bytes() {
            b"kind" => Member::Kind,
            b"apiVersion" => Member::ApiVersion,
            b"metadata" => Member::Metadata,
            b"items" if self.seen_items => return Err(self.malformed("the list has its items twice")),
            b"items" => {
                self.seen_items = true;
                Member::Items
            }
            // A list of objects has no rows. A Table may be long, so this does not wait for its kind.
            b"rows" if !self.seen_items => return Err(WireErrorKind::Table),
            _ => Member::Other(raw.into()),
        })
    }

    /// Reads the value of a member, other than an array of items.
    fn read(&mut self, value: Range<usize>) -> Result<(), WireErrorKind> {
        let malformed = self.malformed("a member of the list has another type than expected");
        let value = self.window.get(value);
        let text = || serde_json::from_slice::<String>(value).map_err(|_| malformed.clone());
        match &self.member {
            Member::Kind => self.meta.kind = Some(text()?),
            Member::ApiVersion => self.meta.api_version = Some(text()?),
            Member::Metadata => {
                let metadata = serde_json::from_slice::<Option<Metadata>>(value).map_err(|_| malformed)?;
                let Metadata { resource_version, continue_token, remaining_item_count } =
                    metadata.unwrap_or_default();
                self.meta.resource_version = ResourceVersion::new(&resource_version.unwrap_or_default());
                self.meta.continue_token = continue_token.filter(|token| !token.is_empty());
                self.meta.remaining_item_count = remaining_item_count.and_then(|count| count.try_into().ok());
            }
            Member::Items if value == b"null" => {}
            Member::Items => return Err(malformed),
            Member::Other(name) if self.status.len() + name.len() + value.len() < MAX_STATUS => {
                for part in [if self.status.is_empty() { b"{" } else { b"," }, &**name, b":", value] {
                    self.status.extend_from_slice(part);
                }
            }
            Member::Other(_) => {}
        }
        let of_meta_group =
            self.meta.api_version.as_deref().is_some_and(|version| version.starts_with("meta.k8s.io/"));
        if of_meta_group && self.meta.kind.as_deref() == Some("Table") {
            Err(WireErrorKind::Table)
        } else {
            Ok(())
        }
    }

    /// Checks at the end that the body was a list. Otherwise any object without items would count as an empty list.
    fn check_kind(&mut self) -> Result<(), WireErrorKind> {
        match self.meta.kind.as_deref() {
            _ if self.seen_items => Ok(()),
            Some("Status") => {
                self.status.push(b'}');
                Err(WireErrorKind::Status(ApiStatus::from_body(200, &self.status).into()))
            }
            Some(kind) if kind.ends_with("List") => Ok(()),
            _ => Err(WireErrorKind::NotAList),
        }
    }
}

impl fmt::Debug for ListPart<'_> {
    /// Leaves out the item, which may be a Secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Meta(meta) => meta.fmt(f),
            Self::Item(json) => write!(f, "Item ({} bytes)", json.len()),
        }
    }
}

impl fmt::Debug for ListDecoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ListDecoder({:?}, {:?})", self.state, self.window)
    }
}

impl State {
    fn expectation(self) -> &'static str {
        match self {
            Self::List => "an object is expected",
            Self::FirstMember => "a member's name or `}` is expected",
            Self::Member => "a member's name is expected",
            Self::Colon => "`:` is expected",
            Self::Value => "a value is expected",
            Self::AfterValue => "`,` or `}` is expected",
            Self::FirstItem => "an item or `]` is expected",
            Self::Item => "an item is expected",
            Self::AfterItem => "`,` or `]` is expected",
            Self::Nothing => "nothing more is expected",
        }
    }
}

/// The part that was found, without a borrow.
enum Found {
    Meta,
    Item(Range<usize>),
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    resource_version: Option<String>,
    #[serde(rename = "continue")]
    continue_token: Option<String>,
    remaining_item_count: Option<i64>,
}

#[cfg(test)]
mod tests;
