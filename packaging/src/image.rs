//! An image for containers with the program and the certificates that it trusts, as a layout of the Open Container Initiative: a folder that
//! `skopeo`, `podman`, `crane` and `ctr` read. No daemon is needed to make it.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::archive::{Archive, gzip};
use crate::target::Target;
use crate::{Error, LICENSE, Release, digest, roots};

const INDEX: &str = "application/vnd.oci.image.index.v1+json";
const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const CONFIGURATION: &str = "application/vnd.oci.image.config.v1+json";
const LAYER: &str = "application/vnd.oci.image.layer.v1.tar+gzip";

/// A user and group that exist nowhere else; the number is the one of other images without a shell. The chart has it, too.
const NOBODY: u64 = 65532;

/// The files of a layout, by their paths. The form is that of
/// <https://github.com/opencontainers/image-spec/blob/v1.1.1/spec.md>.
pub(crate) struct Image {
    files: Vec<(String, Vec<u8>)>,
}

impl Image {
    pub(crate) fn new(release: &Release, target: &Target, program: &[u8]) -> Result<Self, Error> {
        let mut image = Self { files: Vec::new() };
        let mut root = Archive::default();
        root.file("kubediff", 0o755, program)?;
        root.file("LICENSE", 0o644, LICENSE.as_bytes())?;
        roots::add(&mut root)?;
        // Where the history is by default. A volume there begins with this owner.
        root.folder("var/lib/kubediff/", 0o700, NOBODY)?;
        // Where the demo writes its kubeconfig.
        root.folder("tmp/", 0o1777, 0)?;
        let root = root.uncompressed()?;
        let layer = image.add(LAYER, gzip(&root)?);

        let configuration = json!({
            "os": target.os,
            "architecture": target.architecture,
            "config": {
                "Entrypoint": ["/kubediff"],
                // So that an exec finds it by its name.
                "Env": [
                    "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/",
                    // Each thread of glibc's allocator keeps what it frees: after an object of 60,000 maps, twice as much.
                    "MALLOC_ARENA_MAX=1",
                ],
                // As the chart has it.
                "Cmd": ["serve", "-c", "/etc/kubediff"],
                "User": format!("{NOBODY}:{NOBODY}"),
                "Labels": {
                    "org.opencontainers.image.title": release.name,
                    "org.opencontainers.image.version": release.version,
                    "org.opencontainers.image.source": release.repository,
                    "org.opencontainers.image.licenses": "Apache-2.0",
                },
            },
            "rootfs": { "type": "layers", "diff_ids": [format!("sha256:{}", digest::hex(&root))] },
        });
        let configuration = image.add(CONFIGURATION, serde_json::to_vec(&configuration)?);
        let manifest = json!({
            "schemaVersion": 2, "mediaType": MANIFEST, "config": configuration, "layers": [layer],
        });
        let mut manifest = image.add(MANIFEST, serde_json::to_vec(&manifest)?);
        manifest["platform"] = json!({ "os": target.os, "architecture": target.architecture });
        manifest["annotations"] = json!({ "org.opencontainers.image.ref.name": release.version });

        let index = json!({ "schemaVersion": 2, "mediaType": INDEX, "manifests": [manifest] });
        image.files.push(("index.json".to_owned(), serde_json::to_vec(&index)?));
        let layout = json!({ "imageLayoutVersion": "1.0.0" });
        image.files.push(("oci-layout".to_owned(), serde_json::to_vec(&layout)?));
        Ok(image)
    }

    /// Adds a blob and returns its descriptor.
    fn add(&mut self, media_type: &str, bytes: Vec<u8>) -> Value {
        let digest = digest::hex(&bytes);
        let descriptor =
            json!({ "mediaType": media_type, "digest": format!("sha256:{digest}"), "size": bytes.len() });
        self.files.push((format!("blobs/sha256/{digest}"), bytes));
        descriptor
    }

    /// Writes the layout to a folder, which it replaces.
    pub(crate) fn write(&self, folder: &Path) -> Result<(), Error> {
        if folder.exists() {
            fs::remove_dir_all(folder).map_err(Error::file(folder))?;
        }
        for (path, bytes) in &self.files {
            let path = folder.join(path);
            let parent = path.parent().unwrap_or(folder);
            fs::create_dir_all(parent).map_err(Error::file(parent))?;
            fs::write(&path, bytes).map_err(Error::file(&path))?;
        }
        Ok(())
    }

    /// The layout as one file.
    pub(crate) fn archive(&self) -> Result<Vec<u8>, Error> {
        let mut archive = Archive::default();
        for (path, bytes) in &self.files {
            archive.file(path, 0o644, bytes)?;
        }
        archive.uncompressed()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    const RELEASE: Release = Release { name: "a", version: "1.2.3", repository: "https://example.com/a" };

    fn image() -> Image {
        Image::new(&RELEASE, &"x86_64-unknown-linux-gnu".parse().unwrap(), b"the program").unwrap()
    }

    /// The blob that this description is of, after a check of its length and digest.
    fn blob<'a>(image: &'a Image, descriptor: &Value) -> &'a [u8] {
        let digest = descriptor["digest"].as_str().unwrap().strip_prefix("sha256:").unwrap();
        let path = format!("blobs/sha256/{digest}");
        let (_, bytes) = image.files.iter().find(|(name, _)| *name == path).unwrap();
        assert_eq!(descriptor["size"], bytes.len());
        assert_eq!(digest::hex(bytes), digest);
        bytes
    }

    fn json(bytes: &[u8]) -> Value {
        serde_json::from_slice(bytes).unwrap()
    }

    #[test]
    fn a_reader_gets_from_the_index_to_the_program() {
        let image = image();
        let (_, index) = image.files.iter().find(|(name, _)| name == "index.json").unwrap();
        let index = json(index);
        assert_eq!(
            index["manifests"][0]["platform"],
            serde_json::json!({ "architecture": "amd64", "os": "linux" })
        );
        let manifest = json(blob(&image, &index["manifests"][0]));
        let configuration = json(blob(&image, &manifest["config"]));
        assert_eq!(configuration["config"]["Entrypoint"][0], "/kubediff");
        assert_eq!(configuration["config"]["User"], "65532:65532");
        // The folder of the program is where a command without a folder is looked for.
        assert!(configuration["config"]["Env"][0].as_str().unwrap().ends_with(":/"));
        assert_eq!(configuration["config"]["Env"][1], "MALLOC_ARENA_MAX=1");

        let mut layer = Vec::new();
        flate2::read::GzDecoder::new(blob(&image, &manifest["layers"][0])).read_to_end(&mut layer).unwrap();
        assert_eq!(configuration["rootfs"]["diff_ids"][0], format!("sha256:{}", digest::hex(&layer)));
        let mut layer = tar::Archive::new(&layer[..]);
        let mut program = String::new();
        layer.entries().unwrap().next().unwrap().unwrap().read_to_string(&mut program).unwrap();
        assert_eq!(program, "the program");
    }

    #[test]
    fn the_same_program_gives_the_same_image() {
        assert_eq!(image().archive().unwrap(), image().archive().unwrap());
    }
}
