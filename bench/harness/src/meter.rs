//! CPU and memory of other processes, as the system counts them.

use std::time::Duration;

use tooling::Error;

/// A process under measurement.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Meter {
    pid: u32,
}

impl Meter {
    pub(crate) fn new(pid: u32) -> Self {
        Self { pid }
    }

    /// Resident memory now.
    pub(crate) fn memory(self) -> Result<u64, Error> {
        self.status("VmRSS:")
    }

    /// The peak of resident memory since the start or the last [`forget_peak`](Self::forget_peak).
    pub(crate) fn peak(self) -> Result<u64, Error> {
        self.status("VmHWM:")
    }

    pub(crate) fn forget_peak(self) -> Result<(), Error> {
        let path = format!("/proc/{}/clear_refs", self.pid);
        std::fs::write(&path, "5").map_err(Error::io(path.as_ref()))
    }

    fn status(self, name: &str) -> Result<u64, Error> {
        let path = format!("/proc/{}/status", self.pid);
        let text = std::fs::read_to_string(&path).map_err(Error::io(path.as_ref()))?;
        let kilobytes = text.lines().find_map(|line| line.strip_prefix(name)?.trim().strip_suffix("kB"));
        let kilobytes = kilobytes.and_then(|number| number.trim().parse::<u64>().ok());
        Ok(kilobytes.ok_or_else(|| Error::format(path, format!("there is no {name}")))? * 1024)
    }

    /// User and system time of all its threads, the ended ones too, to the nanosecond.
    pub(crate) fn cpu(self) -> Result<Duration, Error> {
        system::cpu(self.pid)
    }

    /// The same for the process and its children, the ended ones too.
    pub(crate) fn cpu_of_all(self) -> Result<Duration, Error> {
        let mut sum = Duration::ZERO;
        let tasks = format!("/proc/{}/task", self.pid);
        for task in std::fs::read_dir(&tasks).map_err(Error::io(tasks.as_ref()))?.flatten() {
            let children = std::fs::read_to_string(task.path().join("children")).unwrap_or_default();
            let children = children.split_whitespace().filter_map(|pid| pid.parse().ok());
            // A child that has ended by now is counted below.
            sum += children.filter_map(|child| Self::new(child).cpu_of_all().ok()).sum::<Duration>();
        }
        Ok(sum + self.cpu_of_ended()? + self.cpu()?)
    }

    /// Of the children that have ended.
    fn cpu_of_ended(self) -> Result<Duration, Error> {
        /// In which Linux counts it.
        const TICKS_PER_SECOND: f64 = 100.0;
        let path = format!("/proc/{}/stat", self.pid);
        let text = std::fs::read_to_string(&path).map_err(Error::io(path.as_ref()))?;
        // Field 2 is the name, in parentheses; 16 and 17 are the time of the ended children.
        let fields = text.rsplit_once(')').map_or("", |(_, fields)| fields).split_whitespace();
        let ticks = fields.skip(13).take(2).filter_map(|field| field.parse::<f64>().ok()).sum::<f64>();
        Ok(Duration::from_secs_f64(ticks / TICKS_PER_SECOND))
    }

    /// Stops the process (SIGSTOP).
    pub(crate) fn freeze(self) -> Result<(), Error> {
        system::freeze(self.pid)
    }

    /// Continues the process (SIGCONT).
    pub(crate) fn thaw(self) -> Result<(), Error> {
        system::thaw(self.pid)
    }
}

#[cfg(target_os = "linux")]
mod system {
    use std::time::Duration;

    use nix::sys::signal::{Signal, kill};
    use nix::time::clock_getcpuclockid;
    use nix::unistd::Pid;

    use tooling::Error;

    pub(super) fn cpu(pid: u32) -> Result<Duration, Error> {
        let time = clock_getcpuclockid(process(pid)).and_then(|clock| clock.now());
        time.map(Duration::from).map_err(|error| failed(pid, error))
    }

    pub(super) fn freeze(pid: u32) -> Result<(), Error> {
        kill(process(pid), Signal::SIGSTOP).map_err(|error| failed(pid, error))
    }

    pub(super) fn thaw(pid: u32) -> Result<(), Error> {
        kill(process(pid), Signal::SIGCONT).map_err(|error| failed(pid, error))
    }

    fn process(pid: u32) -> Pid {
        Pid::from_raw(pid.cast_signed())
    }

    fn failed(pid: u32, error: nix::Error) -> Error {
        Error::Found(format!("process {pid} cannot be measured: {error}"))
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    use std::time::Duration;

    use tooling::Error;

    pub(super) fn cpu(_pid: u32) -> Result<Duration, Error> {
        Err(missing())
    }

    pub(super) fn freeze(_pid: u32) -> Result<(), Error> {
        Err(missing())
    }

    pub(super) fn thaw(_pid: u32) -> Result<(), Error> {
        Err(missing())
    }

    fn missing() -> Error {
        Error::missing("Linux", "processes are measured by its /proc and its clocks")
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_process_has_memory_and_its_time_goes_on() {
        let own = Meter::new(std::process::id());
        let before = own.cpu().unwrap();
        let sum = (0..1_000_000_u64).fold(0, |sum, number| sum ^ std::hint::black_box(number));
        std::hint::black_box(sum);
        assert!(own.cpu().unwrap() > before);
        assert!(own.cpu_of_all().unwrap() > before);
        let (memory, peak) = (own.memory().unwrap(), own.peak().unwrap());
        assert!(memory > 100_000 && peak >= memory / 2, "{memory} of {peak}");
    }
}
