//! Numbers and times as columns have them.

use jiff::Timestamp;

use super::fault::{Fault, Outcome};
use crate::record::Number;

pub(crate) fn number(number: i64) -> Number {
    Number(number.unsigned_abs())
}

pub(crate) fn id(number: Number) -> i64 {
    i64::try_from(number.0).unwrap_or(i64::MAX)
}

pub(crate) fn time(microseconds: i64) -> Outcome<Timestamp> {
    Timestamp::from_microsecond(microseconds).map_err(|_| Fault::damaged("a time is out of range"))
}
