//! Deserializes a [`Node`] as any serde type, as if from the object's JSON.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::de::value::{BorrowedStrDeserializer, MapAccessDeserializer};
use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::forward_to_deserialize_any;

use crate::error::{Error, ErrorKind};
use crate::kind::Kind;
use crate::members::{Members, Place};
use crate::node::{List, Map, Node, Object};
use crate::number::Number;
use crate::part::Part;
use crate::schema::Member;
use crate::walk::Walk;
use crate::weight;

impl<'de> Deserializer<'de> for Node<'de> {
    type Error = Error;

    #[inline]
    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self {
            Self::Null => visitor.visit_unit(),
            Self::Bool(value) => visitor.visit_bool(value),
            Self::Integer(value) => match u64::try_from(value) {
                Ok(value) => visitor.visit_u64(value),
                Err(_) => visitor.visit_i64(value),
            },
            Self::Float(value) => match Number::of(value) {
                Number::Positive(value) => visitor.visit_u64(value),
                Number::Negative(value) => visitor.visit_i64(value),
                Number::Float(value) => visitor.visit_f64(value),
            },
            Self::Text(text) => {
                weight::add_text(text.bytes.len());
                visitor.visit_borrowed_str(text.text()?)
            }
            Self::Bytes(bytes) => {
                weight::add_text(bytes.len());
                visitor.visit_string(STANDARD.encode(bytes))
            }
            Self::Time(stamp) => stamp.text(|text| visitor.visit_str(text)),
            Self::Json(json, room) => carried(json, room, |json| json.deserialize_any(visitor)),
            Self::Object(object) => visitor.visit_map(Access::object(object)?),
            Self::List(list) => visitor.visit_seq(list),
            Self::Map(map) => visitor.visit_map(Access::map(map)),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self {
            Self::Null => visitor.visit_none(),
            // The JSON may be `null`.
            Self::Json(json, room) => carried(json, room, |json| json.deserialize_option(visitor)),
            some => visitor.visit_some(some),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        match self {
            Self::Text(text) => visitor.visit_enum(BorrowedStrDeserializer::new(text.text()?)),
            Self::Json(json, room) => {
                carried(json, room, |json| json.deserialize_enum(name, variants, visitor))
            }
            Self::Object(object) => visitor.visit_enum(MapAccessDeserializer::new(Access::object(object)?)),
            other => other.deserialize_any(visitor),
        }
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_unit()
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct
        seq tuple tuple_struct map struct identifier
    }
}

/// serde_json decodes JSON that the object carries. Its errors may quote that JSON.
fn carried<'de, T>(
    json: Part<'de>,
    room: u8,
    read: impl FnOnce(&mut serde_json::Deserializer<serde_json::de::SliceRead<'de>>) -> serde_json::Result<T>,
) -> Result<T, Error> {
    check_depth(json, room)?;
    // Not counted while it is read. A tree takes some times as much as its text.
    weight::add(3 * json.bytes.len());
    let mut deserializer = serde_json::Deserializer::from_slice(json.bytes);
    let value = read(&mut deserializer).and_then(|value| deserializer.end().map(|()| value));
    value.map_err(|error| match json.text() {
        Err(not_utf8) => not_utf8,
        Ok(_) => Error::new(if error.is_data() { ErrorKind::Refused } else { ErrorKind::Json }, json.base),
    })
}

/// Refuses JSON that is nested deeper than `room` levels: serde_json counts only its own levels.
fn check_depth(json: Part<'_>, mut room: u8) -> Result<(), Error> {
    // Most have fewer brackets in all.
    if json.bytes.iter().filter(|byte| matches!(byte, b'{' | b'[')).count() <= room.into() {
        return Ok(());
    }
    let mut is_in_string = false;
    let mut bytes = json.bytes.iter().enumerate();
    while let Some((at, byte)) = bytes.next() {
        match byte {
            b'"' => is_in_string = !is_in_string,
            b'\\' if is_in_string => drop(bytes.next()),
            _ if is_in_string => {}
            b'{' | b'[' => {
                let below = room.checked_sub(1);
                room = below.ok_or_else(|| Error::new(ErrorKind::TooDeep, json.base + at))?;
            }
            // serde_json checks that brackets match.
            b'}' | b']' => room = room.saturating_add(1),
            _ => {}
        }
    }
    Ok(())
}

