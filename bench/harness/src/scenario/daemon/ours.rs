//! `kubediff serve`, with a history and a sink that is a file.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use kubediff_history::{Location, Page, Reader, Scope};
use tooling::Error;

use super::{LOOK, PATIENCE, Place, Side, Wanted};
use crate::meter::Meter;
use crate::server::{Digest, Server};

/// States of a history that are read at a time.
const PAGE: usize = 500;

/// The daemon, which has recorded everything that was there at its start.
pub(crate) struct Daemon {
    child: Child,
    folder: PathBuf,
    history: Location,
    cluster: String,
    synced_after: f64,
}

impl Daemon {
    pub(crate) fn start(
        program: &Path,
        server: &Server,
        folder: &Path,
        wanted: &Wanted,
    ) -> Result<Self, Error> {
        let folder = folder.join("kubediff");
        std::fs::create_dir_all(&folder).map_err(Error::io(&folder))?;
        let config = folder.join("kubediff.yaml");
        let names: Vec<String> = wanted.resources.iter().filter_map(|resource| qualified(resource)).collect();
        let Place { cluster, address } = wanted.place.clone();
        let postgres = address.as_ref().map_or("", |_| ", postgres: {url: {env: BENCH_HISTORY}}");
        let audit = wanted.audit.map_or(String::new(), |log| format!("audit: {{log: {log}}}\n"));
        let text = format!(
            "cluster: {cluster}\n{audit}history: {{path: history.db{postgres}}}\nlisten: 127.0.0.1:0\n\
             watch: {{resources: [{}]}}\nsinks:\n  log: {{file: {{path: changes.log}}}}\n",
            names.join(", ")
        );
        let file = folder.join("history.db");
        let history = address.as_deref().map_or(Ok(Location::File(file)), Location::parse).map_err(failed)?;
        std::fs::write(&config, text).map_err(Error::io(&config))?;
        let begin = Instant::now();
        let mut command = Command::new(program);
        command.args(["serve", "-c"]).arg(&config).env("KUBECONFIG", server.kubeconfig());
        command.envs(address.map(|address| ("BENCH_HISTORY", address)));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command
            .spawn()
            .map_err(|error| Error::missing("`kubediff`", format!("it could not be run: {error}")))?;
        let said = child.stderr.take();
        std::thread::spawn(move || {
            for line in said.into_iter().flat_map(|said| BufReader::new(said).lines().map_while(Result::ok)) {
                println!("  {line}");
            }
        });
        let mut daemon = Self { child, folder, history, cluster, synced_after: 0.0 };
        let names: BTreeSet<String> = names.into_iter().collect();
        while !daemon.has_recorded(&names) {
            if matches!(daemon.child.try_wait(), Ok(Some(_))) || begin.elapsed() > PATIENCE {
                return Err(Error::Found("kubediff ended, or took too long, before it was ready".to_owned()));
            }
            std::thread::sleep(LOOK);
        }
        daemon.synced_after = begin.elapsed().as_secs_f64();
        Ok(daemon)
    }

    /// Whether the first list of each of these is in the history.
    fn has_recorded(&self, names: &BTreeSet<String>) -> bool {
        // It may not be there yet.
        let positions = self.reader().and_then(|mut reader| reader.positions().map_err(failed));
        positions.is_ok_and(|positions| names.iter().all(|name| positions.contains_key(name)))
    }
}

impl Daemon {
    /// The folder of its files.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The number of the newest record.
    pub(crate) fn records(&self) -> Result<u64, Error> {
        records(&mut self.reader()?)
    }

    /// How many gaps it has recorded.
    pub(crate) fn gaps(&self) -> Result<usize, Error> {
        let gaps = self.reader()?.gaps(&Scope::default(), None, None, &Page::oldest(PAGE));
        Ok(gaps.map_err(failed)?.len())
    }

    /// Waits until a resource is recorded up to this version.
    pub(crate) fn wait_for(&self, resource: &str, version: &str) -> Result<(), Error> {
        let number = |text: &str| text.parse::<u64>().ok();
        // Its watch of all namespaces.
        let (begin, watch) = (Instant::now(), format!("{resource}@*"));
        loop {
            let positions = self.reader()?.positions().map_err(failed)?;
            if positions.get(&watch).and_then(|text| number(text)) >= number(version) {
                return Ok(());
            }
            if begin.elapsed() > PATIENCE {
                return Err(Error::Found(format!(
                    "kubediff does not record version {version} of {resource}"
                )));
            }
            std::thread::sleep(LOOK);
        }
    }

    /// A connection to its history.
    pub(crate) fn reader(&self) -> Result<Reader, Error> {
        Reader::at(&self.history, Some(&self.cluster)).map_err(failed)
    }
}

impl Side for Daemon {
    fn meter(&self) -> Meter {
        Meter::new(self.child.id())
    }

    fn synced_after(&self) -> f64 {
        self.synced_after
    }

    fn bytes(&self) -> Result<u64, Error> {
        bytes_in(&self.folder)
    }

    /// The current state, as the history has it.
    fn digest(&mut self) -> Result<Digest, Error> {
        let mut reader = self.reader()?;
        let (mut objects, mut checksum) = (0, 0_u64);
        let present = reader.present(&Scope::default(), None).map_err(failed)?;
        for start in (0..present.len()).step_by(PAGE) {
            let page = start..present.len().min(start + PAGE);
            for version in &reader.states(&present, page).map_err(failed)? {
                let object = &version.object;
                let mut text = object.namespace.clone().unwrap_or_default();
                // Writing to a string cannot fail.
                let _ = write!(text, "/{}\n{}\n{}", object.name, object.uid, version.rv);
                checksum = checksum.wrapping_add(fnv1a(text.as_bytes()));
                objects += 1;
            }
        }
        Ok(Digest::of_metadata(objects, checksum))
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // The figures are taken; how it ends does not matter.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The number of the newest record.
pub(crate) fn records(reader: &mut Reader) -> Result<u64, Error> {
    let last = reader.last().map_err(failed)?;
    Ok(last.map_or(0, |(number, _)| number.0))
}

fn failed(error: kubediff_history::Error) -> Error {
    Error::format("the history", error)
}

/// `deployments.apps`, as kubediff names `apps/v1/deployments/Deployment`.
fn qualified(resource: &str) -> Option<String> {
    let mut parts = resource.split('/');
    let (group, plural) = (parts.next()?, parts.nth(1)?);
    Some(if group == "core" { plural.to_owned() } else { format!("{plural}.{group}") })
}

fn bytes_in(folder: &Path) -> Result<u64, Error> {
    let entries = std::fs::read_dir(folder).map_err(Error::io(folder))?;
    Ok(entries.flatten().filter_map(|entry| entry.metadata().ok()).map(|it| it.len()).sum())
}

fn fnv1a(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resources_have_the_names_that_kubediff_gives_them() {
        let names =
            ["core/v1/pods/Pod", "apps/v1/deployments/Deployment"].map(|name| qualified(name).unwrap());
        assert_eq!(names, ["pods", "deployments.apps"]);
    }
}
