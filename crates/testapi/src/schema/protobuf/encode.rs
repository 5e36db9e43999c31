//! Encodes objects as messages, in one pass over the text of their JSON.
//!
//! JSON and messages have fields in different orders. So each message is first written in the order of JSON, at the end
//! of the buffer, and then put in order.

use std::fmt;
use std::ops::Range;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde::de::{DeserializeSeed, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;
use serve::wire::{close, message, text, varint};

use super::MAGIC;
use super::plan::{Field, Of, Plan, Plans, Step, ValuePlan};
use super::table::{Form, message_of};

/// Encodes an object with its envelope, if its kind is known.
///
/// ```
/// use testapi::schema::{from_protobuf, to_protobuf};
///
/// let map = serde_json::json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "a"}, "data": {"x": "1"}});
/// let message = to_protobuf(&map).unwrap();
/// assert!(message.starts_with(b"k8s\0"));
/// assert_eq!(from_protobuf(&message).unwrap(), map);
/// ```
pub fn to_protobuf(object: &Value) -> Option<Vec<u8>> {
    let [api_version, kind] = ["apiVersion", "kind"].map(|name| object[name].as_str().unwrap_or_default());
    let encoder = Encoder::of(api_version, kind)?;
    let mut out = MAGIC.to_vec();
    message(1, &mut out, |out| {
        text(1, api_version, out);
        text(2, kind, out);
    });
    message(2, &mut out, |out| encoder.write(object.to_string().as_bytes(), out));
    text(3, "", &mut out);
    text(4, "", &mut out);
    Some(out)
}

/// Encodes objects of one kind.
#[derive(Debug, Clone, Copy)]
pub struct Encoder {
    place: usize,
}

impl Encoder {
    /// The encoder of a kind with messages: a built-in kind, or one of the common kinds such as Status.
    pub fn of(api_version: &str, kind: &str) -> Option<Self> {
        Some(Self { place: Plans::get().find(message_of(api_version, kind)?)? })
    }

    /// Appends the message of an object in JSON; kind and version are not part of it. Values that do not fit their
    /// fields are left out, and so is malformed JSON.
    pub fn write(self, json: &[u8], out: &mut Vec<u8>) {
        // Each level of nesting writes a message at most twice.
        let space = Vec::with_capacity(json.len() * 4);
        let mut writer = Writer { out: space, parts: Vec::new() };
        let Ok(json) = std::str::from_utf8(json) else { return };
        let message = Message { writer: &mut writer, place: self.place };
        if let Ok(range) = message.deserialize(&mut serde_json::Deserializer::from_str(json)) {
            out.extend_from_slice(&writer.out[range]);
        }
    }
}

impl serve::Protobuf for Encoder {
    fn write(&self, body: &[u8], out: &mut Vec<u8>) {
        let mut json = Vec::with_capacity(body.len() + 1);
        json.push(b'{');
        json.extend_from_slice(body);
        Self::write(*self, &json, out);
    }
}

struct Writer {
    /// Fields in the order of JSON, and after them the messages in order. Bytes that were copied into another message
    /// stay until the end.
    out: Vec<u8>,
    /// The parts of all open messages.
    parts: Vec<Part>,
}

/// A written field.
struct Part {
    step: usize,
    range: Range<usize>,
    /// Whether only the content was written, without tag and length.
    is_content: bool,
}

impl Writer {
    /// Puts the parts of a message in order, forgets them, and returns the range of the message.
    fn arrange(&mut self, plan: &Plan, first_part: usize) -> Range<usize> {
        let parts = &mut self.parts[first_part..];
        parts.sort_unstable_by_key(|part| (part.step, part.range.start));
        let mut parts = parts.iter().peekable();
        let out = &mut self.out;
        let begin = out.len();
        let mut open = Vec::new();
        for (at, step) in plan.steps.iter().enumerate() {
            match step {
                Step::Open(tag) => {
                    varint(*tag, out);
                    open.push(out.len());
                }
                Step::Close => open.pop().into_iter().for_each(|begin| close(begin, out)),
                Step::Field { tag, unset } => {
                    let mut is_set = false;
                    while let Some(part) = parts.next_if(|part| part.step == at) {
                        if part.is_content {
                            varint(*tag, out);
                            varint(part.range.len() as u64, out);
                        }
                        is_set |= part.is_content || !part.range.is_empty();
                        out.extend_from_within(part.range.clone());
                    }
                    if !is_set {
                        out.extend_from_slice(unset);
                    }
                }
            }
        }
        self.parts.truncate(first_part);
        begin..self.out.len()
    }
}

/// Reads the members of a message. Returns its range at the end of the buffer, without tag and length.
struct Message<'w> {
    writer: &'w mut Writer,
    place: usize,
}

