//! A graph of types, and a reference to a type in it.
//!
//! The types hold what server-side apply, strategic merge patches and checks of unknown fields need. OpenAPI schemas
//! are converted by the rules of kube-openapi (`schemaconv`).

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use serde_json::Value;

/// A type of the API. Cheap to clone.
#[derive(Clone)]
pub struct TypeRef {
    types: Arc<Types>,
    used: Use,
}

/// Types that refer to each other by index.
#[derive(Clone, Default)]
pub(crate) struct Types {
    pub(crate) all: Vec<Type>,
    /// The named types.
    pub(crate) names: BTreeMap<Box<str>, usize>,
    /// The names of types, for those that have one: each object that is decoded asks.
    pub(super) named: OnceLock<BTreeMap<usize, Box<str>>>,
    /// Whether the server decodes their values into Go structures, in which all fields exist.
    pub(crate) structures: bool,
    /// The kinds (group, version, kind) and their types. Sorted by kind, in which most differ.
    pub(crate) kinds: Vec<([Box<str>; 3], usize)>,
}

/// One type.
#[derive(Clone)]
pub(crate) enum Type {
    /// Any value: only the value shows its shape. If it is atomic, it has a single owner.
    Any {
        atomic: bool,
        format: Box<str>,
        one_of: Box<[Box<str>]>,
    },
    Scalar(Scalar),
    List {
        items: Use,
        relation: Relation,
    },
    Object(Object),
}

/// A value without parts.
#[derive(Clone)]
pub(crate) struct Scalar {
    /// `string`, `integer`, `number`, `boolean`
    pub(crate) name: Box<str>,
    /// `int32`, `date-time`, ... or empty.
    pub(crate) format: Box<str>,
}

/// A use of a type, which may override whether a map is atomic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Use {
    pub(crate) at: usize,
    pub(crate) atomic: Option<bool>,
}

/// How the items of a list relate to each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Relation {
    /// The list is one value.
    Atomic,
    /// Each value is an item and occurs at most once.
    Set,
    /// The values of these fields identify an item.
    Map(Box<[Box<str>]>),
}

/// A type with named fields.
#[derive(Clone, Default)]
pub(crate) struct Object {
    pub(crate) fields: BTreeMap<Box<str>, Field>,
    /// The type of fields without a name here; `None` if these are unknown fields.
    pub(crate) rest: Option<Use>,
    /// Whether the schema declares `rest`. Otherwise it is only there for the ownership of unknown fields.
    pub(crate) declares_rest: bool,
    /// Whether pruning keeps unknown fields.
    pub(crate) keeps_unknown: bool,
    /// Whether the object has `apiVersion`, `kind` and `metadata` of its own.
    pub(crate) embedded: bool,
    pub(crate) atomic: Option<bool>,
}

/// A named field.
#[derive(Clone)]
pub(crate) struct Field {
    pub(crate) used: Use,
    pub(crate) required: bool,
    pub(crate) default: Option<Value>,
    /// In a structure: whether it is a pointer, so that its zero value differs from a missing one.
    pub(crate) pointer: bool,
    /// In a structure: whether it is written even without a value.
    pub(crate) kept: bool,
    /// Whether null is a value. Otherwise a null with a default counts as missing.
    pub(crate) nullable: bool,
    /// The strategies of a strategic merge patch: `merge`, `replace`, `retainKeys`.
    pub(crate) patch: Box<[Box<str>]>,
    /// The field by which a strategic merge patch identifies items of a list.
    pub(crate) merge_key: Option<Box<str>>,
    /// The allowed values, for documentation.
    pub(crate) values: Box<[Box<str>]>,
    /// The list type in OpenAPI, if any.
    pub(crate) list: Option<Box<str>>,
}

/// The shape of a type for a given value.
pub(crate) enum Shape<'a> {
    Scalar,
    List(&'a Relation),
    Map { atomic: bool },
}

impl TypeRef {
    pub(crate) fn new(types: Arc<Types>, at: usize) -> Self {
        Self { types, used: Use::of(at) }
    }

    pub(crate) fn named(types: &Arc<Types>, find: impl FnOnce(&Types) -> Option<usize>) -> Option<Self> {
        let at = find(types)?;
        Some(Self::new(Arc::clone(types), at))
    }

    /// The type of objects without a schema: each field belongs to the manager that sets it, and lists are atomic.
    pub fn any() -> Self {
        Self::new(Arc::new(Types { all: vec![Type::any(false)], ..Types::default() }), 0)
    }

