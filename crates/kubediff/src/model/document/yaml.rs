//! YAML as JSON, in which a number that JSON writes in another way stays the text that it was: `0644`, `1.10`.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use serde_saphyr::Spanned;

/// All documents of a text; `None` if it is not YAML.
pub(super) fn read(text: &str) -> Option<Vec<Value>> {
    let documents: Vec<Spanned<Node>> = serde_saphyr::from_multiple(text).ok()?;
    Some(documents.into_iter().map(|document| as_written(document, text)).collect())
}

enum Node {
    Scalar(Value),
    Number(Value),
    List(Vec<Spanned<Node>>),
    Map(Vec<(String, Spanned<Node>)>),
}

fn as_written(node: Spanned<Node>, text: &str) -> Value {
    match node.value {
        Node::Scalar(value) => value,
        Node::Number(number) => {
            let span = node.defined.span();
            let written = || {
                let (from, length) =
                    (span.byte_offset()?.try_into().ok()?, span.byte_len()?.try_into().ok()?);
                text.get(from..usize::checked_add(from, length)?)
            };
            let in_json = number.to_string();
            match written().map(str::trim) {
                Some(written) if written != in_json => written.into(),
                _ => number,
            }
        }
        Node::List(list) => list.into_iter().map(|node| as_written(node, text)).collect(),
        Node::Map(map) => map.into_iter().map(|(name, node)| (name, as_written(node, text))).collect(),
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Any)
    }
}

struct Any;

impl<'de> Visitor<'de> for Any {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_unit<E>(self) -> Result<Node, E> {
        Ok(Node::Scalar(Value::Null))
    }

    fn visit_bool<E>(self, value: bool) -> Result<Node, E> {
        Ok(Node::Scalar(value.into()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Node, E> {
        Ok(Node::Number(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Node, E> {
        Ok(Node::Number(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Node, E> {
        Ok(Node::Number(value.into()))
    }

    fn visit_str<E>(self, value: &str) -> Result<Node, E> {
        Ok(Node::Scalar(value.into()))
    }

    fn visit_string<E>(self, value: String) -> Result<Node, E> {
        Ok(Node::Scalar(value.into()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Node, A::Error> {
        let mut nodes = Vec::new();
        while let Some(node) = list.next_element()? {
            nodes.push(node);
        }
        Ok(Node::List(nodes))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Node, A::Error> {
        let mut nodes = Vec::new();
        while let Some(entry) = map.next_entry()? {
            nodes.push(entry);
        }
        Ok(Node::Map(nodes))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::read;

    #[test]
    fn numbers_are_as_they_are_written() {
        let text = "mode: 0644\nversion: 1.10\nbig: 123456789012345678901234567890\nn: 12\nx: -1.5\n\
                    on: true\nquoted: \"0644\"\nlist: [1, 1e3, {a: 0x1F}]\nat: &a 1.20\nsame: *a\nnone: ~\n---\nb: +5\n";
        let expected = json!([
            {
                "mode": "0644", "version": "1.10", "big": "123456789012345678901234567890", "n": 12,
                "x": -1.5, "on": true, "quoted": "0644", "list": [1, "1e3", {"a": "0x1F"}], "at": "1.20",
                "same": "1.20", "none": null,
            },
            { "b": "+5" },
        ]);
        assert_eq!(read(text), expected.as_array().cloned());
    }
}
