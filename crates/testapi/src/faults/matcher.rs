//! Which requests a fault applies to.

use std::fmt;
use std::sync::Arc;

use crate::{Call, Verb};

/// Which requests a fault applies to. Each method narrows it; [`any`](Self::any) matches everything.
///
/// ```
/// use testapi::Verb;
/// use testapi::faults::Matcher;
///
/// let second_watch_of_the_shop = Verb::Watch.of("pods").in_namespace("shop").from_nth(2);
/// let pages = Verb::List.of("deployments.apps").with_query("continue", |token| !token.is_empty());
/// let everything_of_jane = Matcher::any().by_user("jane");
/// ```
#[derive(Clone)]
pub struct Matcher {
    verbs: Option<Vec<Verb>>,
    conditions: Vec<Condition>,
    pub(super) from_nth: u64,
}

#[derive(Clone)]
struct Condition {
    description: String,
    holds: Arc<dyn Fn(&Call) -> bool + Send + Sync>,
}

impl Verb {
    /// Requests with this verb for a resource: `pods` of any group, or `deployments.apps`.
    pub fn of(self, resource: &str) -> Matcher {
        Matcher::of(resource).with_verbs([self])
    }

    /// Requests with this verb, for any resource.
    pub fn of_any(self) -> Matcher {
        Matcher::any().with_verbs([self])
    }
}

impl Matcher {
    /// All requests, discovery included.
    pub fn any() -> Self {
        Self { verbs: None, conditions: Vec::new(), from_nth: 1 }
    }

    /// All requests for a resource: `pods` of any group, or `deployments.apps`.
    pub fn of(resource: &str) -> Self {
        let wanted = resource.to_owned();
        Self::any().when(resource, move |call| call.target.as_ref().is_some_and(|target| target.is(&wanted)))
    }

    /// Requests for a path, without the query: `/version`.
    pub fn of_path(path: &str) -> Self {
        let wanted = path.to_owned();
        Self::any().when(path, move |call| call.path == wanted)
    }

    /// Narrows to these verbs.
    #[must_use]
    pub fn with_verbs(mut self, verbs: impl IntoIterator<Item = Verb>) -> Self {
        self.verbs = Some(verbs.into_iter().collect());
        self
    }

    /// Narrows to writes.
    #[must_use]
    pub fn writing(self) -> Self {
        self.when("writing", |call| !call.verb.is_read())
    }

    /// Narrows to a namespace.
    #[must_use]
    pub fn in_namespace(self, namespace: &str) -> Self {
        let wanted = namespace.to_owned();
        self.about(format!("in namespace {namespace}"), move |target| {
            target.namespace.as_ref() == Some(&wanted)
        })
    }

    /// Narrows to the object of this name.
    #[must_use]
    pub fn named(self, name: &str) -> Self {
        let wanted = name.to_owned();
        self.about(format!("named {name}"), move |target| target.name.as_ref() == Some(&wanted))
    }

    /// Narrows to a subresource: `status`.
    #[must_use]
    pub fn below(self, subresource: &str) -> Self {
        let wanted = subresource.to_owned();
        self.about(format!("/{subresource}"), move |target| target.subresource.as_ref() == Some(&wanted))
    }

    /// Narrows to a user.
    #[must_use]
    pub fn by_user(self, user: &str) -> Self {
        let wanted = user.to_owned();
        self.when(format!("by {user}"), move |call| call.user == wanted)
    }

    /// Narrows to requests with a query parameter whose value satisfies a predicate.
    #[must_use]
    pub fn with_query(self, name: &str, holds: impl Fn(&str) -> bool + Send + Sync + 'static) -> Self {
        let wanted = name.to_owned();
        self.when(format!("with {name}"), move |call| call.query.get(&wanted).is_some_and(&holds))
    }

    /// Narrows to streaming lists.
    #[must_use]
    pub fn streaming_list(self) -> Self {
        self.when("streaming list", Call::is_streaming_list)
    }

    /// Narrows to requests that satisfy a predicate; the description is for people.
    #[must_use]
    pub fn when(
        mut self,
        description: impl Into<String>,
        holds: impl Fn(&Call) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.conditions.push(Condition { description: description.into(), holds: Arc::new(holds) });
        self
    }

    /// Skips requests until the n-th one that matches otherwise, counted from 1 since the fault was armed.
    #[must_use]
    pub fn from_nth(mut self, n: u64) -> Self {
        self.from_nth = n;
        self
    }

    /// Whether a request matches; [`from_nth`](Self::from_nth) is ignored here.
    pub fn matches(&self, call: &Call) -> bool {
        self.verbs.as_ref().is_none_or(|verbs| verbs.contains(&call.verb))
            && self.conditions.iter().all(|condition| (condition.holds)(call))
    }

    fn about(
        self,
        description: String,
        holds: impl Fn(&crate::call::Target) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.when(description, move |call| call.target.as_ref().is_some_and(&holds))
    }
}

/// `watch pods in namespace shop from the 2nd`
impl fmt::Debug for Matcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.verbs {
            None => write!(f, "any")?,
            Some(verbs) => {
                let verbs: Vec<_> = verbs.iter().map(|verb| verb.as_str()).collect();
                write!(f, "{}", verbs.join("|"))?;
            }
        }
        for condition in &self.conditions {
            write!(f, " {}", condition.description)?;
        }
        if self.from_nth > 1 { write!(f, " from number {}", self.from_nth) } else { Ok(()) }
    }
}
