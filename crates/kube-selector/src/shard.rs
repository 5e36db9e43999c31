//! Shard selectors (KEP-5866): a share of the objects by the hash of their uid or namespace.

use std::fmt;
use std::str::FromStr;

use crate::HashRange;

/// The field of an object that a shard selector hashes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShardBy {
    /// `metadata.uid`.
    Uid,
    /// `metadata.namespace`; empty for an object without one.
    Namespace,
}

/// Ranges of hashes of one field. An object is selected if its hash is in one of them.
///
/// ```
/// use kube_selector::{HashRange, ShardBy, ShardSelector};
///
/// let text = "shardRange(object.metadata.uid, '0x0000000000000000', '0x8000000000000000')";
/// let lower: ShardSelector = text.parse()?;
/// assert_eq!(lower, ShardSelector { by: ShardBy::Uid, ranges: vec![HashRange::new(0, 1 << 63).unwrap()] });
/// assert_eq!(lower.to_string(), text);
/// # Ok::<(), String>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShardSelector {
    /// The hashed field.
    pub by: ShardBy,
    /// In the order of the text.
    pub ranges: Vec<HashRange>,
}

impl ShardSelector {
    /// Whether an object is selected whose field has this value.
    pub fn matches(&self, value: &str) -> bool {
        let hash = hash(value);
        self.ranges.iter().any(|range| range.contains(hash))
    }
}

/// The hash of a value: 64-bit FNV-1a of its bytes, as the server computes it.
///
/// ```
/// assert_eq!(kube_selector::hash("foobar"), 0x8594_4171_f739_67e8);
/// ```
pub fn hash(value: &str) -> u64 {
    let step = |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    value.bytes().fold(0xcbf2_9ce4_8422_2325, step)
}

impl FromStr for ShardSelector {
    type Err = String;

    /// Parses `shardRange(object.metadata.uid, '0x0000000000000000', '0x8000000000000000')`, or several joined by `||` over
    /// the same field.
    fn from_str(text: &str) -> Result<Self, String> {
        let calls: Vec<_> =
            text.split("||").map(|call| shard_range(call.trim())).collect::<Result<_, _>>()?;
        let by = calls.first().ok_or("empty shard selector")?.0;
        if calls.iter().any(|(of, _)| *of != by) {
            return Err("all shardRange calls must use the same field".to_owned());
        }
        Ok(Self { by, ranges: calls.into_iter().map(|(_, range)| range).collect() })
    }
}

fn shard_range(call: &str) -> Result<(ShardBy, HashRange), String> {
    let arguments = call
        .strip_prefix("shardRange(")
        .and_then(|rest| rest.strip_suffix(')'))
        .ok_or_else(|| format!("expected a call of shardRange, got {call:?}"))?;
    let arguments: Vec<&str> = arguments.split(',').map(str::trim).collect();
    let [field, start, end] = arguments.as_slice() else {
        return Err(format!("shardRange requires exactly 3 arguments, got {}", arguments.len()));
    };
    let by = match *field {
        "object.metadata.uid" => ShardBy::Uid,
        "object.metadata.namespace" => ShardBy::Namespace,
        other => return Err(format!("unsupported field path {other:?}")),
    };
    let quotes = ['\'', '"'];
    let bare = |text: &'_ str| {
        text.strip_prefix(quotes).and_then(|rest| rest.strip_suffix(quotes)).map(str::to_owned)
    };
    let (Some(start), Some(end)) = (bare(start), bare(end)) else {
        return Err(format!("the bounds {start} and {end} must be strings"));
    };
    Ok((by, HashRange::of_bounds(&start, &end).map_err(|error| error.to_string())?))
}

/// As the server writes it, which may differ from what was asked in white space and quotes.
impl fmt::Display for ShardSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let field = match self.by {
            ShardBy::Uid => "uid",
            ShardBy::Namespace => "namespace",
        };
        for (index, range) in self.ranges.iter().enumerate() {
            let (or, start, end) = (if index > 0 { " || " } else { "" }, range.start(), range.end());
            write!(f, "{or}shardRange(object.metadata.{field}, '{start:#018x}', '{end:#018x}')")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::hash;

    /// From the test vectors that the authors of the hash publish.
    #[test]
    fn the_hash_is_the_one_that_clients_and_servers_compute() {
        for (text, expected) in
            [("", 0xcbf2_9ce4_8422_2325), ("a", 0xaf63_dc4c_8601_ec8c), ("foobar", 0x8594_4171_f739_67e8)]
        {
            assert_eq!(hash(text), expected, "{text}");
        }
    }
}
