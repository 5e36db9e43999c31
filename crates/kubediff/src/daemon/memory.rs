//! Gives up caches when the memory that the process may have runs out, and says so.

use std::fs::read_to_string;
use std::time::Duration;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::config::Size;
use crate::text::terminal::say;

/// How often the memory is measured.
const PERIOD: Duration = Duration::from_secs(1);

/// The memory of the process, and its limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Memory {
    pub(super) resident: u64,
    pub(super) limit: Option<u64>,
    /// Over 80 % of the limit, until it is under 70 %.
    pub(super) is_short: bool,
}

impl Memory {
    fn next(self, resident: u64) -> Self {
        let percent = |percent| self.limit.map(|limit| limit / 100 * percent);
        let bound = percent(if self.is_short { 70 } else { 80 });
        Self { resident, is_short: bound.is_some_and(|bound| resident > bound), ..self }
    }

    /// In words, while it is short.
    pub(super) fn trouble(self) -> Option<String> {
        let [resident, limit] = [self.resident, self.limit?].map(|bytes| bytes >> 20);
        let text = || format!("{resident} MiB of the {limit} MiB of memory are used: caches are given up");
        self.is_short.then(text)
    }
}

/// Measures until it is to stop, and calls `give_up` as long as the memory is short. It blocks.
pub(super) async fn run(
    limit: Option<Size>,
    give_up: impl Fn() + Send + Sync + Clone + 'static,
    shown: watch::Sender<Memory>,
    stop: CancellationToken,
) {
    let limit = limit.map(|limit| limit.0).or_else(of_the_cgroup);
    let mut memory = Memory { limit, ..Memory::default() };
    let mut ticks = tokio::time::interval(PERIOD);
    while stop.run_until_cancelled(ticks.tick()).await.is_some() {
        let was_short = memory.is_short;
        memory = memory.next(resident().unwrap_or_default());
        if memory.is_short {
            let given = tokio::task::spawn_blocking(give_up.clone()).await;
            if given.is_err() {
                return;
            }
        }
        match memory.trouble() {
            Some(trouble) if !was_short => say(&trouble),
            None if was_short => say("there is memory again"),
            _ => {}
        }
        shown.send_replace(memory);
    }
}

/// The limit of the container: of cgroup v2, or of v1, which writes a huge number for none.
fn of_the_cgroup() -> Option<u64> {
    const FILES: [&str; 2] = ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"];
    let limits = FILES.iter().filter_map(|file| read_to_string(file).ok()?.trim().parse().ok());
    limits.filter(|limit| *limit < 1 << 50).min()
}

/// The bytes of memory that the process has; `None` where that is unknown.
fn resident() -> Option<u64> {
    let status = read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok().map(|kilobytes| kilobytes << 10)
}

#[cfg(test)]
mod tests {
    use super::Memory;

    #[test]
    fn k5_memory_is_short_over_80_percent_until_it_is_under_70() {
        let mut memory = Memory { limit: Some(100 << 20), ..Memory::default() };
        let mut short = Vec::new();
        for resident in [79, 81, 75, 69, 75, 81] {
            memory = memory.next(resident << 20);
            short.push(memory.is_short);
        }
        assert_eq!(short, [false, true, true, false, false, true]);
        assert_eq!(
            memory.trouble().unwrap(),
            "81 MiB of the 100 MiB of memory are used: caches are given up"
        );
        let unlimited = Memory { limit: None, ..memory }.next(1 << 40);
        assert_eq!((unlimited.is_short, unlimited.trouble()), (false, None));
    }
}
