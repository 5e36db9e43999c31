//! Which objects a request selects: by labels, by fields, by shard.

mod fields;

use kube_selector::fields::Condition;
use kube_selector::{InvalidSelector, Selector, ShardBy, ShardSelector};

use crate::{Object, Resource, Status, json};

use fields::Fields;

/// Which objects a request selects.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Selection {
    labels: Selector,
    fields: Fields,
    shard: Option<ShardSelector>,
}

/// Selectors with valid syntax; the resource decides whether the fields exist.
pub(crate) struct Read<'a> {
    labels: Selector,
    fields: Vec<Condition<'a>>,
}

impl<'a> Read<'a> {
    /// Parses the selectors of a request.
    pub(crate) fn parse(labels: &str, fields: &'a str) -> Result<Self, Status> {
        let refused = |error: InvalidSelector| Status::bad_request(error.reason());
        Ok(Self { labels: labels.parse().map_err(refused)?, fields: fields::parse(fields).map_err(refused)? })
    }

    /// Applies them to a resource.
    pub(crate) fn of(self, resource: &Resource, shard: Option<ShardSelector>) -> Result<Selection, Status> {
        let fields = Fields::of(resource, self.fields).map_err(Status::bad_request)?;
        Ok(Selection { labels: self.labels, fields, shard })
    }
}

impl Selection {
    /// Restricts to the object of this name. Refused if the field selector names another one.
    pub(crate) fn only(mut self, name: &str) -> Result<Self, Status> {
        if self.fields.is_empty() {
            self.fields = Fields::name(name);
        } else if self.fields.exact_name() != Some(name) {
            return Err(Status::bad_request("fieldSelector metadata.name doesn't match requested name"));
        }
        Ok(self)
    }

    /// Whether labels and fields select everything.
    pub(crate) fn is_everything(&self) -> bool {
        self.labels.is_everything() && self.fields.is_empty()
    }

    /// The only name that an object may have.
    pub(crate) fn exact_name(&self) -> Option<&str> {
        self.fields.exact_name()
    }

    /// The requested shard, if shards are honoured.
    pub(crate) fn shard(&self) -> Option<&ShardSelector> {
        self.shard.as_ref()
    }

    /// Whether an object is selected.
    pub(crate) fn matches(&self, object: &Object) -> bool {
        self.labels.matches(&object.labels)
            && self.fields.matches(object)
            && self.shard.as_ref().is_none_or(|shard| is_in(shard, object))
    }
}

fn is_in(shard: &ShardSelector, object: &Object) -> bool {
    match shard.by {
        ShardBy::Namespace => shard.matches(&object.namespace),
        ShardBy::Uid => {
            let uid = json::path(&object.body, ["metadata", "uid"]).and_then(|range| object.body.get(range));
            let uid = uid.and_then(|uid| serde_json::from_slice::<String>(uid).ok());
            shard.matches(&uid.unwrap_or_default())
        }
    }
}
