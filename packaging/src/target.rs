//! The target of a program, by its names in Rust and in Go; krew and OCI use those of Go.

use std::fmt;
use std::str::FromStr;

/// A target triple of which we know what the others call it.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    triple: String,
    /// `linux`, `darwin` or `windows`.
    pub(crate) os: &'static str,
    /// `amd64` or `arm64`.
    pub(crate) architecture: &'static str,
}

#[derive(Debug, thiserror::Error)]
#[error("no download is made for this target")]
pub(crate) struct Unknown;

impl FromStr for Target {
    type Err = Unknown;

    fn from_str(triple: &str) -> Result<Self, Unknown> {
        let mut parts = triple.split('-');
        let architecture = match parts.next() {
            Some("x86_64") => "amd64",
            Some("aarch64") => "arm64",
            _ => return Err(Unknown),
        };
        let os = match parts.nth(1) {
            Some("linux") => "linux",
            Some("darwin") => "darwin",
            Some("windows") => "windows",
            _ => return Err(Unknown),
        };
        Ok(Self { triple: triple.to_owned(), os, architecture })
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.triple)
    }
}

impl Target {
    pub(crate) fn is_linux(&self) -> bool {
        self.os == "linux"
    }

    /// The file name of a program.
    pub(crate) fn executable(&self, name: &str) -> String {
        let extension = if self.os == "windows" { ".exe" } else { "" };
        format!("{name}{extension}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn triples_have_the_names_of_others() {
        let names = |triple: &str| {
            let target: Target = triple.parse().ok()?;
            Some(format!("{}/{} {}", target.os, target.architecture, target.executable("a")))
        };
        assert_eq!(names("x86_64-unknown-linux-gnu").as_deref(), Some("linux/amd64 a"));
        assert_eq!(names("aarch64-apple-darwin").as_deref(), Some("darwin/arm64 a"));
        assert_eq!(names("x86_64-pc-windows-msvc").as_deref(), Some("windows/amd64 a.exe"));
        assert_eq!(names("riscv64gc-unknown-linux-gnu"), None);
        assert_eq!(names("x86_64-unknown-freebsd"), None);
    }
}
