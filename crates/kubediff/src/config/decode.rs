//! From a tree to settings, by serde: each fault knows its place.

use std::fmt;
use std::iter::empty;

use serde::de::value::{MapDeserializer, StrDeserializer};
use serde::de::{
    self, DeserializeSeed, Deserializer, EnumAccess, Expected, IntoDeserializer, MapAccess, SeqAccess,
    Unexpected, VariantAccess, Visitor,
};
use serde::forward_to_deserialize_any;

use crate::text::alike::{instead, listed};

use super::place::{FieldPath, Mark, Step};
use super::sink::FORMER_FORMATS;
use super::tree::{Content, Key, Node};

/// A mistake, and its place.
#[derive(Debug)]
pub(super) struct Fault {
    pub(super) field: FieldPath,
    pub(super) mark: Option<Mark>,
    pub(super) message: String,
}

impl Fault {
    fn new(message: impl Into<String>) -> Self {
        Self { field: FieldPath::default(), mark: None, message: message.into() }
    }

    /// It is here, unless it is known to be further in.
    fn at(mut self, mark: Mark) -> Self {
        self.mark.get_or_insert(mark);
        self
    }

    /// It is in this field or element.
    fn within(mut self, step: Step) -> Self {
        self.field.lead_in(step);
        self
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Fault {}

/// No message has a value: somebody may have put a token into the wrong field.
impl de::Error for Fault {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self::new(message.to_string())
    }

    fn invalid_type(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        let found = match found {
            Unexpected::Bool(_) => "true or false",
            Unexpected::Unsigned(_) => "a number",
            Unexpected::Signed(_) | Unexpected::Float(_) => "a number that is negative or has a fraction",
            Unexpected::Str(_) => "a text",
            Unexpected::Seq => "a list",
            Unexpected::Map => "a map",
            Unexpected::Unit | Unexpected::Option => "nothing",
            _ => "something else",
        };
        let (expected, remedy) = match expected.to_string().as_str() {
            "a string" if found.starts_with("a number") || found == "true or false" => {
                ("a text", ": put it in quotes")
            }
            "a string" if found == "nothing" => {
                ("a text", ": a `#` begins a comment, so that a text with it needs quotes")
            }
            "a string" => ("a text", ""),
            "a sequence" if found == "a map" => ("a list", ": put `- ` before each element"),
            "a sequence" => ("a list", ": put it in brackets, or after `- ` on a line of its own"),
            "a boolean" => ("true or false", ""),
            "u16" | "u32" | "u64" | "usize" => ("a whole number", ""),
            "a map" => ("a map", ""),
            text if text.starts_with("struct ") => ("a map with fields", ""),
            other => return Self::new(format!("expected {other}, found {found}")),
        };
        Self::new(format!("expected {expected}, found {found}{remedy}"))
    }

    fn invalid_value(_: Unexpected<'_>, expected: &dyn Expected) -> Self {
        let expected = match expected.to_string().as_str() {
            "u16" => format!("a whole number up to {}", u16::MAX),
            "u32" => format!("a whole number up to {}", u32::MAX),
            "u64" | "usize" => "a whole number".to_owned(),
            other => other.to_owned(),
        };
        Self::new(format!("expected {expected}"))
    }

    fn unknown_field(field: &str, known: &'static [&'static str]) -> Self {
        Self::new(format!("there is no such field{}", instead(field, known)))
    }

    fn unknown_variant(variant: &str, known: &'static [&'static str]) -> Self {
        let current: Vec<&str> =
            known.iter().filter(|name| !FORMER_FORMATS.contains(name)).copied().collect();
        Self::new(format!("`{variant}` is not known here{}", instead(variant, &current)))
    }

    fn missing_field(field: &'static str) -> Self {
        Self::new(format!("`{field}` is missing"))
    }

    fn duplicate_field(field: &'static str) -> Self {
        Self::new(format!("`{field}` is there twice"))
    }
}

