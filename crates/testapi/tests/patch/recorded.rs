//! Requests that a real kube-apiserver 1.36 was asked, and its answers: each answer has to follow from the one before.
//!
//! A file in `recorded/` has a list of cases: a resource, steps, and an answer for each. A step is a request on the
//! object: `create`, `update`, `json`, `merge`, `strategic` or `apply` with a body, as a `fieldManager` or with a
//! `User-Agent`, by a subresource, with `force`. `sent` is what an update sent that was made from the object as it
//! was. So cases can be asked again of a server of `cargo xtask control-plane run`, one after the other; those of
//! `test.dev` need a custom resource `shops` of the schema that the file begins with, with the subresource `status`.
//!
//! - `words.json`: what is wrong, and how it is refused.
//! - `kinds.json`: who owns what of many built-in kinds; here only `metadata.managedFields` is compared.
//! - `owners.json`: kubectl's move to server-side apply, objects without entries, too many entries, several conflicts.
//! - `random.json`: sequences made from seeds, a few of some thousands that were compared once.

use std::path::Path;

use serde_json::{Map, Value, json};
use serve::Status;
use testapi::managed::{ApplyRequest, Ignored, Writer, apply, update};
use testapi::schema::{self, TypeRef};
use testapi::{managed, patch};

/// Values that the server fills in after a patch.
const DEFAULTS: &[&str] = &[
    "terminationMessagePath",
    "terminationMessagePolicy",
    "imagePullPolicy",
    "resources",
    "protocol",
    "defaultMode",
    "sizeLimit",
    "successThreshold",
    "failureThreshold",
    "periodSeconds",
    "timeoutSeconds",
    "rollingUpdate",
    "zone",
    "dnsPolicy",
    "restartPolicy",
    "terminationGracePeriodSeconds",
    "securityContext",
    "schedulerName",
    "strategy",
    "type",
    "revisionHistoryLimit",
    "progressDeadlineSeconds",
    "replicas",
    "apiVersion",
    "fieldPath",
    "maxSurge",
    "maxUnavailable",
    "requests",
];

#[test]
fn every_recorded_answer_follows_from_the_one_before() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/patch/recorded");
    let mut files: Vec<_> =
        std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let mut differences = Vec::new();
    let mut steps = 0;
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        let recorded: Value = serde_json::from_str(&text).unwrap();
        let custom = recorded["schema"].is_object().then(|| schema::custom(&recorded["schema"]));
        for case in recorded["cases"].as_array().unwrap() {
            steps += Case { case, custom: custom.as_ref() }.check(&mut differences);
        }
    }
    assert!(steps > 0);
    assert!(differences.is_empty(), "{} of {steps} differ:\n{}", differences.len(), differences.join("\n\n"));
}

struct Case<'a> {
    case: &'a Value,
    custom: Option<&'a TypeRef>,
}

