//! Reaching the cluster as kubectl would.

mod args;

use std::path::{Path, PathBuf};
use std::time::Duration;

use kube_client::Config;
use kube_client::config::{
    AuthInfo, Cluster as NamedServer, Context, KubeConfigOptions, Kubeconfig, KubeconfigError, NamedAuthInfo,
    NamedCluster, NamedContext,
};

pub use args::ClusterArgs;

/// Where to connect, and as whom.
pub struct Cluster {
    /// For clients.
    pub config: Config,
    /// The name of the context, where there is one.
    pub context: Option<String>,
    /// How long one request may take, where the user says so.
    pub request_timeout: Option<Duration>,
}

impl Cluster {
    /// The server's address, without credentials.
    pub fn address(&self) -> String {
        let url = &self.config.cluster_url;
        let scheme = url.scheme_str().unwrap_or("https");
        let host = url.host().unwrap_or_default();
        match url.port_u16() {
            Some(port) => format!("{scheme}://{host}:{port}"),
            None => format!("{scheme}://{host}"),
        }
    }

    /// The kind of our credentials; `None` without any.
    pub fn credentials(&self) -> Option<&'static str> {
        let auth = &self.config.auth_info;
        let has_certificate = auth.client_certificate.is_some() || auth.client_certificate_data.is_some();
        if auth.token.is_some() || auth.token_file.is_some() {
            Some("token")
        } else if has_certificate {
            Some("certificate")
        } else if auth.exec.is_some() || auth.auth_provider.is_some() {
            Some("credentials plugin's token")
        } else {
            auth.username.as_ref().map(|_| "password")
        }
    }
}

/// No way to a cluster was found.
#[derive(Debug, thiserror::Error)]
pub enum NoCluster {
    /// A file of the kubeconfig cannot be read.
    #[error("the kubeconfig {} cannot be used", .0.display())]
    File(PathBuf, #[source] Box<KubeconfigError>),
    /// The files together are unusable.
    #[error("the kubeconfig cannot be used")]
    Kubeconfig(#[source] Box<KubeconfigError>),
    /// The kubeconfig has no context of this name.
    #[error("the kubeconfig has no context `{name}`{instead}")]
    NoContext {
        /// The name.
        name: String,
        /// Those that it has.
        instead: String,
    },
    /// The kubeconfig has no user of this name.
    #[error("the kubeconfig has no user `{0}`")]
    NoUser(String),
    /// The address is no URL.
    #[error("`{0}` is not the address of a server: expected for example https://10.0.0.1:6443")]
    Server(String),
    /// There is neither a kubeconfig nor a service account.
    #[error(
        "there is neither a kubeconfig ({}) nor a pod's service account; name a file with --kubeconfig or $KUBECONFIG, or a \
         server with --server",
        missing(.0)
    )]
    Nothing(Vec<PathBuf>),
}

/// Finds the cluster that the arguments, the environment or the pod name.
///
/// # Errors
///
/// When there is none, or its kubeconfig is invalid.
pub async fn find(args: &ClusterArgs) -> Result<Cluster, NoCluster> {
    let files = match &args.kubeconfig {
        Some(path) => vec![path.clone()],
        None => default_files(),
    };
    let mut kubeconfig = read(&files, args.kubeconfig.is_some())?;
    let unnamed = args.context.is_none() && args.cluster.is_none() && args.user.is_none();
    let (mut config, context) = match &mut kubeconfig {
        None if args.server.is_none() && unnamed => {
            let config = Config::incluster().map_err(|_| NoCluster::Nothing(files))?;
            (config, None)
        }
        kubeconfig => {
            let kubeconfig = kubeconfig.take().unwrap_or_default();
            let context = args.context.clone().or_else(|| kubeconfig.current_context.clone());
            (with_overrides(kubeconfig, args).await?, context)
        }
    };
    if let Some(token) = &args.token {
        let auth = &mut config.auth_info;
        auth.token = Some(token.clone().into());
        // The other ways to a token, which would precede this one.
        (auth.token_file, auth.exec, auth.auth_provider) = (None, None, None);
        (auth.username, auth.password) = (None, None);
    }
    if args.as_user.is_some() {
        config.auth_info.impersonate.clone_from(&args.as_user);
        config.auth_info.impersonate_groups = (!args.as_groups.is_empty()).then(|| args.as_groups.clone());
    }
    let request_timeout = args.request_timeout.filter(|limit| !limit.is_zero());
    if let Some(limit) = request_timeout {
        config.connect_timeout = Some(config.connect_timeout.map_or(limit, |default| default.min(limit)));
    }
    Ok(Cluster { config, context, request_timeout })
}

/// The namespace of the context that kubectl would use.
pub(crate) fn current_namespace(args: &ClusterArgs) -> Option<String> {
    let files = args.kubeconfig.clone().map_or_else(default_files, |file| vec![file]);
    let kubeconfig = read(&files, false).ok()??;
    let name = args.context.clone().or(kubeconfig.current_context)?;
    kubeconfig.contexts.into_iter().find(|it| it.name == name)?.context?.namespace
}

