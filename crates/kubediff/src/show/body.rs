//! Bodies of requests by template, for receivers that want a form of their own.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use jiff::Timestamp;
use kubediff_delivery::{Entry, Event, Record};
use minijinja::value::Serde;
use minijinja::{AutoEscape, Environment, Value as Rendered};
use serde::de::IgnoredAny;
use serde_json::{Value, json};

use super::template::{InvalidTemplate, TEMPLATE, compile};

/// The names that a body can use: those of the templates of messages that each record can have, and more of the record.
const NAMES: &[&str] = &[
    "text",
    "details",
    "subject",
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
    "time_ms",
    "id",
    "number",
    "tells",
    "story",
    "secrets",
];

/// The most bytes of a body.
const MOST_BYTES: usize = 1 << 20;

/// Records of each kind, with the least that they have.
const SAMPLES: [(&str, &str); 3] = [
    (
        "a change",
        r#"{"change": "updated", "gvk": {"group": "", "version": "v1", "kind": "Pod"}, "resource": "pods", "name": "a"}"#,
    ),
    ("a gap", r#"{"change": "gap"}"#),
    ("a story", r#"{"change": "story", "tells": "closed", "story": {"object": {"name": "a"}}}"#),
];

/// A body as a template in the syntax of Jinja, which makes JSON: each value in it is written as JSON, a text with its quotes.
#[derive(Clone)]
pub(crate) struct BodyTemplate {
    environment: Arc<Environment<'static>>,
    cluster: Option<String>,
    secrets: BodySecrets,
}

/// The secrets that a body names.
pub(crate) type BodySecrets = BTreeMap<String, Box<str>>;

impl BodyTemplate {
    /// Reads a template for the records of this cluster, which can use these secrets.
    ///
    /// # Errors
    ///
    /// When its syntax is wrong, it names what does not exist, or makes no JSON of a change, a gap or a story.
    pub(crate) fn new(
        source: &str,
        cluster: Option<String>,
        secrets: BodySecrets,
    ) -> Result<Self, InvalidTemplate> {
        let (environment, _) = compile(source, NAMES, AutoEscape::Json)?;
        let body = Self { environment: Arc::new(environment), cluster, secrets };
        for (kind, sample) in SAMPLES {
            let record = Record {
                entry: Entry { number: 1, object: 1, namespace: 1, bytes: 0 },
                id: "1".into(),
                time: Timestamp::UNIX_EPOCH,
                event: Event::default(),
                subject: "Pod a".into(),
                summary: "a \"text\"".into(),
                details: "lines".into(),
                body: Bytes::from_static(sample.as_bytes()),
                story: None,
            };
            body.render(&record).map_err(|reason| InvalidTemplate::Body { kind, reason })?;
        }
        Ok(body)
    }

    /// The body for a record. A name without a value in this record is `null`.
    ///
    /// # Errors
    ///
    /// In words that have no value, when the template fails or makes no JSON.
    pub(crate) fn render(&self, record: &Record) -> Result<Bytes, String> {
        let fields: Value = serde_json::from_slice(&record.body).unwrap_or_default();
        let object = fields.pointer("/story/object").unwrap_or(&fields);
        let managers = fields["managers"].as_array().into_iter().flatten().map(|manager| &manager["manager"]);
        let mut context = json!({
            "text": record.summary,
            "details": record.details,
            "subject": record.subject,
            "kind": object["gvk"]["kind"],
            "group": object["gvk"]["group"],
            "version": object["gvk"]["version"],
            "resource": object["resource"],
            "namespace": object["namespace"],
            "name": object["name"],
            "uid": object["uid"],
            "managers": managers.collect::<Vec<_>>(),
            "observed_at": record.time,
            "time_ms": record.time.as_millisecond(),
            "id": record.id,
            "cluster": self.cluster,
            "secrets": self.secrets,
        });
        for name in
            ["severity", "change", "summary", "paths", "diff", "source", "number", "tells", "story", "user"]
        {
            context[name] = fields[name].clone();
        }
        let template = self.environment.get_template(TEMPLATE).map_err(|error| error.kind().to_string())?;
        let body =
            template.render(Rendered::from(Serde(context))).map_err(|error| error.kind().to_string())?;
        if body.len() > MOST_BYTES {
            return Err(format!("it makes {} bytes, and {MOST_BYTES} are allowed", body.len()));
        }
        match serde_json::from_str::<IgnoredAny>(&body) {
            Ok(_) => Ok(body.into()),
            Err(error) => {
                Err(format!("it makes no JSON at line {}, column {}", error.line(), error.column()))
            }
        }
    }
}

impl fmt::Debug for BodyTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BodyTemplate(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(source: &str, subject: &str, body: Value) -> Result<String, String> {
        let secrets = [("key".to_owned(), "a\"b".into())].into();
        let template = BodyTemplate::new(source, Some("prod".to_owned()), secrets);
        let record = Record {
            entry: Entry { number: 7, object: 1, namespace: 1, bytes: 0 },
            id: "7-x".into(),
            time: Timestamp::UNIX_EPOCH,
            event: Event::default(),
            subject: subject.into(),
            summary: "said \"so\"\n\\".into(),
            details: Box::default(),
            body: body.to_string().into(),
            story: None,
        };
        let made = template.map_err(|error| error.to_string())?.render(&record)?;
        Ok(String::from_utf8(made.to_vec()).unwrap())
    }

    #[test]
    fn a_body_is_json_whatever_a_value_has() {
        let change = json!({
            "number": 7, "change": "updated", "gvk": {"kind": "Pod"}, "namespace": null, "name": "a",
            "managers": [{"manager": "argocd"}, {"manager": "kubectl"}],
        });
        let source = r#"{"a": {{ cluster ~ ": " ~ text }}, "b": [{{ namespace or "none" }}, {{ kind }}, {{ managers | join(", ") }}],
                         "c": {{ time_ms }}, "d": {{ secrets.key }}, "e": {{ secrets.other }}, "f": {{ managers }}, "g": {{ text[:4] }}}"#;
        let made: Value = serde_json::from_str(&made(source, "Pod a", change).unwrap()).unwrap();
        let expected = json!({
            "a": "prod: said \"so\"\n\\", "b": ["none", "Pod", "argocd, kubectl"], "c": 0, "d": "a\"b", "e": null,
            "f": ["argocd", "kubectl"], "g": "said",
        });
        assert_eq!(made, expected);
    }

    #[test]
    fn what_is_no_json_is_a_mistake_or_refused_in_words() {
        let of = |source| made(source, "Pod \"a\"", json!({})).unwrap_err();
        let no_json = "the template fails for a change: it makes no JSON at line 1, column 14";
        assert_eq!(of("{{ text }} {{ text }}"), no_json);
        assert_eq!(
            of(r#"{"a": {{ nmae }}}"#),
            "the template names `nmae`, which does not exist; did you mean `name`?"
        );
        assert!(
            of(r#"{"a": {{ text | shout }}}"#).contains("line 1 of the template: "),
            "{}",
            of("{{ text | shout }}")
        );
        // The sample has no quotes there, and this record has.
        assert!(of(r#"{"a": "{{ subject | safe }}"}"#).starts_with("it makes no JSON at line 1"));
        let endless = "[{% for a in range(9000) %}{% for b in range(9000) %}{% endfor %}{% endfor %}]";
        assert!(of(endless).contains("fuel"), "{}", of(endless));
    }

    #[test]
    fn an_incident_of_the_recipe_ends_when_the_rollout_is_complete() {
        let page = include_str!("../../../../docs/webhooks.md");
        let recipe = page.split("  pagerduty:\n").nth(1).unwrap().split("```").next().unwrap();
        let body = recipe.split("body: |\n").nth(1).unwrap();
        let event = |tells: &str, verdict: &str| {
            let story = json!({"id": 812, "verdict": verdict, "object": {"name": "cart"}});
            let record = json!({"change": "story", "tells": tells, "story": story, "severity": "critical"});
            let made: Value = serde_json::from_str(&made(body, "Deployment cart", record).unwrap()).unwrap();
            (made["event_action"].clone(), made["dedup_key"].clone())
        };
        let of = |action: &str| (json!(action), json!("prod/812"));
        assert_eq!(event("trouble", "failing"), of("trigger"));
        assert_eq!(event("closed", "superseded"), of("trigger"));
        assert_eq!(event("closed", "complete"), of("resolve"));
    }
}