impl Case<'_> {
    fn check(&self, differences: &mut Vec<String>) -> usize {
        let steps = self.case["steps"].as_array().unwrap();
        let answers = self.case["answers"].as_array().unwrap();
        let mut live: Option<Value> = None;
        for (number, (step, recorded)) in steps.iter().zip(answers).enumerate() {
            let answer = &recorded["answer"];
            let message = answer["message"].as_str().unwrap_or_default();
            let is_refused = recorded["code"].as_u64().unwrap() >= 400;
            let ours = self.answer(step, live.as_ref(), answer, is_refused);
            let difference = match ours {
                // Whether it is there is for somebody else to look.
                _ if recorded["code"] == 404 => None,
                Err(status) if is_refused => {
                    difference("", &sorted_causes(&status.to_json()), &sorted_causes(answer))
                }
                Err(status) => Some(format!("refused: {}", status.to_json())),
                // A patch may make an object invalid, which other checks find; only undecodable results count here.
                Ok(ours) if is_refused && message.contains(" is invalid: ") => {
                    let at = message.find("json: cannot unmarshal");
                    let expected = at.map(|at| message[at..].to_owned());
                    let ours = self.schema().unwrap().undecodable(&ours);
                    (at.is_some() && ours != expected).then(|| format!("ours {ours:?}, real {expected:?}"))
                }
                Ok(ours) => difference("", &self.compared(&ours), &self.compared(&timeless(answer))),
            };
            if let Some(difference) = difference {
                differences.push(format!(
                    "{} step {number} {step}\nlive {}\nanswer {answer}\n: {difference}",
                    self.case["name"],
                    live.as_ref().unwrap_or(&Value::Null)
                ));
            }
            if !is_refused {
                live = Some(answer.clone());
            }
        }
        steps.len()
    }

    fn schema(&self) -> Option<TypeRef> {
        let text = |name: &str| self.case[name].as_str().unwrap_or_default();
        match self.custom.filter(|_| text("group") == "test.dev") {
            Some(custom) => Some(custom.clone()),
            None => schema::builtin(text("group"), text("version"), text("kind")),
        }
    }

    fn answer(
        &self,
        step: &Value,
        live: Option<&Value>,
        answer: &Value,
        is_refused: bool,
    ) -> Result<Value, Status> {
        let text = |name: &str| self.case[name].as_str().unwrap_or_default();
        let schema = self.schema().unwrap();
        let subresource = step["subresource"].as_str().unwrap_or_default();
        let api_version = if text("group").is_empty() {
            text("version").into()
        } else {
            format!("{}/{}", text("group"), text("version"))
        };
        let agent = step["agent"].as_str().unwrap_or("agent/1.0 (linux)");
        let manager = step["manager"].as_str().map_or_else(|| managed::default_manager(agent), str::to_owned);
        let ignored = Ignored::of(text("group"), text("plural"), subresource, text("plural") != "configmaps");
        let writer = Writer {
            manager: &manager,
            subresource,
            api_version: &api_version,
            now: &latest(answer),
            schema: &schema,
            ignored: &ignored,
        };
        let bytes = match &step["body"] {
            Value::String(text) => text.clone().into_bytes(),
            body => body.to_string().into_bytes(),
        };
        if step["do"] == "apply" {
            let config = serde_json::from_slice(&bytes).unwrap();
            let request = ApplyRequest {
                live,
                config: &config,
                kind: text("kind"),
                force: step["force"] == true,
                writer,
            };
            return Ok(self.served(step, live, completed(timeless(&apply(request)?), answer)));
        }
        let mut patched = live.cloned().unwrap_or(Value::Null);
        match step["do"].as_str().unwrap() {
            "json" => patch::json(&mut patched, &bytes)?,
            "merge" => patch::merge(&mut patched, patch::merge_body(&bytes)?),
            "strategic" => {
                let strategic = Some(&schema).filter(|_| text("group") != "test.dev");
                patch::strategic(strategic, &mut patched, patch::strategic_body(&bytes)?)?;
            }
            _ => patched = step.get("sent").unwrap_or(&step["body"]).clone(),
        }
        if is_refused {
            return Ok(patched);
        }
        // The result of the patch, with the changes that the server makes to it then.
        let entries = patched["metadata"].get("managedFields").cloned();
        let mut object = answer.clone();
        let metadata = object["metadata"].as_object_mut().unwrap();
        metadata.remove("managedFields");
        metadata.extend(entries.map(|entries| ("managedFields".to_owned(), entries)));
        update(live, &mut object, writer);
        let entries = timeless(&object)["metadata"].get("managedFields").cloned();
        let mut ours = self.served(step, live, completed(timeless(&patched), answer));
        if let Type::Builtin = self.kind_of_type() {
            schema.normalize(&mut ours);
        }
        let metadata = ours["metadata"].as_object_mut().unwrap();
        metadata.remove("managedFields");
        metadata.extend(entries.map(|entries| ("managedFields".to_owned(), entries)));
        Ok(ours)
    }

    /// Without what this way of writing does not change.
    fn served(&self, step: &Value, live: Option<&Value>, mut object: Value) -> Value {
        if self.case["plural"] == "configmaps" {
            return object;
        }
        let ignored = if step["subresource"] == "status" { "spec" } else { "status" };
        let members = object.as_object_mut().unwrap();
        members.remove(ignored);
        if let Some(value) = live.and_then(|live| live.get(ignored)) {
            members.insert(ignored.to_owned(), value.clone());
        }
        object
    }

    /// The compared part of an object.
    fn compared(&self, object: &Value) -> Value {
        match self.case["only"].as_str() {
            Some(part) => object["metadata"].get(part).cloned().unwrap_or(Value::Null),
            None => object.clone(),
        }
    }

    fn kind_of_type(&self) -> Type {
        if self.case["group"] == "test.dev" { Type::Custom } else { Type::Builtin }
    }
}

