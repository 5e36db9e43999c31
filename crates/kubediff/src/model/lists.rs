//! Known facts about the lists of an object: by the server's schema, and by the API of Kubernetes itself.

use serde_json::Value;

use crate::model::gvk::Gvk;
use crate::model::schema::{KindSchema, ListType, Schema};

/// Fields of built-in kinds that hold anything: default values in the schema of a custom resource, the parameters of a device,
/// the content of a controller's revision.
const ANYTHING: &[&str] = &["data", "openAPIV3Schema", "parameters"];

/// The known facts about the lists in a value.
#[derive(Clone, Copy)]
pub(crate) struct Lists<'a> {
    schema: Option<Schema<'a>>,
    origin: Origin,
}

/// The source of the fields of a value.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Origin {
    /// Kubernetes: its lists are known by the names of their fields.
    Kubernetes,
    /// A custom resource: all but its `metadata`.
    Custom,
    /// Anybody.
    Anybody,
}

impl<'a> Lists<'a> {
    /// The lists of an object of this kind.
    pub(crate) fn of(gvk: &Gvk, schema: Option<&'a KindSchema>) -> Self {
        let is_built_in = kube_table::builtin::has(&gvk.group, &gvk.kind);
        let origin = if is_built_in { Origin::Kubernetes } else { Origin::Custom };
        Self { schema: schema.map(KindSchema::root), origin }
    }

    /// The lists of an object of the kind that stands in it.
    pub(crate) fn of_object(object: &Value, schema: Option<&'a KindSchema>) -> Self {
        let text = |name: &str| object.get(name).and_then(Value::as_str);
        match (text("apiVersion"), text("kind")) {
            (Some(version), Some(kind)) => Self::of(&Gvk::new(version, kind), schema),
            _ => Self { schema: schema.map(KindSchema::root), origin: Origin::Anybody },
        }
    }

    /// The lists of a value of which nothing is known, for example of a document in a ConfigMap.
    pub(crate) fn unknown() -> Self {
        Self { schema: None, origin: Origin::Anybody }
    }

    /// The lists in a field.
    pub(crate) fn field(self, name: &str) -> Self {
        let origin = match self.origin {
            Origin::Kubernetes if !ANYTHING.contains(&name) => Origin::Kubernetes,
            Origin::Custom if name == "metadata" => Origin::Kubernetes,
            _ => Origin::Anybody,
        };
        Self { schema: self.schema.and_then(|schema| schema.field(name)), origin }
    }

    /// The lists in the elements of a list.
    pub(crate) fn element(self) -> Self {
        Self { schema: self.schema.and_then(Schema::element), ..self }
    }

    /// The schema's word on this list.
    pub(crate) fn declared(self) -> Option<&'a ListType> {
        self.schema.and_then(Schema::list)
    }

    /// Whether the name of this list's field says if its order has a meaning.
    pub(crate) fn are_known_by_name(self) -> bool {
        self.origin == Origin::Kubernetes
    }
}
