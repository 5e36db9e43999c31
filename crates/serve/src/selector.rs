//! Which objects a request selects: by labels, by fields, by shard.

mod fields;
mod labels;

use crate::shard::ShardSelector;
use crate::{Object, Resource, Status};

use fields::Fields;
use labels::Requirement;

/// Which objects a request selects.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Selection {
    labels: Vec<Requirement>,
    fields: Fields,
    shard: Option<ShardSelector>,
}

/// Selectors with valid syntax; the resource decides whether the fields exist.
pub(crate) struct Read<'a> {
    labels: Vec<Requirement>,
    fields: Vec<fields::Condition<'a>>,
}

impl<'a> Read<'a> {
    /// Parses the selectors of a request.
    pub(crate) fn parse(labels: &str, fields: &'a str) -> Result<Self, Status> {
        Ok(Self {
            labels: labels::parse(labels).map_err(Status::bad_request)?,
            fields: fields::parse(fields).map_err(Status::bad_request)?,
        })
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
        self.labels.is_empty() && self.fields.is_empty()
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
        self.labels.iter().all(|requirement| requirement.matches(&object.labels))
            && self.fields.matches(object)
            && self.shard.as_ref().is_none_or(|shard| shard.matches(object))
    }
}
