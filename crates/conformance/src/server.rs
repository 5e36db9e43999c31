//! The servers that the contract is shown against: a real control plane, and the embedded one.

use std::path::PathBuf;
use std::sync::{Arc, Once};

use control_plane::ControlPlane;

/// Which server a test binary is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// etcd and kube-apiserver.
    Real,
}

/// What a test needs of a server of its own.
#[derive(Debug, Clone, Copy)]
pub struct Needs {
    /// Lists are answered from the watch cache, which has no pages.
    pub watch_cache: bool,
    /// Watches can begin with the present objects.
    pub watch_list: bool,
}

impl Default for Needs {
    fn default() -> Self {
        Self { watch_cache: true, watch_list: true }
    }
}

/// A server, as far as tests are concerned. A handle.
#[derive(Clone)]
pub(crate) enum Server {
    Shared(&'static ControlPlane),
    Own(Arc<ControlPlane>),
}

impl Server {
    /// A server that all tests of the binary may share; `None` where there is none.
    pub(crate) fn shared(kind: Kind, test: &str) -> Option<Self> {
        match kind {
            Kind::Real => {
                let server = control_plane::shared_or_skip(test)?;
                // Before anybody uses it: a server that remembers nothing of its early days answers a watch from
                // there with 410, which tests make use of.
                static RESTARTED: Once = Once::new();
                RESTARTED.call_once(|| server.kill_restart().expect("a restart"));
                Some(Self::Shared(server))
            }
        }
    }

    /// A server for one test alone.
    pub(crate) fn own(kind: Kind, test: &str, needs: Needs) -> Option<Self> {
        match kind {
            Kind::Real => {
                let mut builder = ControlPlane::builder().watch_cache(needs.watch_cache);
                if !needs.watch_list {
                    builder = builder.feature_gate("WatchList", false);
                }
                Some(Self::Own(Arc::new(builder.start_or_skip(test)?)))
            }
        }
    }

    /// How clients reach it, as a file.
    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.real().kubeconfig().to_owned()
    }

    /// What its administrator shows.
    pub(crate) fn token(&self) -> String {
        self.real().token().to_owned()
    }

    /// Ends it in an orderly way and starts it again.
    pub(crate) async fn restart(&self) {
        self.real_blocking(|server| server.restart().map(drop)).await;
    }

    /// Ends it in an orderly way, for now.
    pub(crate) async fn stop(&self) {
        self.real_blocking(|server| server.stop_apiserver().map(drop)).await;
    }

    /// Starts it again.
    pub(crate) async fn start(&self) {
        self.real_blocking(ControlPlane::start_apiserver).await;
    }

    /// Makes old revisions of objects unknown.
    pub(crate) async fn compact(&self) {
        self.real_blocking(|server| server.compact().map(drop)).await;
    }

    /// Ends it at once and starts it again, with nothing in its watch cache.
    pub(crate) async fn kill_restart(&self) {
        self.real_blocking(ControlPlane::kill_restart).await;
    }

    fn real(&self) -> &ControlPlane {
        match self {
            Self::Shared(server) => server,
            Self::Own(server) => server,
        }
    }

    /// The calls of the control plane block.
    async fn real_blocking(
        &self,
        action: impl FnOnce(&ControlPlane) -> Result<(), control_plane::Error> + Send + 'static,
    ) {
        let server = self.clone();
        let done = tokio::task::spawn_blocking(move || action(server.real())).await;
        done.expect("no panic").expect("the control plane does it");
    }
}
