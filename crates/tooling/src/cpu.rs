//! The CPU time of child processes, user and system, with the time of their own children that have ended.

use std::process::Child;
use std::time::Duration;

/// The time of all children of this process that have ended; `None` where the system does not say.
pub fn of_ended_children() -> Option<Duration> {
    system::of_ended_children()
}

/// Waits until the child has ended and returns its time; `None` where the system does not say.
pub fn of_child(child: &Child) -> Option<Duration> {
    system::of_child(child)
}

#[cfg(target_os = "linux")]
mod system {
    use std::process::Child;
    use std::time::Duration;

    use nix::sys::resource::{UsageWho, getrusage};
    use nix::sys::time::TimeValLike as _;
    use nix::sys::wait::{Id, WaitPidFlag, waitid};
    use nix::unistd::{Pid, SysconfVar, sysconf};

    pub(super) fn of_ended_children() -> Option<Duration> {
        let usage = getrusage(UsageWho::RUSAGE_CHILDREN).ok()?;
        let micros = (usage.user_time() + usage.system_time()).num_microseconds();
        Some(Duration::from_micros(micros.try_into().ok()?))
    }

    pub(super) fn of_child(child: &Child) -> Option<Duration> {
        let pid = Pid::from_raw(child.id().try_into().ok()?);
        // Until somebody waits for the child in earnest, its figures stay in `/proc`.
        waitid(Id::Pid(pid), WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT).ok()?;
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let (_, fields) = stat.rsplit_once(')')?;
        // utime, stime, cutime and cstime, in ticks.
        let fields = fields.split_whitespace().skip(11).take(4);
        let ticks: u64 = fields.filter_map(|field| field.parse::<u64>().ok()).sum();
        let per_second: u64 = sysconf(SysconfVar::CLK_TCK).ok()??.try_into().ok()?;
        Some(Duration::from_millis(ticks * 1_000 / per_second.max(1)))
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    use std::process::Child;
    use std::time::Duration;

    pub(super) fn of_ended_children() -> Option<Duration> {
        None
    }

    pub(super) fn of_child(_child: &Child) -> Option<Duration> {
        None
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn the_time_of_a_child_includes_that_of_its_own_children() {
        let busy = "sh -c 'for a in $(seq 50); do for b in $(seq 9999); do :; done; done'; exit 0";
        let mut child = Command::new("sh").args(["-c", busy]).spawn().unwrap();
        let before = of_ended_children().unwrap();
        let time = of_child(&child).unwrap();
        assert!(time >= Duration::from_millis(20), "{time:?}");
        assert!(child.wait().unwrap().success());
        assert!(of_ended_children().unwrap() >= before + Duration::from_millis(20));
    }
}
