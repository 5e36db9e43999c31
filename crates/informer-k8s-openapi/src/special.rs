//! Types that k8s-openapi has no struct for, and structs that have no default.

use informer_protobuf::wire::Value;
use k8s_openapi::ByteString;
use k8s_openapi::api::events::v1::EventSeries;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, FieldsV1, MicroTime, Time};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use k8s_openapi::jiff::Timestamp;

use crate::element::{Element, Member};
use crate::fields::{At, Context, Unfit, field};
use crate::messages::Message;

/// The fields 1 to 3 of a message that has only numbers and strings.
#[derive(Default)]
struct Scalars<'a> {
    numbers: [u64; 3],
    bytes: [Option<&'a [u8]>; 3],
}

impl<'a> Scalars<'a> {
    fn of(value: Value<'a>) -> Result<Self, Unfit> {
        let Value::Bytes(raw) = value else { return Err(Unfit) };
        let mut scalars = Self::default();
        let mut last = 0;
        let mut rest = raw;
        while !rest.is_empty() {
            let (number, value, after) = field(rest)?;
            // Servers write them in order, and each once.
            if !(last + 1..=3).contains(&number) {
                return Err(Unfit);
            }
            let at = number as usize - 1;
            match value {
                Value::Varint(value) => scalars.numbers[at] = value,
                Value::Bytes(value) => scalars.bytes[at] = Some(value),
                _ => return Err(Unfit),
            }
            (last, rest) = (number, after);
        }
        Ok(scalars)
    }
}

impl Element for ByteString {
    fn zero() -> Self {
        Self::default()
    }

    fn read(&mut self, value: Value<'_>, context: &mut Context) -> Result<(), Unfit> {
        let Value::Bytes(bytes) = value else { return Err(Unfit) };
        context.add_text(bytes.len());
        self.0 = bytes.to_owned();
        Ok(())
    }

    /// As a member; as an entry of a map it is empty.
    const ZERO_IS_NULL: bool = true;
}

impl Element for Quantity {
    fn zero() -> Self {
        Self("0".to_owned())
    }

    fn read(&mut self, value: Value<'_>, context: &mut Context) -> Result<(), Unfit> {
        match Scalars::of(value)?.bytes[0] {
            Some(text) => self.0.read(Value::Bytes(text), context),
            // No server writes an empty one.
            None => Err(Unfit),
        }
    }
}

impl Element for IntOrString {
    fn zero() -> Self {
        Self::Int(0)
    }

    fn read(&mut self, value: Value<'_>, context: &mut Context) -> Result<(), Unfit> {
        let Scalars { numbers: [form, number, _], bytes: [.., text] } = Scalars::of(value)?;
        *self = match form {
            0 => {
                let mut int = 0_i32;
                int.read(Value::Varint(number), context)?;
                Self::Int(int)
            }
            1 => {
                let mut string = String::new();
                string.read(Value::Bytes(text.unwrap_or_default()), context)?;
                Self::String(string)
            }
            _ => return Err(Unfit),
        };
        Ok(())
    }
}

/// 0001-01-01, Go's zero time, for which JSON says `null`, and the last second that RFC 3339 can express.
const SECONDS: std::ops::RangeInclusive<i64> = -62_135_596_800..=253_402_300_799;
/// In place of a time that is not read yet: no server's time is that early.
const UNREAD: Timestamp = Timestamp::MIN;

/// Seconds since 1970 and microseconds.
fn time(value: Value<'_>) -> Result<(i64, i32), Unfit> {
    let [seconds, nanos, _] = Scalars::of(value)?.numbers;
    let nanos = i32::try_from(nanos.cast_signed()).map_err(|_| Unfit)?;
    Ok((seconds.cast_signed(), nanos / 1000))
}

fn timestamp(seconds: i64, micros: i32) -> Result<Timestamp, Unfit> {
    if !SECONDS.contains(&seconds) || !(0..1_000_000).contains(&micros) {
        return Err(Unfit);
    }
    Timestamp::new(seconds, micros * 1000).map_err(|_| Unfit)
}

impl Element for Time {
    fn zero() -> Self {
        Self(UNREAD)
    }

    fn read(&mut self, value: Value<'_>, _: &mut Context) -> Result<(), Unfit> {
        self.0 = timestamp(time(value)?.0, 0)?;
        Ok(())
    }

    fn is_null(value: Value<'_>) -> bool {
        value == Value::Bytes(&[]) || time(value).is_ok_and(|(seconds, _)| seconds == *SECONDS.start())
    }

    const ZERO_IS_NULL: bool = true;
}

impl Element for MicroTime {
    fn zero() -> Self {
        Self(UNREAD)
    }

    fn read(&mut self, value: Value<'_>, _: &mut Context) -> Result<(), Unfit> {
        let (seconds, micros) = time(value)?;
        self.0 = timestamp(seconds, micros)?;
        Ok(())
    }

    fn is_null(value: Value<'_>) -> bool {
        value == Value::Bytes(&[]) || time(value).is_ok_and(|time| time == (*SECONDS.start(), 0))
    }

    const ZERO_IS_NULL: bool = true;
}

impl Element for FieldsV1 {
    fn zero() -> Self {
        Self::default()
    }

    fn read(&mut self, value: Value<'_>, context: &mut Context) -> Result<(), Unfit> {
        let json = Scalars::of(value)?.bytes[0].ok_or(Unfit)?;
        // An object: `null` would be no value.
        if json.first() != Some(&b'{') || depth(json) > DEPTH {
            return Err(Unfit);
        }
        self.0 = serde_json::from_slice(json).map_err(|_| Unfit)?;
        context.heap += 3 * json.len();
        Ok(())
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

    fn field(&mut self, at: &mut At<'_>, context: &mut Context) -> Result<(), Unfit> {
        match at.number {
            1 => self.type_.given(at, context),
            2 => self.status.given(at, context),
            3 => self.observed_generation.not_empty(at, context),
            4 => self.last_transition_time.given(at, context),
            5 => self.reason.given(at, context),
            6 => self.message.given(at, context),
            _ => Ok(()),
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

    fn field(&mut self, at: &mut At<'_>, context: &mut Context) -> Result<(), Unfit> {
        match at.number {
            1 => self.count.given(at, context),
            2 => self.last_observed_time.given(at, context),
            _ => Ok(()),
        }
    }

    fn is_whole(&self) -> bool {
        self.last_observed_time.0 != UNREAD
    }
}
