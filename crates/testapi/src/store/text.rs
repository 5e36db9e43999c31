//! Makes a stored object from JSON text without the tree of a [`Value`](serde_json::Value), which costs ten times as
//! much as the rest.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Error, from_str};
use serve::{Labels, Object};

use super::body::{Order, body};

/// The text of an object, split into its members and those of its metadata.
pub(crate) struct Text<'a> {
    members: Members<'a>,
    metadata: Members<'a>,
}

type Members<'a> = BTreeMap<String, Cow<'a, RawValue>>;

impl<'a> Text<'a> {
    /// Splits a JSON object. It must have no line breaks, because these end the events of a watch.
    pub(crate) fn read(text: &'a [u8]) -> Result<Self, Error> {
        let members = members(serde_json::from_slice(text)?);
        let metadata = match members.get("metadata") {
            Some(Cow::Borrowed(metadata)) => read_members(metadata)?,
            _ => Members::new(),
        };
        Ok(Self { members, metadata })
    }

    /// Sets a string in the metadata if it is missing.
    pub(crate) fn fill(&mut self, name: &str, value: impl FnOnce() -> String) -> Result<(), Error> {
        if !self.metadata.contains_key(name) {
            self.metadata.insert(name.into(), Cow::Owned(to_raw_value(&value())?));
        }
        Ok(())
    }

    /// The stored object at a revision.
    pub(crate) fn encode(mut self, revision: u64, order: Order) -> Result<Object, Error> {
        self.metadata.insert("resourceVersion".into(), Cow::Owned(to_raw_value(&revision.to_string())?));
        let labels: BTreeMap<Cow<'_, str>, Cow<'_, str>> = self.read_metadata("labels")?.unwrap_or_default();
        Ok(Object {
            namespace: self.read_metadata::<String>("namespace")?.unwrap_or_default().into(),
            name: self.read_metadata::<String>("name")?.unwrap_or_default().into(),
            revision,
            labels: labels.into_iter().collect::<Labels>(),
            body: body(named(&self.metadata), named(&self.members), order),
        })
    }

    fn read_metadata<'b, T: Deserialize<'b>>(&'b self, name: &str) -> Result<Option<T>, Error> {
        self.metadata.get(name).map_or(Ok(None), |value| from_str(value.get()))
    }
}

fn read_members(text: &RawValue) -> Result<Members<'_>, Error> {
    Ok(members(from_str::<Option<_>>(text.get())?.unwrap_or_default()))
}

fn members(borrowed: BTreeMap<String, &RawValue>) -> Members<'_> {
    borrowed.into_iter().map(|(name, value)| (name, Cow::Borrowed(value))).collect()
}

fn named<'b, 'a>(members: &'b Members<'a>) -> impl Iterator<Item = (&'b str, &'b Cow<'a, RawValue>)> {
    members.iter().map(|(name, value)| (name.as_str(), value))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::body::encode;
    use super::*;

    #[test]
    fn an_object_is_kept_as_one_from_a_tree_is() {
        let given = json!({
            "kind": "Pod", "apiVersion": "v1", "spec": { "a": [1, { "b": null }] }, "alpha": 1,
            "metadata": { "namespace": "n", "name": "a\"b", "labels": { "x": "\u{e9}\n", "app": "" }, "zeta": {} },
        });
        for order in [Order::Declared, Order::Sorted] {
            let text = given.to_string();
            let mut read = Text::read(text.as_bytes()).unwrap();
            read.fill("uid", || "u".into()).unwrap();
            read.fill("name", || "another".into()).unwrap();
            let mut tree = given.clone();
            tree["metadata"]["uid"] = "u".into();
            assert_eq!(read.encode(7, order).unwrap(), encode(&mut tree, 7, order), "{order:?}");
        }
    }

    #[test]
    fn an_object_without_metadata_gets_some() {
        for text in ["{}", r#"{"metadata":null,"kind":"Pod"}"#, r#"{"metadata":{}}"#] {
            let object = Text::read(text.as_bytes()).unwrap().encode(3, Order::Declared).unwrap();
            assert_eq!(object.body, r#""metadata":{"resourceVersion":"3"}}"#, "{text}");
        }
    }

    #[test]
    fn what_is_no_object_is_refused() {
        for text in ["", "[]", "1", "{", r#"{"metadata":[]}"#, r#"{"a":1}}"#, r#"{"a":tru}"#] {
            assert!(
                Text::read(text.as_bytes()).is_err(),
                "{text}: {:?}",
                serde_json::from_str::<Value>(text)
            );
        }
    }
}
