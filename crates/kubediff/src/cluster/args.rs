//! How to reach the cluster, on the command line.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

/// How to reach the cluster, as kubectl has it.
#[derive(Clone, Default, PartialEq, Eq, Args)]
#[command(next_help_heading = "Cluster")]
pub struct ClusterArgs {
    /// Path to the kubeconfig; else $KUBECONFIG, ~/.kube/config, or the pod's service account
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,

    /// The kubeconfig's context to use
    #[arg(long, value_name = "NAME")]
    pub context: Option<String>,

    /// The kubeconfig's cluster to use
    #[arg(long, value_name = "NAME")]
    pub cluster: Option<String>,

    /// The kubeconfig's user to use
    #[arg(long, value_name = "NAME")]
    pub user: Option<String>,

    /// Address of the API server; else the cluster's
    #[arg(short = 's', long, value_name = "URL")]
    pub server: Option<String>,

    /// Bearer token for the API server; else the user's credentials
    #[arg(long, value_name = "TOKEN")]
    pub token: Option<String>,

    /// How long one request may take: 5s, 1m, 500ms, or seconds. 0: as long as it takes. A watch that is answered in time
    /// goes on
    #[arg(long, value_name = "TIME", value_parser = request_timeout)]
    pub request_timeout: Option<Duration>,

    /// Impersonate this user
    #[arg(long = "as", value_name = "USER")]
    pub as_user: Option<String>,

    /// Impersonate this group; may be given several times
    #[arg(long = "as-group", value_name = "GROUP", requires = "as_user")]
    pub as_groups: Vec<String>,
}

impl fmt::Debug for ClusterArgs {
    /// Does not print the token.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClusterArgs")
            .field("kubeconfig", &self.kubeconfig)
            .field("context", &self.context)
            .field("server", &self.server)
            .finish_non_exhaustive()
    }
}

/// kubectl takes Go's durations, and whole seconds.
fn request_timeout(text: &str) -> Result<Duration, &'static str> {
    const FORM: &str = "a time is a number with a unit, as in 500ms, 5s, 1m30s or 1h, or whole seconds";
    if let Ok(seconds) = text.parse() {
        return Ok(Duration::from_secs(seconds));
    }
    let mut rest = text;
    let mut total = Duration::ZERO;
    while !rest.is_empty() || text.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').ok_or(FORM)?;
        let (number, unit) = rest.split_at(digits);
        let (length, seconds) = [("ms", 0.001), ("s", 1.0), ("m", 60.0), ("h", 3600.0)]
            .into_iter()
            .find_map(|(name, seconds)| unit.starts_with(name).then_some((name.len(), seconds)))
            .ok_or(FORM)?;
        let number: f64 = number.parse().map_err(|_| FORM)?;
        let part = Duration::try_from_secs_f64(number * seconds).map_err(|_| FORM)?;
        total = total.checked_add(part).ok_or(FORM)?;
        rest = unit.get(length..).unwrap_or_default();
    }
    Ok(total)
}
