//! A change in a few words.

use jiff::Timestamp;
use kubediff_history::Verb;
use serde_json::Value;

use crate::changes::facts::{age, facts};
use crate::changes::image;
use crate::hide::secret::Redacted;
use crate::model::diff::{Difference, Edit};
use crate::model::path::{Path, Segment};
use crate::text::terminal::{cut, escape, flow};

/// A headline is not longer than this, in columns of a terminal.
const WIDTH: usize = 160;

/// Nor is one value in it.
const VALUE_WIDTH: usize = 48;

/// The change in a few words, the most important first: `image web: nginx:1.27 -> nginx:1.28, replicas 2 -> 3`.
///
/// One line without control characters, bounded in length.
pub(crate) fn headline(
    verb: Verb,
    observed_at: Timestamp,
    [old, new]: [Option<&Redacted<Value>>; 2],
    diff: &[Difference],
) -> String {
    let phrases: Vec<String> = match verb {
        Verb::Added => object(new, Vec::new()),
        Verb::Deleted => {
            let age = old.and_then(|old| age(old, observed_at));
            object(old, age.map(|age| format!("age {}", age.text)).into_iter().collect())
        }
        Verb::Recreated if diff.is_empty() => vec!["same content".to_owned()],
        Verb::Updated | Verb::Recreated => {
            let mut differences: Vec<&Difference> = diff.iter().collect();
            differences.sort_by_key(|difference| rank(&difference.path));
            let mut phrases: Vec<String> = Vec::new();
            for phrase in differences.into_iter().map(phrase) {
                // `spec.replicas` and `status.replicas` say the same in few words.
                if !phrases.contains(&phrase) {
                    phrases.push(phrase);
                }
            }
            phrases
        }
    };
    join(&phrases)
}

/// The headline leaves labels and owners out.
fn object(object: Option<&Redacted<Value>>, mut phrases: Vec<String>) -> Vec<String> {
    let facts = object.map(facts).unwrap_or_default();
    let telling = facts.iter().filter(|fact| !matches!(fact.label.as_str(), "labels" | "owner"));
    phrases.extend(telling.map(|fact| format!("{} {}", fact.label, cut(&fact.text, VALUE_WIDTH))));
    phrases
}

fn join(phrases: &[String]) -> String {
    let mut text = String::new();
    for (at, phrase) in phrases.iter().enumerate() {
        let left = phrases.len() - at;
        if at > 0 && text.chars().count() + phrase.chars().count() > WIDTH {
            return format!("{text}, {left} more");
        }
        if at > 0 {
            text.push_str(", ");
        }
        text.push_str(phrase);
    }
    cut(&text, WIDTH + VALUE_WIDTH)
}

fn rank(path: &Path) -> u8 {
    match path.segments() {
        [.., Segment::Field(last)] if last == "image" && !starts_with(path, "status") => 0,
        [Segment::Field(spec), Segment::Field(replicas)] if spec == "spec" && replicas == "replicas" => 1,
        [.., Segment::Field(last)] if starts_with(path, "status") => match last.as_str() {
            "status" | "phase" => 4,
            "message" | "reason" => 6,
            _ => 5,
        },
        _ if starts_with(path, "status") => 5,
        _ if starts_with(path, "metadata") => 3,
        _ => 2,
    }
}

fn starts_with(path: &Path, field: &str) -> bool {
    matches!(path.segments().first(), Some(Segment::Field(first)) if first == field)
}

fn phrase(difference: &Difference) -> String {
    let label = label(&difference.path);
    let value = |value: &Value| cut(&flow(value), VALUE_WIDTH);
    let colon = if label.contains(' ') && !is_phrase(&difference.path) { ":" } else { "" };
    match &difference.edit {
        Edit::Changed { old: Value::String(old), new: Value::String(new) } if rank(&difference.path) == 0 => {
            let (old, new) = image::versions(old, new);
            let cut = |version: &str| cut(&escape(version), VALUE_WIDTH);
            format!("{label}{colon} {} -> {}", cut(&old), cut(&new))
        }
        Edit::Changed { old, new } => format!("{label}{colon} {} -> {}", value(old), value(new)),
        Edit::Added { new } if new.is_object() || new.is_array() => format!("+{label}"),
        Edit::Added { new } => format!("+{label}{colon} {}", value(new)),
        Edit::Removed { .. } => format!("-{label}"),
        Edit::Text { lines } => format!("{label}{colon} +{} -{} lines", lines.added, lines.removed),
        Edit::Reordered { .. } => format!("{label} reordered"),
    }
}

/// Whether its words read as a sentence with the values behind them: `image web 1.27 -> 1.28`.
fn is_phrase(path: &Path) -> bool {
    use Segment::{Field, Key};
    match path.segments() {
        [.., Field(list), Key(_), Field(image)] => list.ends_with("ontainers") && image == "image",
        [.., Field(list), Key(_), Field(resources), Field(_), Field(_)] => {
            list.ends_with("ontainers") && resources == "resources"
        }
        _ => false,
    }
}

/// `memory limit`, `cpu request`.
fn of_resource(bound: &str) -> Option<&'static str> {
    match bound {
        "limits" => Some("limit"),
        "requests" => Some("request"),
        _ => None,
    }
}

/// The name of the place for people.
fn label(path: &Path) -> String {
    use Segment::{Field, Key};
    let field = |text: &str| Path::from_iter([Field(text.to_owned())]).to_string();
    let text = match path.segments() {
        [.., Field(list), Key(name), Field(last)] if last == "image" && list.ends_with("ontainers") => {
            format!("image {name}")
        }
        [.., Field(list), Key(name), Field(resources), Field(bound), Field(what)]
            if resources == "resources" && list.ends_with("ontainers") && of_resource(bound).is_some() =>
        {
            format!("{what} {} {name}", of_resource(bound).unwrap_or_default())
        }
        [.., Field(list), Key(name), Field(env), Key(variable), Field(value)]
            if env == "env" && value == "value" && list.ends_with("ontainers") =>
        {
            format!("{variable} of {name}")
        }
        [Field(metadata), Field(labels), Field(name)] if metadata == "metadata" && labels == "labels" => {
            format!("label {name}")
        }
        [Field(metadata), Field(kind), Field(name)] if metadata == "metadata" && kind == "annotations" => {
            format!("annotation {name}")
        }
        [Field(status), Field(list), Key(kind)] if status == "status" && list == "conditions" => kind.clone(),
        [Field(status), Field(list), Key(kind), Field(last)]
            if status == "status" && list == "conditions" =>
        {
            if last == "status" {
                kind.clone()
            } else {
                format!("{kind} {}", field(last))
            }
        }
        [Field(first), rest @ ..]
            if !rest.is_empty() && matches!(first.as_str(), "spec" | "status" | "metadata") =>
        {
            tail(rest)
        }
        all => tail(all),
    };
    escape(&text).into_owned()
}

/// The end of a path: from its last element of a list or document on, or its last two steps.
fn tail(segments: &[Segment]) -> String {
    if let Some(document) = segments.iter().rposition(|segment| *segment == Segment::Document)
        && let (Some(Segment::Field(file)), Some(inside)) =
            (segments.get(document.wrapping_sub(1)), segments.get(document + 1..))
    {
        return format!("{file}#{}", inside.iter().cloned().collect::<Path>());
    }
    let element = segments.iter().rposition(|segment| matches!(segment, Segment::Key(_)));
    let start = element.unwrap_or(segments.len().saturating_sub(1)).saturating_sub(1);
    segments.get(start..).unwrap_or(segments).iter().cloned().collect::<Path>().to_string()
}
