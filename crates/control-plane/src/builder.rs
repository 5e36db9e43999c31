//! A description of a control plane before it starts.

use std::process::Command;
use std::time::Duration;

use crate::shared::or_skip;
use crate::{ControlPlane, Error, Release};

/// Settings of a control plane, made by [`ControlPlane::builder`].
///
/// An option that is not set keeps Kubernetes' default, save for what tests do without: see `control-plane/README.md`.
#[derive(Debug, Clone, Default)]
#[must_use = "nothing runs until `start`"]
pub struct Builder {
    flags: Vec<String>,
    verbose: bool,
    release: Option<Release>,
}

impl ControlPlane {
    /// Begins the description of a control plane.
    pub fn builder() -> Builder {
        Builder::default()
    }
}

impl Builder {
    /// Runs this release of Kubernetes, instead of the one that [`release`](crate::release) names.
    pub fn release(mut self, release: Release) -> Self {
        self.release = Some(release);
        self
    }

    /// Runs kube-controller-manager as well: deployments get their pods, the dependents of deleted owners are deleted,
    /// deleted namespaces go away. Off by default.
    pub fn controller_manager(self, on: bool) -> Self {
        self.flag("controller-manager", on)
    }

    /// Whether the API server answers lists and watches from its memory (the default) or from etcd.
    pub fn watch_cache(self, on: bool) -> Self {
        self.flag("watch-cache", on)
    }

    /// How often the API server compacts etcd by itself; zero for never. By default every five minutes.
    pub fn compaction_interval(self, interval: Duration) -> Self {
        self.flag("compaction-interval", milliseconds(interval))
    }

    /// Switches a feature gate of Kubernetes on or off.
    pub fn feature_gate(self, name: &str, on: bool) -> Self {
        self.flag("feature-gates", format_args!("{name}={on}"))
    }

    /// Gives kube-apiserver the flag `--name=value`, in place of ours if we set it.
    pub fn apiserver_arg(self, name: &str, value: &str) -> Self {
        self.flag("apiserver-arg", format_args!("{name}={value}"))
    }

    /// Shows the servers' logs on stderr instead of keeping them in the control plane's directory.
    pub fn verbose(mut self, on: bool) -> Self {
        self.verbose = on;
        self.flag("verbose", on)
    }

    /// Starts the control plane and returns when its API server is ready. [Builds](crate::build) it first if necessary.
    ///
    /// # Errors
    ///
    /// The errors of [`build`](crate::build), and [`Error::Ended`] if the control plane does not start.
    pub fn start(self) -> Result<ControlPlane, Error> {
        let binary = self.release.map_or_else(crate::build, crate::build_release)?;
        let mut command = Command::new(binary);
        command.arg("run").args(&self.flags);
        ControlPlane::spawn(command, self.verbose)
    }

    /// As [`start`](Self::start), for a test that is skipped where [`shared_or_skip`] skips it.
    ///
    /// # Panics
    ///
    /// Where [`shared_or_skip`] does.
    ///
    /// [`shared_or_skip`]: crate::shared_or_skip
    #[must_use]
    pub fn start_or_skip(self, test: &str) -> Option<ControlPlane> {
        or_skip(test, || self.start())
    }

    fn flag(mut self, name: &str, value: impl std::fmt::Display) -> Self {
        self.flags.push(format!("--{name}={value}"));
        self
    }
}

/// The duration in Go's notation.
fn milliseconds(duration: Duration) -> String {
    format!("{}ms", duration.as_millis())
}
