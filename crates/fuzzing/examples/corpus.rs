//! Writes the inputs that a fuzzer begins with: one folder per target.
//!
//!     cargo run -p fuzzing --example corpus -- fuzz/corpus

use std::path::PathBuf;
use std::{env, fs, io};

/// More are found soon enough.
const EXAMPLES: u64 = 50;

fn main() -> io::Result<()> {
    let root = PathBuf::from(env::args_os().nth(1).unwrap_or_else(|| "fuzz/corpus".into()));
    for target in fuzzing::TARGETS {
        let folder = root.join(target.name);
        fs::create_dir_all(&folder)?;
        for seed in 0..EXAMPLES {
            fs::write(folder.join(format!("example-{seed}")), (target.example)(seed))?;
        }
    }
    Ok(())
}
