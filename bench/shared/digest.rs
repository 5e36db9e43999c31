//! The checksums of `bench/PROTOCOL.md`, independent of the order of the objects.

use serde_json::{Value, json};

#[derive(Default)]
pub struct Digest {
    objects: usize,
    checksum: u64,
    content: Option<u64>,
}

impl Digest {
    pub fn add(&mut self, namespace: &str, name: &str, uid: &str, resource_version: &str) {
        let text = format!("{namespace}/{name}\n{uid}\n{resource_version}");
        self.objects += 1;
        self.checksum = self.checksum.wrapping_add(fnv1a(text.as_bytes()));
    }

    /// Adds the content of a pod: its node and the image of each container.
    pub fn add_pod<'a>(
        &mut self,
        namespace: &str,
        name: &str,
        node: &str,
        images: impl IntoIterator<Item = &'a str>,
    ) {
        let mut text = format!("{namespace}/{name}\n{node}\n");
        for image in images {
            text.push_str(image);
            text.push('\n');
        }
        self.content = Some(self.content.unwrap_or(0).wrapping_add(fnv1a(text.as_bytes())));
    }

    pub fn event(&self) -> Value {
        let checksum = format!("{:016x}", self.checksum);
        let mut event = json!({ "event": "digest", "objects": self.objects, "checksum": checksum });
        if let Some(content) = self.content {
            event["content"] = format!("{content:016x}").into();
        }
        event
    }
}

pub fn fnv1a(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}
