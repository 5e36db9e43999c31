//! The properties of the machine that the figures depend on.

use serde::{Deserialize, Serialize};

use tooling::Error;

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Machine {
    pub(crate) cores: usize,
    pub(crate) memory_bytes: u64,
    pub(crate) architecture: String,
    pub(crate) system: String,
}

impl Machine {
    pub(crate) fn this() -> Self {
        Self {
            cores: std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
            memory_bytes: memory("MemTotal:").unwrap_or_default(),
            architecture: std::env::consts::ARCH.to_owned(),
            system: std::env::consts::OS.to_owned(),
        }
    }
}

/// The memory that processes can still allocate.
pub(crate) fn available_memory() -> Result<u64, Error> {
    memory("MemAvailable:")
}

fn memory(name: &str) -> Result<u64, Error> {
    let path = "/proc/meminfo";
    let text = std::fs::read_to_string(path).map_err(Error::io(path.as_ref()))?;
    let number =
        text.lines().find_map(|line| line.strip_prefix(name)?.trim().strip_suffix(" kB")?.parse().ok());
    number.map(|kilobytes: u64| kilobytes * 1024).ok_or_else(|| Error::format(path, name))
}
