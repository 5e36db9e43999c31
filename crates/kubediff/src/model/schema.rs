//! The server's schemas of lists: which are sets, and which have keys.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use serde::Deserialize;
use serde_json::Value;

use crate::model::gvk::Gvk;

/// The schemas of the kinds that a server has, as far as they were [loaded](Self::load). Its clones have the same.
///
/// ```
/// use kubediff::{Gvk, Schemas};
/// use serde_json::json;
///
/// let schemas = Schemas::default();
/// let document = json!({"components": {"schemas": {"Route": {
///     "x-kubernetes-group-version-kind": [{"group": "example.com", "version": "v1", "kind": "Route"}],
///     "properties": {"rules": {
///         "type": "array",
///         "x-kubernetes-list-type": "map",
///         "x-kubernetes-list-map-keys": ["host", "path"],
///     }},
/// }}}});
/// schemas.load("example.com", "v1", document.to_string().as_bytes())?;
/// assert!(schemas.of(&Gvk::new("example.com/v1", "Route")).is_some());
/// # Ok::<(), kubediff::InvalidSchemas>(())
/// ```
#[derive(Clone, Default)]
pub struct Schemas(Arc<RwLock<HashMap<(String, String), Kinds>>>);

/// A text that is no OpenAPI v3 document.
#[derive(Debug, thiserror::Error)]
#[error("the OpenAPI document of {group_version} cannot be read: {source}")]
pub struct InvalidSchemas {
    group_version: String,
    source: serde_json::Error,
}

/// The schema of one kind.
#[derive(Clone)]
pub struct KindSchema {
    nodes: Arc<[Node]>,
    root: usize,
}

/// The kinds of a group and version.
type Kinds = HashMap<String, KindSchema>;

/// The schema of a value; of one without any, nothing is known.
#[derive(Clone, Copy)]
pub(crate) struct Schema<'a> {
    nodes: &'a [Node],
    at: usize,
}

/// The identity of a list's elements, where it is not their place.
pub(crate) enum ListType {
    /// Their content.
    Set,
    /// These fields together.
    Map(Vec<ListKey>),
}

/// A field of a key.
pub(crate) struct ListKey {
    pub(crate) name: String,
    /// The default of an absent field.
    pub(crate) default: Option<Value>,
}

#[derive(Default)]
struct Node {
    fields: HashMap<String, usize>,
    /// Of the fields that have no schema of their own.
    rest: Option<usize>,
    items: Option<usize>,
    list: Option<ListType>,
}

impl Schemas {
    /// Reads the document that the server has at `/openapi/v3/apis/GROUP/VERSION`, in place of what was loaded before.
    ///
    /// # Errors
    ///
    /// When it is no OpenAPI document.
    pub fn load(&self, group: &str, version: &str, document: &[u8]) -> Result<(), InvalidSchemas> {
        let document: Document = serde_json::from_slice(document).map_err(|source| InvalidSchemas {
            group_version: if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") },
            source,
        })?;
        let loaded = document.kinds(group, version);
        self.write().insert((group.to_owned(), version.to_owned()), loaded);
        Ok(())
    }

    /// Forgets what was loaded for a group and version.
    pub fn unload(&self, group: &str, version: &str) {
        self.write().remove(&(group.to_owned(), version.to_owned()));
    }

    /// The schema of a kind, when the document of its group and version is loaded and has it.
    pub fn of(&self, gvk: &Gvk) -> Option<KindSchema> {
        let loaded = self.0.read().unwrap_or_else(PoisonError::into_inner);
        loaded.get(&(gvk.group.clone(), gvk.version.clone()))?.get(&gvk.kind).cloned()
    }

    /// Reads the schema of a kind in the definition of its custom resource, for questions that no server can be asked.
    /// `None` when the definition has none that can be read.
    pub(crate) fn define(&self, gvk: &Gvk, definition: &Value) -> Option<()> {
        let versions = definition.pointer("/spec/versions")?.as_array()?;
        let version =
            versions.iter().find(|it| it.get("name").and_then(Value::as_str) == Some(&gvk.version))?;
        let schema = Raw::deserialize(version.pointer("/schema/openAPIV3Schema")?).ok()?;
        let mut builder = Builder { schemas: &BTreeMap::new(), nodes: Vec::new(), named: HashMap::new() };
        let root = builder.node(&schema)?;
        let kind = KindSchema { nodes: builder.nodes.into(), root };
        let mut loaded = self.write();
        loaded.entry((gvk.group.clone(), gvk.version.clone())).or_default().insert(gvk.kind.clone(), kind);
        Some(())
    }

    fn write(&self) -> std::sync::RwLockWriteGuard<'_, HashMap<(String, String), Kinds>> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl KindSchema {
    pub(crate) fn root(&self) -> Schema<'_> {
        Schema { nodes: &self.nodes, at: self.root }
    }
}

impl<'a> Schema<'a> {
    /// The schema of a field.
    pub(crate) fn field(self, name: &str) -> Option<Self> {
        let node = self.node()?;
        self.at(node.fields.get(name).copied().or(node.rest))
    }

    /// The schema of the elements of a list.
    pub(crate) fn element(self) -> Option<Self> {
        self.at(self.node()?.items)
    }

