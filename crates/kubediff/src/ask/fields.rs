//! The fields of an object, for blame: with the paths that differences have.

use kubediff_history::Field;
use serde_json::Value;

use crate::hide::secret::may_have_mark;
use crate::model::document;
use crate::model::lists::Lists;
use crate::model::path::keys::{Identity, identify};
use crate::model::path::{Path, PathPattern, Segment};

/// Fields that tell of writing itself.
const BOOKKEEPING: &[&str] = &["managedFields", "resourceVersion", "generation"];

/// Every scalar, every empty map, and every list whose elements have no keys is a field, also of the documents in a config map.
/// With a pattern, only the fields that it covers are returned. List elements without keys are no fields: after an insertion before it, such
/// an element would have the author of the insertion.
pub(crate) fn fields(lists: Lists<'_>, object: &Value, pattern: Option<&PathPattern>) -> Vec<Field> {
    let mut walk = Walk {
        pattern,
        path: Path::default(),
        pointer: String::new(),
        in_document: false,
        found: Vec::new(),
    };
    walk.value(lists, object);
    walk.found
}

struct Walk<'a> {
    pattern: Option<&'a PathPattern>,
    path: Path,
    pointer: String,
    in_document: bool,
    found: Vec<Field>,
}

impl Walk<'_> {
    fn value(&mut self, lists: Lists<'_>, value: &Value) {
        match value {
            Value::Object(map) if !map.is_empty() => {
                for (name, inside) in map {
                    if self.pointer == "/metadata" && BOOKKEEPING.contains(&name.as_str()) {
                        continue;
                    }
                    let token = name.replace('~', "~0").replace('/', "~1");
                    self.within(Segment::Field(name.clone()), &token, lists.field(name), inside);
                }
            }
            Value::Array(list) if list.iter().any(Value::is_object) => {
                match identify(self.path.field(), lists, list, list) {
                    Identity::Keyed(keyed) => {
                        for (at, (key, inside)) in keyed.new.into_iter().zip(list).enumerate() {
                            self.within(Segment::Key(key), &at.to_string(), lists.element(), inside);
                        }
                    }
                    Identity::Set | Identity::Sequence => self.leaf(value),
                }
            }
            Value::String(text) if !self.in_document && self.pointer.starts_with("/data/") => {
                match document::read(self.path.field(), text, text) {
                    Some((inside, _)) => self.document(&inside),
                    None => self.leaf(value),
                }
            }
            _ => self.leaf(value),
        }
    }

    fn leaf(&mut self, value: &Value) {
        let path = self.path.to_string();
        self.found.push(Field {
            pointer: self.pointer.clone(),
            value: value.clone(),
            masked: [value.to_string(), path.clone()].iter().any(|text| may_have_mark(text.as_bytes())),
            is_asked: self.pattern.is_none_or(|pattern| pattern.covers(&self.path)),
            path,
        });
    }

    /// The fields of a document inside a string. All of it is at the string's place.
    fn document(&mut self, inside: &Value) {
        let outer = self.pointer.clone();
        self.path.push(Segment::Document);
        self.in_document = true;
        self.value(Lists::unknown(), inside);
        self.in_document = false;
        self.path.pop();
        self.pointer = outer;
    }

    fn within(&mut self, segment: Segment, token: &str, lists: Lists<'_>, value: &Value) {
        let outer = self.pointer.len();
        self.path.push(segment);
        if !self.in_document {
            self.pointer.push('/');
            self.pointer.push_str(token);
        }
        self.value(lists, value);
        self.pointer.truncate(outer);
        self.path.pop();
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn fields_have_the_paths_of_differences() {
        let object = json!({
            "metadata": {"name": "web", "managedFields": [{}], "resourceVersion": "1", "labels": {"a/b": "c"}},
            "data": {"app.yaml": "log:\n  level: info\n"},
            "spec": {"containers": [{"name": "web", "args": ["a", "b"], "ports": [{"containerPort": 80}]}], "empty": {}},
        });
        let found: Vec<String> = fields(Lists::unknown(), &object, None)
            .into_iter()
            .map(|it| format!("{} {} {}", it.path, it.pointer, it.value))
            .collect();
        assert_eq!(
            found,
            [
                r#"data["app.yaml"]#log.level /data/app.yaml "info""#,
                r#"metadata.labels["a/b"] /metadata/labels/a~1b "c""#,
                r#"metadata.name /metadata/name "web""#,
                r#"spec.containers[web].args /spec/containers/0/args ["a","b"]"#,
                r#"spec.containers[web].name /spec/containers/0/name "web""#,
                "spec.containers[web].ports[80/TCP].containerPort /spec/containers/0/ports/0/containerPort 80",
                "spec.empty /spec/empty {}",
            ]
        );
        for field in fields(Lists::unknown(), &object, None).iter().filter(|field| !field.path.contains('#'))
        {
            assert_eq!(object.pointer(&field.pointer), Some(&field.value));
        }
        let pattern = "spec.containers[*].args".parse().unwrap();
        let asked =
            fields(Lists::unknown(), &object, Some(&pattern)).into_iter().filter(|field| field.is_asked);
        assert_eq!(asked.count(), 1);
    }
}
