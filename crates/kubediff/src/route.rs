//! Which changes go to which sinks, and in which words.

use std::collections::BTreeSet;

use informer::{Labels, Selector};
use serde_json::Value;

use crate::changes::change::{Change, Verb};
use crate::config::{Config, Match, Route, Severity};
use crate::hide::secret::{Redacted, Secrets};
use crate::model::path::{PathPattern, find};
use crate::show::template::{InvalidTemplate, Template};
use crate::story::MilestoneKind;

/// The routes of a configuration: pure logic, without I/O.
#[derive(Debug, Clone)]
pub struct Routes {
    routes: Vec<Compiled>,
    secrets: Option<Secrets>,
}

#[derive(Debug, Clone)]
struct Compiled {
    settings: Route,
    template: Option<Template>,
}

/// One sink gets a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery<'a> {
    /// The name of the sink.
    pub sink: &'a str,
    /// The place of the route in the configuration; the first one that named the sink.
    pub route: usize,
    /// The milestones of stories that it gets instead of changes; none if it gets changes.
    pub fold: &'a [MilestoneKind],
    /// How much it matters.
    pub severity: Severity,
    /// The text for people.
    pub text: Redacted<String>,
}

impl Routes {
    /// The routes of a configuration. Without any, every change goes to every sink.
    ///
    /// # Errors
    ///
    /// When a template is malformed. [`Config::read`] has found that already.
    pub fn new(config: &Config) -> Result<Self, InvalidTemplate> {
        let every = || Route { sinks: config.sinks.keys().cloned().collect(), ..Route::default() };
        let routes = config.routes.clone().unwrap_or_else(|| vec![every()]);
        let compile = |settings: Route| {
            let template = settings.template.as_deref().map(Template::new).transpose()?;
            Ok(Compiled { settings, template })
        };
        let routes = routes.into_iter().map(compile).collect::<Result<_, _>>()?;
        Ok(Self { routes, secrets: None })
    }

    /// Knows how label values are hidden, so that a selector matches them as if they were not.
    #[must_use]
    pub fn with_secrets(self, secrets: Secrets) -> Self {
        Self { secrets: Some(secrets), ..self }
    }

    /// Whether it takes the objects of a change to know what an update's deliveries are, besides the change itself.
    pub(crate) fn need_objects(&self) -> bool {
        self.routes.iter().any(|route| route.template.is_some() || route.settings.matches.labels.is_some())
    }

    /// The routes that send stories.
    fn folded(&self) -> impl Iterator<Item = &Route> {
        self.routes.iter().map(|route| &route.settings).filter(|route| !route.fold.0.is_empty())
    }

    /// Whether any sink gets stories.
    pub(crate) fn fold_any(&self) -> bool {
        self.folded().next().is_some()
    }

    /// Whether a sink gets stories.
    pub(crate) fn fold_for(&self, sink: &str) -> bool {
        self.folded().any(|route| route.sinks.iter().any(|it| it == sink))
    }

    /// Which sinks get this change: each at most once, in the order of the routes.
    pub fn of(&self, change: &Change) -> Vec<Delivery<'_>> {
        let mut deliveries = Vec::new();
        let mut told = BTreeSet::new();
        for (at, Compiled { settings, template }) in self.routes.iter().enumerate() {
            if !settings.matches.takes(change, self.secrets.as_ref()) {
                continue;
            }
            let mut text = None;
            for sink in settings.sinks.iter().filter(|sink| told.insert(sink.as_str())) {
                let text = text.get_or_insert_with(|| words(template.as_ref(), change, settings.severity));
                let (severity, text, fold) = (settings.severity, text.clone(), &*settings.fold.0);
                deliveries.push(Delivery { sink, route: at, fold, severity, text });
            }
            if !settings.goes_on {
                break;
            }
        }
        deliveries
    }

    /// The sinks that hear of a gap of this resource, `deployments.apps`, or of everything: those that could have got a change
    /// of it. A sink that no route leads to hears of none.
    pub fn of_gap(&self, resource: Option<&str>) -> BTreeSet<&str> {
        let mut sinks = BTreeSet::new();
        for Compiled { settings, .. } in &self.routes {
            if !settings.matches.may_take(resource) {
                continue;
            }
            sinks.extend(settings.sinks.iter().map(String::as_str));
            if !settings.goes_on && settings.matches.takes_all_of(resource) {
                break;
            }
        }
        sinks
    }
}

