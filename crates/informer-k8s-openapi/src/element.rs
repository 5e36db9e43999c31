//! How a value of a member's type is read: one value, an optional one, a list, or a map.
//!
//! The names of the methods of [`Member`] say when JSON has the member, as in the schema of `informer-protobuf`.

use std::collections::BTreeMap;

use informer_protobuf::wire::Value;

use crate::fields::{At, Context, Unfit, field};
use crate::messages::{Message, fill};

/// A value that is neither optional nor several.
pub(crate) trait Element: Sized {
    /// The value that JSON has for a member that the message lacks.
    fn zero() -> Self;

    fn read(&mut self, value: Value<'_>, context: &mut Context) -> Result<(), Unfit>;

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
    fn given(&mut self, at: &At<'_>, context: &mut Context) -> Result<(), Unfit>;

    /// JSON has it if it is neither zero nor empty.
    #[inline]
    fn not_empty(&mut self, at: &At<'_>, context: &mut Context) -> Result<(), Unfit> {
        self.given(at, context)
    }

    /// JSON has it always: the value of a message that lacks it.
    fn always(&mut self) {}
}

impl<E: Element> Member for E {
    #[inline]
    fn given(&mut self, at: &At<'_>, context: &mut Context) -> Result<(), Unfit> {
        if at.is_repeated || E::is_null(at.value) {
            return Err(Unfit);
        }
        self.read(at.value, context)
    }

    fn always(&mut self) {
        *self = E::zero();
    }
}

impl<E: Element> Member for Option<E> {
    #[inline]
    fn given(&mut self, at: &At<'_>, context: &mut Context) -> Result<(), Unfit> {
        if at.is_repeated {
            return Err(Unfit);
        }
        if E::is_null(at.value) {
            *self = None;
            return Ok(());
        }
        self.insert(E::zero()).read(at.value, context)
    }

    #[inline]
    fn not_empty(&mut self, at: &At<'_>, context: &mut Context) -> Result<(), Unfit> {
        match at.value {
            Value::Varint(0) | Value::Bytes([]) if !at.is_repeated => Ok(()),
            _ => self.given(at, context),
        }
    }

    fn always(&mut self) {
        *self = (!E::ZERO_IS_NULL).then(E::zero);
    }
}

impl<E: Element> Member for Vec<E> {
    #[inline]
    fn given(&mut self, at: &At<'_>, context: &mut Context) -> Result<(), Unfit> {
        if !at.is_repeated {
            self.reserve_exact(at.run());
        }
        if E::is_null(at.value) {
            return Err(Unfit);
        }
        context.heap += size_of::<E>();
        self.push(E::zero());
        self.last_mut().ok_or(Unfit)?.read(at.value, context)
    }
}

impl<E: Element> Member for Option<Vec<E>> {
    #[inline]
    fn given(&mut self, at: &At<'_>, context: &mut Context) -> Result<(), Unfit> {
        self.get_or_insert_default().given(at, context)
    }
}

impl<E: Element> Member for BTreeMap<String, E> {
    fn given(&mut self, at: &At<'_>, context: &mut Context) -> Result<(), Unfit> {
        let (mut key, mut value) = (None, None);
        let mut rest = at.bytes()?;
        while !rest.is_empty() {
            let (number, found, after) = field(rest)?;
            match (number, found) {
                (1, Value::Bytes(bytes)) if key.is_none() => key = Some(bytes),
                (2, _) if value.is_none() => value = Some(found),
                // Repeated, of another type, or unknown.
                _ => return Err(Unfit),
            }
            rest = after;
        }
        let mut name = String::new();
        name.read(Value::Bytes(key.unwrap_or_default()), context)?;
        let mut read = E::zero();
        match value.unwrap_or(Value::Bytes(&[])) {
            value if E::is_null(value) => return Err(Unfit),
            Value::Bytes([]) => {}
            value => read.read(value, context)?,
        }
        context.add_entry(self.len() + 1, size_of::<String>() + size_of::<E>());
        // A repeated key is counted as serde counts it, by serde.
        if self.insert(name, read).is_some() { Err(Unfit) } else { Ok(()) }
    }
}

impl<E: Element> Member for Option<BTreeMap<String, E>> {
    #[inline]
    fn given(&mut self, at: &At<'_>, context: &mut Context) -> Result<(), Unfit> {
        self.get_or_insert_default().given(at, context)
    }
}

impl<M: Message> Element for M {
    #[inline]
    fn zero() -> Self {
        M::begin()
    }

    #[inline]
    fn read(&mut self, value: Value<'_>, context: &mut Context) -> Result<(), Unfit> {
        match value {
            Value::Bytes(raw) => fill(self, raw, context),
            _ => Err(Unfit),
        }
    }
}

impl Element for String {
    #[inline]
    fn zero() -> Self {
        Self::new()
    }

    #[inline]
    fn read(&mut self, value: Value<'_>, context: &mut Context) -> Result<(), Unfit> {
        let Value::Bytes(bytes) = value else { return Err(Unfit) };
        // Serde's way replaces what is not UTF-8.
        let text = std::str::from_utf8(bytes).map_err(|_| Unfit)?;
        context.add_text(text.len());
        *self = text.to_owned();
        Ok(())
    }
}

impl Element for bool {
    fn zero() -> Self {
        false
    }

    #[inline]
    fn read(&mut self, value: Value<'_>, _: &mut Context) -> Result<(), Unfit> {
        let Value::Varint(number) = value else { return Err(Unfit) };
        *self = number != 0;
        Ok(())
    }
}

impl Element for i32 {
    fn zero() -> Self {
        0
    }

    #[inline]
    fn read(&mut self, value: Value<'_>, _: &mut Context) -> Result<(), Unfit> {
        let Value::Varint(number) = value else { return Err(Unfit) };
        *self = Self::try_from(number.cast_signed()).map_err(|_| Unfit)?;
        Ok(())
    }
}

impl Element for i64 {
    fn zero() -> Self {
        0
    }

    #[inline]
    fn read(&mut self, value: Value<'_>, _: &mut Context) -> Result<(), Unfit> {
        let Value::Varint(number) = value else { return Err(Unfit) };
        *self = number.cast_signed();
        Ok(())
    }
}
