//! Where answers are read, on the command line.

use std::str::FromStr;

use clap::Args;
use jiff::Zoned;

use crate::cluster::ClusterArgs;
use crate::model::targets::namespace;

/// Where answers are read.
#[derive(Debug, Clone, Args)]
pub struct SourceArgs {
    /// The file with the history, or the address of a database: postgres://USER@HOST/DATABASE, with --cluster if it has several; else
    /// $KUBEDIFF_HISTORY
    #[arg(long, value_name = "FILE")]
    pub history: Option<String>,

    /// All clusters of the database. `log`, `get` and `history archive` are about several; --cluster names one, or some with commas between them
    #[arg(long, conflicts_with_all = ["cluster", "daemon"])]
    pub all_clusters: bool,

    /// Ask a daemon in the cluster instead: its pod, or the Deployment or StatefulSet that has it. The question runs in the
    /// pod, with your rights
    #[arg(long, value_name = "NAMESPACE/NAME", conflicts_with = "history")]
    pub daemon: Option<DaemonName>,

    /// The container in the daemon's pod; else `kubediff`, or the only one
    #[arg(long, value_name = "NAME", requires = "daemon")]
    pub container: Option<String>,

    /// The clock and the time zone of the person who asks, as `--daemon` sends them
    #[arg(long, value_name = "TIME", hide = true)]
    pub now: Option<Zoned>,

    /// The history of the daemon in whose container this runs
    #[arg(long, hide = true, conflicts_with_all = ["history", "daemon"])]
    pub of_this_daemon: bool,

    /// How to reach the cluster.
    #[command(flatten)]
    pub cluster: Box<ClusterArgs>,
}

/// The name of a daemon: that of its pod, or of the workload that has the pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DaemonName {
    /// The namespace.
    pub namespace: String,
    /// The name.
    pub name: String,
}

impl FromStr for DaemonName {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const FORM: &str = "a daemon is named by NAMESPACE/NAME, such as kubediff/kubediff";
        let (space, name) = text.split_once('/').ok_or(FORM)?;
        let inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-.".contains(c);
        let is_name = name.chars().all(inner)
            && name.starts_with(|c: char| c.is_ascii_alphanumeric())
            && name.ends_with(|c: char| c.is_ascii_alphanumeric());
        if !is_name {
            return Err(FORM);
        }
        Ok(Self { namespace: namespace(space)?, name: name.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_daemon_has_a_namespace_and_a_name() {
        let name = |text: &str| text.parse().map(|it: DaemonName| (it.namespace, it.name));
        assert_eq!(name("monitoring/kubediff"), Ok(("monitoring".to_owned(), "kubediff".to_owned())));
        assert_eq!(name("a/b-0.c"), Ok(("a".to_owned(), "b-0.c".to_owned())));
        for text in ["", "kubediff", "/kubediff", "a/", "a/b/c", "A/b", "a/b?x", "a/..", "a/-b"] {
            assert!(name(text).is_err(), "{text}");
        }
    }
}