enum Type {
    Builtin,
    Custom,
}

/// The time of the youngest entry.
fn latest(object: &Value) -> String {
    let entries = object["metadata"]["managedFields"].as_array().into_iter().flatten();
    entries.filter_map(|entry| entry["time"].as_str()).max().unwrap_or_default().to_owned()
}

/// Without times of entries.
fn timeless(object: &Value) -> Value {
    let mut object = object.clone();
    let entries = object.pointer_mut("/metadata/managedFields").and_then(Value::as_array_mut);
    for entry in entries.into_iter().flatten() {
        entry.as_object_mut().unwrap().remove("time");
    }
    // They are sorted by time first.
    if let Some(entries) = object.pointer_mut("/metadata/managedFields").and_then(Value::as_array_mut) {
        entries.sort_by_key(Value::to_string);
    }
    object
}

fn sorted_causes(status: &Value) -> Value {
    let mut status = status.clone();
    if let Some(causes) = status.pointer_mut("/details/causes").and_then(Value::as_array_mut) {
        causes.sort_by_key(Value::to_string);
    }
    // Errors of several fields come in any order.
    if let Some(message) = status["message"].as_str().filter(|message| message.contains("): errors:\n")) {
        let (head, lines) = message.split_once(":\n").unwrap();
        let mut lines: Vec<_> = lines.lines().collect();
        lines.sort_unstable();
        status["message"] = format!("{head}:\n{}", lines.join("\n")).into();
    }
    status
}

/// With what the server filled in.
fn completed(mut ours: Value, answer: &Value) -> Value {
    for name in ["uid", "resourceVersion", "creationTimestamp", "generation", "namespace"] {
        match answer["metadata"].get(name) {
            Some(value) => ours["metadata"][name] = value.clone(),
            None => _ = ours["metadata"].as_object_mut().unwrap().remove(name),
        }
    }
    ours
}

/// The first difference, but for what the server fills in.
fn difference(path: &str, ours: &Value, real: &Value) -> Option<String> {
    match (ours, real) {
        (Value::Object(ours), Value::Object(real)) => {
            for (name, value) in ours {
                let path = format!("{path}/{name}");
                match real.get(name) {
                    Some(real) => {
                        if let Some(found) = difference(&path, value, real) {
                            return Some(found);
                        }
                    }
                    None if is_nothing(value) => {}
                    None => return Some(format!("{path}: ours {value}, real nothing")),
                }
            }
            let missing = real.iter().find(|(name, real)| {
                !ours.contains_key(*name)
                    && !is_nothing(real)
                    && (!DEFAULTS.contains(&name.as_str()) || path.contains("managedFields"))
            });
            missing.map(|(name, real)| format!("{path}/{name}: ours nothing, real {real}"))
        }
        (Value::Array(ours), Value::Array(real)) if ours.len() == real.len() => {
            let mut pairs = ours.iter().zip(real).enumerate();
            pairs.find_map(|(at, (ours, real))| difference(&format!("{path}/{at}"), ours, real))
        }
        (ours, real) if ours == real => None,
        (ours, real) => Some(format!("{path}: ours {ours}, real {real}")),
    }
}

/// Null and empty, which a structure in Go may or may not show.
fn is_nothing(value: &Value) -> bool {
    value.is_null() || *value == json!([]) || value.as_object().is_some_and(Map::is_empty)
}
