//! Counts the heap bytes of a value while serde builds it: the strings, and the elements of lists and maps, in the layout of
//! the standard library's collections.
//!
//! A struct's own fields count as part of the value that contains the struct. The content of a `Box` is not counted.

use std::cell::Cell;
use std::fmt;

use serde::de::{
    DeserializeSeed, Deserializer, EnumAccess, Error, MapAccess, SeqAccess, VariantAccess, Visitor,
};

use crate::memory::allocated;

/// A part of serde with the counter next to it: a deserializer, a visitor, a seed, or an access.
pub(super) struct Counting<'c, T> {
    inner: T,
    heap: &'c Cell<usize>,
}

impl<'c, T> Counting<'c, T> {
    pub(super) fn new(inner: T, heap: &'c Cell<usize>) -> Self {
        Self { inner, heap }
    }

    fn with<U>(&self, inner: U) -> Counting<'c, U> {
        Counting { inner, heap: self.heap }
    }
}

fn add(heap: &Cell<usize>, bytes: usize) {
    heap.set(heap.get().saturating_add(bytes));
}

/// A visitor for a map or a struct, which look alike to it.
struct Members<'c, V> {
    visitor: Counting<'c, V>,
    is_map: bool,
}

macro_rules! forward {
    ($($method:ident($($argument:ident: $type:ty),*))*) => {$(
        fn $method<V: Visitor<'de>>(self, $($argument: $type,)* visitor: V) -> Result<V::Value, D::Error> {
            let visitor = Members { visitor: self.with(visitor), is_map: false };
            self.inner.$method($($argument,)* visitor)
        }
    )*};
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for Counting<'_, D> {
    type Error = D::Error;

    forward! {
        deserialize_any() deserialize_bool() deserialize_i8() deserialize_i16() deserialize_i32() deserialize_i64()
        deserialize_i128() deserialize_u8() deserialize_u16() deserialize_u32() deserialize_u64() deserialize_u128()
        deserialize_f32() deserialize_f64() deserialize_char() deserialize_str() deserialize_string()
        deserialize_bytes() deserialize_byte_buf() deserialize_option() deserialize_unit()
        deserialize_unit_struct(name: &'static str) deserialize_newtype_struct(name: &'static str)
        deserialize_seq() deserialize_tuple(len: usize)
        deserialize_tuple_struct(name: &'static str, len: usize)
        deserialize_struct(name: &'static str, fields: &'static [&'static str])
        deserialize_enum(name: &'static str, variants: &'static [&'static str])
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        let visitor = Members { visitor: self.with(visitor), is_map: true };
        self.inner.deserialize_map(visitor)
    }

    // The value keeps neither an identifier nor what it ignores, so they are not counted.
    fn deserialize_identifier<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.inner.deserialize_identifier(visitor)
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.inner.deserialize_ignored_any(visitor)
    }

    fn is_human_readable(&self) -> bool {
        self.inner.is_human_readable()
    }
}

impl<V> Members<'_, V> {
    fn add_text(&self, length: usize) {
        if length > 0 {
            add(self.visitor.heap, allocated(length));
        }
    }
}

macro_rules! visit {
    ($($method:ident($type:ty))*) => {$(
        fn $method<E: Error>(self, value: $type) -> Result<V::Value, E> {
            self.visitor.inner.$method(value)
        }
    )*};
}

macro_rules! visit_text {
    ($($method:ident($type:ty))*) => {$(
        fn $method<E: Error>(self, value: $type) -> Result<V::Value, E> {
            self.add_text(value.len());
            self.visitor.inner.$method(value)
        }
    )*};
}

impl<'de, V: Visitor<'de>> Visitor<'de> for Members<'_, V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.visitor.inner.expecting(f)
    }

    visit! {
        visit_bool(bool) visit_i8(i8) visit_i16(i16) visit_i32(i32) visit_i64(i64) visit_i128(i128)
        visit_u8(u8) visit_u16(u16) visit_u32(u32) visit_u64(u64) visit_u128(u128)
        visit_f32(f32) visit_f64(f64) visit_char(char)
    }

    visit_text! {
        visit_str(&str) visit_borrowed_str(&'de str) visit_string(String)
        visit_bytes(&[u8]) visit_borrowed_bytes(&'de [u8]) visit_byte_buf(Vec<u8>)
    }

    fn visit_none<E: Error>(self) -> Result<V::Value, E> {
        self.visitor.inner.visit_none()
    }

    fn visit_unit<E: Error>(self) -> Result<V::Value, E> {
        self.visitor.inner.visit_unit()
    }

    fn visit_some<D: Deserializer<'de>>(self, from: D) -> Result<V::Value, D::Error> {
        let from = self.visitor.with(from);
        self.visitor.inner.visit_some(from)
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, from: D) -> Result<V::Value, D::Error> {
        let from = self.visitor.with(from);
        self.visitor.inner.visit_newtype_struct(from)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, elements: A) -> Result<V::Value, A::Error> {
        let elements = Elements { access: self.visitor.with(elements), count: 0, capacity: 0 };
        self.visitor.inner.visit_seq(elements)
    }

    fn visit_map<A: MapAccess<'de>>(self, entries: A) -> Result<V::Value, A::Error> {
        let entries = Entries { access: self.visitor.with(entries), key: 0, count: 0, is_map: self.is_map };
        self.visitor.inner.visit_map(entries)
    }

    fn visit_enum<A: EnumAccess<'de>>(self, variant: A) -> Result<V::Value, A::Error> {
        let variant = self.visitor.with(variant);
        self.visitor.inner.visit_enum(variant)
    }
}

