//! Templates become HTML. Everything from the cluster is escaped twice over: what a browser would take for markup, and what a reader
//! would not see as it is.

use std::fmt::Write as _;
use std::sync::LazyLock;

use jiff::Zoned;
use minijinja::value::Serde;
use minijinja::{AutoEscape, Environment, Error, Output, State, UndefinedBehavior, Value};
use serde_json::{Value as Json, json};

use super::params::Params;
use super::question;
use super::store::Asked;
use crate::text::terminal::is_unsafe;

macro_rules! templates {
    ($($name:literal),*) => { &[$(($name, include_str!(concat!("../../page/", $name)))),*] };
}

const TEMPLATES: &[(&str, &str)] = templates![
    "base.html",
    "timeline.html",
    "story.html",
    "change.html",
    "object.html",
    "diff.html",
    "instant.html",
    "about.html",
    "help.html",
    "error.html",
    "login.html",
    "live.html",
    "record.html",
    "parts/rows.html",
    "parts/diff.html",
    "parts/yaml.html",
    "parts/histogram.html",
    "parts/strip.html"
];

static ENVIRONMENT: LazyLock<Environment<'static>> = LazyLock::new(|| {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_formatter(write);
    for (name, source) in TEMPLATES {
        // A template that cannot be parsed is missing, and a test renders each of them.
        let _ = environment.add_template(name, source);
    }
    environment
});

/// The HTML of a screen.
///
/// # Errors
///
/// When the template asks for what the context has not: a mistake of this program.
pub(super) fn render(name: &str, context: Json) -> Result<String, Error> {
    ENVIRONMENT.get_template(name)?.render(Value::from(Serde(context)))
}

/// Writes a value: a text with its characters escaped that would be markup, or would not be seen.
fn write(out: &mut Output<'_>, state: &mut State<'_, '_>, value: &Value) -> Result<(), Error> {
    match value.as_str() {
        Some(text) if !value.is_safe() && !matches!(state.auto_escape(), AutoEscape::None) => {
            out.write_str(&escaped(text)).map_err(Error::from)
        }
        _ => minijinja::escape_formatter(out, state, value),
    }
}

fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            '\n' | '\t' => safe.push(c),
            c if is_unsafe(c) => {
                let _ = write!(safe, "\\u{{{:x}}}", u32::from(c));
            }
            c => safe.push(c),
        }
    }
    safe
}

/// A sentence of its own.
pub(super) fn sentence(text: &str) -> String {
    let mut chars = text.chars();
    let first = chars.next().map(|c| c.to_uppercase().to_string()).unwrap_or_default();
    let end = if text.ends_with(['.', '?', '!']) { "" } else { "." };
    format!("{first}{}{end}", chars.as_str())
}

/// The parts of a page around its content.
pub(super) struct Frame<'a> {
    pub(super) title: &'a str,
    /// The entry of the navigation.
    pub(super) nav: &'a str,
    pub(super) notices: Vec<String>,
    pub(super) search: String,
}

impl<'a> Frame<'a> {
    /// A page with these parameters, of which unknown ones are named.
    pub(super) fn new(title: &'a str, nav: &'a str, params: &Params, known: &[&str]) -> Self {
        let unknown = params.unknown(known);
        let notices = match unknown.as_slice() {
            [] => Vec::new(),
            [one] => vec![format!("This page has no parameter `{one}`, and leaves it out.")],
            several => vec![format!(
                "This page has none of the parameters {}, and leaves them out.",
                several.join(", ")
            )],
        };
        Self { title, nav, notices, search: question::words(params) }
    }

    pub(super) fn json(&self, asked: &Asked<'_>) -> Json {
        let mut page = self.around(&asked.store.cluster, &asked.now);
        page["user"] = json!(asked.seen.user.as_deref());
        page
    }

    /// The same without a history.
    pub(super) fn around(&self, cluster: &str, now: &Zoned) -> Json {
        let zone = now.time_zone().iana_name().unwrap_or("local time");
        let hours = now.strftime("%:z");
        json!({
            "title": self.title,
            "cluster": cluster,
            "zone": format!("{zone}, now UTC{hours}"),
            // To the minute: within it, a browser that comes again has the same page.
            "now": now.strftime("%Y-%m-%d %H:%M").to_string(),
            "nav": self.nav,
            "notices": self.notices.iter().map(|notice| sentence(notice)).collect::<Vec<_>>(),
            "search": self.search,
            "user": null,
            "version": env!("CARGO_PKG_VERSION"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_template_is_parsed() {
        for (name, source) in TEMPLATES {
            let mut environment = Environment::new();
            environment.add_template(name, source).unwrap_or_else(|error| panic!("{name}: {error:#}"));
        }
    }

    #[test]
    fn markup_and_invisible_characters_are_shown_as_text() {
        assert_eq!(
            escaped("<a href='x'>\"&\u{202e}\u{1b}[31m\n"),
            "&lt;a href=&#39;x&#39;&gt;&quot;&amp;\\u{202e}\\u{1b}[31m\n"
        );
    }
}
