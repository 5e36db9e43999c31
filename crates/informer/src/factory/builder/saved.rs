//! The options for saving: which caches a factory saves, in which directory, and under which server name.

use std::path::PathBuf;
use std::time::Duration;

use http::Uri;

use super::{Connection, FactoryBuilder};
use crate::options::saving::Saving;
use crate::options::settings::Settings;

/// The options that were chosen so far.
pub(super) struct Saves {
    directory: Option<PathBuf>,
    period: Duration,
    secrets: bool,
    server_name: Option<String>,
}

/// The default period. etcd is compacted as often by default: with an older file a list is likely.
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
        // A tweak may select objects, which the default name would not show.
        server_name.or_else(|| match settings.tweak {
            None => connection.server_name(),
            Some(_) => None,
        })
    }
}

impl FactoryBuilder {
    /// Keeps each informer's cache in a file in this directory, but not the changes that are pending for subscribers: a
    /// deletion that a subscriber has not taken when the cache is saved is lost for it at a restart.
    ///
    /// Nothing else is lost. The next process dispatches each object of the file as an initial add, then every change since
    /// the save, deletions included. A subscriber that needs each deletion takes its pending changes before the stop. Against
    /// a crash it compares the initial adds with its own records, or a finalizer holds up the deletion.
    ///
    /// The file is loaded at the start, and saved every five minutes and at the stop if something has changed. So a restart
    /// lists nothing that has not changed. [`Informer::load`](crate::Informer::load) describes how loading works and which
    /// files are refused.
    ///
    /// The stop is a call of [`SharedInformerFactory::shutdown`](crate::SharedInformerFactory::shutdown) or
    /// [`Informer::stop`](crate::Informer::stop), or the drop of the last handle. The two methods wait for the save.
    ///
    /// A cache is saved only if its server and its transform have names: see [`FactoryBuilder::server_name`] and
    /// [`Transform::named`](crate::Transform::named).
    ///
    /// A failure is a warning in the log, and each failed save is counted in the metrics; the informer continues without
    /// the file. The next save overwrites a file that was refused.
    ///
    /// **The files contain the objects as they are in the caches, unencrypted.** On Unix only their owner may read them
    /// (mode 0600, and 0700 for a directory that is created). Informers of Secrets are neither saved nor loaded unless
    /// [`save_secrets`](Self::save_secrets) asks for it. Secret values inside other resources are saved. Two processes
    /// should not use one directory at the same time: nothing breaks, but each file contains the cache of the process that
    /// saved last.
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

    /// How often caches are saved in the directory of [`FactoryBuilder::saved_in`]. Zero: only at the stop. Each save
    /// writes the whole cache, so frequent saves of a big cache cost CPU. The older the file, the likelier the next start
    /// needs a list, because servers keep only some minutes of history.
    pub fn save_every(mut self, period: Duration) -> Self {
        self.saves.period = period;
        self
    }

    /// Saves informers of Secrets as well, in clear text: see [`FactoryBuilder::saved_in`]. Off by default: informers of
    /// Secrets list after each start. Switching it off does not remove files that were written before.
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

    /// The name of the server's cluster in saved caches. A cache that was saved under another name is not loaded. The
    /// default name consists of the server's URL and certificate authority. There is no default with a client or transport
    /// of your own, nor with [tweaked list options](FactoryBuilder::tweak_list_options). With tweaked options the name
    /// should also say what they select.
    pub fn server_name(mut self, name: impl Into<String>) -> Self {
        self.saves.server_name = Some(name.into());
        self
    }
}

impl Connection {
    /// The URL alone would not identify the cluster: the in-cluster URL is the same in all clusters.
    fn server_name(&self) -> Option<String> {
        let Self::Config(config) = self else { return None };
        let mut authorities = crc32fast::Hasher::new();
        config.root_cert.iter().flatten().for_each(|certificate| authorities.update(certificate));
        Some(format!("{} (authority {:08x})", address(&config.cluster_url), authorities.finalize()))
    }
}

/// The URL without the user name and password that it may contain.
fn address(url: &Uri) -> String {
    let scheme = url.scheme_str().unwrap_or_default();
    let host = url.host().unwrap_or_default();
    let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
    format!("{scheme}://{host}{port}{}", url.path())
}
