//! The command line.

use std::path::PathBuf;
use std::str::FromStr;

use clap::{Parser, ValueEnum};
use informer::{Layout, ResourceType};

#[derive(Parser)]
#[command(name = "bench-informer")]
pub struct Arguments {
    #[arg(long)]
    pub kubeconfig: Option<PathBuf>,
    #[arg(long, value_enum, default_value = "typed")]
    pub view: View,
    #[arg(long, default_value = "core/v1/pods/Pod")]
    pub resource: Vec<Resource>,
    #[arg(long, default_value_t = 0)]
    pub subscriptions: usize,
    #[arg(long)]
    pub drop_managed_fields: bool,
    /// The layout of objects [default: the library's]
    #[arg(long)]
    pub layout: Option<Kept>,
    #[arg(long)]
    pub index: bool,
    /// Run a controller of pods in place of handlers
    #[arg(long, conflicts_with = "subscriptions")]
    pub reconcile: bool,
    /// Run a whole controller of ConfigMaps in place of handlers
    #[arg(long, value_enum, conflicts_with_all = ["subscriptions", "reconcile"])]
    pub controller: Option<Work>,
    /// How many objects the controller reconciles at a time
    #[arg(long, default_value_t = 1)]
    pub workers: usize,
    /// Ask for JSON where the library would choose protobuf
    #[arg(long)]
    pub json: bool,
    /// Streaming lists, where the library would choose a LIST
    #[arg(long)]
    pub streaming: bool,
    /// The bound of the hot set; the library's default if absent
    #[arg(long)]
    pub hot_bytes: Option<usize>,
    /// Start from a saved cache
    #[arg(long)]
    pub load: Option<PathBuf>,
}

#[derive(Clone, Copy, ValueEnum)]
pub enum View {
    Typed,
    /// A type with only the fields that this program reads
    Declared,
    Dynamic,
    Metadata,
}

/// The work of a whole controller.
#[derive(Clone, Copy, ValueEnum)]
pub enum Work {
    /// Keeps a Secret for each ConfigMap
    Children,
    /// Takes 20 ms, and fails one of twenty times
    Storm,
}

#[derive(Clone, Copy, ValueEnum)]
pub enum Kept {
    Packed,
    Bytes,
    Decoded,
}

impl Kept {
    pub fn layout(self) -> Layout {
        match self {
            Self::Packed => Layout::Packed,
            Self::Bytes => Layout::Bytes,
            Self::Decoded => Layout::Decoded,
        }
    }
}

/// `GROUP/VERSION/PLURAL/KIND`; the core group is `core`.
#[derive(Clone)]
pub struct Resource {
    pub text: String,
    pub kind: ResourceType,
}

impl FromStr for Resource {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts: Vec<&str> = text.split('/').collect();
        let [group, version, plural, kind] = parts[..] else {
            return Err("GROUP/VERSION/PLURAL/KIND".to_owned());
        };
        let group = if group == "core" { "" } else { group };
        let [group, version, plural, kind] = [group, version, plural, kind].map(str::to_owned);
        // The informer covers all namespaces, and the path of such a list is that of a cluster-scoped resource.
        let kind = ResourceType { group, version, plural, kind, namespaced: true };
        Ok(Self { text: text.to_owned(), kind })
    }
}