impl<'de> DeserializeSeed<'de> for Message<'_> {
    type Value = Range<usize>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Message<'_> {
    type Value = Range<usize>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Self::Value, A::Error> {
        let Self { writer, place } = self;
        let plan = Plans::get().at(place);
        let first_part = writer.parts.len();
        let mut next = 0;
        while let Some(field) = members.next_key_seed(Name { plan, next: &mut next })? {
            let Some(Field { step, content, form, .. }) = field else {
                members.next_value::<IgnoredAny>()?;
                continue;
            };
            // Each message becomes a part of its own; other values become one part when all of them are written.
            let messages = matches!((form, &content.of), (Form::One | Form::List, Of::Message(_)));
            let start = writer.out.len();
            let step_of_messages = messages.then_some(*step);
            members.next_value_seed(Values {
                writer: &mut *writer,
                content,
                form: *form,
                step: step_of_messages,
            })?;
            if !messages {
                let range = start..writer.out.len();
                writer.parts.push(Part { step: *step, range, is_content: false });
            }
        }
        Ok(writer.arrange(plan, first_part))
    }
}

/// Reads the name of a member and finds its field. The search begins at `next`, because most names are sorted.
struct Name<'p, 'n> {
    plan: &'p Plan,
    next: &'n mut usize,
}

impl<'p> Name<'p, '_> {
    fn find(self, name: &str) -> Option<&'p Field> {
        let fields = &self.plan.fields;
        let at = (*self.next..fields.len()).chain(0..*self.next).find(|at| fields[*at].name == name)?;
        *self.next = at + 1;
        fields.get(at)
    }
}

impl<'de, 'p> DeserializeSeed<'de> for Name<'p, '_> {
    type Value = Option<&'p Field>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'p> Visitor<'_> for Name<'p, '_> {
    type Value = Option<&'p Field>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<Self::Value, E> {
        Ok(self.find(name))
    }
}

/// Reads the value of a field and writes it with its tags. Values that do not fit are skipped.
struct Values<'w, 'c> {
    writer: &'w mut Writer,
    content: &'c ValuePlan,
    form: Form,
    /// The step of the outer message that messages are parts of; otherwise they are written with tag and length.
    step: Option<usize>,
}

impl<'de> DeserializeSeed<'de> for Values<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(mut self, deserializer: D) -> Result<(), D::Error> {
        if self.form != Form::One || self.content.of != Of::Json {
            return deserializer.deserialize_any(self);
        }
        let json = <&RawValue>::deserialize(deserializer)?.get();
        if json != "null" {
            self.message(|out| text(1, json, out));
        }
        Ok(())
    }
}

impl Values<'_, '_> {
    fn is_one(&self) -> bool {
        self.form == Form::One
    }

