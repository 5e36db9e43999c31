//! The signals that end a program.

use std::io;

#[cfg(unix)]
use tokio::signal::unix::{Signal, SignalKind, signal};
#[cfg(windows)]
use tokio::signal::windows::{CtrlBreak, CtrlC, ctrl_break, ctrl_c};

/// Listens from its creation on. These signals do not end the process by themselves then.
#[cfg(unix)]
pub(super) struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

/// The same.
#[cfg(windows)]
pub(super) struct Signals {
    interrupt: CtrlC,
    terminate: CtrlBreak,
}

impl Signals {
    #[cfg(unix)]
    pub(super) fn listen() -> io::Result<Self> {
        Ok(Self { interrupt: signal(SignalKind::interrupt())?, terminate: signal(SignalKind::terminate())? })
    }

    #[cfg(windows)]
    pub(super) fn listen() -> io::Result<Self> {
        Ok(Self { interrupt: ctrl_c()?, terminate: ctrl_break()? })
    }

    /// The next signal. Cancel safe.
    pub(super) async fn next(&mut self) {
        tokio::select! {
            biased;
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

/// Resolves at SIGINT or SIGTERM (Ctrl-C or Ctrl-Break on Windows), for programs without a [`Program`](crate::Program).
///
/// Kubernetes ends a pod by SIGTERM. From the first poll on, neither signal ends the process by itself.
///
/// ```no_run
/// # fn example(controller: informer_controller::Controller<k8s_openapi::api::core::v1::ConfigMap>) {
/// let controller = controller.until(informer_controller::stop_signal());
/// # }
/// ```
pub async fn stop_signal() {
    match Signals::listen() {
        Ok(mut signals) => signals.next().await,
        Err(error) => {
            tracing::error!(%error, "the process cannot listen to signals");
            std::future::pending().await
        }
    }
}
