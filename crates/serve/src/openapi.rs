//! The parts of OpenAPI v3 that API clients use: the operations of each path, and the schemas of objects.
//!
//! `kubectl apply` looks up whether a kind's PATCH takes `fieldValidation` and `dryRun`, `kubectl explain` needs the
//! schemas. Descriptions of operations, responses and the like are documentation for people and missing here.

use http::header::{self, HeaderMap};
use http::{Response, StatusCode};
use serde_json::{Map, Value, json};

use crate::discovery::{self, accepts_json, group_versions, set};
use crate::{Body, Catalog, Resource, full};

/// Answers `/openapi/v3` (the empty path) and the paths below it.
pub(crate) fn answer(catalog: &dyn Catalog, path: &str, headers: &HeaderMap) -> Response<Body> {
    let segments: Vec<&str> = path.split('/').collect();
    let document = match *segments.as_slice() {
        [""] => return discovery::document(&index(catalog)),
        ["api", version] => document(catalog, "", version),
        ["apis", group, version] => document(catalog, group, version),
        _ => None,
    };
    match document {
        None => empty(StatusCode::NOT_FOUND),
        Some(_) if !accepts_json(headers) => empty(StatusCode::NOT_ACCEPTABLE),
        Some(document) => {
            let tag = format!("\"{}\"", discovery::fingerprint(document.to_string().as_bytes()));
            let mut answer = if headers.get(header::IF_NONE_MATCH).is_some_and(|known| *known == *tag) {
                empty(StatusCode::NOT_MODIFIED)
            } else {
                discovery::document(&document)
            };
            set(&mut answer, header::ETAG, &tag);
            set(&mut answer, header::VARY, "Accept");
            answer
        }
    }
}

fn empty(code: StatusCode) -> Response<Body> {
    let mut answer = Response::new(full(""));
    *answer.status_mut() = code;
    set(&mut answer, header::CACHE_CONTROL, "no-cache, private");
    answer
}

/// The path of the document of each group and version. Its hash lets clients cache documents.
fn index(catalog: &dyn Catalog) -> Value {
    let resources = catalog.resources();
    let mut paths = Map::new();
    for (group, versions) in group_versions(&resources) {
        for version in versions {
            let Some(document) = document(catalog, group, version) else {
                continue;
            };
            let root = discovery::root(group, version);
            let hash = discovery::fingerprint(document.to_string().as_bytes());
            let url = format!("/openapi/v3{root}?hash={hash}");
            paths.insert(root.trim_start_matches('/').to_string(), json!({"serverRelativeURL": url}));
        }
    }
    json!({"paths": paths})
}

fn document(catalog: &dyn Catalog, group: &str, version: &str) -> Option<Value> {
    let resources = catalog.resources();
    let mut schemas = catalog.schemas(group, version).unwrap_or_else(|| json!({}));
    let mut paths = Map::new();
    for resource in discovery::of(&resources, group, version) {
        describe(resource, &mut paths, &mut schemas);
    }
    if paths.is_empty() {
        return None;
    }
    let info = catalog.version();
    Some(json!({
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": format!("{}.{}", info.major, info.minor)},
        "paths": paths,
        "components": {"schemas": schemas},
    }))
}

/// The paths of a resource and of its subresources; also its schema, if the catalog has none.
fn describe(resource: &Resource, paths: &mut Map<String, Value>, schemas: &mut Value) {
    let schema = schema(resource, schemas);
    let root = discovery::root(&resource.group, &resource.version);
    let collection = if resource.namespaced {
        paths.insert(
            format!("{root}/{}", resource.plural),
            json!(operations(resource, &resource.verbs, &schema, &[("list", "get", "list")])),
        );
        format!("{root}/namespaces/{{namespace}}/{}", resource.plural)
    } else {
        format!("{root}/{}", resource.plural)
    };
    let of_all = [
        ("list", "get", "list"),
        ("create", "post", "post"),
        ("deletecollection", "delete", "deletecollection"),
    ];
    let of_one = [
        ("get", "get", "get"),
        ("update", "put", "put"),
        ("patch", "patch", "patch"),
        ("delete", "delete", "delete"),
    ];
    paths.insert(collection.clone(), json!(operations(resource, &resource.verbs, &schema, &of_all)));
    paths.insert(
        format!("{collection}/{{name}}"),
        json!(operations(resource, &resource.verbs, &schema, &of_one)),
    );
    for below in &resource.subresources {
        let own = below.group_version_kind.is_none();
        // The schema of another kind may be in another document; no client needs it here.
        let schema = if own { schema.clone() } else { json!({"type": "object"}) };
        let mut operations = operations(resource, &below.verbs, &schema, &of_one);
        if let Some((group, version, kind)) = &below.group_version_kind {
            for operation in operations.values_mut() {
                operation["x-kubernetes-group-version-kind"] =
                    json!({"group": group, "version": version, "kind": kind});
            }
        }
        paths.insert(format!("{collection}/{{name}}/{}", below.name), json!(operations));
    }
}