    /// For a value inside this one.
    fn one<'s>(&'s mut self, content: &'s ValuePlan) -> Values<'s, 's> {
        Values { writer: self.writer, content, form: Form::One, step: self.step }
    }

    fn nested<'de, A: MapAccess<'de>>(self, place: usize, members: A) -> Result<(), A::Error> {
        let Self { writer, content, step, .. } = self;
        if let Some(step) = step {
            let range = Message { writer, place }.visit_map(members)?;
            writer.parts.push(Part { step, range, is_content: true });
            return Ok(());
        }
        varint(content.tag, &mut writer.out);
        let begin = writer.out.len();
        let range = Message { writer, place }.visit_map(members)?;
        writer.out.copy_within(range.clone(), begin);
        writer.out.truncate(begin + range.len());
        close(begin, &mut writer.out);
        Ok(())
    }

    fn message(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        message(self.content.tag >> 3, &mut self.writer.out, write);
    }

    fn number(&mut self, value: f64) {
        varint(self.content.tag, &mut self.writer.out);
        self.writer.out.extend_from_slice(&value.to_le_bytes());
    }

    fn integer(&mut self, value: i64) {
        match self.content.of {
            _ if !self.is_one() => {}
            Of::Integer => {
                varint(self.content.tag, &mut self.writer.out);
                varint(value.cast_unsigned(), &mut self.writer.out);
            }
            #[expect(clippy::cast_precision_loss, reason = "as any reader of JSON has it")]
            Of::Number => self.number(value as f64),
            Of::Quantity => self.message(|out| text(1, &value.to_string(), out)),
            Of::IntOrString => self.message(|out| int_or_string(0, value, "", out)),
            _ => {}
        }
    }

    fn map<'de, A: MapAccess<'de>>(mut self, mut entries: A) -> Result<(), A::Error> {
        let value = ValuePlan { tag: 2 << 3 | self.content.tag & 7, of: self.content.of.clone() };
        let tag = 2 | self.content.tag >> 3 << 3;
        while let Some(begin) = entries.next_key_seed(Key { tag, out: &mut self.writer.out })? {
            entries.next_value_seed(self.one(&value))?;
            close(begin, &mut self.writer.out);
        }
        Ok(())
    }
}

/// Reads the key of a map's entry and writes it with its tag. Returns where the entry begins.
struct Key<'w> {
    tag: u64,
    out: &'w mut Vec<u8>,
}

impl<'de> DeserializeSeed<'de> for Key<'_> {
    type Value = usize;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<usize, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for Key<'_> {
    type Value = usize;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<usize, E> {
        varint(self.tag, self.out);
        let begin = self.out.len();
        text(1, name, self.out);
        Ok(begin)
    }
}

