//! Kubernetes objects in protobuf, decoded straight into the structs of k8s-openapi.
//!
//! [`informer_protobuf::from_slice`] decodes any type through serde: it looks each field up by its name, and the struct keeps all
//! fields as locals until it is complete. For the kinds that fill clusters, this crate has generated code that matches on the
//! field's number and writes into the struct. The result is the same: whatever the generated code does not expect, it leaves to
//! serde, errors included.
//!
//! ```
//! use informer_protobuf::Kind;
//! use k8s_openapi::api::core::v1::{ConfigMap, Pod};
//!
//! let kind = Kind::of("v1", "ConfigMap").unwrap();
//! let (map, heap) = informer_k8s_openapi::decode::<ConfigMap>(kind, b"\x0a\x03\x0a\x01a", false).unwrap();
//! assert_eq!((map.metadata.name.as_deref(), heap), (Some("a"), 16));
//! // Another type than that of the kind: serde says what is wrong.
//! assert!(informer_k8s_openapi::decode::<Pod>(kind, b"\x0a\x03\x0a\x01a", false).is_none());
//! ```

mod element;
mod fields;
mod generated;
mod messages;
mod special;

use std::any::{Any, TypeId};

use informer_protobuf::Kind;
use k8s_openapi::Resource;

use fields::Context;
use messages::{Message, fill};

/// Decodes an object's message as a `T`, with about how many bytes of the heap the value refers to, as
/// [`informer_protobuf::from_slice_weighed`] does. With `skips_managed_fields`, the value lacks `metadata.managedFields`.
///
/// `None` if there is no generated code for `T`, if the object is of another kind, and if the message is not as servers write it,
/// such as a damaged one: then serde decodes it, or has the error.
///
/// The types are compared at compile time: a program has the code of the types that it names, and no other.
#[inline]
pub fn decode<T: 'static>(kind: Kind, raw: &[u8], skips_managed_fields: bool) -> Option<(T, usize)> {
    let mut decoded = None;
    let heap = generated::decode_into(&mut decoded, kind, raw, skips_managed_fields)?;
    Some((decoded?, heap))
}

/// Decodes into `decoded` if `T` is `K`, and returns the heap bytes.
#[inline(always)]
fn decode_as<T: 'static, K: Message + Resource + 'static>(
    decoded: &mut Option<T>,
    kind: Kind,
    raw: &[u8],
    skips_managed_fields: bool,
) -> Option<usize> {
    if TypeId::of::<T>() != TypeId::of::<K>() {
        return None;
    }
    let decoded = (decoded as &mut dyn Any).downcast_mut::<Option<K>>()?;
    if (kind.api_version(), kind.kind()) != (K::API_VERSION, K::KIND) {
        return None;
    }
    let mut context = Context::new(skips_managed_fields);
    // In its place: a pod is more than a kilobyte.
    fill(decoded.insert(K::begin()), raw, &mut context);
    (!context.is_unfit).then_some(context.heap)
}