/// The usual text, unless there is a template. A template that fails is told, and does not cost the message.
fn words(template: Option<&Template>, change: &Change, severity: Severity) -> Redacted<String> {
    let Some(template) = template else { return change.text() };
    template.render(change, severity.as_str()).unwrap_or_else(|failure| {
        Redacted::vouched(format!("{} (the route's template failed: {failure})", &*change.text()))
    })
}

impl Match {
    /// Whether it may take a change of a resource; without one, any change.
    fn may_take(&self, resource: Option<&str>) -> bool {
        let may_be = |resource| self.resources.iter().any(|name| name.may_mean(resource));
        self.resources.is_empty() || resource.is_none_or(may_be)
    }

    /// Whether it takes every change of a resource; without one, every change.
    fn takes_all_of(&self, resource: Option<&str>) -> bool {
        let has_all = self.resources.is_empty()
            || self.resources.iter().any(|name| match resource {
                Some(resource) => name.means(resource),
                None => name.as_str() == "*",
            });
        has_all && Self { resources: Vec::new(), ..self.clone() } == Self::default()
    }

    /// Whether it takes this change.
    fn takes(&self, change: &Change, secrets: Option<&Secrets>) -> bool {
        let any = |globs: &[crate::Glob], text: &str| globs.iter().any(|glob| glob.matches(text));
        let namespace = change.object.namespace.as_deref();
        let by = |manager: &crate::Manager| any(&self.managers, &manager.manager);
        (self.changes.is_empty() || self.changes.contains(&change.verb))
            && (self.sources.is_empty() || self.sources.contains(&change.origin))
            && (self.resources.is_empty()
                || self.resources.iter().any(|name| name.matches(&change.object.gvk)))
            && (self.namespaces.is_empty() || namespace.is_some_and(|name| any(&self.namespaces, name)))
            && (self.names.is_empty() || any(&self.names, &change.object.name))
            && (self.managers.is_empty() || change.managers.iter().any(by))
            && (self.users.is_empty()
                || change.user.as_ref().is_some_and(|user| any(&self.users, &user.name)))
            && self.labels.as_ref().is_none_or(|selector| {
                states(change).any(|state| selector.matches(&labels(state, selector, secrets)))
            })
            && (self.paths.is_empty() || self.paths.iter().any(|path| touches(change, path)))
    }
}

fn states(change: &Change) -> impl Iterator<Item = &Value> {
    change.new.iter().chain(&change.old).map(|state| &**state)
}

/// The labels of an object, with those of a selector's values that are hidden in it.
fn labels(object: &Value, selector: &Selector, secrets: Option<&Secrets>) -> Labels {
    let labels = object.pointer("/metadata/labels").and_then(Value::as_object).into_iter().flatten();
    let namespace = object.pointer("/metadata/namespace").and_then(Value::as_str);
    let true_value = |name: &str, shown| {
        let asked = selector.requirements().iter().filter(|asked| asked.key() == name);
        let is_it = |value: &&str| secrets.is_some_and(|secrets| secrets.hides_as(namespace, value, shown));
        asked.flat_map(|asked| asked.values()).find(is_it).unwrap_or(shown)
    };
    Labels::new(labels.filter_map(|(name, value)| Some((name.as_str(), true_value(name, value.as_str()?)))))
}

/// Whether a change is about what is at this path.
fn touches(change: &Change, path: &PathPattern) -> bool {
    match change.verb {
        Verb::Added | Verb::Deleted => {
            states(change).any(|object| !find::reached(object, None, path.steps()).is_empty())
        }
        Verb::Updated | Verb::Recreated => change.diff.iter().any(|difference| difference.is_at(path)),
    }
}
