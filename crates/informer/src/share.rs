//! A share of a collection, for programs of several processes that divide the objects among themselves.

pub use informer_core::share::{
    HashRange, InvalidRange, Ranges, Share, ShareBy, Unhashable, UnknownShareBy, hash,
};
