//! `cargo xtask schema`: writes what a real API server says of its types and resources for `testapi`.
//!
//! The resources are those of discovery (`resources.rs`). The types are needed to merge fields and to track their owners.
//! Their table has one line for each type, `NAME TYPE ATTRIBUTES`. Below it is one line for each field, indented by a
//! space. Types: `string` `integer` `number` `boolean` `object` (with fields, or with any if none are listed) `any`,
//! with `/FORMAT` if they have one, `@NAME` for a type of the table, `[T]` for a list, `{T}` for a map. Attributes:
//! `kind=GROUP/VERSION/KIND` (one each), `required`, `list=atomic|set|map:KEY,KEY`, `map=atomic|granular`,
//! `patch=STRATEGY,STRATEGY[:MERGE KEY]`, `one=TYPE|TYPE`, `enum=A|B`, and at the end `default=JSON`. Descriptions are
//! left out, because they are nine tenths of the text. Two attributes come from the declarations in Go: `pointer` for a
//! scalar whose zero value differs from a missing one, and `kept` for a field that is written even without a value.

mod resources;
mod structures;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::process::Command;

use control_plane::ControlPlane;
use serde_json::{Map, Value};

use tooling::{Error, process};

use crate::tree::Tree;
use structures::Structures;

/// The types, as `testapi` reads them.
pub(crate) const TABLE: &str = "crates/testapi/schema/types.txt";
/// The resources, as `serve` reads them.
pub(crate) const RESOURCES: &str = "crates/kube-table/src/builtin.txt";

pub(crate) fn run(tree: &Tree) -> Result<(), Error> {
    let release = control_plane::pinned()?;
    let server = ControlPlane::builder().release(release).start()?;
    let documents = get(&server, "/openapi/v3")?;
    let mut types = BTreeMap::new();
    for path in members(&documents["paths"]).map(|(path, _)| path).filter(|path| path.starts_with("api")) {
        let document = get(&server, &format!("/openapi/v3/{path}"))?;
        for (name, schema) in members(&document["components"]["schemas"]) {
            let described: &mut Type = types.entry(name.clone()).or_default();
            described.kinds.extend(kinds(schema));
            described.schema = schema.clone();
        }
    }
    let mut structures = Structures::of(tree)?;
    let mut text = format!("# The types of kube-apiserver v{release}, by `cargo xtask schema`.\n");
    for (name, described) in &types {
        text.push_str(&described.lines(name, &mut structures)?);
    }
    let path = tree.root().join(TABLE);
    std::fs::write(&path, &text).map_err(Error::io(&path))?;
    println!("{TABLE}: {} types, {} KiB", types.len(), text.len() / 1024);

    let text = resources::table(&server, release)?;
    let path = tree.root().join(RESOURCES);
    std::fs::write(&path, &text).map_err(Error::io(&path))?;
    println!("{RESOURCES}: {} lines", text.lines().count());
    Ok(())
}

fn get(server: &ControlPlane, path: &str) -> Result<Value, Error> {
    let mut kubectl = Command::new("kubectl");
    kubectl.arg("--kubeconfig").arg(server.kubeconfig()).args(["get", "--raw", path]);
    let answer = process::output(&mut kubectl)?;
    serde_json::from_str(&answer).map_err(|error| Error::format(path, error))
}

/// A named schema.
#[derive(Default)]
struct Type {
    /// Some kinds are in every group, and each document of the server names only its own group for them.
    kinds: BTreeSet<String>,
    schema: Value,
}

impl Type {
    fn lines(&self, name: &str, structures: &mut Structures) -> Result<String, Error> {
        let structure = name;
        let mut text = format!("{name} {}", expression(&self.schema));
        for kind in &self.kinds {
            _ = write!(text, " kind={kind}");
        }
        text.push_str(&attributes(&self.schema));
        text.push('\n');
        let required: Vec<_> = items(&self.schema["required"]).map(string).collect();
        for (name, field) in members(&self.schema["properties"]) {
            let is_required = required.contains(&name.as_str());
            let expression = expression(field);
            let is_scalar = ["string", "integer", "number", "boolean"]
                .iter()
                .any(|scalar| expression.split('/').next() == Some(scalar));
            let required = if is_required { " required" } else { "" };
            let declared = structures.field(structure, name)?.filter(|_| !is_required);
            // A structure is written in any case, and a value by default too.
            let says_nothing = field.get("default").is_none_or(is_zero);
            let kept = declared.is_some_and(|declared| declared.kept) && says_nothing;
            let kept = if kept { " kept" } else { "" };
            let pointer = declared.is_some_and(|declared| declared.pointer) && is_scalar;
            let pointer = if pointer { " pointer" } else { "" };
            _ = writeln!(text, " {name} {expression}{kept}{pointer}{required}{}", attributes(field));
        }
        Ok(text)
    }
}

fn kinds(schema: &Value) -> impl Iterator<Item = String> {
    items(&schema["x-kubernetes-group-version-kind"])
        .map(|kind| ["group", "version", "kind"].map(|part| string(&kind[part])).join("/"))
}

fn expression(schema: &Value) -> String {
    let reference = schema.get("$ref").or_else(|| schema["allOf"].get(0)?.get("$ref"));
    if let Some(name) = reference.and_then(|reference| string(reference).rsplit('/').next()) {
        return format!("@{name}");
    }
    if let Some(items) = schema.get("items") {
        return format!("[{}]", expression(items));
    }
    if let Some(values) = schema.get("additionalProperties").filter(|values| values.is_object()) {
        return format!("{{{}}}", expression(values));
    }
    let name = schema.get("type").map_or("any", string);
    schema.get("format").map_or_else(|| name.to_owned(), |format| format!("{name}/{}", string(format)))
}

fn attributes(schema: &Value) -> String {
    let mut text = String::new();
    let mut attribute = |name: &str, value: String| {
        if !value.is_empty() {
            _ = write!(text, " {name}={value}");
        }
    };
    let joined = |name: &str| items(&schema[name]).map(string).collect::<Vec<_>>();
    let keys = joined("x-kubernetes-list-map-keys").join(",");
    let list = string(&schema["x-kubernetes-list-type"]);
    attribute("list", if keys.is_empty() { list.to_owned() } else { format!("{list}:{keys}") });
    attribute("map", string(&schema["x-kubernetes-map-type"]).to_owned());
    let key = string(&schema["x-kubernetes-patch-merge-key"]);
    let strategy = string(&schema["x-kubernetes-patch-strategy"]);
    attribute("patch", if key.is_empty() { strategy.to_owned() } else { format!("{strategy}:{key}") });
    attribute("one", items(&schema["oneOf"]).map(|one| string(&one["type"])).collect::<Vec<_>>().join("|"));
    attribute("enum", joined("enum").join("|"));
    attribute("default", schema.get("default").map(Value::to_string).unwrap_or_default());
    text
}

fn members(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flat_map(Map::iter)
}

fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

/// Whether a scalar is what Go has without a value.
fn is_zero(value: &Value) -> bool {
    *value == "" || *value == 0 || *value == false
}

/// Empty if the value is no string.
fn string(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
