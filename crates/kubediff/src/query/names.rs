//! `deploy/cart`: kinds and names as kubectl takes them, without a server that could be asked.

mod kinds;

use std::fmt;

use jiff::Zoned;
use jiff::tz::TimeZone;
use kubediff_history::{At, Incarnation, Number, Reader, Scope};

use super::error::{QueryError, UnknownName};
use super::instant::instant;
use super::period::nothing;
use kinds::kind;

pub(super) use kinds::{definition, schema};

/// The subject of a question: everything, a kind, or one object, perhaps of one namespace only.
#[derive(Debug, Clone, Default)]
pub(super) struct Target {
    pub(super) scope: Scope,
}

impl Target {
    /// The target that is written as `words` (`deploy`, `deploy/cart`, `deploy cart`; everything without any), in this
    /// namespace or in all of them.
    pub(super) fn read(
        reader: &mut Reader,
        words: &[String],
        namespace: Option<&str>,
    ) -> Result<Self, QueryError> {
        let mut scope = Scope { namespace: namespace.map(str::to_owned), ..Scope::default() };
        let text = words.join("/");
        if !words.is_empty() {
            let written = Written::parse(&text).ok_or_else(|| UnknownName::Malformed(text.clone()))?;
            let kind = kind(reader, written.kind, written.group)?;
            scope.resource = Some(kind.plural);
            scope.group = Some(kind.group);
            scope.name = written.name.map(str::to_owned);
            if !kind.namespaced {
                scope.namespace = None;
            }
        }
        Ok(Self { scope })
    }

    /// ` of deployments.apps`, ` in namespace shop`; nothing for everything.
    pub(super) fn of_it(&self) -> String {
        match (&self.scope.resource, &self.scope.namespace) {
            (Some(_), _) => format!(" of {self}"),
            (None, Some(namespace)) => format!(" in namespace {namespace}"),
            (None, None) => String::new(),
        }
    }
}

/// `deployments.apps/cart in namespace shop`.
impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scope = &self.scope;
        match (&scope.resource, &scope.group) {
            (Some(resource), Some(group)) if !group.is_empty() => write!(f, "{resource}.{group}")?,
            (Some(resource), _) => f.write_str(resource)?,
            (None, _) => f.write_str("everything")?,
        }
        if let Some(name) = &scope.name {
            write!(f, "/{name}")?;
        }
        match &scope.namespace {
            Some(namespace) => write!(f, " in namespace {namespace}"),
            None => Ok(()),
        }
    }
}

/// The parts of `deploy`, `deploy/cart`, `deployments.apps/cart`, `apps/v1/deployments/cart`.
struct Written<'a> {
    group: Option<&'a str>,
    kind: &'a str,
    name: Option<&'a str>,
}

impl<'a> Written<'a> {
    fn parse(text: &'a str) -> Option<Self> {
        let parts: Vec<&str> = text.split('/').collect();
        let (group, kind, name) = match parts[..] {
            [kind] => (None, kind, None),
            [version, kind] if is_version(version) => (Some(""), kind, None),
            [kind, name] => (None, kind, Some(name)),
            [version, kind, name] if is_version(version) => (Some(""), kind, Some(name)),
            [group, version, kind] if is_version(version) => (Some(group), kind, None),
            [group, version, kind, name] if is_version(version) => (Some(group), kind, Some(name)),
            _ => return None,
        };
        let (kind, of) = kind.split_once('.').map_or((kind, None), |(kind, of)| (kind, Some(of)));
        // `deployments.v1.apps` names a version, too.
        let of = of.map(|of| match of.split_once('.') {
            Some((version, group)) if is_version(version) => group,
            _ if of == "core" || is_version(of) => "",
            _ => of,
        });
        let is_complete = parts.iter().all(|part| !part.is_empty()) && !kind.is_empty();
        let is_one = !text.contains([',', ' ']);
        (is_complete && is_one).then_some(Self { group: of.or(group), kind, name })
    }
}

