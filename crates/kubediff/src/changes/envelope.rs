//! A change as arriqaaq/kubediff sends it to webhooks and Slack.

use serde::Serialize;
use serde_json::Value;

use crate::changes::change::{Change, Verb};
use crate::hide::secret::Redacted;
use crate::model::diff::{Difference, Edit};

/// The payload of the other program, with its names of fields.
#[derive(Serialize)]
struct Payload<'a> {
    meta: Event<'a>,
    timestamp: String,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Event<'a> {
    #[serde(rename = "Type")]
    what: &'static str,
    kind: String,
    obj: Option<&'a Redacted<Value>>,
    diff: Option<Vec<String>>,
}

impl Change {
    /// The change as arriqaaq/kubediff sends it: `{"meta": {"Type", "Kind", "Obj", "Diff"}, "timestamp"}`. `Type` is
    /// `EventAdd`, `EventUpdate` or `EventDelete`, and `Kind` is the resource as its configuration names it,
    /// `apps/v1/deployments`.
    ///
    /// `Obj` is the object as it is, or was before it was deleted. `Diff` is null in the other program's watch mode. In
    /// its diff mode it has the differences as texts, `spec.replicas: 1 != 2`, and is null where something came or went.
    pub fn envelope(&self, is_diff_mode: bool) -> Redacted<Vec<u8>> {
        let what = match self.verb {
            Verb::Added => "EventAdd",
            // There, too: a list that has another incarnation is an update of the name.
            Verb::Updated | Verb::Recreated => "EventUpdate",
            Verb::Deleted => "EventDelete",
        };
        let has_both = matches!(self.verb, Verb::Updated | Verb::Recreated);
        let meta = Event {
            what,
            kind: format!("{}/{}", self.object.gvk.api_version(), self.object.resource),
            obj: self.new.as_ref().or(self.old.as_ref()),
            diff: (is_diff_mode && has_both).then(|| self.diff.iter().map(line).collect()),
        };
        let payload = Payload { meta, timestamp: self.observed_at.to_string() };
        // Strings and JSON: there is nothing that cannot be written.
        Redacted::vouched(serde_json::to_vec(&payload).unwrap_or_default())
    }
}

fn line(Difference { path, edit }: &Difference) -> String {
    const NOTHING: &str = "<does not have key>";
    match edit {
        Edit::Added { new } => format!("{path}: {NOTHING} != {}", plain(new)),
        Edit::Removed { old } => format!("{path}: {} != {NOTHING}", plain(old)),
        Edit::Changed { old, new } => format!("{path}: {} != {}", plain(old), plain(new)),
        Edit::Text { lines } => format!("{path}:\n{lines}"),
        Edit::Reordered { old, new, .. } => format!("{path}: {} != {}", old.join(" "), new.join(" ")),
    }
}

/// Texts without quotes.
fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