    pub(crate) fn are_structures(&self) -> bool {
        self.types.structures
    }

    pub(crate) fn definition(&self) -> &Type {
        // A `Use` is always valid in the types that it was made with.
        &self.types.all[self.used.at]
    }

    /// The shape of a value of this type. A value that does not fit counts as a value that does.
    pub(crate) fn shape(&self, value: Option<&Value>) -> Shape<'_> {
        match self.definition() {
            Type::Any { atomic, .. } => match value {
                Some(Value::Array(_)) => Shape::List(&Relation::Atomic),
                Some(Value::Object(_) | Value::Null) | None => {
                    Shape::Map { atomic: self.used.atomic.unwrap_or(*atomic) }
                }
                Some(_) => Shape::Scalar,
            },
            Type::Scalar(_) => Shape::Scalar,
            Type::List { relation, .. } => Shape::List(relation),
            Type::Object(object) => {
                Shape::Map { atomic: self.used.atomic.or(object.atomic).unwrap_or(false) }
            }
        }
    }

    /// The field of this name, if there is one.
    pub(crate) fn field(&self, name: &str) -> Option<&Field> {
        match self.definition() {
            Type::Object(object) => object.fields.get(name),
            _ => None,
        }
    }

    /// The type of a member: of the named field, or of the rest.
    pub(crate) fn child(&self, name: &str) -> Option<Self> {
        match self.definition() {
            Type::Any { .. } => Some(self.clone()),
            Type::Object(object) => {
                let used = object.fields.get(name).map(|field| field.used).or(object.rest)?;
                Some(self.at(used))
            }
            Type::Scalar(_) | Type::List { .. } => None,
        }
    }

    /// The type of the items of a list.
    pub(crate) fn items(&self) -> Option<Self> {
        match self.definition() {
            Type::Any { .. } => Some(Self::any_atomic()),
            Type::List { items, .. } => Some(self.at(*items)),
            Type::Scalar(_) | Type::Object(_) => None,
        }
    }

    /// The type of items in an atomic list.
    fn any_atomic() -> Self {
        Self::new(Arc::new(Types { all: vec![Type::any(true)], ..Types::default() }), 0)
    }

    /// The type of the items of a list; the type itself if it is no list.
    pub(crate) fn items_or_self(self) -> Self {
        match self.definition() {
            Type::List { items, .. } => self.at(*items),
            _ => self,
        }
    }

    pub(crate) fn at(&self, used: Use) -> Self {
        Self { types: Arc::clone(&self.types), used }
    }

    /// The name, for messages: `PodSpec`.
    pub(crate) fn name(&self) -> &str {
        let name = self.full_name();
        name.rsplit('.').next().unwrap_or(name)
    }

    fn full_name(&self) -> &str {
        let names = || self.types.names.iter().map(|(name, at)| (*at, name.clone())).collect();
        self.types.named.get_or_init(names).get(&self.used.at).map_or("", |name| name)
    }

    /// The name with its Go package: `v1.PodSpec`.
    pub(crate) fn qualified_name(&self) -> String {
        let mut parts = self.full_name().rsplit('.');
        match (parts.next(), parts.next()) {
            (Some(name), Some(package)) => format!("{package}.{name}"),
            _ => String::new(),
        }
    }
}

impl std::fmt::Debug for TypeRef {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "TypeRef({})", self.name())
    }
}

impl Types {
    pub(crate) fn kind(&self, group: &str, version: &str, kind: &str) -> Option<usize> {
        let found = self.kinds.binary_search_by(|([its_group, its_version, its_kind], _)| {
            (&**its_kind, &**its_group, &**its_version).cmp(&(kind, group, version))
        });
        Some(self.kinds[found.ok()?].1)
    }

    /// Adds a type and returns its index.
    pub(crate) fn add(&mut self, definition: Type) -> usize {
        self.all.push(definition);
        self.all.len() - 1
    }
}

impl Type {
    pub(crate) fn any(atomic: bool) -> Self {
        Self::Any { atomic, format: Box::default(), one_of: Box::default() }
    }
}

impl Use {
    pub(crate) fn of(at: usize) -> Self {
        Self { at, atomic: None }
    }
}

impl Field {
    pub(crate) fn of(used: Use) -> Self {
        Self {
            used,
            required: false,
            default: None,
            pointer: false,
            kept: false,
            nullable: false,
            patch: Box::default(),
            merge_key: None,
            values: Box::default(),
            list: None,
        }
    }
}
