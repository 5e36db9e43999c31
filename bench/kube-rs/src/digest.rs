//! Checksums of the stores, independent of the order.

use std::sync::Arc;

use kube::core::ApiResource;
use serde_json::{Value, json};

use crate::arguments::is_pods;
use crate::view::View;

#[derive(Default)]
pub(crate) struct Digest {
    objects: usize,
    checksum: u64,
    content: Option<u64>,
}

impl Digest {
    pub(crate) fn add<K: View>(&mut self, objects: &[Arc<K>], resource: &ApiResource) {
        for object in objects {
            let meta = object.meta();
            let text = |field: &Option<String>| field.clone().unwrap_or_default();
            let key = format!("{}/{}", text(&meta.namespace), text(&meta.name));
            let identity = format!("{key}\n{}\n{}", text(&meta.uid), text(&meta.resource_version));
            self.objects += 1;
            self.checksum = self.checksum.wrapping_add(fnv1a(identity.as_bytes()));
            if let Some(content) = object.node_and_images().filter(|_| is_pods(resource)) {
                let content = fnv1a(format!("{key}\n{content}").as_bytes());
                self.content = Some(self.content.unwrap_or(0).wrapping_add(content));
            }
        }
    }

    pub(crate) fn event(&self) -> Value {
        let mut event = json!({
            "event": "digest", "objects": self.objects, "checksum": format!("{:016x}", self.checksum)
        });
        if let Some(content) = self.content {
            event["content"] = format!("{content:016x}").into();
        }
        event
    }
}

pub(crate) fn fnv1a(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |sum, byte| (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}
