//! A kind that has a protobuf message.

use std::fmt;
use std::num::NonZeroU16;

use crate::schema::{Entry, Message, PARTIAL_OBJECT_METADATA};

/// A kind that has a protobuf message. Two bytes: an index into a constant table.
///
/// ```
/// use informer_protobuf::Kind;
///
/// let deployment = Kind::of("apps/v1", "Deployment").unwrap();
/// assert_eq!((deployment.api_version(), deployment.kind()), ("apps/v1", "Deployment"));
/// assert_eq!(format!("{deployment:?}"), "apps/v1 Deployment");
/// assert!(Kind::of("example.com/v1", "Custom").is_none());
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Kind(
    /// The index and one more, so that an `Option` takes no more memory.
    NonZeroU16,
);

impl Kind {
    /// The kind of the answer when a client asks for metadata only, for custom resources too.
    pub const PARTIAL_OBJECT_METADATA: Self = Self::at(PARTIAL_OBJECT_METADATA);

    /// The kind of that name, in O(log n) comparisons; `None` if this crate has no message for it.
    pub fn of(api_version: &str, kind: &str) -> Option<Self> {
        let key = |entry: &Entry| (entry.api_version(), entry.kind()).cmp(&(api_version, kind));
        Entry::all().binary_search_by(key).ok().and_then(|index| u16::try_from(index).ok()).map(Self::at)
    }

    /// All kinds, ordered by name: those of objects, of lists (`PodList`), and of requests and answers.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..).zip(Entry::all()).map(|(index, _)| Self::at(index))
    }

    /// `apps/v1`.
    pub fn api_version(self) -> &'static str {
        self.entry().map_or("", Entry::api_version)
    }

    /// `Deployment`.
    pub fn kind(self) -> &'static str {
        self.entry().map_or("", Entry::kind)
    }

    /// Whether its objects have the `metadata` of an object, not that of a list. [`scan`](crate::scan) takes only
    /// those.
    pub fn has_object_metadata(self) -> bool {
        self.entry().is_some_and(Entry::has_object_metadata)
    }

    pub(crate) fn message(self) -> Option<&'static Message> {
        self.entry()?.message()
    }

    /// Whether its JSON has `kind` and `apiVersion`. Only `WatchEvent` has none.
    pub(crate) fn is_said(self) -> bool {
        self.entry().is_some_and(Entry::says_it)
    }

    const fn at(index: u16) -> Self {
        Self(NonZeroU16::MIN.saturating_add(index))
    }

    fn entry(self) -> Option<&'static Entry> {
        Entry::all().get(usize::from(self.0.get() - 1))
    }
}

/// `apps/v1 Deployment`.
impl fmt::Debug for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.entry().map_or("", Entry::text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_is_found_by_its_name() {
        assert!(Kind::all().count() > 300);
        for kind in Kind::all() {
            assert_eq!(Kind::of(kind.api_version(), kind.kind()), Some(kind));
        }
        for (api_version, kind) in
            [("", ""), ("v1", "Po"), ("v1", "Podd"), ("zzz", "Pod"), ("apps/v1", "Pod")]
        {
            assert_eq!(Kind::of(api_version, kind), None);
        }
        let partial = Kind::of("meta.k8s.io/v1", "PartialObjectMetadata");
        assert_eq!(partial, Some(Kind::PARTIAL_OBJECT_METADATA));
    }

    #[test]
    fn what_is_stored_has_metadata_first() {
        let without = Kind::all().filter(|kind| !kind.has_object_metadata());
        let mut without: Vec<&str> = without.map(Kind::kind).filter(|kind| !kind.ends_with("List")).collect();
        without.sort_unstable();
        without.dedup();
        // Options, reviews and answers of the server: nothing that can be listed or watched.
        let expected = "APIGroup APIVersions AdmissionReview ConversionReview CreateOptions DeleteOptions \
            DeploymentRollback GetOptions ListOptions NodeProxyOptions PatchOptions PodAttachOptions \
            PodExecOptions PodLogOptions PodPortForwardOptions PodProxyOptions SerializedReference \
            ServiceProxyOptions Status TableOptions UpdateOptions WatchEvent";
        assert_eq!(without.join(" "), expected);
    }
}