impl<'de> Visitor<'de> for Values<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_str<E: Error>(mut self, value: &str) -> Result<(), E> {
        match self.content.of {
            _ if !self.is_one() => {}
            Of::String => {
                varint(self.content.tag, &mut self.writer.out);
                varint(value.len() as u64, &mut self.writer.out);
                self.writer.out.extend_from_slice(value.as_bytes());
            }
            Of::Bytes => self.message(|out| {
                let begin = out.len();
                if BASE64_STANDARD.decode_vec(value, out).is_err() {
                    out.truncate(begin);
                }
            }),
            Of::Quantity => self.message(|out| text(1, value, out)),
            Of::IntOrString => self.message(|out| int_or_string(1, 0, value, out)),
            Of::Time => {
                if let Ok(time) = value.parse::<jiff::Timestamp>() {
                    self.message(|out| timestamp(time, out));
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn visit_i64<E: Error>(mut self, value: i64) -> Result<(), E> {
        self.integer(value);
        Ok(())
    }

    fn visit_u64<E: Error>(mut self, value: u64) -> Result<(), E> {
        i64::try_from(value).into_iter().for_each(|value| self.integer(value));
        Ok(())
    }

    fn visit_f64<E: Error>(mut self, value: f64) -> Result<(), E> {
        match self.content.of {
            Of::Number if self.is_one() => self.number(value),
            Of::Quantity if self.is_one() => self.message(|out| text(1, &value.to_string(), out)),
            _ => {}
        }
        Ok(())
    }

    fn visit_bool<E: Error>(mut self, value: bool) -> Result<(), E> {
        match &self.content.of {
            _ if !self.is_one() => {}
            Of::Boolean => {
                varint(self.content.tag, &mut self.writer.out);
                self.writer.out.push(u8::from(value));
            }
            Of::Either { other, .. } if other.of == Of::Boolean => {
                let tag = other.tag;
                self.message(|out| boolean(tag, value, out));
            }
            _ => {}
        }
        Ok(())
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut items: A) -> Result<(), A::Error> {
        let content = self.content;
        match (self.form, &content.of) {
            (Form::List, _) => while items.next_element_seed(self.one(content))?.is_some() {},
            (Form::One, Of::Items(item) | Of::Either { other: item, .. }) => {
                varint(content.tag, &mut self.writer.out);
                let begin = self.writer.out.len();
                while items.next_element_seed(self.one(item))?.is_some() {}
                close(begin, &mut self.writer.out);
            }
            _ => while items.next_element::<IgnoredAny>()?.is_some() {},
        }
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut members: A) -> Result<(), A::Error> {
        let content = self.content;
        match (self.form, &content.of) {
            (Form::Map, _) => self.map(members),
            (Form::One, Of::Message(place)) => self.nested(*place, members),
            (Form::One, Of::Either { schema, other }) => {
                let Of::Message(place) = schema.of else { return Ok(()) };
                varint(content.tag, &mut self.writer.out);
                let begin = self.writer.out.len();
                if other.of == Of::Boolean {
                    boolean(other.tag, true, &mut self.writer.out);
                }
                self.one(schema).nested(place, members)?;
                close(begin, &mut self.writer.out);
                Ok(())
            }
            _ => {
                while members.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                Ok(())
            }
        }
    }
}

fn boolean(tag: u64, value: bool, out: &mut Vec<u8>) {
    varint(tag, out);
    out.push(u8::from(value));
}

fn int_or_string(is_string: u64, integer: i64, string: &str, out: &mut Vec<u8>) {
    for (number, value) in [(1, is_string), (2, integer.cast_unsigned())] {
        varint(number << 3, out);
        varint(value, out);
    }
    text(3, string, out);
}

fn timestamp(time: jiff::Timestamp, out: &mut Vec<u8>) {
    for (number, value) in [(1, time.as_second()), (2, time.subsec_nanosecond().into())] {
        varint(number << 3, out);
        varint(value.cast_unsigned(), out);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::schema::{builtin, from_protobuf};

    fn round(object: &Value) -> Value {
        from_protobuf(&to_protobuf(object).unwrap()).unwrap()
    }

    #[test]
    fn what_does_not_fit_is_left_out() {
        let object = json!({
            "kind": "Pod", "apiVersion": "v1",
            "metadata": { "name": "a", "labels": { "a": "b", "c": 1 }, "generation": "x", "unknown": [{ "a": 1 }] },
            "spec": { "containers": [{ "name": "c", "ports": 7 }, "none", null], "priority": 1.5, "hostNetwork": {} },
            "status": { "startTime": "yesterday", "podIPs": { "ip": "x" } },
        });
        let read = round(&object);
        // An entry without a value has the empty value.
        let metadata = json!({ "name": "a", "labels": { "a": "b", "c": "" } });
        assert_eq!((&read["metadata"], &read["status"]), (&metadata, &json!({})));
        assert_eq!(read["spec"]["containers"], json!([{ "name": "c", "resources": {} }]));
        assert_eq!((read["spec"].get("priority"), read["spec"].get("hostNetwork")), (None, None));
        let secret = json!({ "kind": "Secret", "apiVersion": "v1", "metadata": {}, "data": { "a": "AAE=", "b": "?" } });
        assert_eq!(round(&secret)["data"], json!({ "a": "AAE=", "b": "" }));
    }

    #[test]
    fn values_with_forms_of_their_own_are_what_they_were() {
        let schema = json!({ "type": "object", "additionalProperties": false, "properties": {
            "any": { "default": { "x": [1, null] }, "enum": ["a", 2], "items": { "type": "string" } },
            "map": { "additionalProperties": { "type": "integer", "maximum": 2.5 } },
            "$ref": { "x-kubernetes-int-or-string": true },
        } });
        let definition = json!({
            "kind": "CustomResourceDefinition", "apiVersion": "apiextensions.k8s.io/v1", "metadata": { "name": "a" },
            "spec": { "group": "a", "names": { "plural": "b", "kind": "B" }, "scope": "Cluster", "versions": [
                { "name": "v1", "served": true, "storage": true, "schema": { "openAPIV3Schema": schema },
                  "subresources": { "status": {} } }] },
        });
        let version = round(&definition)["spec"]["versions"][0].clone();
        assert_eq!(version["schema"]["openAPIV3Schema"], schema);
        assert_eq!(version["subresources"], json!({ "status": {} }));
        let service = json!({
            "kind": "Service", "apiVersion": "v1", "metadata": { "name": "a", "creationTimestamp": "1969-12-31T23:59:58Z" },
            "spec": { "ports": [{ "port": 1, "protocol": "TCP", "targetPort": "http" }, { "port": -1, "protocol": "UDP", "targetPort": 80 }] }, "status": { "loadBalancer": {} },
        });
        assert_eq!(round(&service), service);
    }

    #[test]
    fn pods_come_back_as_they_were() {
        let schema = builtin("", "v1", "Pod").unwrap();
        for seed in 0..50 {
            let mut pod: Value = serde_json::from_str(&crate::sample::pod_text(seed, 7, 3)).unwrap();
            pod["kind"] = "Pod".into();
            pod["apiVersion"] = "v1".into();
            let read = round(&pod);
            schema.normalize(&mut pod);
            assert_eq!(read, pod, "seed {seed}");
        }
    }

    #[test]
    fn text_that_is_no_json_is_an_empty_message() {
        let encoder = Encoder::of("v1", "Pod").unwrap();
        for text in [&b""[..], b"[]", b"{\"metadata\":{\"name\":\"a\"", b"{\"a\":\xff}", b"nonsense"] {
            let mut out = b"before".to_vec();
            encoder.write(text, &mut out);
            assert_eq!(out, b"before", "{text:?}");
        }
    }

    #[test]
    fn objects_of_any_shape_are_written_so_that_they_can_be_read() {
        let names =
            ["metadata", "spec", "status", "containers", "labels", "data", "items", "ports", "name", "x"];
        fn any(random: &mut fastrand::Rng, names: &[&str], depth: u32) -> Value {
            match random.u32(..if depth > 5 { 5 } else { 8 }) {
                0 => Value::Null,
                1 => random.bool().into(),
                2 => random.i64(..).into(),
                3 => random.f64().into(),
                4 => (*random.choice(names).unwrap()).into(),
                5 => (0..random.u32(..4)).map(|_| any(random, names, depth + 1)).collect(),
                _ => (0..random.u32(..6))
                    .map(|_| ((*random.choice(names).unwrap()).to_owned(), any(random, names, depth + 1)))
                    .collect::<serde_json::Map<_, _>>()
                    .into(),
            }
        }
        for seed in 0..3_000 {
            let mut random = fastrand::Rng::with_seed(seed);
            let kind = *random.choice(&["Pod", "Secret", "Service", "Node", "Event", "PodList"]).unwrap();
            let mut object = json!({});
            for name in ["metadata", "spec", "status", "data", "items"] {
                object[name] = any(&mut random, &names, 0);
            }
            object["kind"] = kind.into();
            object["apiVersion"] = "v1".into();
            let once = from_protobuf(&to_protobuf(&object).unwrap());
            let once = once.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
            assert_eq!(round(&once), once, "seed {seed}");
        }
    }
}
