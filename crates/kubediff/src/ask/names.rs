//! `deploy/cart`: kinds and names as kubectl takes them, without a server that could be asked.

mod kinds;

use std::collections::BTreeSet;
use std::fmt;

use jiff::Zoned;
use jiff::tz::TimeZone;
use kubediff_history::{At, Incarnation, KindName, Number, Reader, Scope};

use super::error::{AskError, UnknownName};
use super::instant::instant;
use super::period::nothing;
use kinds::kind;

pub(crate) use kinds::{definition, schema};

/// The subject of a question: everything, some kinds, or objects of one name, perhaps of one namespace only.
#[derive(Debug, Clone, Default)]
pub(crate) struct Target {
    pub(crate) scope: Scope,
    /// The namespace, where a kind of them has one.
    namespace: Option<String>,
}

impl Target {
    /// The target that is written as `words` (`deploy`, `deploy,sts`, `deploy/cart`, `deploy cart`; everything without any), in this
    /// namespace or in all of them.
    pub(crate) fn read(
        reader: &mut Reader,
        words: &[String],
        namespace: Option<&str>,
    ) -> Result<Self, AskError> {
        let mut namespaces: BTreeSet<&str> = namespace.into_iter().collect();
        let mut scope = Scope::default();
        let text = words.join("/");
        let mut is_placed = words.is_empty();
        if !words.is_empty() {
            let written = Written::parse(&text).ok_or_else(|| UnknownName::Malformed(text.clone()))?;
            scope.name = written.name.map(str::to_owned);
            for (group, word) in written.kinds {
                let kind = kind(reader, word, group)?;
                let named = KindName { group: Some(kind.group), resource: kind.plural };
                if !scope.kinds.contains(&named) {
                    scope.kinds.push(named);
                }
                is_placed |= kind.namespaced;
                // `get nodes,pods -n shop` is about all nodes.
                if !kind.namespaced && namespace.is_some() {
                    namespaces.insert("");
                }
            }
        }
        scope.namespaces = namespaces.into_iter().map(str::to_owned).collect();
        Ok(Self { scope, namespace: namespace.filter(|_| is_placed).map(str::to_owned) })
    }

    /// ` of deployments.apps`, ` in namespace shop`; nothing for everything.
    pub(crate) fn of_it(&self) -> String {
        match self.scope.kinds.is_empty() {
            false => format!(" of {self}"),
            true => self.place(),
        }
    }

    /// ` in namespace shop`; nothing for all of them.
    fn place(&self) -> String {
        self.namespace.as_ref().map(|namespace| format!(" in namespace {namespace}")).unwrap_or_default()
    }

    /// Whether it is the Events alone, of which there are no changes.
    pub(crate) fn is_of_events(&self) -> bool {
        matches!(&*self.scope.kinds, [kind] if kind.to_string() == "events")
    }
}

/// `deployments.apps/cart in namespace shop`.
impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.scope.kinds.is_empty() {
            f.write_str("everything")?;
        }
        for (at, kind) in self.scope.kinds.iter().enumerate() {
            write!(f, "{}{kind}", if at == 0 { "" } else { "," })?;
        }
        if let Some(name) = &self.scope.name {
            write!(f, "/{name}")?;
        }
        f.write_str(&self.place())
    }
}

/// The parts of `deploy`, `deploy,sts`, `deploy/cart`, `deployments.apps/cart`, `apps/v1/deployments/cart`.
struct Written<'a> {
    /// With their groups, where these are written.
    kinds: Vec<(Option<&'a str>, &'a str)>,
    name: Option<&'a str>,
}

impl<'a> Written<'a> {
    fn parse(text: &'a str) -> Option<Self> {
        let parts: Vec<&str> = text.split('/').collect();
        let (group, kinds, name) = match parts[..] {
            [kind] => (None, kind, None),
            [version, kind] if is_version(version) => (Some(""), kind, None),
            [kind, name] => (None, kind, Some(name)),
            [version, kind, name] if is_version(version) => (Some(""), kind, Some(name)),
            [group, version, kind] if is_version(version) => (Some(group), kind, None),
            [group, version, kind, name] if is_version(version) => (Some(group), kind, Some(name)),
            _ => return None,
        };
        let kind = |text: &'a str| {
            let (kind, of) = text.split_once('.').map_or((text, None), |(kind, of)| (kind, Some(of)));
            // `deployments.v1.apps` names a version, too.
            let of = of.map(|of| match of.split_once('.') {
                Some((version, group)) if is_version(version) => group,
                _ if of == "core" || is_version(of) => "",
                _ => of,
            });
            (of.or(group), kind)
        };
        let kinds: Vec<_> = kinds.split(',').map(kind).collect();
        let is_complete =
            parts.iter().all(|part| !part.is_empty()) && kinds.iter().all(|it| !it.1.is_empty());
        let is_one = !text.contains(' ') && name.is_none_or(|name| !name.contains(','));
        (is_complete && is_one).then_some(Self { kinds, name })
    }
}

/// `v1`, `v2beta1`.
fn is_version(text: &str) -> bool {
    text.strip_prefix('v').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
}

/// One object: its incarnations, the latest last.
pub(crate) struct Found {
    pub(crate) target: Target,
    /// At least one.
    pub(crate) incarnations: Vec<Incarnation>,
}

/// The one object that is written as `words`.
pub(crate) fn object(
    reader: &mut Reader,
    words: &[String],
    namespace: Option<&str>,
    zone: &TimeZone,
) -> Result<Found, AskError> {
    let target = Target::read(reader, words, namespace)?;
    if target.scope.name.is_none() || target.scope.kinds.len() > 1 {
        return Err(UnknownName::NoName(words.join("/")).into());
    }
    object_of(reader, target, &words.join("/"), namespace, zone)
}

/// The one object of a kind with this name, which may have any characters.
pub(crate) fn named(
    reader: &mut Reader,
    kind: &str,
    namespace: Option<&str>,
    name: &str,
    zone: &TimeZone,
) -> Result<Found, AskError> {
    let mut target = Target::read(reader, &[kind.to_owned()], namespace)?;
    target.scope.name = Some(name.to_owned());
    object_of(reader, target, &format!("{kind}/{name}"), namespace, zone)
}

fn object_of(
    reader: &mut Reader,
    target: Target,
    written: &str,
    namespace: Option<&str>,
    zone: &TimeZone,
) -> Result<Found, AskError> {
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
        _ => Err(UnknownName::Ambiguous { object: written.to_owned(), places: places.join(", ") }.into()),
    }
}

/// The version that is written after the `@`.
pub(crate) fn revision(text: &str, now: &Zoned) -> Result<At, UnknownName> {
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
            assert_eq!((written.kinds, written.name), (vec![(group, kind)], name), "{text}");
        }
        let some = Written::parse("deploy,nodes.core,sts.apps/cart").unwrap();
        assert_eq!(some.kinds, [(None, "deploy"), (Some(""), "nodes"), (Some("apps"), "sts")]);
        assert_eq!(some.name, Some("cart"));
        for text in [
            "",
            "deploy/",
            "/cart",
            "a/b/c/d",
            "a/v1/b/c/d",
            "deploy,",
            ",sts",
            "deploy/a,b",
            "apps/v1/",
            "deploy/a b",
        ] {
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
