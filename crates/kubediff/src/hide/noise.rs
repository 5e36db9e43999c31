//! Noise: differences that are left out and counted.

use std::borrow::Cow;

use serde_json::Value;

pub use tally::Tally;
pub(crate) use tally::{Dropped, TRACES};

use crate::model::diff::{Difference, Edit};
use crate::model::glob::Glob;
use crate::model::gvk::{Gvk, Scope};
use crate::model::path::{InvalidPattern, Path, PathPattern};

mod builtin;
mod prune;
mod tally;

/// The noise to leave out, by named rules that can be switched on and off.
///
/// ```
/// use kubediff::Noise;
///
/// let mut noise = Noise::default();
/// noise.adjust("status,-events")?;
/// assert!(noise.rules().any(|rule| rule.name() == "status" && rule.is_on()));
/// # Ok::<(), kubediff::InvalidNoise>(())
/// ```
#[derive(Debug, Clone)]
pub struct Noise {
    /// In the order of evaluation; the first that matches a change without other differences is given as the reason.
    rules: Vec<Rule>,
    /// Whether Events that a rule leaves out are kept in the history all the same.
    keeps_events: bool,
}

/// One reason to leave something out.
#[derive(Debug, Clone)]
pub struct Rule {
    name: Cow<'static, str>,
    about: Cow<'static, str>,
    on: bool,
    scopes: Vec<Scope>,
    /// Where it holds; everywhere if there are none.
    namespaces: Vec<Glob>,
    what: What,
}

#[derive(Debug, Clone)]
enum What {
    /// The values at these places, and everything inside them.
    Paths(Vec<PathPattern>),
    /// These places, when the object was deleted and created again: they always differ.
    Recreated(Vec<PathPattern>),
    /// The objects themselves, whatever happens to them.
    Objects,
    /// Elements that changed places in a list where places mean nothing.
    Order,
}

/// A rule that cannot be had.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidNoise {
    /// There is no rule of that name.
    #[error("there is no noise rule `{name}` (there are: {known})")]
    UnknownRule {
        /// The name asked for.
        name: String,
        /// All names, separated by commas.
        known: String,
    },
    /// The path of a rule is malformed.
    #[error(transparent)]
    Path(#[from] InvalidPattern),
}

impl Noise {
    /// Every rule that there is, none of them switched on.
    pub fn none() -> Self {
        let mut noise = Self::default();
        for rule in &mut noise.rules {
            rule.on = false;
        }
        noise
    }

    /// The rules.
    pub fn rules(&self) -> impl Iterator<Item = &Rule> {
        self.rules.iter()
    }

    /// Switches the rule called `name`.
    ///
    /// # Errors
    ///
    /// When there is none.
    pub fn switch(&mut self, name: &str, on: bool) -> Result<(), InvalidNoise> {
        if let Some(rule) = self.rules.iter_mut().find(|rule| rule.name == name) {
            rule.on = on;
            return Ok(());
        }
        let known: Vec<&str> = self.rules.iter().map(|rule| &*rule.name).collect();
        Err(InvalidNoise::UnknownRule { name: name.to_owned(), known: known.join(", ") })
    }

    /// Switches every rule.
    pub fn switch_all(&mut self, on: bool) {
        self.rules.iter_mut().for_each(|rule| rule.on = on);
    }

    /// Switches rules off, so that their noise is shown. `all` comes first, wherever it stands, so that it can be combined
    /// with single rules.
    ///
    /// # Errors
    ///
    /// When there is no rule of a name.
    pub(crate) fn show(&mut self, rules: &[String]) -> Result<(), InvalidNoise> {
        let (all, single): (Vec<_>, Vec<_>) = rules.iter().partition(|rule| *rule == "all");
        all.into_iter().chain(single).try_for_each(|rule| self.adjust(&format!("-{rule}")))
    }

    /// Switches several rules, as configurations say it: names separated by commas, each switched on, or off with `-` before
    /// it. `all` is every rule, `none` switches every rule off; a later name wins.
    ///
    /// # Errors
    ///
    /// When there is no rule of a name. The rules before it are switched.
    pub fn adjust(&mut self, text: &str) -> Result<(), InvalidNoise> {
        for word in text.split(',').map(str::trim).filter(|word| !word.is_empty()) {
            let (name, on) = match word.strip_prefix('-') {
                Some(name) => (name, false),
                None => (word.strip_prefix('+').unwrap_or(word), true),
            };
            match name {
                "all" => self.switch_all(on),
                "none" => self.switch_all(!on),
                _ => self.switch(name, on)?,
            }
        }
        Ok(())
    }

    /// Switches off the rules that leave out objects of this kind altogether: somebody wants to see them.
    pub fn show_kind(&mut self, gvk: &Gvk) {
        let whole = self.rules.iter_mut().filter(|rule| matches!(rule.what, What::Objects));
        for rule in whole.filter(|rule| rule.scopes.iter().any(|scope| scope.matches(gvk))) {
            rule.on = false;
        }
    }

