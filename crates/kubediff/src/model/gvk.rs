//! The kind of an object.

use std::convert::Infallible;
use std::fmt;
use std::str::FromStr;

pub use kubediff_history::Gvk;

pub(crate) fn is_secret(gvk: &Gvk) -> bool {
    gvk.group.is_empty() && gvk.kind == "Secret"
}

/// Which kinds a rule is about: `Node`, `Lease.coordination.k8s.io`, `Secret.core` (the core group alone), `*.example.com`, `*`.
///
/// A kind without a group means that kind in any group. Upper and lower case are the same. The regular plural
/// of a kind stands for it, too: `ingresses`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scope {
    kind: String,
    group: Option<String>,
}

impl Scope {
    /// Every kind.
    pub fn any() -> Self {
        Self { kind: "*".to_owned(), group: None }
    }

    /// Whether `gvk` is meant.
    pub fn matches(&self, gvk: &Gvk) -> bool {
        let kind = self.kind == "*"
            || self.kind.eq_ignore_ascii_case(&gvk.kind)
            || self.kind.eq_ignore_ascii_case(&plural(&gvk.kind));
        kind && self.has_group(&gvk.group)
    }

    /// Whether kinds of this group are meant.
    pub(crate) fn has_group(&self, group: &str) -> bool {
        self.group.as_ref().is_none_or(|own| own.eq_ignore_ascii_case(group))
    }
}

/// The regular plural of a kind. Built-in resources have it, and so have nearly all others.
fn plural(kind: &str) -> String {
    match kind.to_ascii_lowercase() {
        kind if kind.ends_with("endpoints") => kind,
        kind if ["s", "x", "ch", "sh"].iter().any(|end| kind.ends_with(end)) => format!("{kind}es"),
        kind => match kind.strip_suffix('y') {
            Some(stem) if !stem.ends_with(['a', 'e', 'o', 'u']) => format!("{stem}ies"),
            _ => format!("{kind}s"),
        },
    }
}

/// Every text is a scope.
impl FromStr for Scope {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(match text.split_once('.') {
            None => Self { kind: text.to_owned(), group: None },
            Some((kind, "core")) => Self { kind: kind.to_owned(), group: Some(String::new()) },
            Some((kind, group)) => Self { kind: kind.to_owned(), group: Some(group.to_owned()) },
        })
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.group.as_deref() {
            None => f.write_str(&self.kind),
            Some("") => write!(f, "{}.core", self.kind),
            Some(group) => write!(f, "{}.{group}", self.kind),
        }
    }
}
