//! The style and the scripts. They hold nothing of the cluster.

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
