//! The indexes that the library adds itself: by namespace always, by labels once selectors are used.

use std::hash::{BuildHasher, Hasher};
use std::sync::Arc;

use hashbrown::DefaultHashBuilder;

use super::index::{Indexer, ValueRef, Values, text_of};
use super::posting::Posting;
use super::report::IndexFault;
use crate::Object;

/// Separates a label's key from its value; no label can contain it ([`crate::Labels`]).
const KEY_END: char = '\u{1f}';

/// Files objects under their namespace. A cluster-wide object has no value.
pub(super) struct ByNamespace(pub(super) DefaultHashBuilder);

impl Indexer for ByNamespace {
    fn values_of(
        &self,
        object: &Arc<Object>,
        known: &Values,
        _: &[u32],
    ) -> Result<Vec<ValueRef>, IndexFault> {
        let Some(namespace) = object.key().namespace() else { return Ok(Vec::new()) };
        Ok(vec![known_or_new(
            known,
            self.0.hash_one(namespace),
            |text| text == namespace,
            || namespace.into(),
        )])
    }

    fn is_filed_alike(&self, _: &Object, _: &Object) -> bool {
        // The namespace is part of the key, and a slot holds versions of one key.
        true
    }

    fn is_pure(&self) -> bool {
        true
    }
}

/// The objects of a namespace.
pub(super) fn posting_of_namespace<'a>(
    values: &'a Values,
    hasher: &DefaultHashBuilder,
    namespace: &str,
) -> Option<&'a Posting> {
    let number = values.find(hasher.hash_one(namespace), |value| text_of(value) == Some(namespace))?;
    values.filed(number).map(|filed| &filed.posting)
}

/// Files objects under each label (key and value), and under each label's key alone.
pub(super) struct ByLabel(pub(super) DefaultHashBuilder);

impl Indexer for ByLabel {
    fn values_of(
        &self,
        object: &Arc<Object>,
        known: &Values,
        _: &[u32],
    ) -> Result<Vec<ValueRef>, IndexFault> {
        let labels = object.labels();
        let mut values = Vec::with_capacity(2 * labels.iter().count());
        for (key, value) in labels.iter() {
            for term in [Term { key, value: None }, Term { key, value: Some(value) }] {
                values.push(known_or_new(known, term.hash(&self.0), |text| term.is(text), || term.to_text()));
            }
        }
        Ok(values)
    }

    fn is_filed_alike(&self, old: &Object, new: &Object) -> bool {
        old.labels() == new.labels()
    }

    fn is_pure(&self) -> bool {
        true
    }
}

/// The objects with this label: with this value, or with any value.
pub(super) fn posting_of_label<'a>(
    values: &'a Values,
    hasher: &DefaultHashBuilder,
    key: &str,
    value: Option<&str>,
) -> Option<&'a Posting> {
    let term = Term { key, value };
    let number = values.find(term.hash(hasher), |value| text_of(value).is_some_and(|text| term.is(text)))?;
    values.filed(number).map(|filed| &filed.posting)
}

#[derive(Clone, Copy)]
struct Term<'a> {
    key: &'a str,
    value: Option<&'a str>,
}

impl Term<'_> {
    fn hash(self, hasher: &DefaultHashBuilder) -> u64 {
        let mut hasher = hasher.build_hasher();
        hasher.write(self.key.as_bytes());
        if let Some(value) = self.value {
            hasher.write_u32(u32::from(KEY_END));
            hasher.write(value.as_bytes());
        }
        hasher.finish()
    }

    fn is(self, text: &str) -> bool {
        match (text.strip_prefix(self.key), self.value) {
            (Some(rest), Some(value)) => rest.strip_prefix(KEY_END) == Some(value),
            (Some(rest), None) => rest.is_empty(),
            (None, _) => false,
        }
    }

    fn to_text(self) -> Box<str> {
        match self.value {
            None => self.key.into(),
            Some(value) => format!("{}{KEY_END}{value}", self.key).into(),
        }
    }
}

fn known_or_new(
    known: &Values,
    hash: u64,
    is_it: impl Fn(&str) -> bool,
    make: impl FnOnce() -> Box<str>,
) -> ValueRef {
    match known.find(hash, |value| text_of(value).is_some_and(&is_it)) {
        Some(number) => ValueRef::Known(number),
        None => ValueRef::New { hash, value: Arc::new(make()) },
    }
}
