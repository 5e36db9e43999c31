//! Types of k8s-openapi are decoded by generated code.

use informer_core::Decode;
use informer_protobuf::Kind;

/// Decodes the types that `informer-k8s-openapi` has code for. The types are compared at compile time, so that a program has
/// the code of the types that it names.
pub(crate) struct Generated;

impl Decode for Generated {
    #[inline]
    fn protobuf<T: 'static>(kind: Kind, raw: &[u8], skips_managed_fields: bool) -> Option<(T, usize)> {
        informer_k8s_openapi::decode(kind, raw, skips_managed_fields)
    }
}
