//! The tools: their arguments, and the address of `/v1` whose answer they give.

use std::collections::BTreeMap;

use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use serde_json::Value;

use super::refusal::Refusal;
use crate::web::address::{NONE, segment, with};

/// Their descriptions, as a client gets them.
const TOOLS: &str = include_str!("tools.json");
/// The bytes of an argument.
const LONGEST: usize = 4 << 10;
/// The entries that an answer of `/v1` has at most.
const MOST: usize = 1_000;

/// The tools. All of them only read, and nothing outside of the history.
pub(super) fn tools() -> Vec<Tool> {
    let tools: Vec<Tool> = serde_json::from_str(TOOLS).unwrap_or_default();
    let reads = ToolAnnotations::new().read_only(true).destructive(false).idempotent(true).open_world(false);
    tools.into_iter().map(|tool| tool.with_annotations(reads.clone())).collect()
}

/// Which part of an answer is a list, and how the next part of it is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum List {
    /// The answer has none.
    None,
    /// `/v1` has a cursor.
    Cursor(&'static str),
    /// `/v1` begins at a place.
    Start(&'static str),
    /// `/v1` begins at the first entry.
    Whole(&'static str),
}

/// A call of a tool.
#[derive(Debug)]
pub(super) struct Call {
    tool: String,
    arguments: BTreeMap<String, String>,
    pub(super) list: List,
    pub(super) limit: usize,
    /// The first entry, where `/v1` has no cursor.
    pub(super) start: usize,
}

impl Call {
    /// Reads the arguments by the schema of the tool.
    pub(super) fn read(tool: &Tool, given: &JsonObject) -> Result<Self, Refusal> {
        let known = tool.input_schema.get("properties").and_then(Value::as_object);
        let mut arguments = BTreeMap::new();
        for (name, value) in given {
            let Some(schema) = known.and_then(|known| known.get(name)) else {
                let names: Vec<&str> =
                    known.into_iter().flat_map(|known| known.keys()).map(String::as_str).collect();
                let remedy = format!("Leave it out; there are {}.", names.join(", "));
                return Err(Refusal::wrong(name, format!("`{}` has no such argument.", tool.name), remedy));
            };
            if let Some(text) = text(name, value, schema)? {
                arguments.insert(name.clone(), text);
            }
        }
        let required = tool.input_schema.get("required").and_then(Value::as_array).into_iter().flatten();
        let mut required = required.filter_map(Value::as_str);
        if let Some(name) = required.find(|name| !arguments.contains_key(*name)) {
            return Err(Refusal::wrong(name, "It is missing.", format!("`{}` needs it.", tool.name)));
        }
        let list = match &*tool.name {
            "changes" => List::Cursor("items"),
            "objects" => List::Start("items"),
            "diff" => List::Whole("items"),
            "story" => List::Whole("records"),
            "blame" => List::Whole("fields"),
            _ => List::None,
        };
        let default = known.and_then(|known| known.get("limit")?.get("default")?.as_u64());
        let limit = match arguments.remove("limit") {
            Some(limit) => limit.parse().unwrap_or_default(),
            None => default.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(1),
        };
        // `/v1` reads its own cursor.
        let cursor = match list {
            List::Cursor(_) => None,
            _ => arguments.remove("cursor"),
        };
        let start = cursor.map_or(Ok(0), |cursor| cursor.parse()).map_err(|_| {
            let remedy = "Ask without it, from the beginning.";
            Refusal::wrong("cursor", "It is no `next` of an answer.", remedy)
        })?;
        Ok(Self { tool: tool.name.to_string(), arguments, list, limit, start })
    }

    fn get(&self, name: &str) -> Option<&str> {
        self.arguments.get(name).map(String::as_str)
    }

    /// The address of the answer, with so many entries.
    pub(super) fn address(&self, limit: usize) -> Result<String, Refusal> {
        let all = || self.arguments.iter().filter(|(name, _)| *name != "whole");
        let asked = |path: &str, more: &[(&str, usize)]| {
            let more = more.iter().map(|(name, value)| (*name, value.to_string()));
            with(path, all().map(|(name, value)| (name.as_str(), value.clone())).chain(more))
        };
        let text = |name| segment(self.get(name).unwrap_or(NONE));
        let object = |rest: &str| {
            let path = format!("/v1/objects/{}/{}/{}{rest}", text("kind"), text("ns"), text("name"));
            let others = all().filter(|(name, _)| !["kind", "ns", "name"].contains(&name.as_str()));
            with(&path, others.map(|(name, value)| (name.as_str(), value.clone())))
        };
        Ok(match self.tool.as_str() {
            "changes" => asked("/v1/changes", &[("limit", limit)]),
            "story" => format!("/v1/stories/{}", text("number")),
            "blame" => object("/blame"),
            "object" => object(""),
            "objects" => asked("/v1/state", &[("limit", limit), ("start", self.start)]),
            "diff" if self.start + limit > MOST => {
                let detail = format!("A difference goes to {MOST} objects.");
                return Err(Refusal::wrong(
                    "cursor",
                    detail,
                    "Choose a kind, a namespace or a shorter time.",
                ));
            }
            "diff" => asked("/v1/diff", &[("limit", self.start + limit)]),
            _ => "/v1/status".to_owned(),
        })
    }

    /// The address of what is known of the same objects at the same time.
    pub(super) fn coverage(&self, answer: &Value) -> String {
        let at = |pointer: &str| answer.pointer(pointer).and_then(Value::as_str);
        let (since, until) = match self.tool.as_str() {
            "story" => (at("/story/opened_at"), at("/story/last_at")),
            "diff" => (self.get("from"), self.get("to")),
            "blame" => (None, self.get("at")),
            "object" | "objects" if self.get("at").is_some() => (self.get("at"), self.get("at")),
            "object" if self.get("rev").is_some() => (at("/observed_at"), at("/observed_at")),
            _ => (self.get("since"), self.get("until")),
        };
        let ns = self.get("ns").or(at("/story/object/namespace"));
        let name = self.get("name").filter(|_| self.tool != "coverage");
        let limit = if self.tool == "coverage" { self.limit } else { 10 };
        let arguments =
            [("kind", self.get("kind")), ("ns", ns), ("name", name), ("since", since), ("until", until)];
        let arguments =
            arguments.into_iter().map(|(name, value)| (name, value.unwrap_or_default().to_owned()));
        with("/v1/coverage", arguments.chain([("limit", limit.to_string())]))
    }

    /// Whether the objects of a difference are left out.
    pub(super) fn is_short(&self) -> bool {
        self.tool == "diff" && !matches!(self.get("whole"), Some("1" | "true"))
    }
}

/// An argument as `/v1` takes it; none for null and for an empty text.
fn text(name: &str, value: &Value, schema: &Value) -> Result<Option<String>, Refusal> {
    let kind = schema["type"].as_str().unwrap_or_default();
    let text = match value {
        Value::Null => return Ok(None),
        Value::String(text) => text.trim().to_owned(),
        Value::Bool(is) => String::from(if *is { "1" } else { "0" }),
        Value::Number(number) => number.to_string(),
        _ => return Err(Refusal::wrong(name, "It is a list or an object.", format!("Write a {kind}."))),
    };
    if text.len() > LONGEST {
        let detail = format!("It has {} bytes.", text.len());
        return Err(Refusal::wrong(name, detail, format!("Write at most {LONGEST}.")));
    }
    let bound = |bound: &str| schema[bound].as_u64();
    let (least, most) = (bound("minimum").unwrap_or(0), bound("maximum").unwrap_or(u64::MAX));
    if kind == "integer" && !text.parse().is_ok_and(|number| (least..=most).contains(&number)) {
        let written: String = text.chars().take(50).collect();
        let detail = format!("`{written}` is no number from {least} to {most}.");
        let more =
            if name == "limit" { " For more, go on with the `next` of the answer as `cursor`." } else { "" };
        return Err(Refusal::wrong(name, detail, format!("Write such a number.{more}")));
    }
    Ok(Some(text).filter(|text| !text.is_empty()))
}