/// `apiVersion` and `kind`: a whole object begins with them.
struct Own {
    kind: Option<Kind>,
    api_version: Option<Kind>,
}

impl Own {
    fn new(kind: Option<Kind>) -> Self {
        Self { kind, api_version: kind }
    }

    #[inline]
    fn next(&mut self) -> Option<(&'static str, &'static str)> {
        let kind = self.kind.take().map(|kind| ("kind", kind.kind()));
        kind.or_else(|| self.api_version.take().map(|kind| ("apiVersion", kind.api_version())))
    }
}

/// The members of an object, or a map's entries. One type for all three, so that each deserialized type has one visitor
/// to compile and to keep in the processor's cache.
struct Access<'de> {
    own: Own,
    /// The name of the next of `apiVersion` and `kind`.
    said: Option<&'static str>,
    from: From<'de>,
}

enum From<'de> {
    /// In the order of the message's fields.
    Walk(Walk<'de>),
    /// In the order of JSON: large, and rare.
    InOrder(Box<Members<'de>>, Option<Place>),
    Map(Map<'de>, Option<Node<'de>>, usize),
}

impl<'de> Access<'de> {
    #[inline]
    fn object(object: Object<'de>) -> Result<Self, Error> {
        let from = if object.in_order {
            let mut members = Box::new(Members::new(&object));
            members.note()?;
            From::InOrder(members, None)
        } else {
            From::Walk(Walk::new(&object))
        };
        Ok(Self { own: Own::new(object.kind), said: None, from })
    }

    fn map(map: Map<'de>) -> Self {
        Self { own: Own::new(None), said: None, from: From::Map(map, None, 0) }
    }

    #[inline]
    fn next(&mut self) -> Result<Option<&'de str>, Error> {
        if let Some((name, text)) = self.own.next() {
            self.said = Some(text);
            return Ok(Some(name));
        }
        Ok(match &mut self.from {
            From::Walk(walk) => walk.next()?.map(Member::name),
            From::InOrder(members, next) => {
                *next = members.next()?;
                next.map(|place| place.member.name())
            }
            From::Map(map, next, entries) => match map.next()? {
                Some((key, node)) => {
                    *next = Some(node);
                    *entries += 1;
                    weight::add_text(key.bytes.len());
                    Some(key.text()?)
                }
                None => None,
            },
        })
    }
}

impl<'de> MapAccess<'de> for Access<'de> {
    type Error = Error;

    #[inline]
    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Error> {
        match self.next()? {
            Some(key) => seed.deserialize(BorrowedStrDeserializer::new(key)).map(Some),
            None => Ok(None),
        }
    }

    #[inline]
    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Error> {
        if let Some(text) = self.said.take() {
            return seed.deserialize(BorrowedStrDeserializer::new(text));
        }
        let (node, name, at) = match &mut self.from {
            From::Walk(walk) => {
                let (name, at) = walk.found();
                (walk.node(), name, at)
            }
            From::InOrder(members, next) => match next.take() {
                Some(place) => (members.node(&place), place.member.name(), place.at),
                None => (Ok(Node::Null), "", 0),
            },
            // Keys are content: an error must not quote them.
            From::Map(_, next, entries) => {
                weight::add_entry::<V::Value>(*entries);
                return seed.deserialize(next.take().unwrap_or(Node::Null));
            }
        };
        let mut value = node.and_then(|node| seed.deserialize(node));
        if let Err(error) = &mut value {
            error.locate(name, at);
        }
        value
    }
}

impl<'de> SeqAccess<'de> for List<'de> {
    type Error = Error;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Error> {
        match self.next()? {
            Some(node) => {
                weight::add(size_of::<T::Value>());
                Ok(Some(seed.deserialize(node)?))
            }
            None => Ok(None),
        }
    }

    fn size_hint(&self) -> Option<usize> {
        self.len()
    }
}
