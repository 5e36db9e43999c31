//! A release of Kubernetes.

use std::fmt;
use std::str::FromStr;

/// A release of Kubernetes 1, such as `1.37.2`. The newer one is the greater one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Release {
    /// The 37 of `1.37.2`.
    pub minor: u32,
    /// The 2 of `1.37.2`.
    pub patch: u32,
}

/// A text that should name a release does not.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no release of Kubernetes; write it in full, such as 1.37.2")]
pub struct NotARelease(String);

impl Release {
    /// The version of the modules that Kubernetes publishes beside `k8s.io/kubernetes`: `v0.37.2` for 1.37.2.
    pub fn staging(self) -> String {
        format!("v0.{}.{}", self.minor, self.patch)
    }

    /// The release that the text of a `go.mod` requires.
    pub(crate) fn required(go_mod: &str) -> Option<Self> {
        let version = go_mod.lines().find_map(|line| {
            let line = line.trim().trim_start_matches("require ");
            line.strip_prefix("k8s.io/kubernetes ")?.split_whitespace().next()
        })?;
        version.parse().ok()
    }
}

impl fmt::Display for Release {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "1.{}.{}", self.minor, self.patch)
    }
}

/// Reads `1.37.2`, and `v1.37.2`. Pre-releases have no lasting modules and are refused.
impl FromStr for Release {
    type Err = NotARelease;

    fn from_str(text: &str) -> Result<Self, NotARelease> {
        let number = |digits: &str| {
            let plain = digits.bytes().all(|digit| digit.is_ascii_digit())
                && (digits.len() == 1 || !digits.starts_with('0'));
            plain.then(|| digits.parse().ok()).flatten()
        };
        let numbers: Vec<&str> = text.strip_prefix('v').unwrap_or(text).split('.').collect();
        match numbers.as_slice() {
            ["1", minor, patch] => number(minor).zip(number(patch)),
            _ => None,
        }
        .map(|(minor, patch)| Self { minor, patch })
        .ok_or_else(|| NotARelease(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_is_three_numbers() {
        for text in ["1.37.2", "v1.37.2"] {
            assert_eq!(text.parse::<Release>().unwrap(), Release { minor: 37, patch: 2 });
        }
        for text in ["", "1.37", "1.37.2.1", "2.0.0", "1.37.0-rc.1", "1.037.2", "1.+37.2", "1..2", "main"] {
            let error = text.parse::<Release>().unwrap_err().to_string();
            assert!(error.contains("such as 1.37.2"), "{text}: {error}");
        }
        let release: Release = "1.9.10".parse().unwrap();
        assert!(release < Release { minor: 10, patch: 0 } && release > Release { minor: 9, patch: 9 });
        assert_eq!((release.to_string(), release.staging()), ("1.9.10".to_owned(), "v0.9.10".to_owned()));
    }

    #[test]
    fn a_go_mod_requires_one() {
        for go_mod in
            ["require (\n\tk8s.io/kubernetes v1.37.2\n)", "require k8s.io/kubernetes v1.37.2 // why"]
        {
            assert_eq!(Release::required(go_mod), Some(Release { minor: 37, patch: 2 }), "{go_mod:?}");
        }
        for go_mod in ["", "replace k8s.io/kubernetes => ../kubernetes", "require k8s.io/kubernetes main"] {
            assert_eq!(Release::required(go_mod), None, "{go_mod:?}");
        }
    }
}
