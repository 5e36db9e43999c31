//! Chooses the options of a factory.

#[cfg(feature = "save")]
mod saved;
#[cfg(all(test, not(loom)))]
mod tests;

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http::HeaderValue;
use informer_core::reflector::ReflectorConfig;
use informer_core::{HotSet, Retention, Storage};
use kube_client::Config;
use kube_client::client::Body;
use tokio_util::sync::CancellationToken;
use tower::{BoxError, Layer, Service};

use super::{Inner, Options, SharedInformerFactory};
use crate::inner::Life;
use crate::options::cooling::Hot;
use crate::options::resource::ResourceType;
use crate::options::runtime::Runtime;
use crate::options::selection::Selection;
use crate::options::settings::{ListOptionsTweak, MakeStorage, Settings};
use crate::options::transform::Transform;
use crate::server::Server;
use crate::transport::{ClientService, ConnectionOptions, KubeTransport, Layers, Transport};
use crate::{
    EncodingChoice, Error, FirstListChoice, HttpVersion, Layout, ReflectorOptions, StreamingListChoice,
};

/// Builds a [`SharedInformerFactory`]. Every option has a default.
///
/// ```
/// use std::time::Duration;
/// use informer::{Layout, SharedInformerFactory};
///
/// # fn example(config: informer::kube::Config) -> Result<(), Box<dyn std::error::Error>> {
/// let factory = SharedInformerFactory::builder(config)
///     .resync(Duration::from_secs(600))
///     .layout(Layout::Packed)
///     .user_agent("cart-controller/1.0")
///     .build()?
///     .in_namespaces(["shop", "front"])
///     .with_labels("app=cart")?;
/// # Ok(())
/// # }
/// ```
#[must_use = "nothing happens before `build`"]
pub struct FactoryBuilder {
    connection: Connection,
    connection_options: ConnectionOptions,
    client_layers: Layers,
    options: Options,
    stop: CancellationToken,
    /// Checked when the factory is made.
    user_agent: Option<String>,
    /// Overrides the storage that the layout chooses.
    storage: Option<MakeStorage>,
    hot_bytes: Option<usize>,
    weights: Vec<Weigh>,
    #[cfg(feature = "save")]
    saves: saved::Saves,
    reflector: ReflectorOptions,
    /// The seed of a deterministic factory.
    seed: Option<u64>,
}

/// Registers with a hot set how many bytes values of a type take.
type Weigh = Box<dyn FnOnce(&HotSet)>;

/// How the server is reached.
pub(super) enum Connection {
    Config(Box<Config>),
    Transport(Arc<dyn Transport>),
}

/// The default limit for the size of an object. etcd's limit is 1.5 MiB by default; aggregated servers have their own
/// limits.
const ITEM_LIMIT: usize = 16 * 1024 * 1024;
const USER_AGENT: &str = concat!("informer/", env!("CARGO_PKG_VERSION"));

impl FactoryBuilder {
    pub(crate) fn with_config(config: Config) -> Self {
        Self::new(Connection::Config(Box::new(config)))
    }

    pub(super) fn new(connection: Connection) -> Self {
        let settings = Settings {
            reflector: ReflectorConfig::default(),
            first_list: FirstListChoice::default(),
            streaming_list: StreamingListChoice::default(),
            gzip: false,
            asks_for_share: false,
            encoding: EncodingChoice::default(),
            decodes_managed_fields: false,
            item_limit: ITEM_LIMIT,
            user_agent: HeaderValue::from_static(USER_AGENT),
            tweak: None,
            resync: None,
            hot: Arc::new(Hot::new(HotSet::default())),
            keeping: Retention::WhileHot,
            storage: Arc::new(|_| Layout::default().storage()),
            #[cfg(feature = "save")]
            saving: None,
        };
        let options = Options {
            settings,
            resync: HashMap::new(),
            transform: None,
            layout: Layout::default(),
            start_at_once: false,
        };
        Self {
            connection,
            connection_options: ConnectionOptions::default(),
            client_layers: Layers::default(),
            options,
            stop: CancellationToken::new(),
            user_agent: None,
            storage: None,
            hot_bytes: None,
            weights: Vec::new(),
            #[cfg(feature = "save")]
            saves: saved::Saves::default(),
            reflector: ReflectorOptions::default(),
            seed: None,
        }
    }

