//! Reaching the cluster as kubectl would.

use kube_client::Config;
use kube_client::config::{KubeConfigOptions, Kubeconfig, KubeconfigError};

use crate::args::ClusterArgs;

/// Where to connect, and as whom.
pub struct Cluster {
    /// For clients.
    pub config: Config,
    /// The name of the context, where there is one.
    pub context: Option<String>,
}

/// No way to a cluster was found.
#[derive(Debug, thiserror::Error)]
pub enum NoCluster {
    /// The kubeconfig cannot be used.
    #[error("the kubeconfig cannot be used")]
    Kubeconfig(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// There is neither a kubeconfig nor a service account.
    #[error(
        "there is neither a kubeconfig nor a pod's service account; name one with --kubeconfig or $KUBECONFIG"
    )]
    Nothing(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// Finds the cluster that the arguments, the environment or the pod name.
///
/// # Errors
///
/// When there is none, or its kubeconfig is invalid.
pub async fn find(args: &ClusterArgs) -> Result<Cluster, NoCluster> {
    let named = args.kubeconfig.is_some() || args.context.is_some();
    let kubeconfig = match &args.kubeconfig {
        Some(path) => Kubeconfig::read_from(path),
        None => Kubeconfig::read(),
    };
    let (mut config, context) = match kubeconfig {
        Ok(kubeconfig) => {
            let context = args.context.clone().or_else(|| kubeconfig.current_context.clone());
            let options = KubeConfigOptions { context: args.context.clone(), ..KubeConfigOptions::default() };
            let config = Config::from_custom_kubeconfig(kubeconfig, &options).await;
            (config.map_err(|error| NoCluster::Kubeconfig(Box::from(error)))?, context)
        }
        Err(error) if named || !is_missing(&error) => return Err(NoCluster::Kubeconfig(Box::from(error))),
        Err(_) => {
            let config = Config::incluster().map_err(|error| NoCluster::Nothing(Box::from(error)))?;
            (config, None)
        }
    };
    if args.as_user.is_some() {
        config.auth_info.impersonate.clone_from(&args.as_user);
        config.auth_info.impersonate_groups = (!args.as_groups.is_empty()).then(|| args.as_groups.clone());
    }
    Ok(Cluster { config, context })
}

/// Whether there is no kubeconfig, rather than one that cannot be used.
fn is_missing(error: &KubeconfigError) -> bool {
    match error {
        KubeconfigError::FindPath => true,
        KubeconfigError::ReadConfig(error, _) => error.kind() == std::io::ErrorKind::NotFound,
        _ => false,
    }
}
