//! Shard selectors (KEP-5866): a share of the objects by the hash of their uid or namespace.

use std::fmt;

use crate::{Object, json};

/// Ranges of hashes of one field; an object is in the shard if its hash is in one of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ShardSelector {
    field: Field,
    ranges: Vec<Range>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Field {
    Uid,
    Namespace,
}

/// From a hash up to, but not including, another; the end may be 2^64.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Range {
    start: u128,
    end: u128,
}

impl ShardSelector {
    /// Parses `shardRange(object.metadata.uid, '0x0000000000000000', '0x8000000000000000')`, or several joined by
    /// ` || ` over the same field.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let mut field = None;
        let mut ranges = Vec::new();
        for call in text.split("||") {
            let (of, range) = shard_range(call.trim())?;
            if *field.get_or_insert(of) != of {
                return Err("all shardRange calls must use the same field".to_string());
            }
            ranges.push(range);
        }
        let field = field.ok_or("empty shard selector")?;
        Ok(Self { field, ranges })
    }

    /// Whether an object is in the shard.
    pub(crate) fn matches(&self, object: &Object) -> bool {
        let hash = match self.field {
            Field::Namespace => fnv1a(object.namespace.as_bytes()),
            Field::Uid => {
                let uid = json::path(&object.body, ["metadata", "uid"]);
                let uid = uid.map_or(&[][..], |range| &object.body[range]);
                fnv1a(uid.strip_prefix(b"\"").and_then(|uid| uid.strip_suffix(b"\"")).unwrap_or(uid))
            }
        };
        self.ranges.iter().any(|range| (range.start..range.end).contains(&u128::from(hash)))
    }
}

/// As the server writes it, which may differ from what was asked in white space and quotes.
impl fmt::Display for ShardSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let field = match self.field {
            Field::Uid => "uid",
            Field::Namespace => "namespace",
        };
        for (index, Range { start, end }) in self.ranges.iter().enumerate() {
            let or = if index > 0 { " || " } else { "" };
            write!(f, "{or}shardRange(object.metadata.{field}, '{start:#018x}', '{end:#018x}')")?;
        }
        Ok(())
    }
}

fn shard_range(call: &str) -> Result<(Field, Range), String> {
    let arguments = call
        .strip_prefix("shardRange(")
        .and_then(|rest| rest.strip_suffix(')'))
        .ok_or_else(|| format!("expected a call of shardRange, got {call:?}"))?;
    let arguments: Vec<&str> = arguments.split(',').map(str::trim).collect();
    let [field, start, end] = arguments.as_slice() else {
        return Err(format!("shardRange requires exactly 3 arguments, got {}", arguments.len()));
    };
    let field = match *field {
        "object.metadata.uid" => Field::Uid,
        "object.metadata.namespace" => Field::Namespace,
        other => return Err(format!("unsupported field path {other:?}")),
    };
    let range = Range { start: bound(start, false)?, end: bound(end, true)? };
    if range.start >= range.end {
        return Err(format!("start {start} must be less than end {end}"));
    }
    Ok((field, range))
}

/// `'0x'` and 16 hexadecimal digits in lower case; the end may be 2^64.
fn bound(text: &str, end: bool) -> Result<u128, String> {
    let digits = text
        .strip_prefix(['\'', '"'])
        .and_then(|rest| rest.strip_suffix(['\'', '"']))
        .and_then(|rest| rest.strip_prefix("0x"))
        .ok_or_else(|| format!("{text} must be a string that begins with 0x"))?;
    if end && digits == "10000000000000000" {
        return Ok(1 << 64);
    }
    let valid = digits.len() == 16 && digits.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'));
    let value = u128::from_str_radix(digits, 16).ok().filter(|_| valid);
    value.ok_or_else(|| format!("{text} must have exactly 16 lower-case hexadecimal digits"))
}

fn fnv1a(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::fnv1a;

    /// From the test vectors that the authors of the hash publish.
    #[test]
    fn the_hash_is_the_one_that_clients_compute() {
        for (text, hash) in
            [("", 0xcbf2_9ce4_8422_2325), ("a", 0xaf63_dc4c_8601_ec8c), ("foobar", 0x8594_4171_f739_67e8)]
        {
            assert_eq!(fnv1a(text.as_bytes()), hash, "{text}");
        }
    }
}
