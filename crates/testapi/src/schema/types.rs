//! Types that refer to each other, and a way to walk along them.
//!
//! They say as much as server-side apply, strategic merge patches and the checks of unknown fields ask for. The rules
//! by which OpenAPI's words become these are kube-openapi's (`schemaconv`).

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

/// A type of the API. Cheap to clone.
#[derive(Clone)]
pub struct TypeRef {
    types: Arc<Types>,
    used: Use,
}

/// Types that refer to each other by their place.
#[derive(Default)]
pub(crate) struct Types {
    pub(crate) all: Vec<Type>,
    /// Those that have a name.
    pub(crate) names: BTreeMap<Box<str>, usize>,
    /// Values of them are Go structures to the server, which have fields that nobody has set.
    pub(crate) structures: bool,
    /// The kinds that a name stands for: group, version, kind. Sorted by kind, which most differ in.
    pub(crate) kinds: Vec<([Box<str>; 3], usize)>,
}

/// One type.
pub(crate) enum Type {
    /// Anything: what it is shows when a value is there. All of it belongs to one owner if it is atomic.
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
pub(crate) struct Scalar {
    /// `string`, `integer`, `number`, `boolean`
    pub(crate) name: Box<str>,
    /// `int32`, `date-time`, ... or empty.
    pub(crate) format: Box<str>,
}

/// A type where it is used, which may say itself whether a map is atomic.
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
    /// Each value is an item of its own, at most once.
    Set,
    /// Each item is known by the values of these fields.
    Map(Box<[Box<str>]>),
}

/// A type with named parts.
#[derive(Default)]
pub(crate) struct Object {
    pub(crate) fields: BTreeMap<Box<str>, Field>,
    /// The type of what has none of these names; unknown fields where it is `None`.
    pub(crate) rest: Option<Use>,
    /// Whether `rest` is part of the schema, and not only what owners of unknown fields see.
    pub(crate) declares_rest: bool,
    /// The rest is kept when unknown fields are pruned.
    pub(crate) keeps_unknown: bool,
    /// The object has `apiVersion`, `kind` and `metadata` of its own.
    pub(crate) embedded: bool,
    pub(crate) atomic: Option<bool>,
}

/// A named part.
pub(crate) struct Field {
    pub(crate) used: Use,
    pub(crate) required: bool,
    pub(crate) default: Option<Value>,
    /// In a structure, its zero value is another than none: it is there if somebody has set it.
    pub(crate) pointer: bool,
    /// In a structure, it is written even where it has no value.
    pub(crate) kept: bool,
    /// Null is a value; elsewhere it counts as missing where there is a default.
    pub(crate) nullable: bool,
    /// The ways of a strategic merge patch: `merge`, `replace`, `retainKeys`.
    pub(crate) patch: Box<[Box<str>]>,
    /// By which field of theirs a strategic merge patch knows items of a list.
    pub(crate) merge_key: Option<Box<str>>,
    /// The allowed values, for documentation.
    pub(crate) values: Box<[Box<str>]>,
    /// What the list type says in OpenAPI, if anything.
    pub(crate) list: Option<Box<str>>,
}

/// What a type is for a given value.
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

    /// The type of objects of which nothing is known: every field belongs to whoever sets it, lists are one value.
    pub fn any() -> Self {
        Self::new(Arc::new(Types { all: vec![Type::any(false)], ..Types::default() }), 0)
    }

    pub(crate) fn are_structures(&self) -> bool {
        self.types.structures
    }

    pub(crate) fn definition(&self) -> &Type {
        // Every `Use` is made together with the types that it points into.
        &self.types.all[self.used.at]
    }

    /// What a value of this type is; what it cannot be counts as what the type says.
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

    /// The field of that name, if it has one.
    pub(crate) fn field(&self, name: &str) -> Option<&Field> {
        match self.definition() {
            Type::Object(object) => object.fields.get(name),
            _ => None,
        }
    }

    /// The type of a part: of the field, or of what has no name.
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

    /// Something in a list that is one value.
    fn any_atomic() -> Self {
        Self::new(Arc::new(Types { all: vec![Type::any(true)], ..Types::default() }), 0)
    }

    /// The type of the items of a list, and itself for what is none.
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
        let named = self.types.names.iter().find(|(_, at)| **at == self.used.at);
        named.map_or("", |(name, _)| name.rsplit('.').next().unwrap_or(name))
    }
}

impl TypeRef {
    /// The name with its package, as Go has it: `v1.PodSpec`.
    pub(crate) fn qualified_name(&self) -> String {
        let named = self.types.names.iter().find(|(_, at)| **at == self.used.at);
        let mut parts = named.map_or("", |(name, _)| name).rsplit('.');
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

    /// Adds a type and returns where it is.
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