    /// Leaves out what is at `path` in objects of `scope`. The rule is named after the path.
    ///
    /// # Errors
    ///
    /// When the path is malformed.
    pub fn ignore(&mut self, scope: Scope, path: &str) -> Result<(), InvalidNoise> {
        self.ignore_in(vec![scope], Vec::new(), path.parse()?);
        Ok(())
    }

    /// Leaves out what is at `path` in objects of these scopes in these namespaces; in all if there are none.
    pub fn ignore_in(&mut self, scopes: Vec<Scope>, namespaces: Vec<Glob>, path: PathPattern) {
        let name = path.to_string().into();
        let listed: Vec<String> = scopes.iter().map(Scope::to_string).collect();
        let about = format!("asked for, on {}", listed.join(", ")).into();
        let rule = Rule { name, about, on: true, scopes, namespaces, what: What::Paths(vec![path]) };
        // Before the built-in ones: the author of a rule wants to see that it works.
        self.rules.insert(0, rule);
    }

    /// The names of fields in all rules.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.rules.iter().flat_map(|rule| rule.patterns(true)).flat_map(PathPattern::names)
    }

    /// The rule that leaves out objects of this kind altogether.
    pub(crate) fn hides(&self, gvk: &Gvk) -> Option<&Rule> {
        self.rules_for(gvk).find(|rule| matches!(rule.what, What::Objects))
    }

    /// Whether a history keeps Events, although no change is made of them. By default it does not.
    pub fn keep_events(&mut self, keep: bool) {
        self.keeps_events = keep;
    }

    /// Whether objects of this kind are no changes, but kept as Events. The Events of the group `events.k8s.io` are the same objects once more.
    pub(crate) fn keeps(&self, gvk: &Gvk) -> bool {
        self.keeps_events && gvk.group.is_empty() && gvk.kind == "Event" && self.hides(gvk).is_some()
    }

    /// Whether objects of this kind are in no history.
    pub(crate) fn leaves_out(&self, gvk: &Gvk) -> bool {
        self.hides(gvk).is_some() && !self.keeps(gvk)
    }

    /// Removes noise from `differences`, and returns how much that was.
    pub(crate) fn sift(
        &self,
        gvk: &Gvk,
        namespace: Option<&str>,
        recreated: bool,
        differences: &mut Vec<Difference>,
    ) -> Dropped {
        let mut dropped = Dropped::default();
        let rules: Vec<&Rule> = self.rules_for(gvk).filter(|rule| rule.holds_in(namespace)).collect();
        differences.retain_mut(|difference| {
            let rule = rules.iter().find(|rule| rule.takes(recreated, difference));
            if let Some(rule) = rule {
                *dropped.entry(rule.name().to_owned()).or_default() += 1;
                return false;
            }
            let (Difference { path, edit: Edit::Added { new: value } }
            | Difference { path, edit: Edit::Removed { old: value } }) = difference
            else {
                return true;
            };
            rules.iter().all(|rule| rule.takes_inside(recreated, path, value, &mut dropped))
        });
        dropped
    }

    /// The rule that says most about why nothing was left.
    pub(crate) fn reason(&self, dropped: &Dropped) -> Option<&str> {
        self.rules.iter().map(Rule::name).find(|rule| dropped.contains_key(*rule))
    }

    fn rules_for(&self, gvk: &Gvk) -> impl Iterator<Item = &Rule> {
        self.rules.iter().filter(|rule| rule.on && rule.scopes.iter().any(|scope| scope.matches(gvk)))
    }
}

impl Rule {
    /// The name by which it is switched and counted.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// A description for people.
    pub fn about(&self) -> &str {
        &self.about
    }

    /// Whether it is in force.
    pub fn is_on(&self) -> bool {
        self.on
    }

    fn holds_in(&self, namespace: Option<&str>) -> bool {
        let is_named = |name| self.namespaces.iter().any(|glob| glob.matches(name));
        self.namespaces.is_empty() || namespace.is_some_and(is_named)
    }

    fn takes(&self, recreated: bool, difference: &Difference) -> bool {
        match (&self.what, &difference.edit) {
            (What::Order, Edit::Reordered { matters, .. }) => !matters,
            _ => self.patterns(recreated).iter().any(|pattern| pattern.covers(&difference.path)),
        }
    }

    /// Takes the noise out of a value that came or went as a whole. Returns whether anything else is in it.
    fn takes_inside(&self, recreated: bool, path: &Path, value: &mut Value, dropped: &mut Dropped) -> bool {
        for pattern in self.patterns(recreated) {
            let Some(steps) = pattern.below(path) else { continue };
            let taken = prune::prune(value, path.field(), steps);
            if taken > 0 {
                *dropped.entry(self.name().to_owned()).or_default() += taken;
                if prune::is_empty(value) {
                    return false;
                }
            }
        }
        true
    }

    fn patterns(&self, recreated: bool) -> &[PathPattern] {
        match &self.what {
            What::Paths(patterns) => patterns,
            What::Recreated(patterns) if recreated => patterns,
            What::Recreated(_) | What::Objects | What::Order => &[],
        }
    }
}
