//! Ways to decode an object that are faster than serde.

use informer_protobuf::Kind;

/// A faster way to decode some types than serde. Serde decodes whatever it leaves.
#[doc(hidden)]
pub trait Decode {
    /// The message of an object of this kind as a `T`, and about how many bytes of the heap it refers to; `None` leaves it to
    /// serde, which also has the errors. `skips_managed_fields` leaves out `metadata.managedFields`.
    fn protobuf<T: 'static>(kind: Kind, raw: &[u8], skips_managed_fields: bool) -> Option<(T, usize)>;
}

/// Leaves everything to serde.
#[doc(hidden)]
#[derive(Debug)]
pub struct BySerde;

impl Decode for BySerde {
    fn protobuf<T: 'static>(_: Kind, _: &[u8], _: bool) -> Option<(T, usize)> {
        None
    }
}
