//! A write under way: the object and the part of it, as errors and the path of the request name it.

use informer::ResourceType;

/// A request, as errors name it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Attempt<'a> {
    pub(super) verb: &'static str,
    pub(super) resource: &'a ResourceType,
    pub(super) namespace: Option<&'a str>,
    /// Unknown before the server generates it.
    pub(super) name: Option<&'a str>,
    /// The part of the object that is written: all of it, without a subresource.
    pub(super) subresource: Option<&'static str>,
}
