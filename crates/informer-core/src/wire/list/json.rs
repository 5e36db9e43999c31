//! The items of a list in JSON.

use std::fmt;
use std::ops::Range;

use serde::Deserialize;

use super::super::ApiStatus;
use super::super::cursor::Cursor;
use super::super::error::WireErrorKind;
use super::super::scan::key_of_part;
use super::super::window::Window;
use super::{Found, ListMeta, too_long};
use crate::ResourceVersion;

/// How far a list in JSON has been read.
#[derive(Default)]
pub(super) struct JsonList {
    state: State,
    member: Member,
    seen_items: bool,
    /// The members other than a list's, needed if the body is a Status.
    status: Vec<u8>,
}

/// The next expected token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum State {
    #[default]
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
#[derive(PartialEq, Eq, Default)]
enum Member {
    Kind,
    ApiVersion,
    Metadata,
    #[default]
    Items,
    Other(Box<[u8]>),
}

/// No Status is longer than this.
const MAX_STATUS: usize = 64 << 10;

impl JsonList {
    /// Whether the list has ended. White space may follow.
    pub(super) fn is_complete(&self) -> bool {
        self.state == State::Nothing
    }

    pub(super) fn advance(
        &mut self,
        window: &mut Window,
        meta: &mut ListMeta,
        limit: usize,
    ) -> Result<Option<Found>, WireErrorKind> {
        while let Some(byte) = window.peek() {
            let passed = match (self.state, byte) {
                (State::List, b'{') => State::FirstMember,
                (State::FirstMember | State::AfterValue, b'}') => {
                    self.check_kind(meta)?;
                    State::Nothing
                }
                (State::AfterValue, b',') => State::Member,
                (State::FirstMember | State::Member, b'"') => {
                    let Some(name) = window.next_value(limit)? else { return Ok(None) };
                    self.member = self.member_named(window, name)?;
                    self.state = State::Colon;
                    continue;
                }
                (State::Colon, b':') => State::Value,
                (State::Value | State::FirstItem | State::Item, b',' | b':' | b'}')
                | (State::Value | State::Item, b']') => {
                    return Err(window.malformed(self.state.expectation()));
                }
                (State::Value, b'[') if self.member == Member::Items => State::FirstItem,
                (State::Value, _) => {
                    let Some(value) = window.next_value(limit)? else { return Ok(None) };
                    self.state = State::AfterValue;
                    self.read(window, value, meta)?;
                    if self.member == Member::Metadata {
                        return Ok(Some(Found::Meta));
                    }
                    continue;
                }
                (State::FirstItem | State::AfterItem, b']') => State::AfterValue,
                (State::AfterItem, b',') => State::Item,
                // Any value is an item here: one that is not an object is an error of that item alone.
                (State::FirstItem | State::Item, _) => {
                    let item = window.next_value(limit);
                    if let Ok(None) = item {
                        return Ok(None);
                    }
                    self.state = State::AfterItem;
                    let item = item.map_err(|cause| too_long(cause, window, key_of_part))?;
                    return Ok(item.map(Found::Item));
                }
                (state, _) => return Err(window.malformed(state.expectation())),
            };
            window.pass();
            self.state = passed;
        }
        Ok(None)
    }

    fn member_named(&mut self, window: &Window, name: Range<usize>) -> Result<Member, WireErrorKind> {
        let raw = window.get(name);
        let text = Cursor::new(raw).text().map_err(|_| window.malformed("a member's name is expected"))?;
        Ok(match &*text.bytes() {
            b"kind" => Member::Kind,
            b"apiVersion" => Member::ApiVersion,
            b"metadata" => Member::Metadata,
            b"items" if self.seen_items => return Err(window.malformed("the list has its items twice")),
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
    fn read(
        &mut self,
        window: &Window,
        value: Range<usize>,
        meta: &mut ListMeta,
    ) -> Result<(), WireErrorKind> {
        let malformed = window.malformed("a member of the list has another type than expected");
        let value = window.get(value);
        let text = || serde_json::from_slice::<String>(value).map_err(|_| malformed.clone());
        match &self.member {
            Member::Kind => meta.kind = Some(text()?),
            Member::ApiVersion => meta.api_version = Some(text()?),
            Member::Metadata => {
                let metadata = serde_json::from_slice::<Option<Metadata>>(value).map_err(|_| malformed)?;
                let Metadata { resource_version, continue_token, remaining_item_count } =
                    metadata.unwrap_or_default();
                meta.resource_version = ResourceVersion::new(&resource_version.unwrap_or_default());
                meta.continue_token = continue_token.filter(|token| !token.is_empty());
                meta.remaining_item_count = remaining_item_count.and_then(|count| count.try_into().ok());
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
            meta.api_version.as_deref().is_some_and(|version| version.starts_with("meta.k8s.io/"));
        if of_meta_group && meta.kind.as_deref() == Some("Table") {
            Err(WireErrorKind::Table)
        } else {
            Ok(())
        }
    }

    /// Checks at the end that the body was a list. Otherwise any object without items would count as an empty list.
    fn check_kind(&mut self, meta: &ListMeta) -> Result<(), WireErrorKind> {
        match meta.kind.as_deref() {
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

impl fmt::Debug for JsonList {
    /// Leaves out the members of a Status, which the server wrote.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.state.fmt(f)
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

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    resource_version: Option<String>,
    #[serde(rename = "continue")]
    continue_token: Option<String>,
    remaining_item_count: Option<i64>,
}
