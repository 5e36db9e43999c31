//! Types that k8s-openapi has no struct for, and structs that have no default.

use informer_protobuf::wire::Value;
use k8s_openapi::ByteString;
use k8s_openapi::api::events::v1::EventSeries;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, FieldsV1, MicroTime, Time};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use k8s_openapi::jiff::Timestamp;

use crate::element::{Element, Member};
use crate::fields::{At, Context, long};
use crate::messages::Message;

/// The bytes of a message whose only field they are.
fn only_field(message: Value<'_>) -> Option<&[u8]> {
    let Value::Bytes([0x0a, rest @ ..]) = message else { return None };
    let (length, bytes) = long(rest)?;
    (bytes.len() as u64 == length).then_some(bytes)
}

impl Element for ByteString {
    fn begin() -> Self {
        Self::default()
    }

    fn read(&mut self, value: Value<'_>, context: &mut Context) {
        match value {
            Value::Bytes(bytes) => {
                context.add_text(bytes.len());
                self.0 = bytes.to_owned();
            }
            _ => context.is_unfit = true,
        }
    }

    /// As a member; as an entry of a map it is empty.
    const ZERO_IS_NULL: bool = true;
}

impl Element for Quantity {
    fn begin() -> Self {
        Self(String::new())
    }

    fn zero() -> Self {
        Self("0".to_owned())
    }

    fn read(&mut self, value: Value<'_>, context: &mut Context) {
        match only_field(value) {
            Some(text) => self.0.read(Value::Bytes(text), context),
            // No server writes an empty one.
            None => context.is_unfit = true,
        }
    }
}

impl Element for IntOrString {
    fn begin() -> Self {
        Self::Int(0)
    }

    fn read(&mut self, value: Value<'_>, context: &mut Context) {
        let (mut form, mut int, mut string) = (0, 0_i32, None::<String>);
        let Value::Bytes(raw) = value else {
            context.is_unfit = true;
            return;
        };
        let mut at = At::before(raw);
        while at.next(context) {
            match at.number {
                1 => form.given(&at, context),
                2 => int.given(&at, context),
                3 => string.not_empty(&at, context),
                _ => {}
            }
        }
        *self = match form {
            0 => Self::Int(int),
            _ => Self::String(string.unwrap_or_default()),
        };
        context.is_unfit |= !matches!((form, &*self), (0, _) | (1, Self::String(_)));
    }
}

/// After 0001-01-01, Go's zero time, for which JSON says `null`, up to the last second that RFC 3339 can express.
const SECONDS: std::ops::RangeInclusive<i64> = -62_135_596_799..=253_402_300_799;
/// In place of a time that is not read yet: no server's time is that early.
const UNREAD: Timestamp = Timestamp::MIN;

/// Seconds since 1970 and nanoseconds. Servers write Go's zero time as an empty message.
#[inline(never)]
fn timestamp(message: Value<'_>, is_whole_seconds: bool) -> Option<Timestamp> {
    let Value::Bytes([0x08, rest @ ..]) = message else { return None };
    let (seconds, rest) = long(rest)?;
    let (nanos, rest) = long(rest.strip_prefix(&[0x10])?)?;
    let seconds = Some(seconds.cast_signed()).filter(|seconds| SECONDS.contains(seconds))?;
    let nanos = i32::try_from(nanos).ok().filter(|nanos| *nanos < 1_000_000_000 && rest.is_empty())?;
    Timestamp::new(seconds, if is_whole_seconds { 0 } else { nanos / 1000 * 1000 }).ok()
}

impl Element for Time {
    fn begin() -> Self {
        Self(UNREAD)
    }

    fn read(&mut self, value: Value<'_>, context: &mut Context) {
        match timestamp(value, true) {
            Some(time) => self.0 = time,
            None => context.is_unfit = true,
        }
    }

    fn is_null(value: Value<'_>) -> bool {
        value == Value::Bytes(&[])
    }

    const ZERO_IS_NULL: bool = true;
}

impl Element for MicroTime {
    fn begin() -> Self {
        Self(UNREAD)
    }

    fn read(&mut self, value: Value<'_>, context: &mut Context) {
        match timestamp(value, false) {
            Some(time) => self.0 = time,
            None => context.is_unfit = true,
        }
    }

    fn is_null(value: Value<'_>) -> bool {
        value == Value::Bytes(&[])
    }

    const ZERO_IS_NULL: bool = true;
}

impl Element for FieldsV1 {
    fn begin() -> Self {
        Self::default()
    }

    fn read(&mut self, value: Value<'_>, context: &mut Context) {
        // An object: `null` would be no value.
        let json = only_field(value).filter(|json| json.first() == Some(&b'{') && depth(json) <= DEPTH);
        match json.map(serde_json::from_slice) {
            Some(Ok(fields)) => self.0 = fields,
            _ => context.is_unfit = true,
        }
        context.heap += 3 * json.map_or(0, <[u8]>::len);
    }
}

/// Deeper JSON may be too deep where it is, which serde's way knows.
const DEPTH: i32 = 64;

/// How deep JSON is nested.
fn depth(json: &[u8]) -> i32 {
    let (mut depth, mut most, mut is_in_string) = (0, 0, false);
    let mut bytes = json.iter();
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => is_in_string = !is_in_string,
            b'\\' if is_in_string => drop(bytes.next()),
            _ if is_in_string => {}
            b'{' | b'[' => {
                depth += 1;
                most = most.max(depth);
            }
            b'}' | b']' => depth -= 1,
            _ => {}
        }
    }
    most
}

impl Message for Condition {
    fn begin() -> Self {
        Self {
            last_transition_time: Time(UNREAD),
            message: String::new(),
            observed_generation: None,
            reason: String::new(),
            status: String::new(),
            type_: String::new(),
        }
    }

    fn read_fields(&mut self, raw: &[u8], context: &mut Context) {
        let mut at = At::before(raw);
        while at.next(context) {
            match at.number {
                1 => self.type_.given(&at, context),
                2 => self.status.given(&at, context),
                3 => self.observed_generation.not_empty(&at, context),
                4 => self.last_transition_time.given(&at, context),
                5 => self.reason.given(&at, context),
                6 => self.message.given(&at, context),
                _ => {}
            }
        }
    }

    fn is_whole(&self) -> bool {
        self.last_transition_time.0 != UNREAD
    }
}

impl Message for EventSeries {
    fn begin() -> Self {
        Self { count: 0, last_observed_time: MicroTime(UNREAD) }
    }

    fn read_fields(&mut self, raw: &[u8], context: &mut Context) {
        let mut at = At::before(raw);
        while at.next(context) {
            match at.number {
                1 => self.count.given(&at, context),
                2 => self.last_observed_time.given(&at, context),
                _ => {}
            }
        }
    }

    fn is_whole(&self) -> bool {
        self.last_observed_time.0 != UNREAD
    }
}
