//! The table of built-in types. `crates/xtask/src/schema.rs` writes it and documents its format.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use super::{Field, Object, Relation, Scalar, Type, Types, Use};

/// The type of every object's metadata.
pub(crate) const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";

const TABLE: &str = include_str!("../../schema/types.txt");

pub(crate) fn builtin() -> &'static Arc<Types> {
    static BUILTIN: LazyLock<Arc<Types>> =
        LazyLock::new(|| Arc::new(Types { structures: true, ..read(|_| true) }));
    &BUILTIN
}

/// Only the types of an object's metadata, for custom kinds to refer to.
pub(crate) fn metadata() -> Types {
    static METADATA: LazyLock<Types> = LazyLock::new(|| {
        read(|name| {
            name.strip_prefix("io.k8s.apimachinery.pkg.apis.meta.v1.").is_some_and(|name| {
                ["FieldsV1", "ManagedFieldsEntry", "ObjectMeta", "OwnerReference", "Time"].contains(&name)
            })
        })
    });
    METADATA.clone()
}

fn read(is_wanted: impl Fn(&str) -> bool) -> Types {
    let mut types = Types::default();
    let mut lines = TABLE.lines().filter(|line| !line.starts_with('#')).peekable();
    while let Some(line) = lines.next() {
        let line = Line::of(line);
        if !is_wanted(line.name) {
            while lines.next_if(|line| line.starts_with(' ')).is_some() {}
            continue;
        }
        let at = reserve(&mut types, line.name);
        for kind in line.attributes("kind") {
            let mut parts = kind.split('/').map(Box::from);
            if let (Some(group), Some(version), Some(kind)) = (parts.next(), parts.next(), parts.next()) {
                types.kinds.push(([group, version, kind], at));
            }
        }
        let mut fields = BTreeMap::new();
        while let Some(field) = lines.next_if(|line| line.starts_with(' ')) {
            let field = Line::of(field);
            fields.insert(Box::from(field.name), field.field(&mut types));
        }
        types.all[at] = line.definition(fields, &mut types);
    }
    types.kinds.sort_by(|([group, version, kind], _), ([other_group, other_version, other_kind], _)| {
        (kind, group, version).cmp(&(other_kind, other_group, other_version))
    });
    types
}

/// The index of a type that is referred to before its line.
fn reserve(types: &mut Types, name: &str) -> usize {
    if let Some(at) = types.names.get(name) {
        return *at;
    }
    let at = types.add(Type::any(false));
    types.names.insert(name.into(), at);
    at
}

/// A line of the table.
struct Line<'a> {
    name: &'a str,
    expression: &'a str,
    attributes: Vec<&'a str>,
    default: Option<&'a str>,
}

impl<'a> Line<'a> {
    fn of(line: &'a str) -> Self {
        // Only the last attribute may contain spaces.
        let (line, default) =
            line.split_once(" default=").map_or((line, None), |(line, default)| (line, Some(default)));
        let mut words = line.split_ascii_whitespace();
        let name = words.next().unwrap_or_default();
        let expression = words.next().unwrap_or_default();
        Self { name, expression, attributes: words.collect(), default }
    }

    fn attributes(&self, name: &str) -> impl Iterator<Item = &'a str> {
        self.attributes.iter().filter_map(move |attribute| attribute.strip_prefix(name)?.strip_prefix('='))
    }

    fn attribute(&self, name: &str) -> Option<&'a str> {
        self.attributes(name).next()
    }

    fn atomic(&self) -> Option<bool> {
        self.attribute("map").map(|map| map == "atomic")
    }

    fn definition(&self, fields: BTreeMap<Box<str>, Field>, types: &mut Types) -> Type {
        // Server-side apply does not use the schemas of these two types.
        match self.name {
            "io.k8s.apimachinery.pkg.runtime.RawExtension" => {
                return Type::any(true);
            }
            "io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1" => {
                return Type::any(false);
            }
            _ => {}
        }
        if self.expression != "object" {
            return inline(self.expression, self, types);
        }
        let rest = fields.is_empty().then(|| Use::of(types.add(Type::any(false))));
        Type::Object(Object {
            declares_rest: false,
            fields,
            rest,
            atomic: self.atomic(),
            ..Object::default()
        })
    }

    fn field(&self, types: &mut Types) -> Field {
        let (patch, merge_key) = match self.attribute("patch").map(|patch| patch.split_once(':').ok_or(patch))
        {
            None => ("", None),
            Some(Err(patch)) => (patch, None),
            Some(Ok((patch, key))) => (patch, Some(key)),
        };
        Field {
            used: self.used(self.expression, types),
            required: self.attributes.contains(&"required"),
            pointer: self.attributes.contains(&"pointer"),
            kept: self.attributes.contains(&"kept"),
            default: self.default.and_then(|default| serde_json::from_str(default).ok()),
            patch: patch.split(',').filter(|way| !way.is_empty()).map(Box::from).collect(),
            merge_key: merge_key.map(Box::from),
            nullable: false,
            values: self.attributes("enum").flat_map(|values| values.split('|')).map(Box::from).collect(),
            list: self.attribute("list").map(Box::from),
        }
    }

    fn used(&self, expression: &str, types: &mut Types) -> Use {
        if let Some(name) = expression.strip_prefix('@') {
            return Use { at: reserve(types, name), atomic: self.atomic() };
        }
        let definition = inline(expression, self, types);
        Use::of(types.add(definition))
    }

    fn relation(&self) -> Relation {
        let Some(list) = self.attribute("list") else {
            // Without a list type, the attributes of the strategic merge patch decide.
            let (patch, key) = self.attribute("patch").map_or(("", None), |patch| {
                patch.split_once(':').map_or((patch, None), |(patch, key)| (patch, Some(key)))
            });
            return match key {
                _ if !patch.contains("merge") => Relation::Atomic,
                None => Relation::Set,
                Some(key) => Relation::Map([key.into()].into()),
            };
        };
        match list.split_once(':') {
            Some((_, keys)) => Relation::Map(keys.split(',').map(Box::from).collect()),
            None if list == "set" => Relation::Set,
            None => Relation::Atomic,
        }
    }
}

/// The type of an expression, with the attributes of its line.
fn inline(expression: &str, line: &Line<'_>, types: &mut Types) -> Type {
    let inner = Line { name: "", expression: "", attributes: Vec::new(), default: None };
    if let Some(items) = expression.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        return Type::List { items: inner.used(items, types), relation: line.relation() };
    }
    if let Some(values) = expression.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')) {
        let rest = Some(inner.used(values, types));
        return Type::Object(Object {
            rest,
            declares_rest: true,
            atomic: line.atomic(),
            ..Object::default()
        });
    }
    let (name, format) = expression.split_once('/').unwrap_or((expression, ""));
    match name {
        "any" | "object" | "" => {
            let one_of =
                line.attribute("one").into_iter().flat_map(|one| one.split('|')).map(Box::from).collect();
            Type::Any { atomic: false, format: format.into(), one_of }
        }
        _ => Type::Scalar(Scalar { name: name.into(), format: format.into() }),
    }
}