impl<'de> Deserializer<'de> for &'de Node {
    type Error = Fault;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        let value = match &self.content {
            Content::Nothing | Content::Removed => visitor.visit_unit(),
            Content::Bool(value) => visitor.visit_bool(*value),
            Content::Whole(value) => visitor.visit_u64(*value),
            Content::Number(value) => visitor.visit_f64(*value),
            Content::Text(text) => visitor.visit_borrowed_str(text),
            Content::List(list) => visitor.visit_seq(Elements { list, next: 0 }),
            Content::Map(fields) => visitor.visit_map(Fields { fields, next: 0 }),
        };
        value.map_err(|fault| fault.at(self.mark))
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match self.content {
            Content::Nothing => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Fault> {
        visitor.visit_newtype_struct(self)
    }

    /// A heading with nothing below it is an empty map.
    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match self.content {
            Content::Nothing => visitor.visit_map(Fields { fields: &[], next: 0 }),
            _ => self.deserialize_any(visitor),
        }
        .map_err(|fault| fault.at(self.mark))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        match self.content {
            // Else serde takes a list for the fields in their order.
            Content::List(_) => Err(de::Error::invalid_type(Unexpected::Seq, &"a map with fields"))
                .map_err(|fault: Fault| fault.at(self.mark)),
            _ => self.deserialize_map(visitor),
        }
    }

    /// And so is one of a list.
    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match self.content {
            Content::Nothing => visitor.visit_seq(Elements { list: &[], next: 0 }),
            _ => self.deserialize_any(visitor),
        }
    }

    /// A map with one field, which says what it is; or the name alone, if nothing has to be said of it.
    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        known: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        let value = match &self.content {
            Content::Text(name) => visitor.visit_enum(Choice { name, mark: self.mark, value: None }),
            Content::Map(fields) => match fields.as_slice() {
                [(key, value)] => {
                    visitor.visit_enum(Choice { name: &key.name, mark: key.mark, value: Some(value) })
                }
                [] => Err(Fault::new(format!("expected one of {}", listed(known)))),
                [_, (second, _), ..] => {
                    let message = format!("expected one of {} alone", listed(known));
                    Err(Fault::new(message).at(second.mark))
                }
            },
            Content::Nothing => Err(Fault::new(format!("expected one of {}", listed(known)))),
            _ => Err(Fault::new(format!("expected a map with one of {}", listed(known)))),
        };
        value.map_err(|fault| fault.at(self.mark))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct
        tuple tuple_struct identifier ignored_any
    }
}

struct Elements<'de> {
    list: &'de [Node],
    next: usize,
}

impl<'de> SeqAccess<'de> for Elements<'de> {
    type Error = Fault;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Fault> {
        while let Some(element) = self.list.get(self.next) {
            let at = self.next;
            self.next += 1;
            if !matches!(element.content, Content::Removed) {
                let value = seed.deserialize(element);
                return value.map(Some).map_err(|fault| fault.at(element.mark).within(Step::Element(at)));
            }
        }
        Ok(None)
    }
}

struct Fields<'de> {
    fields: &'de [(Key, Node)],
    next: usize,
}

impl<'de> MapAccess<'de> for Fields<'de> {
    type Error = Fault;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Fault> {
        let Some((key, _)) = self.fields.get(self.next) else { return Ok(None) };
        let name: StrDeserializer<'_, Fault> = key.name.as_str().into_deserializer();
        let within = |fault: Fault| fault.at(key.mark).within(Step::Field(key.name.clone()));
        seed.deserialize(name).map(Some).map_err(within)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Fault> {
        let (key, value) = self.fields.get(self.next).ok_or_else(|| Fault::new("a value is missing"))?;
        self.next += 1;
        let within = |fault: Fault| fault.at(value.mark).within(Step::Field(key.name.clone()));
        seed.deserialize(value).map_err(within)
    }
}

struct Choice<'de> {
    name: &'de str,
    mark: Mark,
    value: Option<&'de Node>,
}

impl<'de> EnumAccess<'de> for Choice<'de> {
    type Error = Fault;
    type Variant = Self;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Self), Fault> {
        let name: StrDeserializer<'_, Fault> = self.name.into_deserializer();
        let value = seed.deserialize(name).map_err(|fault| fault.at(self.mark))?;
        Ok((value, self))
    }
}

impl<'de> VariantAccess<'de> for Choice<'de> {
    type Error = Fault;

    fn unit_variant(self) -> Result<(), Fault> {
        match self.value {
            None => Ok(()),
            Some(node) if matches!(node.content, Content::Nothing) => Ok(()),
            Some(node) => Err(Fault::new("expected nothing here").at(node.mark)),
        }
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, Fault> {
        let within = |fault: Fault| fault.at(self.mark).within(Step::Field(self.name.to_owned()));
        match self.value {
            Some(node) => seed.deserialize(node).map_err(|fault| within(fault.at(node.mark))),
            None => seed.deserialize(MapDeserializer::new(empty::<(&str, &str)>())).map_err(within),
        }
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, _: V) -> Result<V::Value, Fault> {
        Err(Fault::new("expected a map"))
    }

    fn struct_variant<V: Visitor<'de>>(self, _: &'static [&'static str], _: V) -> Result<V::Value, Fault> {
        Err(Fault::new("expected a map"))
    }
}
