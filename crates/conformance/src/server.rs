//! The servers that the contract is shown against: a real control plane, and the embedded one.
#![expect(clippy::print_stderr, reason = "the output of tests must show what was skipped")]

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError};

use control_plane::ControlPlane;
use tempfile::NamedTempFile;
use testapi::faults::{Armed, Matcher};
use testapi::{History, TestApi};

/// Which server a test binary is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// etcd and kube-apiserver.
    Real,
    /// The one in this repository.
    TestApi,
    /// The same, with informers that choose otherwise than by default: HTTP/2, JSON, bytes as they come.
    TestApiOtherwise,
}

/// The options of a test's own server.
#[derive(Debug, Clone, Copy)]
pub struct Needs {
    /// Lists are answered from the watch cache, which has no pages.
    pub watch_cache: bool,
    /// Watches can begin with the present objects.
    pub watch_list: bool,
    /// Lists and watches can be of a shard.
    pub shards: bool,
    /// Kubernetes' own controllers run: of Deployments, of garbage. Only the real server has them.
    pub controllers: bool,
}

impl Default for Needs {
    fn default() -> Self {
        Self { watch_cache: true, watch_list: true, shards: false, controllers: false }
    }
}

/// A server, as tests see it. A handle.
#[derive(Clone)]
pub(crate) enum Server {
    Shared(&'static ControlPlane),
    Own(Arc<ControlPlane>),
    Embedded(Arc<Embedded>),
    Process(Arc<Process>),
}

/// The embedded server in its own process, which takes no commands.
pub(crate) struct Process {
    child: Child,
    kubeconfig: NamedTempFile,
}

impl Process {
    fn start(program: &Path) -> Self {
        let kubeconfig = NamedTempFile::new().expect("a file");
        let mut command = Command::new(program);
        command.arg(kubeconfig.path()).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("a process");
        // It says so when it can be asked.
        let mut said = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        said.next().expect("a line").expect("a line");
        Self { child, kubeconfig }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It ends with its input.
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

/// The embedded server, with two users.
pub(crate) struct Embedded {
    pub(crate) api: TestApi,
    kubeconfig: NamedTempFile,
    /// Keeps the second user from reading.
    denied: Mutex<Option<Armed>>,
}

/// A user without permissions.
pub(crate) const NOBODY: &str = "w15-nobody";
/// Its token.
pub(crate) const NOBODYS_TOKEN: &str = "nobodys-token";
/// The token of an embedded server's administrator.
pub const TOKEN: &str = "administrators-token";

impl Embedded {
    async fn start(needs: Needs) -> Self {
        let mut builder = TestApi::builder().tls().token(TOKEN, "admin").token(NOBODYS_TOKEN, NOBODY);
        builder = builder.options(|options| {
            options.serve.watch_cache = needs.watch_cache;
            options.serve.streaming_lists = needs.watch_list;
            options.serve.shard_selectors = needs.shards;
        });
        let api = builder.start().await.expect("an embedded server");
        // A server that remembers nothing of its early days, as the real one.
        api.compact();
        let kubeconfig = NamedTempFile::new().expect("a file");
        std::fs::write(kubeconfig.path(), api.kubeconfig()).expect("a file");
        let embedded = Self { api, kubeconfig, denied: Mutex::default() };
        embedded.forbid_nobody();
        embedded
    }

    pub(crate) fn forbid_nobody(&self) {
        let nobody = Matcher::of("configmaps").by_user(NOBODY);
        *self.denied() = Some(self.api.faults().deny(nobody));
    }

    pub(crate) fn allow_nobody(&self) {
        if let Some(denied) = self.denied().take() {
            denied.disarm();
        }
    }

    fn denied(&self) -> MutexGuard<'_, Option<Armed>> {
        self.denied.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Server {
    /// A server that all tests of the binary may share; `None` where there is none.
    pub(crate) async fn shared(kind: Kind, test: &str) -> Option<Self> {
        match kind {
            // It starts in no time.
            Kind::TestApi | Kind::TestApiOtherwise => Self::own(kind, test, Needs::default()).await,
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
    pub(crate) async fn own(kind: Kind, test: &str, needs: Needs) -> Option<Self> {
        match kind {
            Kind::TestApi | Kind::TestApiOtherwise => {
                Some(Self::Embedded(Arc::new(Embedded::start(needs).await)))
            }
            Kind::Real => {
                let mut builder = ControlPlane::builder()
                    .watch_cache(needs.watch_cache)
                    .controller_manager(needs.controllers);
                if !needs.watch_list {
                    builder = builder.feature_gate("WatchList", false);
                }
                if needs.shards {
                    if is_older(kind, 36, test) {
                        return None;
                    }
                    builder = builder.feature_gate("ShardedListAndWatch", true);
                }
                Some(Self::Own(Arc::new(builder.start_or_skip(test)?)))
            }
        }
    }

    /// One in its own process.
    pub(crate) fn process(program: &Path) -> Self {
        Self::Process(Arc::new(Process::start(program)))
    }

    /// How clients reach it, as a file.
    pub(crate) fn kubeconfig(&self) -> PathBuf {
        match self {
            Self::Shared(server) => server.kubeconfig().to_owned(),
            Self::Own(server) => server.kubeconfig().to_owned(),
            Self::Embedded(server) => server.kubeconfig.path().to_owned(),
            Self::Process(server) => server.kubeconfig.path().to_owned(),
        }
    }

    /// The token of its administrator.
    pub(crate) fn token(&self) -> String {
        match self {
            Self::Shared(server) => server.token().to_owned(),
            Self::Own(server) => server.token().to_owned(),
            Self::Embedded(_) | Self::Process(_) => TOKEN.to_owned(),
        }
    }

    /// Ends it in an orderly way and starts it again.
    pub(crate) async fn restart(&self) {
        match self.real() {
            Some(server) => server.blocking(|server| server.restart().map(drop)).await,
            None => self.embedded().api.restart(History::Kept).await.expect("a restart"),
        }
    }

    /// Ends it at once and starts it again, with nothing in its watch cache.
    pub(crate) async fn kill_restart(&self) {
        match self.real() {
            Some(server) => server.blocking(ControlPlane::kill_restart).await,
            None => self.embedded().api.restart(History::Lost).await.expect("a restart"),
        }
    }

    /// Ends it in an orderly way, for now.
    pub(crate) async fn stop(&self) {
        match self.real() {
            Some(server) => server.blocking(|server| server.stop_apiserver().map(drop)).await,
            None => {
                self.embedded().api.refuse_connections();
                self.embedded().api.disconnect_all();
            }
        }
    }

    /// Starts it again.
    pub(crate) async fn start(&self) {
        match self.real() {
            Some(server) => server.blocking(ControlPlane::start_apiserver).await,
            None => self.embedded().api.accept_connections().expect("the port"),
        }
    }

    /// Makes old revisions of objects unknown.
    pub(crate) async fn compact(&self) {
        match self.real() {
            Some(server) => server.blocking(|server| server.compact().map(drop)).await,
            None => self.embedded().api.compact(),
        }
    }

    /// The embedded server.
    ///
    /// # Panics
    ///
    /// When it is a real one, which takes no orders.
    pub(crate) fn embedded(&self) -> &Embedded {
        match self {
            Self::Embedded(server) => server,
            Self::Shared(_) | Self::Own(_) | Self::Process(_) => {
                panic!("only the embedded server in this process does that")
            }
        }
    }

    fn real(&self) -> Option<Real> {
        match self {
            Self::Shared(server) => Some(Real::Shared(server)),
            Self::Own(server) => Some(Real::Own(server.clone())),
            Self::Embedded(_) | Self::Process(_) => None,
        }
    }
}

/// Whether a test that needs a newer server than this is skipped.
pub(crate) fn is_older(kind: Kind, minor: u32, test: &str) -> bool {
    let release = control_plane::release().expect("a release of Kubernetes");
    let older = kind == Kind::Real && release.minor < minor;
    if older {
        eprintln!("{test}: left out, because Kubernetes {release} does not have what 1.{minor} has");
    }
    older
}

/// A real control plane, whose calls block.
enum Real {
    Shared(&'static ControlPlane),
    Own(Arc<ControlPlane>),
}

impl Real {
    async fn blocking(
        self,
        action: impl FnOnce(&ControlPlane) -> Result<(), control_plane::Error> + Send + 'static,
    ) {
        let doing = tokio::task::spawn_blocking(move || match self {
            Self::Shared(server) => action(server),
            Self::Own(server) => action(&server),
        });
        doing.await.expect("no panic").expect("the control plane does it");
    }
}
