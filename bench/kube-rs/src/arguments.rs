//! The command line.

use clap::{Parser, ValueEnum};
use kube::core::ApiResource;

#[derive(Parser)]
#[command(name = "bench-kube-rs")]
pub(crate) struct Arguments {
    #[arg(long)]
    pub(crate) kubeconfig: Option<String>,
    #[arg(long, value_enum, default_value = "typed")]
    pub(crate) view: ViewName,
    #[arg(long = "resource", value_parser = resource, default_value = "core/v1/pods/Pod")]
    pub(crate) resources: Vec<ApiResource>,
    #[arg(long, default_value_t = 0)]
    pub(crate) subscriptions: usize,
    #[arg(long)]
    pub(crate) drop_managed_fields: bool,
    #[arg(long)]
    pub(crate) streaming: bool,
    /// Run a whole controller in place of handlers
    #[arg(long, value_enum)]
    pub(crate) controller: Option<Work>,
    #[arg(long, default_value_t = 1)]
    pub(crate) workers: u16,
    /// Changes nothing: kube-rs has no indexes, but the other lookups can be measured
    #[arg(long)]
    index: bool,
}

/// The work of a whole controller.
#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum Work {
    Children,
    Storm,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ViewName {
    /// For pods only
    Typed,
    Dynamic,
    Metadata,
}

impl Arguments {
    pub(crate) fn is_of_pods(&self) -> bool {
        self.resources.len() == 1 && self.resources.iter().all(is_pods)
    }
}

pub(crate) fn is_pods(resource: &ApiResource) -> bool {
    resource.group.is_empty() && resource.plural == "pods"
}

fn resource(text: &str) -> Result<ApiResource, String> {
    let parts: Vec<&str> = text.split('/').collect();
    let [group, version, plural, kind] = parts[..] else {
        return Err("GROUP/VERSION/PLURAL/KIND".to_owned());
    };
    let group = if group == "core" { "" } else { group };
    let api_version = if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
    let [group, version, plural, kind] = [group, version, plural, kind].map(str::to_owned);
    Ok(ApiResource { group, version, api_version, kind, plural })
}