/// The files of $KUBECONFIG, or the one in the home directory.
fn default_files() -> Vec<PathBuf> {
    let listed = std::env::var_os("KUBECONFIG").unwrap_or_default();
    let files: Vec<PathBuf> =
        std::env::split_paths(&listed).filter(|path| !path.as_os_str().is_empty()).collect();
    if files.is_empty() {
        return std::env::home_dir().map(|home| home.join(".kube").join("config")).into_iter().collect();
    }
    files
}

/// The files as one. Missing files are passed over, as kubectl does, unless the user has named the file;
/// `None` when all of them are missing.
fn read(files: &[PathBuf], named: bool) -> Result<Option<Kubeconfig>, NoCluster> {
    let mut merged: Option<Kubeconfig> = None;
    for file in files {
        let read = match Kubeconfig::read_from(file) {
            Err(error) if !named && is_missing(&error) => continue,
            read => read,
        };
        let unusable = |error| NoCluster::File(file.clone(), Box::new(error));
        let next = read.map_err(unusable)?;
        merged = Some(match merged {
            Some(before) => before.merge(next).map_err(unusable)?,
            None => next,
        });
    }
    Ok(merged)
}

/// The configuration of the context, with another cluster, user or server where the arguments name one.
async fn with_overrides(mut kubeconfig: Kubeconfig, args: &ClusterArgs) -> Result<Config, NoCluster> {
    if let Some(user) = &args.user
        && !kubeconfig.auth_infos.iter().any(|known| known.name == *user)
    {
        return Err(NoCluster::NoUser(user.clone()));
    }
    if let Some(name) = &args.context
        && !kubeconfig.contexts.iter().any(|known| known.name == *name)
    {
        let known: Vec<&str> = kubeconfig.contexts.iter().map(|known| &*known.name).collect();
        let instead = crate::text::alike::instead(name, &known);
        return Err(NoCluster::NoContext { name: name.clone(), instead });
    }
    let mut options = KubeConfigOptions {
        context: args.context.clone(),
        cluster: args.cluster.clone(),
        user: args.user.clone(),
    };
    let has_context = options.context.is_some() || kubeconfig.current_context.is_some();
    if !has_context && (args.server.is_some() || args.cluster.is_some()) {
        options.context = Some(add_context(&mut kubeconfig, args));
    }
    if let Some(server) = &args.server {
        let server = url(server)?;
        for named in &mut kubeconfig.clusters {
            named.cluster.get_or_insert_default().server = Some(server.clone());
        }
    }
    let config = Config::from_custom_kubeconfig(kubeconfig, &options).await;
    config.map_err(|error| NoCluster::Kubeconfig(Box::new(error)))
}

/// Adds a context for the server, cluster or user that the arguments name; its name.
fn add_context(kubeconfig: &mut Kubeconfig, args: &ClusterArgs) -> String {
    const NAME: &str = "";
    if args.cluster.is_none() {
        let cluster = Some(NamedServer::default());
        kubeconfig.clusters.push(NamedCluster { name: NAME.to_owned(), cluster, ..NamedCluster::default() });
    }
    if args.user.is_none() {
        let auth_info = Some(AuthInfo::default());
        kubeconfig.auth_infos.push(NamedAuthInfo {
            name: NAME.to_owned(),
            auth_info,
            ..NamedAuthInfo::default()
        });
    }
    let context = Context {
        cluster: args.cluster.clone().unwrap_or_else(|| NAME.to_owned()),
        user: Some(args.user.clone().unwrap_or_else(|| NAME.to_owned())),
        ..Context::default()
    };
    kubeconfig.contexts.push(NamedContext {
        name: NAME.to_owned(),
        context: Some(context),
        ..NamedContext::default()
    });
    NAME.to_owned()
}

/// The address as a URL. Without a scheme it is HTTPS.
fn url(server: &str) -> Result<String, NoCluster> {
    let url = if server.contains("://") { server.to_owned() } else { format!("https://{server}") };
    let invalid = || NoCluster::Server(server.to_owned());
    let parsed: http::Uri = url.parse().map_err(|_| invalid())?;
    let known = matches!(parsed.scheme_str(), Some("http" | "https"));
    if known && parsed.host().is_some_and(|host| !host.is_empty()) { Ok(url) } else { Err(invalid()) }
}

/// Whether the file does not exist, rather than being of no use.
fn is_missing(error: &KubeconfigError) -> bool {
    matches!(error, KubeconfigError::ReadConfig(error, _) if error.kind() == std::io::ErrorKind::NotFound)
}

/// `/a does not exist, /b does not exist`.
fn missing(files: &[PathBuf]) -> String {
    let texts: Vec<String> = files
        .iter()
        .map(PathBuf::as_path)
        .map(Path::display)
        .map(|file| format!("{file} does not exist"))
        .collect();
    if texts.is_empty() { "there is no home directory".to_owned() } else { texts.join(", ") }
}