/// `v1`, `v2beta1`.
fn is_version(text: &str) -> bool {
    text.strip_prefix('v').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
}

/// One object: its incarnations, the latest last.
pub(super) struct Found {
    pub(super) target: Target,
    /// At least one.
    pub(super) incarnations: Vec<Incarnation>,
}

/// The one object that is written as `words`.
pub(super) fn object(
    reader: &mut Reader,
    words: &[String],
    namespace: Option<&str>,
    zone: &TimeZone,
) -> Result<Found, QueryError> {
    let target = Target::read(reader, words, namespace)?;
    if target.scope.name.is_none() {
        return Err(UnknownName::NoName(words.join("/")).into());
    }
    let mut incarnations = reader.incarnations(&target.scope)?;
    // A definition that came again with another scope has objects with and without a namespace.
    let is_here = |it: &Incarnation| it.object.namespace.as_deref() == namespace;
    if incarnations.iter().any(is_here) {
        incarnations.retain(is_here);
    }
    let mut places: Vec<String> = incarnations
        .iter()
        .map(|it| match &it.object.namespace {
            Some(namespace) => format!("{} in {namespace}", it.object.qualified_resource()),
            None => it.object.qualified_resource(),
        })
        .collect();
    places.sort_unstable();
    places.dedup();
    match places.len() {
        0 => Err(nothing(reader, format!("the history has no {target}"), zone)),
        1 => Ok(Found { target, incarnations }),
        _ => Err(UnknownName::Ambiguous { object: words.join("/"), places: places.join(", ") }.into()),
    }
}

/// The version that is written after the `@`.
pub(super) fn revision(text: &str, now: &Zoned) -> Result<At, UnknownName> {
    let malformed = || UnknownName::Revision(text.to_owned());
    if let Some(number) = text.strip_prefix('#') {
        return number.parse().map(|number| At::Number(Number(number))).map_err(|_| malformed());
    }
    if !text.is_empty() && text.chars().all(|c| c.is_ascii_digit()) {
        return Ok(At::Rv(text.to_owned()));
    }
    instant(text, now).map(At::Time).map_err(|_| malformed())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_are_written_as_for_kubectl() {
        for (text, group, kind, name) in [
            ("deploy", None, "deploy", None),
            ("Deployment/cart", None, "Deployment", Some("cart")),
            ("deployments.apps", Some("apps"), "deployments", None),
            ("deployments.v1.apps/cart", Some("apps"), "deployments", Some("cart")),
            ("apps/v1/deployments", Some("apps"), "deployments", None),
            ("apps/v1/deployments/cart", Some("apps"), "deployments", Some("cart")),
            ("v1/pods/web", Some(""), "pods", Some("web")),
            ("pods.core", Some(""), "pods", None),
            ("pods.v1", Some(""), "pods", None),
        ] {
            let written = Written::parse(text).unwrap();
            assert_eq!((written.group, written.kind, written.name), (group, kind, name), "{text}");
        }
        for text in ["", "deploy/", "/cart", "a/b/c/d", "a/v1/b/c/d", "deploy,sts", "apps/v1/", "deploy/a b"]
        {
            assert!(Written::parse(text).is_none(), "{text}");
        }
    }

    #[test]
    fn a_version_is_a_number_a_resource_version_or_a_time() {
        let now: Zoned = "2026-11-23T16:30:00+00:00[UTC]".parse().unwrap();
        assert_eq!(revision("#812", &now), Ok(At::Number(Number(812))));
        assert_eq!(revision("55213", &now), Ok(At::Rv("55213".to_owned())));
        let at = At::Time("2026-11-23T14:30:00Z".parse().unwrap());
        assert_eq!(revision("-2h", &now), Ok(at));
        for text in ["", "#", "#x", "soon"] {
            assert_eq!(revision(text, &now), Err(UnknownName::Revision(text.to_owned())), "{text}");
        }
    }
}