    /// Whether servers are asked to send only the share of [`SharedInformerFactory::with_share`], by the parameter `shardSelector`. Off
    /// by default. Saves bytes and decoding where [`share::server_filters`](crate::share::server_filters) says that the
    /// server can; another server ignores the parameter. The informer filters in any case. A share by
    /// [`ShareBy::ControllerUid`](crate::share::ShareBy::ControllerUid) cannot be asked for.
    pub fn ask_for_share(mut self, ask: bool) -> Self {
        self.options.settings.asks_for_share = ask;
        self
    }

    /// Changes the query parameters of each list and watch. The function runs on a thread for blocking work, once at a time
    /// for each informer. While a call does not return, the informer requests nothing more, and its status
    /// ([`Status::Retrying`](crate::Status::Retrying)) says so.
    pub fn tweak_list_options(
        mut self,
        tweak: impl Fn(&ResourceType, &mut Vec<(String, String)>) + Send + Sync + 'static,
    ) -> Self {
        let tweak: ListOptionsTweak = Arc::new(tweak);
        self.options.settings.tweak = Some(tweak);
        self
    }

    /// The resync period of handlers that do not choose one. Zero, the default, disables resyncs.
    pub fn resync(mut self, period: Duration) -> Self {
        self.options.settings.resync = (!period.is_zero()).then_some(period);
        self
    }

    /// The resync period of the handlers of one resource, in place of the factory's. Zero disables resyncs.
    pub fn resync_of(mut self, resource: ResourceType, period: Duration) -> Self {
        self.options.resync.insert(resource, period);
        self
    }

    /// Changes each object of each resource before it is stored.
    pub fn transform(mut self, transform: Transform) -> Self {
        self.options.transform = Some(transform);
        self
    }

    /// How objects are kept. [`Layout::Packed`] by default.
    pub fn layout(mut self, layout: Layout) -> Self {
        self.options.layout = layout;
        self
    }

