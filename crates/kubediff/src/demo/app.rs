//! The apps of the shop.

/// One of the shop's apps.
pub(super) struct App {
    pub(super) name: &'static str,
    pub(super) version: [u32; 3],
    pub(super) port: u16,
    pub(super) memory: &'static str,
    pub(super) replicas: usize,
    /// How often it was rolled out.
    pub(super) revision: u32,
    /// How often the specification of its deployment was written.
    pub(super) generation: u32,
    /// Of the pod template.
    pub(super) hash: String,
    pub(super) pods: Vec<Pod>,
    pub(super) pool: u32,
}

pub(super) struct Pod {
    pub(super) name: String,
    pub(super) ip: String,
    pub(super) restarts: u32,
}

impl App {
    pub(super) fn image(&self) -> String {
        let [major, minor, patch] = self.version;
        format!("registry.example.com/shop/{}:{major}.{minor}.{patch}", self.name)
    }

    pub(super) fn replica_set(&self) -> String {
        format!("{}-{}", self.name, self.hash)
    }
}
