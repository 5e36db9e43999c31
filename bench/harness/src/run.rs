//! One client in a run: it is started, synced, measured, and compared with the server.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};

use super::Bench;
use super::library::Setup;
use super::meter::Meter;
use super::program::Program;
use super::server::{Digest, Pace, Sentinel, Server};
use tooling::Error;

pub(crate) struct Run {
    setup: Setup,
    program: Program,
    meter: Meter,
    /// Measured before the first request.
    base: u64,
    resources: Vec<String>,
}

/// The cost of the initial list.
pub(crate) struct Sync {
    pub(crate) wall: f64,
    pub(crate) cpu: f64,
    pub(crate) server_cpu: f64,
    pub(crate) peak: f64,
}

/// The cost of updates.
pub(crate) struct Updates {
    pub(crate) cpu: f64,
    /// The answer to `until`.
    pub(crate) reached: Value,
}

impl Updates {
    /// The CPU per update that every handler was notified of. Coalesced updates count once.
    pub(crate) fn cpu_each(&self) -> f64 {
        self.cpu / number(&self.reached, "updates").max(1.0)
    }
}

impl Bench<'_> {
    /// Starts a client; `None` if it does not take part.
    pub(crate) fn start(&mut self, setup: &Setup) -> Result<Option<Run>, Error> {
        let kubeconfig = self.server()?.kubeconfig().to_owned();
        self.start_at(setup, Some(&kubeconfig))
    }

    /// Starts a client with another server, or with none.
    pub(crate) fn start_at(&mut self, setup: &Setup, server: Option<&Path>) -> Result<Option<Run>, Error> {
        let Some(program) = self.program(setup.client) else { return Ok(None) };
        let mut command = Command::new(program);
        command.args(&setup.arguments);
        if let Some(kubeconfig) = server {
            command.arg("--kubeconfig").arg(kubeconfig);
        }
        let (program, started) = Program::start(&mut command)?;
        self.report.version(setup.client.name(), started["version"].as_str().unwrap_or_default());
        let meter = Meter::new(program.pid());
        let base = meter.memory()?;
        Ok(Some(Run { setup: setup.clone(), program, meter, base, resources: Vec::new() }))
    }
}

impl Run {
    /// The same for the resources of its arguments.
    pub(crate) fn of(mut self, resources: &[String]) -> Self {
        self.resources = resources.to_vec();
        self
    }

    pub(crate) fn ask(&mut self, line: &str) -> Result<Value, Error> {
        self.program.ask(line)
    }

    pub(crate) fn meter(&self) -> Meter {
        self.meter
    }

    pub(crate) fn sync(&mut self, server: &Server) -> Result<Sync, Error> {
        let (cpu, server_cpu) = (self.meter.cpu()?, server.cpu()?);
        let synced = self.program.ask("start")?;
        Ok(Sync {
            cpu: (self.meter.cpu()? - cpu).as_secs_f64(),
            server_cpu: server.cpu()?.saturating_sub(server_cpu).as_secs_f64(),
            wall: number(&synced, "wallSeconds"),
            peak: self.meter.peak()? as f64,
        })
    }

    /// Resident memory after unused memory was returned to the system.
    pub(crate) fn steady(&mut self) -> Result<f64, Error> {
        self.program.ask("collect")?;
        Ok(self.meter.memory()? as f64)
    }

    pub(crate) fn base(&self) -> f64 {
        self.base as f64
    }

    /// Changes pods and waits until all handlers were notified.
    pub(crate) fn updates(
        &mut self,
        server: &mut Server,
        count: usize,
        among: usize,
    ) -> Result<Updates, Error> {
        let cpu = self.meter.cpu()?;
        server.change(count, among)?;
        let sentinel = server.sentinel()?;
        let reached = self.until(&sentinel)?;
        Ok(Updates { cpu: (self.meter.cpu()? - cpu).as_secs_f64(), reached })
    }

    /// Changes pods at an even pace and waits until all handlers were notified.
    pub(crate) fn paced_updates(&mut self, server: &mut Server, pace: &Pace) -> Result<Updates, Error> {
        let cpu = self.meter.cpu()?;
        server.change_paced(pace)?;
        let sentinel = server.sentinel()?;
        let reached = self.until(&sentinel)?;
        Ok(Updates { cpu: (self.meter.cpu()? - cpu).as_secs_f64(), reached })
    }

    /// Waits until the cache of each resource has reached that version.
    pub(crate) fn current(&mut self, versions: &Value) -> Result<(), Error> {
        self.ask(&format!("current {}", json!({ "versions": versions }))).map(drop)
    }

    /// Waits until all handlers were notified of that version.
    pub(crate) fn until(&mut self, sentinel: &Sentinel) -> Result<Value, Error> {
        self.program.ask(&sentinel.until())
    }

    /// Starts a whole controller, and waits until it has reconciled so many objects.
    pub(crate) fn start_controller(&mut self, objects: usize) -> Result<Value, Error> {
        self.ask(&format!("start {}", json!({ "objects": objects })))
    }

    /// Waits until a whole controller has reconciled objects whose versions have this sum.
    pub(crate) fn until_all(&mut self, versions: &str) -> Result<Value, Error> {
        self.ask(&format!("until-all {}", json!({ "versions": versions })))
    }

    /// The client and its setup, for errors.
    pub(crate) fn name(&self) -> String {
        format!("{} ({})", self.setup.client.name(), self.setup.name)
    }

    pub(crate) fn idle(&mut self, time: Duration) -> Result<(), Error> {
        self.program.leave_alone(time)
    }

    /// Compares the client's cache with the server. A difference fails the whole run.
    pub(crate) fn check(&mut self, server: &mut Server) -> Result<(), Error> {
        let expected = server.digest(&self.resources)?;
        self.compare(&expected)
    }

    pub(crate) fn compare(&mut self, expected: &Digest) -> Result<(), Error> {
        let found = Digest::from(&self.program.ask("digest")?);
        if found.agrees_with(expected, self.setup.has_content()) {
            return Ok(());
        }
        Err(Error::Found(format!("{} has {found:?}, the server {expected:?}", self.name())))
    }
}

/// A number in an answer; 0 if the field is missing.
pub(crate) fn number(answer: &Value, name: &str) -> f64 {
    answer[name].as_f64().unwrap_or_default()
}
