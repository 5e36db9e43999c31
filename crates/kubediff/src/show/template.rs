//! Texts by template.

use std::fmt;
use std::sync::Arc;

use minijinja::value::Serde;
use minijinja::{AutoEscape, Environment, ErrorKind, UndefinedBehavior, Value};
use serde_json::json;

use crate::changes::change::Change;
use crate::hide::secret::Redacted;

/// The names that a template can use.
const NAMES: &[&str] = &[
    "text",
    "severity",
    "cluster",
    "change",
    "kind",
    "group",
    "version",
    "resource",
    "namespace",
    "name",
    "uid",
    "summary",
    "managers",
    "user",
    "paths",
    "diff",
    "source",
    "observed_at",
    "labels",
    "annotations",
    "old",
    "new",
];

/// The most instructions of a template, roughly. A loop in a loop over a long list ends here.
const FUEL: u64 = 200_000;

/// The most bytes of a text.
const MOST_BYTES: usize = 16 << 10;

/// A template in the syntax of Jinja.
#[derive(Clone)]
pub struct Template {
    environment: Arc<Environment<'static>>,
    /// Whether it needs the whole object.
    needs_objects: bool,
}

/// A text that is no template.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidTemplate {
    /// The syntax is wrong.
    #[error("line {line} of the template: {reason}")]
    Syntax {
        /// The line, counted from 1.
        line: usize,
        /// The mistake.
        reason: String,
    },
    /// There is no such name.
    #[error("the template names `{name}`, which does not exist{instead}")]
    Name {
        /// The name.
        name: String,
        /// The names that exist.
        instead: String,
    },
    /// A body is no JSON.
    #[error("the template fails for {kind}: {reason}")]
    Body {
        /// The kind of record.
        kind: &'static str,
        /// Why.
        reason: String,
    },
}

/// The only template of an environment.
pub(super) const TEMPLATE: &str = "template";

impl Template {
    /// Reads a template.
    ///
    /// # Errors
    ///
    /// When its syntax is wrong, or it names what does not exist.
    pub fn new(source: &str) -> Result<Self, InvalidTemplate> {
        let (environment, names) = compile(source, NAMES, AutoEscape::None)?;
        let needs_objects = names.iter().any(|name| matches!(name.as_str(), "old" | "new"));
        Ok(Self { environment: Arc::new(environment), needs_objects })
    }

    /// The text for a change. A name without a value in this change is empty.
    ///
    /// # Errors
    ///
    /// In words, when it fails.
    pub(crate) fn render(&self, change: &Change, severity: &str) -> Result<Redacted<String>, String> {
        let template = self.environment.get_template(TEMPLATE).map_err(|error| error.kind().to_string())?;
        let now = change.new.as_ref().or(change.old.as_ref());
        let metadata = |name: &str| now.and_then(|object| object.get("metadata")?.get(name));
        // To copy whole objects costs more than all the rest.
        let objects = self.needs_objects.then_some((&change.old, &change.new));
        let mut context = json!({
            "text": &*change.text(),
            "severity": severity,
            "cluster": change.cluster,
            "change": change.verb,
            "kind": change.object.gvk.kind,
            "group": change.object.gvk.group,
            "version": change.object.gvk.version,
            "resource": change.object.resource,
            "namespace": change.object.namespace,
            "name": change.object.name,
            "uid": change.object.uid,
            "summary": change.summary,
            "managers": change.managers.iter().map(|manager| &manager.manager).collect::<Vec<_>>(),
            "user": change.user,
            "paths": change.paths,
            "diff": change.diff,
            "source": change.origin,
            "observed_at": change.observed_at,
            "labels": metadata("labels"),
            "annotations": metadata("annotations"),
            "old": objects.map(|(old, _)| old),
            "new": objects.map(|(_, new)| new),
        });
        if let Some(names) = context.as_object_mut() {
            names.retain(|_, value| !value.is_null());
        }
        let text = template.render(Value::from(Serde(context))).map_err(|error| error.kind().to_string())?;
        let text = match text.char_indices().find(|(at, _)| *at >= MOST_BYTES) {
            Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
            None => text,
        };
        // Made of what is redacted alone.
        Ok(Redacted::vouched(text))
    }
}

/// Reads a template that can use these names, and whose values are written so. Returns which of the names it uses.
pub(super) fn compile(
    source: &str,
    known: &[&str],
    escape: AutoEscape,
) -> Result<(Environment<'static>, Vec<String>), InvalidTemplate> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Chainable);
    environment.set_fuel(Some(FUEL));
    environment.set_auto_escape_callback(move |_| escape.clone());
    environment.add_template_owned(TEMPLATE, source.to_owned()).map_err(|error| syntax(&error))?;
    let compiled = environment.get_template(TEMPLATE).map_err(|error| syntax(&error))?;
    let mut names: Vec<String> = compiled.undeclared_variables(false).into_iter().collect();
    names.sort();
    let is_function = |name: &str| environment.globals().any(|(global, _)| global == name);
    if let Some(name) = names.iter().find(|name| !known.contains(&name.as_str()) && !is_function(name)) {
        let instead = crate::text::alike::instead(name, known);
        return Err(InvalidTemplate::Name { name: name.clone(), instead });
    }
    // Filters and tests are looked up when they are used. Other failures without a change are no mistakes.
    if let Err(error) = compiled.render(())
        && matches!(
            error.kind(),
            ErrorKind::UnknownFilter | ErrorKind::UnknownTest | ErrorKind::UnknownFunction
        )
    {
        return Err(syntax(&error));
    }
    drop(compiled);
    Ok((environment, names))
}

fn syntax(error: &minijinja::Error) -> InvalidTemplate {
    let reason = error.detail().map_or_else(|| error.kind().to_string(), str::to_owned);
    InvalidTemplate::Syntax { line: error.line().unwrap_or(1), reason }
}

impl fmt::Debug for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Template(..)")
    }
}
