//! Targets of a watch: resources, or objects by name, as in kubectl's arguments.

use informer::{Catalog, DiscoveryError, ResourceType};

/// A resource, or one object of it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Target {
    /// The resource.
    pub resource: ResourceType,
    /// The object's name; `None` for all objects.
    pub name: Option<String>,
}

/// The wanted targets, before a server was asked for its resources.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Wanted(Vec<Wish>);

/// A resource or category, or one object of it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Wish {
    resource: String,
    name: Option<String>,
}

/// Arguments that mean nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidTarget {
    /// There is nothing before, after or between commas or slashes.
    #[error(
        "a name is missing in `{0}`: name resources as in `deploy,cm` and objects as in `deploy/cart`, or leave the argument \
         out to watch everything"
    )]
    Empty(String),
    /// `deploy/cart front`.
    #[error(
        "`{bare}` stands beside `{object}`: name objects as `deploy/cart deploy/{bare}` or as `deploy cart {bare}`"
    )]
    Mixed {
        /// An object.
        object: String,
        /// The argument that names no resource.
        bare: String,
    },
    /// A name that no object has.
    #[error("`{0}` cannot be the name of an object")]
    Name(String),
}

impl Wanted {
    /// Understands the arguments as kubectl does: the first one names resources and further ones objects of them; an argument
    /// with a slash names both.
    ///
    /// | arguments | mean |
    /// |---|---|
    /// | none | everything |
    /// | `deploy,cm`, `all` | all objects of these resources |
    /// | `deploy cart front` | two objects |
    /// | `deploy/cart pod/web-0` | two objects |
    /// | `apps/v1/deployments`, `v1/pods` | a resource in a version |
    ///
    /// ```
    /// use kubediff::targets::Wanted;
    ///
    /// let one = |text: &str| Wanted::parse(&text.split(' ').map(str::to_owned).collect::<Vec<_>>());
    /// assert_eq!(one("deploy cart"), one("deploy/cart"));
    /// assert!(one("deploy,").is_err());
    /// ```
    ///
    /// # Errors
    ///
    /// When an argument is empty, names objects in two ways at once, or has a name that no object can have.
    pub fn parse(arguments: &[String]) -> Result<Self, InvalidTarget> {
        let mut words = Vec::new();
        for argument in arguments {
            words.push(split(argument)?);
        }
        let all = || words.iter().flatten();
        if let Some(object) = all().find(|word| object(word).is_some()) {
            let wish = |word: &String| {
                let (resource, name) = self::object(word)
                    .ok_or_else(|| InvalidTarget::Mixed { object: object.clone(), bare: word.clone() })?;
                Wish::object(resource, name)
            };
            return all().map(wish).collect::<Result<Vec<_>, _>>().map(Self);
        }
        let (resources, names): (Vec<&String>, Vec<&String>) = match words.split_first() {
            // `v1/pods apps/v1/deployments`, as the configuration of other tools has it.
            Some((_, rest)) if rest.iter().flatten().all(|word| word.contains('/')) => {
                (all().collect(), Vec::new())
            }
            Some((first, rest)) => (first.iter().collect(), rest.iter().flatten().collect()),
            None => return Ok(Self(Vec::new())),
        };
        let mut wishes = Vec::new();
        for resource in resources {
            if names.is_empty() {
                wishes.push(Wish { resource: resource.clone(), name: None });
            }
            for name in &names {
                wishes.push(Wish::object(resource, name)?);
            }
        }
        Ok(Self(wishes))
    }

    /// Whether nothing was named.
    pub fn is_everything(&self) -> bool {
        self.0.is_empty()
    }

    /// The targets among what the server has, each once. `cluster_wide` says whether everything includes resources without
    /// namespaces.
    ///
    /// # Errors
    ///
    /// When the server has no such resource.
    pub fn among(&self, catalog: &Catalog, cluster_wide: bool) -> Result<Vec<Target>, DiscoveryError> {
        if self.is_everything() {
            let everything = catalog.resources().filter(|resource| resource.namespaced || cluster_wide);
            // The same objects under another name.
            let everything =
                everything.filter(|resource| resource.qualified_name() != "events.events.k8s.io");
            return Ok(everything.cloned().map(|resource| Target { resource, name: None }).collect());
        }
        let mut targets: Vec<Target> = Vec::new();
        for Wish { resource, name } in &self.0 {
            for resource in catalog.named(resource)? {
                let target = Target { resource, name: name.clone() };
                if !targets.contains(&target) {
                    targets.push(target);
                }
            }
        }
        Ok(targets)
    }
}

impl Wish {
    fn object(resource: &str, name: &str) -> Result<Self, InvalidTarget> {
        if is_name(name) {
            Ok(Self { resource: resource.to_owned(), name: Some(name.to_owned()) })
        } else {
            Err(InvalidTarget::Name(name.to_owned()))
        }
    }
}

impl Target {
    /// `deployments.apps`, or `deployments.apps/cart`.
    pub fn text(&self) -> String {
        let resource = self.resource.qualified_name();
        match &self.name {
            Some(name) => format!("{resource}/{name}"),
            None => resource,
        }
    }
}

/// The words between commas.
fn split(argument: &str) -> Result<Vec<String>, InvalidTarget> {
    let words: Vec<String> = argument.split(',').map(|word| word.trim().to_owned()).collect();
    if words.iter().any(|word| word.split('/').any(str::is_empty)) {
        return Err(InvalidTarget::Empty(argument.to_owned()));
    }
    Ok(words)
}

/// Resource and name, where a word names an object: `deploy/cart`, `apps/v1/deployments/cart`.
fn object(word: &str) -> Option<(&str, &str)> {
    let (resource, last) = word.rsplit_once('/')?;
    let version = resource.rsplit('/').next().unwrap_or(resource);
    // `v1/pods` is a resource in a version.
    (!is_version(version)).then_some((resource, last))
}

/// Whether an object can have it: it is one segment of a path.
fn is_name(text: &str) -> bool {
    !matches!(text, "." | "..")
        && text.len() <= 253
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "-._:".contains(c))
}

/// `v1`, `v1beta1`.
pub(crate) fn is_version(text: &str) -> bool {
    let after_number = |text: &str| {
        let rest = text.trim_start_matches(|c: char| c.is_ascii_digit());
        (rest.len() < text.len()).then(|| rest.to_owned())
    };
    let Some(rest) = text.strip_prefix('v').and_then(after_number) else { return false };
    let stage = rest.strip_prefix("alpha").or(rest.strip_prefix("beta"));
    rest.is_empty() || stage.and_then(after_number).is_some_and(|rest| rest.is_empty())
}

/// A namespace's name is a DNS label (RFC 1123).
pub(crate) fn namespace(text: &str) -> Result<String, &'static str> {
    let inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let valid = (1..=63).contains(&text.len())
        && text.chars().all(inner)
        && !text.starts_with('-')
        && !text.ends_with('-');
    if valid {
        Ok(text.to_owned())
    } else {
        Err("a namespace has lower-case letters, digits and `-` in its name")
    }
}
