//! Fields that a type does not have.

use serde_json::Value;

use super::{Type, TypeRef};

impl TypeRef {
    /// The paths of fields that the type does not have: `spec.containers[0].imag`. For `fieldValidation`, whose message
    /// is `strict decoding error: unknown field "spec.containers[0].imag"`.
    pub fn unknown_fields(&self, object: &Value) -> Vec<String> {
        let mut found = Vec::new();
        self.find_unknown(object, &String::new, &mut found);
        found
    }

    /// `path` makes the text, which few fields need.
    fn find_unknown(&self, value: &Value, path: &dyn Fn() -> String, found: &mut Vec<String>) {
        match (self.definition(), value) {
            (Type::Object(object), Value::Object(members)) => {
                for (name, value) in members {
                    let path = || format!("{}.{name}", path());
                    match object.known(name) {
                        Some(used) => self.at(used).find_unknown(value, &path, found),
                        None if object.keeps_unknown => {}
                        None => found.push(path().trim_start_matches('.').to_owned()),
                    }
                }
            }
            (Type::List { items, .. }, Value::Array(values)) => {
                for (at, value) in values.iter().enumerate() {
                    self.at(*items).find_unknown(value, &|| format!("{}[{at}]", path()), found);
                }
            }
            _ => {}
        }
    }
}