    pub(crate) fn list(self) -> Option<&'a ListType> {
        self.node()?.list.as_ref()
    }

    fn node(self) -> Option<&'a Node> {
        self.nodes.get(self.at)
    }

    fn at(self, at: Option<usize>) -> Option<Self> {
        Some(Self { at: at?, ..self })
    }
}

/// The parts of an OpenAPI v3 document that matter here.
#[derive(Deserialize)]
struct Document {
    components: Components,
}

#[derive(Deserialize)]
struct Components {
    schemas: BTreeMap<String, Raw>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Raw {
    #[serde(rename = "$ref")]
    reference: Option<String>,
    #[serde(rename = "allOf")]
    all_of: Vec<Raw>,
    properties: BTreeMap<String, Raw>,
    #[serde(rename = "additionalProperties")]
    rest: Option<Rest>,
    items: Option<Box<Raw>>,
    default: Option<Value>,
    #[serde(rename = "x-kubernetes-list-type")]
    list_type: Option<String>,
    #[serde(rename = "x-kubernetes-list-map-keys")]
    list_keys: Vec<String>,
    #[serde(rename = "x-kubernetes-group-version-kind")]
    kinds: Vec<RawKind>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Rest {
    Schema(Box<Raw>),
    Other(serde::de::IgnoredAny),
}

#[derive(Deserialize)]
struct RawKind {
    #[serde(default)]
    group: String,
    version: String,
    kind: String,
}

/// Where a name stands for a schema.
const REFERENCE: &str = "#/components/schemas/";

impl Document {
    fn kinds(&self, group: &str, version: &str) -> Kinds {
        let schemas = &self.components.schemas;
        let mut builder = Builder { schemas, nodes: Vec::new(), named: HashMap::new() };
        let mut kinds = HashMap::new();
        for (name, schema) in schemas {
            for kind in schema.kinds.iter().filter(|kind| kind.group == group && kind.version == version) {
                if let Some(at) = builder.named(name) {
                    kinds.insert(kind.kind.clone(), at);
                }
            }
        }
        let nodes: Arc<[Node]> = builder.nodes.into();
        kinds.into_iter().map(|(kind, root)| (kind, KindSchema { nodes: nodes.clone(), root })).collect()
    }
}

/// Makes a graph of the schemas, which may refer to each other in circles.
struct Builder<'a> {
    schemas: &'a BTreeMap<String, Raw>,
    nodes: Vec<Node>,
    named: HashMap<&'a str, usize>,
}

impl<'a> Builder<'a> {
    fn named(&mut self, name: &str) -> Option<usize> {
        if let Some(at) = self.named.get(name) {
            return Some(*at);
        }
        let (name, schema) = self.schemas.get_key_value(name)?;
        let at = self.reserve();
        self.named.insert(name, at);
        self.fill(at, schema);
        Some(at)
    }

    /// The node of a schema that stands inside of another one.
    fn node(&mut self, schema: &'a Raw) -> Option<usize> {
        if schema.list_type.is_none()
            && schema.list_keys.is_empty()
            && let Some(reference) = target(schema)
        {
            return self.named(reference);
        }
        let says_something = !schema.properties.is_empty() || schema.rest.is_some() || schema.items.is_some();
        says_something.then(|| {
            let at = self.reserve();
            self.fill(at, schema);
            at
        })
    }

    fn reserve(&mut self) -> usize {
        self.nodes.push(Node::default());
        self.nodes.len() - 1
    }

    fn fill(&mut self, at: usize, schema: &'a Raw) {
        let mut fields = HashMap::new();
        for (name, schema) in &schema.properties {
            fields.extend(self.node(schema).map(|at| (name.clone(), at)));
        }
        let rest = match &schema.rest {
            Some(Rest::Schema(schema)) => self.node(schema),
            Some(Rest::Other(_)) | None => None,
        };
        let items = schema.items.as_ref().and_then(|items| self.node(items));
        let list = self.list(schema);
        if let Some(node) = self.nodes.get_mut(at) {
            *node = Node { fields, rest, items, list };
        }
    }

    fn list(&self, schema: &Raw) -> Option<ListType> {
        match schema.list_type.as_deref() {
            Some("set") => Some(ListType::Set),
            Some("map") if !schema.list_keys.is_empty() => {
                let element = schema.items.as_deref().and_then(|items| match target(items) {
                    Some(reference) => self.schemas.get(reference),
                    None => Some(items),
                });
                let keys = schema.list_keys.iter().map(|name| {
                    let field = element.and_then(|element| element.properties.get(name));
                    ListKey { name: name.clone(), default: field.and_then(|field| field.default.clone()) }
                });
                Some(ListType::Map(keys.collect()))
            }
            _ => None,
        }
    }
}

/// The name of the schema that this one stands for.
fn target(schema: &Raw) -> Option<&str> {
    let own = schema.reference.as_deref();
    own.or_else(|| schema.all_of.iter().find_map(|part| part.reference.as_deref()))?.strip_prefix(REFERENCE)
}

impl fmt::Debug for Schemas {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let loaded = self.0.read().unwrap_or_else(PoisonError::into_inner);
        f.debug_set().entries(loaded.keys()).finish()
    }
}

impl fmt::Debug for KindSchema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KindSchema").finish_non_exhaustive()
    }
}