    /// The memory in bytes that hot objects of all informers of the factory may take together. 32 MiB by default.
    ///
    /// The version that a watch event brings is hot, and so is a decoded value that a consumer has used. All consumers
    /// share them: handlers, filters, listers, indexes. A version or value that is not used for five to ten seconds cools.
    /// When the set is full, the least recently used versions make room for others. A pod of 9 KB takes 20 to 40 KB, a tiny
    /// one some KB, because a `Pod` struct is large in itself. With 0 nothing is hot, and each consumer decodes for itself.
    /// The bound does not apply to the layout [`Layout::Decoded`].
    ///
    /// ```no_run
    /// # fn example(config: informer::kube::Config) -> Result<(), informer::Error> {
    /// use informer::SharedInformerFactory;
    ///
    /// // A controller that goes over some 3,000 pods again and again.
    /// let factory = SharedInformerFactory::builder(config).hot_bytes(100 << 20).build()?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn hot_bytes(mut self, bytes: usize) -> Self {
        self.hot_bytes = Some(bytes);
        self
    }

    /// Sets the function that returns how many bytes of memory a value of a type takes, the value itself included. By
    /// default values are weighed while they are decoded, by the strings, lists and maps that serde makes. Set a function
    /// for a type whose values keep much in `Box`es, or intern strings: there the default is far off.
    pub fn weigh<T: Send + Sync + 'static>(
        mut self,
        weigh: impl Fn(&T) -> usize + Send + Sync + 'static,
    ) -> Self {
        self.weights.push(Box::new(move |hot| hot.weigh(weigh)));
        self
    }

    /// Replaces the storage of objects' bytes, to keep them elsewhere or in another form. The function `storage` is called
    /// for each cache, and returns the [`Storage`] of that cache.
    pub fn storage(
        mut self,
        storage: impl Fn(&ResourceType) -> Arc<dyn Storage> + Send + Sync + 'static,
    ) -> Self {
        self.storage = Some(Arc::new(storage));
        self
    }

    /// Starts each informer as soon as the program asks for it, without [`SharedInformerFactory::start`].
    pub fn start_at_once(mut self) -> Self {
        self.options.start_at_once = true;
        self
    }

    /// Sets when the reflectors list and watch again, and what they request. Later calls keep what earlier ones set.
    ///
    /// ```
    /// # fn example(config: informer::kube::Config) -> Result<(), informer::Error> {
    /// use std::time::Duration;
    /// use informer::{FirstListChoice, SharedInformerFactory};
    ///
    /// let factory = SharedInformerFactory::builder(config)
    ///     .reflector(|reflector| {
    ///         reflector.first_list = FirstListChoice::Any;
    ///         reflector.silence_limit = Duration::from_secs(300);
    ///     })
    ///     .build()?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn reflector(mut self, set: impl FnOnce(&mut ReflectorOptions)) -> Self {
        set(&mut self.reflector);
        self
    }

    /// The HTTP version of the connections. It has no effect with a client or transport of your own.
    ///
    /// ```
    /// use informer::{Http2, HttpVersion, SharedInformerFactory};
    ///
    /// # fn example(config: informer::kube::Config) -> Result<(), informer::Error> {
    /// let factory = SharedInformerFactory::builder(config)
    ///     .http_version(HttpVersion::Http2(Http2::default()))
    ///     .build()?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn http_version(mut self, version: HttpVersion) -> Self {
        self.connection_options.http_version = version;
        self
    }

    /// The time limit of a credential plugin (`exec` in a kubeconfig). A plugin that takes longer is killed, and the
    /// requests that wait for it fail. 30 s by default. The limit has no effect with a client or transport of your own.
    pub fn credential_timeout(mut self, limit: Duration) -> Self {
        self.connection_options.credential_timeout = limit;
        self
    }

    /// Puts a tower layer around the clients that send the requests: for traces, headers, a limit, or tests. As with kube's
    /// `ClientBuilder::with_layer`, the last one is outermost. It sees each attempt, without credentials: these are added
    /// below it. It has no effect with a client or transport of your own.
    ///
    /// In place of a client with layers ([`builder_with_client`](SharedInformerFactory::builder_with_client)): here
    /// credentials are refreshed after a 401, the HTTP version can be chosen, and nothing below the informer retries.
    ///
    /// ```
    /// use informer::SharedInformerFactory;
    /// use tower::util::MapRequestLayer;
    ///
    /// # fn example(config: informer::kube::Config) -> Result<(), informer::Error> {
    /// let tenant = http::HeaderValue::from_static("shop");
    /// let factory = SharedInformerFactory::builder(config)
    ///     .client_layer(MapRequestLayer::new(move |mut request: http::Request<_>| {
    ///         request.headers_mut().insert("x-tenant", tenant.clone());
    ///         request
    ///     }))
    ///     .build()?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn client_layer<L, B>(mut self, layer: L) -> Self
    where
        L: Layer<ClientService> + Send + Sync + 'static,
        L::Service: Service<http::Request<Body>, Response = http::Response<B>> + Send + 'static,
        <L::Service as Service<http::Request<Body>>>::Error: Into<BoxError>,
        <L::Service as Service<http::Request<Body>>>::Future: Send,
        B: http_body::Body<Data = Bytes, Error: Into<BoxError>> + Send + 'static,
    {
        self.client_layers.push(layer);
        self
    }

    /// Asks the server to compress lists and watches. Off by default: within a cluster the network is faster than
    /// compression.
    pub fn gzip(mut self, gzip: bool) -> Self {
        self.options.settings.gzip = gzip;
        self
    }

    /// The encoding that the server is asked for. [`EncodingChoice::Auto`] by default.
    pub fn encoding(mut self, choice: EncodingChoice) -> Self {
        self.options.settings.encoding = choice;
        self
    }

    /// Whether decoded values of objects have their `metadata.managedFields`, which are half of the work of decoding. Off
    /// by default. The JSON of an object ([`Object::json`](crate::Object::json)) has them in any case. To store objects
    /// without them, see [`Transform::drop_managed_fields`].
    pub fn decode_managed_fields(mut self, decode: bool) -> Self {
        self.options.settings.decodes_managed_fields = decode;
        self
    }

    /// The maximum size of an object, in bytes as the server sends it. A longer object is treated as undecodable. 16 MiB by
    /// default.
    pub fn item_limit(mut self, bytes: usize) -> Self {
        self.options.settings.item_limit = bytes;
        self
    }

    /// The `User-Agent` header of all requests, preferably the program's name and version. `informer/<version>` by default.
    pub fn user_agent(mut self, name: impl Into<String>) -> Self {
        self.user_agent = Some(name.into());
        self
    }

    /// Makes the factory repeat itself, for simulations: everything random follows from `seed`, and user code that
    /// otherwise runs on threads for blocking work (index functions, transforms, tweaks of list options) runs in the
    /// factory's tasks.
    ///
    /// A factory with a transport of its own then uses no thread at all. On a current-thread runtime with a paused clock,
    /// the same answers at the same times lead to the same notifications at the same times. User code that blocks stops
    /// everything, so this is not for programs that serve.
    ///
    /// ```
    /// use informer::SharedInformerFactory;
    /// use informer::transport::Transport;
    ///
    /// # fn example(simulated: impl Transport) -> Result<(), informer::Error> {
    /// let factory = SharedInformerFactory::builder_with_transport(simulated).deterministic(7).build()?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn deterministic(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Stops everything when the token is cancelled.
    pub fn stop_token(mut self, token: CancellationToken) -> Self {
        self.stop = token.child_token();
        self
    }

    /// Builds the factory. No request is sent before an informer starts.
    ///
    /// # Errors
    ///
    /// When the configuration or the user agent is invalid. With a client or transport of your own, also when this is
    /// called outside of a tokio runtime.
    pub fn build(mut self) -> Result<SharedInformerFactory, Error> {
        if let Some(name) = &self.user_agent {
            let value = HeaderValue::from_str(name);
            let value = value.map_err(|error| Error::invalid("user agent", name, error))?;
            self.options.settings.user_agent = value;
        }
        let settings = &mut self.options.settings;
        settings.reflector = self.reflector.config();
        (settings.first_list, settings.streaming_list) =
            (self.reflector.first_list, self.reflector.streaming_list);
        let layout = self.options.layout;
        settings.keeping = layout.keeping();
        settings.storage = self.storage.unwrap_or_else(|| Arc::new(move |_| layout.storage()));
        let set = self.hot_bytes.map_or_else(HotSet::default, HotSet::new);
        self.weights.into_iter().for_each(|weigh| weigh(&set));
        settings.hot = Arc::new(Hot::new(set));
        #[cfg(feature = "save")]
        let server_name = self.saves.apply(settings, &self.connection);
        #[cfg(not(feature = "save"))]
        let server_name = None;
        let (transport, runtime): (Arc<dyn Transport>, Runtime) = match self.connection {
            Connection::Transport(transport) => {
                (transport, Runtime::current().map_err(|_| Error::no_runtime())?)
            }
            Connection::Config(config) => {
                let runtime = Runtime::own_thread().map_err(Error::thread)?;
                let transport = runtime.enter(|| {
                    KubeTransport::with_layers(*config, self.connection_options, self.client_layers)
                })?;
                (Arc::new(transport), runtime)
            }
        };
        let runtime = if self.seed.is_some() { runtime.inline() } else { runtime };
        let inner = Inner {
            options: self.options,
            server: Arc::new(Server::new(transport, server_name, self.reflector.schema_pace, self.seed)),
            runtime,
            life: Life::new(self.stop),
            informers: Mutex::default(),
        };
        Ok(SharedInformerFactory { inner: Arc::new(inner), selection: Selection::default() })
    }
}

impl fmt::Debug for FactoryBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FactoryBuilder").finish_non_exhaustive()
    }
}