impl<'de, S: DeserializeSeed<'de>> DeserializeSeed<'de> for Counting<'_, S> {
    type Value = S::Value;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<S::Value, D::Error> {
        let from = self.with(from);
        self.inner.deserialize(from)
    }
}

struct Elements<'c, A> {
    access: Counting<'c, A>,
    count: usize,
    capacity: usize,
}

impl<'de, A: SeqAccess<'de>> SeqAccess<'de> for Elements<'_, A> {
    type Error = A::Error;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, A::Error> {
        let seed = self.access.with(seed);
        let element = self.access.inner.next_element_seed(seed)?;
        if element.is_some() {
            self.count += 1;
            if self.count > self.capacity {
                // The capacity grows as that of a `Vec` does.
                let size = size_of::<T::Value>();
                let least = if size > 1024 { 1 } else { 4 };
                let capacity = (2 * self.capacity).max(least);
                add(self.access.heap, (capacity - self.capacity) * size);
                self.capacity = capacity;
            }
        }
        Ok(element)
    }

    fn size_hint(&self) -> Option<usize> {
        self.access.inner.size_hint()
    }
}

struct Entries<'c, A> {
    access: Counting<'c, A>,
    /// The size of a key without its heap bytes.
    key: usize,
    count: usize,
    is_map: bool,
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Entries<'_, A> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, A::Error> {
        self.key = size_of::<K::Value>();
        let seed = self.access.with(seed);
        self.access.inner.next_key_seed(seed)
    }

    fn next_value_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<T::Value, A::Error> {
        if self.is_map {
            let entries = |count| super::of_map(count, self.key + size_of::<T::Value>());
            add(self.access.heap, entries(self.count + 1) - entries(self.count));
            self.count += 1;
        }
        let seed = self.access.with(seed);
        self.access.inner.next_value_seed(seed)
    }

    fn size_hint(&self) -> Option<usize> {
        self.access.inner.size_hint()
    }
}

impl<'de, 'c, A: EnumAccess<'de>> EnumAccess<'de> for Counting<'c, A> {
    type Error = A::Error;
    type Variant = Counting<'c, A::Variant>;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Self::Variant), A::Error> {
        let heap = self.heap;
        let (value, variant) = self.inner.variant_seed(seed)?;
        Ok((value, Counting { inner: variant, heap }))
    }
}

impl<'de, A: VariantAccess<'de>> VariantAccess<'de> for Counting<'_, A> {
    type Error = A::Error;

    fn unit_variant(self) -> Result<(), A::Error> {
        self.inner.unit_variant()
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, A::Error> {
        let seed = self.with(seed);
        self.inner.newtype_variant_seed(seed)
    }

    fn tuple_variant<V: Visitor<'de>>(self, len: usize, visitor: V) -> Result<V::Value, A::Error> {
        let visitor = Members { visitor: self.with(visitor), is_map: false };
        self.inner.tuple_variant(len, visitor)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, A::Error> {
        let visitor = Members { visitor: self.with(visitor), is_map: false };
        self.inner.struct_variant(fields, visitor)
    }
}
