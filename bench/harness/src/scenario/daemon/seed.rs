//! The program in the manner of arriqaaq/kubediff: `bench/seed`.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use tooling::Error;

use super::{Side, Wanted};
use crate::meter::Meter;
use crate::program::Program;
use crate::server::{Digest, Server};

/// The program, which has told of everything that was there at its start.
pub(super) struct Seed {
    program: Program,
    pub(super) version: String,
    events: PathBuf,
    synced_after: f64,
}

impl Seed {
    pub(super) fn start(
        program: &Path,
        server: &Server,
        folder: &Path,
        wanted: &Wanted,
        resync: &str,
    ) -> Result<Self, Error> {
        let folder = folder.join("seed");
        std::fs::create_dir_all(&folder).map_err(Error::io(&folder))?;
        let events = folder.join("events.log");
        let mut command = Command::new(program);
        command.arg("--kubeconfig").arg(server.kubeconfig()).arg("--events").arg(&events);
        command.args(["--resync", resync]);
        command.args(wanted.resources.iter().flat_map(|resource| ["--resource", resource]));
        let begin = Instant::now();
        let (mut program, started) = Program::start(&mut command)?;
        program.ask("start")?;
        let version = started["version"].as_str().unwrap_or_default().to_owned();
        Ok(Self { program, version, events, synced_after: begin.elapsed().as_secs_f64() })
    }
}

impl Side for Seed {
    fn meter(&self) -> Meter {
        Meter::new(self.program.pid())
    }

    fn synced_after(&self) -> f64 {
        self.synced_after
    }

    fn bytes(&self) -> Result<u64, Error> {
        Ok(std::fs::metadata(&self.events).map_err(Error::io(&self.events))?.len())
    }

    fn digest(&mut self) -> Result<Digest, Error> {
        self.program.ask("digest").map(|answer| Digest::from(&answer))
    }
}
