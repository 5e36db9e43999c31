//! The schemas of kinds: types of fields, how they merge, and how they are owned.
//!
//! The built-in kinds are in a table, `schema/types.txt`, that `cargo xtask schema` makes from a real server's OpenAPI;
//! it is parsed when it is first needed. Schemas of custom kinds come from their CustomResourceDefinitions. Both become
//! [`TypeRef`]s.
//!
//! ```
//! let deployment = testapi::schema::builtin("apps", "v1", "Deployment").unwrap();
//! let object = serde_json::json!({"spec": {"replicas": 1, "replica": 1}});
//! assert_eq!(deployment.unknown_fields(&object), ["spec.replica"]);
//! ```

mod custom;
mod decode;
mod openapi;
pub(crate) mod path;
mod protobuf;
mod prune;
mod table;
mod types;
mod unknown;
mod validate;

pub use custom::custom;
pub(crate) use openapi::common;
pub use openapi::openapi;
pub use protobuf::{Encoder, ProtobufError, from_protobuf, to_protobuf};
pub use types::TypeRef;
pub use validate::Mismatch;

pub(crate) use types::{Field, Object, Relation, Scalar, Shape, Type, Types, Use};

/// The type of a built-in kind.
pub fn builtin(group: &str, version: &str, kind: &str) -> Option<TypeRef> {
    TypeRef::named(table::builtin(), |table| table.kind(group, version, kind))
}
