//! Which caches a factory saves, where, and as whose.

use std::path::PathBuf;
use std::time::Duration;

use http::Uri;

use super::{Connection, FactoryBuilder};
use crate::saving::Saving;
use crate::settings::Settings;

/// What was chosen so far.
pub(super) struct Saves {
    directory: Option<PathBuf>,
    period: Duration,
    secrets: bool,
    server_name: Option<String>,
}

/// As often as etcd is compacted by default: a file that is older is likely to need a list.
pub(super) const SAVE_EVERY: Duration = Duration::from_secs(300);

impl Default for Saves {
    fn default() -> Self {
        Self { directory: None, period: SAVE_EVERY, secrets: false, server_name: None }
    }
}

impl Saves {
    /// Sets what informers save. Returns the server's name, if it has one.
    pub(super) fn apply(self, settings: &mut Settings, connection: &Connection) -> Option<String> {
        let Self { directory, period, secrets, server_name } = self;
        settings.saving = directory.map(|directory| Saving { directory, period, secrets });
        // What a tweak selects is not known here.
        server_name.or_else(|| match settings.tweak {
            None => connection.server_name(),
            Some(_) => None,
        })
    }
}

impl FactoryBuilder {
    /// Keeps each informer's cache in a file of this directory: loads it at the start, and saves to it each five minutes
    /// and at the stop, where something has changed. So a restart lists nothing that has not changed, and misses nothing
    /// that has: see [`Informer::load`](crate::Informer::load), also for what makes a file unusable.
    ///
    /// The stop is when [`SharedInformerFactory::shutdown`](crate::SharedInformerFactory::shutdown) or [`Informer::stop`](crate::Informer::stop) is called, or the
    /// last handle dropped; the former two wait for the save.
    ///
    /// Nothing is saved that has no name to be told from others by: see [`FactoryBuilder::server_name`] and
    /// [`Transform::named`](crate::Transform::named).
    ///
    /// What fails is a warning in the log and a number in the metrics, and stops nothing. A file that is
    /// refused is overwritten by the next save.
    ///
    /// **The files have the objects as they are in the caches, unencrypted.** On Unix only their owner may read them (mode 0600, and
    /// 0700 where the directory is made). Informers of Secrets are neither saved nor loaded unless
    /// [`save_secrets`](Self::save_secrets) asks for it; what other resources hold of secrets is saved. Two processes at a time should not share a
    /// directory: nothing breaks, but the file is that of whoever saved last.
    ///
    /// ```no_run
    /// # async fn example(config: informer::kube::Config) -> Result<(), Box<dyn std::error::Error>> {
    /// use informer::SharedInformerFactory;
    /// use k8s_openapi::api::core::v1::Pod;
    ///
    /// let factory = SharedInformerFactory::builder(config).saved_in("/var/cache/shop").build()?;
    /// let pods = factory.informer::<Pod>();
    /// factory.start();
    /// // ...
    /// factory.shutdown().await;
    /// # Ok(())
    /// # }
    /// ```
    pub fn saved_in(mut self, directory: impl Into<PathBuf>) -> Self {
        self.saves.directory = Some(directory.into());
        self
    }

    /// How often caches are saved in the directory of [`FactoryBuilder::saved_in`]. Zero: at the stop
    /// only. Each save writes the whole cache, so a big one that changes all the time has its price in CPU; the older
    /// the file, the likelier is a list at the next start, since servers remember some minutes only.
    pub fn save_every(mut self, period: Duration) -> Self {
        self.saves.period = period;
        self
    }

    /// Saves informers of Secrets as well, in clear text: see [`FactoryBuilder::saved_in`]. Off by default, so that they
    /// list after each start. A file that was written before this was switched off stays where it is.
    ///
    /// ```
    /// # fn example(config: informer::kube::Config) -> Result<(), informer::Error> {
    /// use informer::SharedInformerFactory;
    ///
    /// let builder = SharedInformerFactory::builder(config);
    /// let factory = builder.saved_in("/mnt/encrypted/shop").save_secrets().build()?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn save_secrets(mut self) -> Self {
        self.saves.secrets = true;
        self
    }

    /// What tells the server's cluster from others, in caches that are saved: one that was saved under another name is
    /// not loaded. By default its URL and certificate authority; there is no default with a client or transport of one's
    /// own, nor where list options are [tweaked](FactoryBuilder::tweak_list_options): then name what is selected as well.
    pub fn server_name(mut self, name: impl Into<String>) -> Self {
        self.saves.server_name = Some(name.into());
        self
    }
}

impl Connection {
    /// The URL alone would not do: within a cluster it is the same in all of them.
    fn server_name(&self) -> Option<String> {
        let Self::Config(config) = self else { return None };
        let mut authorities = crc32fast::Hasher::new();
        config.root_cert.iter().flatten().for_each(|certificate| authorities.update(certificate));
        Some(format!("{} (authority {:08x})", address(&config.cluster_url), authorities.finalize()))
    }
}

/// Without the name and password that a URL may have.
fn address(url: &Uri) -> String {
    let scheme = url.scheme_str().unwrap_or_default();
    let host = url.host().unwrap_or_default();
    let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
    format!("{scheme}://{host}{port}{}", url.path())
}
