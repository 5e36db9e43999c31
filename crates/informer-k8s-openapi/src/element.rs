//! How a value of a member's type is read: one value, an optional one, a list, or a map.
//!
//! The names of the methods of [`Member`] say when JSON has the member, as in the schema of `informer-protobuf`.

use std::collections::BTreeMap;

use informer_protobuf::wire::Value;

use crate::fields::{At, Context};
use crate::messages::{Message, fill};

/// A value that is neither optional nor several.
pub(crate) trait Element: Sized {
    /// A value to read into.
    fn begin() -> Self;

    /// The value that JSON has for a member that the message lacks.
    fn zero() -> Self {
        Self::begin()
    }

    fn read(&mut self, value: Value<'_>, context: &mut Context);

    /// Whether JSON says `null`, although the message has the field.
    fn is_null(_: Value<'_>) -> bool {
        false
    }

    /// Whether JSON says `null` for a member that the message lacks.
    const ZERO_IS_NULL: bool = false;
}

/// A member of a struct.
pub(crate) trait Member {
    /// JSON has it if the message has it.
    fn given(&mut self, at: &At<'_>, context: &mut Context);

    /// JSON has it if it is neither zero nor empty.
    #[inline]
    fn not_empty(&mut self, at: &At<'_>, context: &mut Context) {
        self.given(at, context);
    }

    /// JSON has it always: the value of a message that lacks it.
    fn always(&mut self) {}
}

impl<E: Element> Member for E {
    #[inline]
    fn given(&mut self, at: &At<'_>, context: &mut Context) {
        context.is_unfit |= at.is_repeated || E::is_null(at.value);
        self.read(at.value, context);
    }

    fn always(&mut self) {
        *self = E::zero();
    }
}

impl<E: Element> Member for Option<E> {
    #[inline]
    fn given(&mut self, at: &At<'_>, context: &mut Context) {
        context.is_unfit |= at.is_repeated;
        if E::is_null(at.value) {
            *self = None;
        } else {
            self.get_or_insert_with(E::begin).read(at.value, context);
        }
    }

    #[inline]
    fn not_empty(&mut self, at: &At<'_>, context: &mut Context) {
        match at.value {
            Value::Varint(0) | Value::Bytes([]) => context.is_unfit |= at.is_repeated,
            _ => self.given(at, context),
        }
    }

    fn always(&mut self) {
        *self = (!E::ZERO_IS_NULL).then(E::zero);
    }
}

impl<E: Element> Member for Vec<E> {
    #[inline]
    fn given(&mut self, at: &At<'_>, context: &mut Context) {
        if !at.is_repeated {
            *self = Self::with_capacity(at.run());
        }
        context.is_unfit |= E::is_null(at.value);
        context.heap += size_of::<E>();
        self.push(E::begin());
        if let Some(last) = self.last_mut() {
            last.read(at.value, context);
        }
    }
}

impl<E: Element> Member for Option<Vec<E>> {
    #[inline]
    fn given(&mut self, at: &At<'_>, context: &mut Context) {
        self.get_or_insert_default().given(at, context);
    }
}

impl<E: Element> Member for BTreeMap<String, E> {
    fn given(&mut self, at: &At<'_>, context: &mut Context) {
        let Value::Bytes(raw) = at.value else {
            context.is_unfit = true;
            return;
        };
        let (mut key, mut value) = (Value::Bytes(&[]), Value::Bytes(&[]));
        let mut inner = At::before(raw);
        while inner.next(context) {
            match inner.number {
                1 if !inner.is_repeated => key = inner.value,
                2 if !inner.is_repeated => value = inner.value,
                // Repeated, or unknown.
                _ => context.is_unfit = true,
            }
        }
        let mut name = String::new();
        name.read(key, context);
        context.is_unfit |= E::is_null(value);
        let read = match value {
            Value::Bytes([]) => E::zero(),
            value => {
                let mut read = E::begin();
                read.read(value, context);
                read
            }
        };
        context.add_entry(self.len() + 1, size_of::<String>() + size_of::<E>());
        // A repeated key is counted as serde counts it, by serde.
        context.is_unfit |= self.insert(name, read).is_some();
    }
}

impl<E: Element> Member for Option<BTreeMap<String, E>> {
    #[inline]
    fn given(&mut self, at: &At<'_>, context: &mut Context) {
        self.get_or_insert_default().given(at, context);
    }
}

impl<M: Message> Element for M {
    #[inline]
    fn begin() -> Self {
        M::begin()
    }

    #[inline]
    fn read(&mut self, value: Value<'_>, context: &mut Context) {
        match value {
            Value::Bytes(raw) => fill(self, raw, context),
            _ => context.is_unfit = true,
        }
    }
}

impl Element for String {
    #[inline]
    fn begin() -> Self {
        Self::new()
    }

    #[inline]
    fn read(&mut self, value: Value<'_>, context: &mut Context) {
        match value {
            Value::Bytes(bytes) => read_text(self, bytes, context),
            _ => context.is_unfit = true,
        }
    }
}

#[inline(never)]
fn read_text(into: &mut String, bytes: &[u8], context: &mut Context) {
    // The copy is checked: it is aligned, which makes the standard library quicker.
    match String::from_utf8(bytes.to_vec()) {
        Ok(text) => {
            context.add_text(bytes.len());
            *into = text;
        }
        // Serde's way replaces what is not UTF-8.
        Err(_) => context.is_unfit = true,
    }
}

impl Element for bool {
    fn begin() -> Self {
        false
    }

    #[inline]
    fn read(&mut self, value: Value<'_>, context: &mut Context) {
        match value {
            Value::Varint(number) => *self = number != 0,
            _ => context.is_unfit = true,
        }
    }
}

impl Element for i32 {
    fn begin() -> Self {
        0
    }

    #[inline]
    fn read(&mut self, value: Value<'_>, context: &mut Context) {
        match value {
            Value::Varint(number) => match Self::try_from(number.cast_signed()) {
                Ok(number) => *self = number,
                Err(_) => context.is_unfit = true,
            },
            _ => context.is_unfit = true,
        }
    }
}

impl Element for i64 {
    fn begin() -> Self {
        0
    }

    #[inline]
    fn read(&mut self, value: Value<'_>, context: &mut Context) {
        match value {
            Value::Varint(number) => *self = number.cast_signed(),
            _ => context.is_unfit = true,
        }
    }
}