/// The operations of a path: each has the verb that must be allowed, the method, and the name of the action.
fn operations(
    resource: &Resource,
    verbs: &[Box<str>],
    schema: &Value,
    known: &[(&str, &str, &str)],
) -> Map<String, Value> {
    let mut operations = Map::new();
    for (verb, method, action) in known {
        if !verbs.iter().any(|allowed| **allowed == **verb) {
            continue;
        }
        let mut operation = json!({
            "parameters": parameters(method),
            "responses": {"200": {"description": "OK", "content": {"application/json": {"schema": schema}}}},
            "x-kubernetes-action": action,
            "x-kubernetes-group-version-kind": group_version_kind(resource),
        });
        if *method == "patch" {
            let mut types = vec![
                "application/apply-patch+yaml",
                "application/json-patch+json",
                "application/merge-patch+json",
            ];
            if !resource.typed_items {
                types.push("application/strategic-merge-patch+json");
            }
            let content: Map<String, Value> =
                types.into_iter().map(|it| (it.to_string(), json!({"schema": {"type": "object"}}))).collect();
            operation["requestBody"] = json!({"required": true, "content": content});
        } else if matches!(*method, "post" | "put") {
            operation["requestBody"] = json!({"required": true, "content": {"*/*": {"schema": schema}}});
        }
        operations.insert((*method).to_string(), operation);
    }
    operations
}

fn parameters(method: &str) -> Value {
    let query = |name: &str, kind: &str| json!({"name": name, "in": "query", "schema": {"type": kind, "uniqueItems": true}});
    match method {
        "post" | "put" => {
            json!(["dryRun", "fieldManager", "fieldValidation"].map(|name| query(name, "string")))
        }
        "patch" => {
            let mut all: Vec<Value> =
                ["dryRun", "fieldManager", "fieldValidation"].map(|name| query(name, "string")).into();
            all.push(query("force", "boolean"));
            all.into()
        }
        "delete" => json!([query("dryRun", "string")]),
        _ => json!([]),
    }
}

fn group_version_kind(resource: &Resource) -> Value {
    json!({"group": resource.group, "version": resource.version, "kind": resource.kind})
}

/// A reference to the schema of the resource's kind. Without one, an object of any shape is inserted.
fn schema(resource: &Resource, schemas: &mut Value) -> Value {
    let wanted = group_version_kind(resource);
    let known = schemas.as_object().into_iter().flatten().find(|(_, schema)| {
        let kinds = schema.get("x-kubernetes-group-version-kind").and_then(Value::as_array);
        kinds.is_some_and(|kinds| kinds.contains(&wanted))
    });
    let name = if let Some((name, _)) = known {
        name.clone()
    } else {
        let name = match &*resource.group {
            "" => format!("core.{}.{}", resource.version, resource.kind),
            group => {
                let domain: Vec<&str> = group.split('.').rev().collect();
                format!("{}.{}.{}", domain.join("."), resource.version, resource.kind)
            }
        };
        schemas[&name] = json!({
            "type": "object",
            "properties": {
                "apiVersion": {"type": "string"},
                "kind": {"type": "string"},
                "metadata": {"type": "object"},
            },
            "x-kubernetes-preserve-unknown-fields": true,
            "x-kubernetes-group-version-kind": [wanted],
        });
        name
    };
    json!({"$ref": format!("#/components/schemas/{name}")})
}
