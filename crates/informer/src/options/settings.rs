//! All options of an informer except its selection.

use std::sync::Arc;
use std::time::Duration;

use http::HeaderValue;
use informer_core::reflector::ReflectorConfig;
use informer_core::{Retention, Storage};

use crate::options::cooling::Hot;
use crate::options::resource::ResourceType;
#[cfg(feature = "save")]
use crate::options::saving::Saving;
use crate::{EncodingChoice, FirstListChoice, StreamingListChoice};

/// How much of each object is fetched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Representation {
    Whole,
    /// `PartialObjectMetadata`: no spec, no status.
    Metadata,
}

/// How objects are fetched and kept: all options of an informer except its selection.
#[derive(Clone)]
pub(crate) struct Settings {
    pub(crate) reflector: ReflectorConfig,
    pub(crate) first_list: FirstListChoice,
    pub(crate) streaming_list: StreamingListChoice,
    pub(crate) gzip: bool,
    pub(crate) asks_for_share: bool,
    pub(crate) encoding: EncodingChoice,
    pub(crate) decodes_managed_fields: bool,
    pub(crate) item_limit: usize,
    pub(crate) user_agent: HeaderValue,
    pub(crate) tweak: Option<ListOptionsTweak>,
    pub(crate) resync: Option<Duration>,
    pub(crate) hot: Arc<Hot>,
    pub(crate) keeping: Retention,
    pub(crate) storage: MakeStorage,
    #[cfg(feature = "save")]
    pub(crate) saving: Option<Saving>,
}

/// Makes the storage of a cache.
pub(crate) type MakeStorage = Arc<dyn Fn(&ResourceType) -> Arc<dyn Storage> + Send + Sync>;

/// Changes the query parameters of each request of a resource.
pub(crate) type ListOptionsTweak = Arc<dyn Fn(&ResourceType, &mut Vec<(String, String)>) + Send + Sync>;
