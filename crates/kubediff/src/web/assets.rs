//! The style, the scripts and the description of `/v1`. They hold nothing of the cluster.

/// A file that the page loads.
pub(super) struct Asset {
    pub(super) content: &'static str,
    pub(super) kind: &'static str,
}

const SCRIPT: &str = "text/javascript; charset=utf-8";

/// The file of this name.
pub(super) fn asset(name: &str) -> Option<Asset> {
    let (content, kind) = match name {
        "style.css" => (include_str!("../../page/style.css"), "text/css; charset=utf-8"),
        "main.js" => (include_str!("../../page/main.js"), SCRIPT),
        "live.js" => (include_str!("../../page/live.js"), SCRIPT),
        "keys.js" => (include_str!("../../page/keys.js"), SCRIPT),
        "tell.js" => (include_str!("../../page/tell.js"), SCRIPT),
        "icon.svg" => (include_str!("../../page/icon.svg"), "image/svg+xml"),
        _ => return None,
    };
    Some(Asset { content, kind })
}

/// The description of `/v1` as OpenAPI 3.1 has it, of this version.
pub(super) fn description() -> String {
    include_str!("../../page/openapi.json").replace("{version}", env!("CARGO_PKG_VERSION"))
}
