//! Requests to the server, and what their refusals mean.

use std::time::Duration;

use kube_client::Error;

use super::error::Why;

/// The requests to the server, one after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    Pods,
    Workloads,
    Exec,
}

impl Step {
    /// Which verbs it needs, on what, and the rule that gives them.
    fn needs(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Self::Pods => {
                ("get and list", "pods", r#"{apiGroups: [""], resources: [pods], verbs: [get, list]}"#)
            }
            Self::Workloads => (
                "get and list",
                "deployments.apps and statefulsets.apps",
                "{apiGroups: [apps], resources: [deployments, statefulsets], verbs: [get, list]}",
            ),
            // Over WebSocket an exec is a GET; from Kubernetes 1.35 on it needs `create` as well.
            Self::Exec => (
                "get and create",
                "pods/exec",
                r#"{apiGroups: [""], resources: [pods/exec], verbs: [get, create]}"#,
            ),
        }
    }
}

/// The server, as the daemon is looked for there.
#[derive(Debug, Clone)]
pub(super) struct Server {
    pub(super) address: String,
    pub(super) namespace: String,
    /// How long one request may take.
    pub(super) limit: Option<Duration>,
}

impl Server {
    /// The answer to a request, or why there is none.
    pub(super) async fn ask<T>(
        &self,
        step: Step,
        request: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Why> {
        let answer = match self.limit {
            None => request.await,
            Some(limit) => match tokio::time::timeout(limit, request).await {
                Ok(answer) => answer,
                Err(_) => {
                    let (_, resource, _) = step.needs();
                    return Err(Why::Slow { address: self.address.clone(), resource, limit });
                }
            },
        };
        answer.map_err(|error| self.refusal(step, error))
    }

    fn refusal(&self, step: Step, error: Error) -> Why {
        let (verbs, resource, rule) = step.needs();
        let (address, namespace) = (self.address.clone(), self.namespace.clone());
        match error {
            Error::Api(status) => {
                let message = status.message.trim().to_owned();
                match status.code {
                    401 => Why::Unauthenticated { address, message },
                    403 => Why::Denied { verbs, resource, namespace, message, rule },
                    // The answers of kube-apiserver to a request whose upgrade a proxy has taken away, and of proxies.
                    400 | 426 if step == Step::Exec && message.to_lowercase().contains("upgrade") => {
                        Why::NoWebSocket { address, message }
                    }
                    _ => Why::Refused { address, resource, message },
                }
            }
            Error::UpgradeConnection(error) => Why::NoWebSocket { address, message: error.to_string() },
            error => Why::Unreachable { address, source: Box::new(error) },
        }
    }
}
