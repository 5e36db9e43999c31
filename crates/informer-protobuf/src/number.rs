//! Floating-point numbers as JSON has them: Go writes whole ones without a point.

/// The kind of number that a JSON decoder makes of a text.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Number {
    Positive(u64),
    Negative(i64),
    Float(f64),
}

impl Number {
    pub(crate) fn of(value: f64) -> Self {
        // The first numbers beyond 64 bits; minus zero stays as it is.
        const POSITIVE: f64 = 18_446_744_073_709_551_616.0;
        const NEGATIVE: f64 = -9_223_372_036_854_775_808.0;
        let is_minus_zero = value == 0.0 && value.is_sign_negative();
        if value.fract() != 0.0 || !(NEGATIVE..POSITIVE).contains(&value) || is_minus_zero {
            Self::Float(value)
        } else if value >= 0.0 {
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "it is whole and fits"
            )]
            Self::Positive(value as u64)
        } else {
            #[expect(clippy::cast_possible_truncation, reason = "it is whole and fits")]
            Self::Negative(value as i64)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_what_its_json_is_read_as() {
        for (value, json) in [
            (0.0, "0"),
            (1.0, "1"),
            (-1.0, "-1"),
            (-0.0, "-0"),
            (0.5, "0.5"),
            (9_007_199_254_740_993.0, "9007199254740992"),
            (9_223_372_036_854_775_808.0, "9223372036854775808"),
            (-9_223_372_036_854_775_808.0, "-9223372036854775808"),
            (18_446_744_073_709_551_616.0, "18446744073709551616"),
            (-1e19, "-10000000000000000000"),
            (1e300, "1e+300"),
            (1e-7, "1e-07"),
        ] {
            let expected: serde_json::Value = serde_json::from_str(json).unwrap();
            let ours = match Number::of(value) {
                Number::Positive(value) => serde_json::Value::from(value),
                Number::Negative(value) => serde_json::Value::from(value),
                Number::Float(value) => serde_json::Value::from(value),
            };
            assert_eq!(ours, expected, "{json}");
        }
    }
}
