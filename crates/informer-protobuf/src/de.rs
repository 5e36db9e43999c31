//! Any serde type from a [`Node`], as if it were read from the object's JSON.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::de::value::{BorrowedStrDeserializer, MapAccessDeserializer};
use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::forward_to_deserialize_any;

use crate::error::{Cause, Error};
use crate::kind::Kind;
use crate::members::{Members, Place};
use crate::node::{List, Map, Node};
use crate::number::Number;
use crate::part::Part;

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
            Self::Text(text) => visitor.visit_borrowed_str(text.text()?),
            Self::Bytes(bytes) => visitor.visit_string(STANDARD.encode(bytes)),
            Self::Time(stamp) => stamp.text(|text| visitor.visit_str(text)),
            Self::Json(json, _) => carried(json, |json| json.deserialize_any(visitor)),
            Self::Object(object) => {
                let mut members = object.members();
                members.note()?;
                visitor.visit_map(ObjectAccess::new(object.kind, &mut members))
            }
            Self::List(list) => visitor.visit_seq(list),
            Self::Map(map) => visitor.visit_map(MapEntries { map, value: None }),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self {
            Self::Null => visitor.visit_none(),
            // It may be `null`.
            Self::Json(json, _) => carried(json, |json| json.deserialize_option(visitor)),
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
            Self::Json(json, _) => carried(json, |json| json.deserialize_enum(name, variants, visitor)),
            Self::Object(object) => {
                let mut members = object.members();
                members.note()?;
                visitor.visit_enum(MapAccessDeserializer::new(ObjectAccess::new(object.kind, &mut members)))
            }
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

/// What is JSON in the object is read by serde_json, whose errors may quote it.
fn carried<'de, T>(
    json: Part<'de>,
    read: impl FnOnce(&mut serde_json::Deserializer<serde_json::de::SliceRead<'de>>) -> serde_json::Result<T>,
) -> Result<T, Error> {
    let mut deserializer = serde_json::Deserializer::from_slice(json.bytes);
    let value = read(&mut deserializer).and_then(|value| deserializer.end().map(|()| value));
    value.map_err(|error| Error::new(if error.is_data() { Cause::Refused } else { Cause::Json }, json.base))
}

/// An object's members; a whole object says first what it is.
struct ObjectAccess<'de, 'members> {
    kind: Option<Kind>,
    api_version: Option<Kind>,
    members: &'members mut Members<'de>,
    value: Pending,
}

/// Whose value is next.
enum Pending {
    Own(&'static str),
    Member(Place),
}

impl<'de, 'members> ObjectAccess<'de, 'members> {
    fn new(kind: Option<Kind>, members: &'members mut Members<'de>) -> Self {
        Self { kind, api_version: kind, members, value: Pending::Own("") }
    }
}

impl<'de> MapAccess<'de> for ObjectAccess<'de, '_> {
    type Error = Error;

    #[inline]
    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Error> {
        let name = if let Some(kind) = self.kind.take() {
            self.value = Pending::Own(kind.kind());
            "kind"
        } else if let Some(kind) = self.api_version.take() {
            self.value = Pending::Own(kind.api_version());
            "apiVersion"
        } else {
            let Some(place) = self.members.next()? else { return Ok(None) };
            self.value = Pending::Member(place);
            place.member.name()
        };
        seed.deserialize(BorrowedStrDeserializer::new(name)).map(Some)
    }

    #[inline]
    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Error> {
        match &self.value {
            Pending::Member(place) => {
                let (name, at) = (place.member.name(), place.at);
                let node = self.members.node(place).map_err(|error| error.within(name, at))?;
                let mut value = seed.deserialize(node);
                if let Err(error) = &mut value {
                    error.locate(name, at);
                }
                value
            }
            Pending::Own(text) => seed.deserialize(BorrowedStrDeserializer::new(text)),
        }
    }
}

/// A map's entries.
struct MapEntries<'de> {
    map: Map<'de>,
    value: Option<(Node<'de>, usize)>,
}

impl<'de> MapAccess<'de> for MapEntries<'de> {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Error> {
        let Some((key, node, at)) = self.map.next()? else { return Ok(None) };
        self.value = Some((node, at));
        seed.deserialize(BorrowedStrDeserializer::new(key)).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Error> {
        let (node, _) = self.value.take().unwrap_or((Node::Null, 0));
        seed.deserialize(node)
    }
}

impl<'de> SeqAccess<'de> for List<'de> {
    type Error = Error;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Error> {
        match self.next()? {
            Some(node) => Ok(Some(seed.deserialize(node)?)),
            None => Ok(None),
        }
    }
}
