//! `/v1/openapi.json` describes what `/v1` answers: nothing else, and nothing less.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use fastrand::Rng;
use serde_json::{Value, json};

use super::browser::{Answer, NOW, Page};
use super::schema::Schemas;
use crate::queries::shop::Shop;
use crate::queries::world::World;
use crate::stories::cast::Cast;
use crate::stories::random::plays;
use crate::support;

/// The address whose answer does not end.
const LIVE: &str = "/v1/live";
/// Fields of answers below which anything may be: they are parts of objects of the cluster.
const OPEN: [&str; 5] = ["object", "old", "new", "value", "before"];

/// A page, and the description that it gives of itself.
struct Described {
    page: Page,
    document: Value,
}

/// A parameter of an address.
#[derive(Debug, Clone)]
struct Parameter {
    name: String,
    is_required: bool,
    schema: Value,
    example: Option<String>,
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn encoded(text: &str) -> String {
    form_urlencoded::byte_serialize(text.as_bytes()).collect()
}

impl Described {
    fn at(history: &Path, now: &str) -> Self {
        let page = Page::at(history, now);
        let document = page.get("/v1/openapi.json").json();
        Self { page, document }
    }

    fn paths(&self) -> Vec<String> {
        self.document["paths"].as_object().unwrap().keys().cloned().collect()
    }

    /// The parameters of an address that are in this part of a request.
    fn parameters(&self, path: &str, place: &str) -> Vec<Parameter> {
        let schemas = Schemas(&self.document);
        let all = self.document["paths"][path]["get"]["parameters"].as_array().unwrap();
        let all = all.iter().map(|it| schemas.resolve(it)).filter(|it| it["in"] == place);
        let parameter = |it: &Value| Parameter {
            name: text(&it["name"]),
            is_required: it["required"] == true,
            schema: schemas.resolve(&it["schema"]).clone(),
            example: it.get("example").map(text),
        };
        all.map(parameter).collect()
    }

    /// The address with these values in the place of its parameters.
    fn address(&self, path: &str, value: &mut dyn FnMut(&Parameter) -> String) -> String {
        let filled = self.parameters(path, "path").iter().fold(path.to_owned(), |path, it| {
            path.replace(&format!("{{{}}}", it.name), &value(it).replace('/', "%2F"))
        });
        assert!(!filled.contains('{'), "{filled}");
        filled
    }

    /// Asks, and compares the answer with its description.
    fn ask(&self, path: &str, address: &str) -> Answer {
        let answer = self.page.get(address);
        let (kind, schema) = self.described(path, answer.status);
        assert_eq!(answer.header("content-type"), Some(&*kind), "{address}: {}", answer.text);
        let errors = Schemas(&self.document).errors(schema, &answer.json());
        assert!(errors.is_empty(), "{address}: {errors:#?}\n{}", answer.text);
        answer
    }

    /// The kind and the schema of an answer with this status.
    fn described(&self, path: &str, status: u16) -> (String, &Value) {
        let responses = &self.document["paths"][path]["get"]["responses"];
        let response = responses.get(status.to_string());
        assert!(response.is_some() || status > 404, "{path} has no {status}");
        let response = response.unwrap_or(&responses["default"]);
        let response = match response.get("$ref").and_then(Value::as_str) {
            Some(name) => self.document.pointer(name.strip_prefix('#').unwrap()).unwrap(),
            None => response,
        };
        let (kind, content) = response["content"].as_object().unwrap().iter().next().unwrap();
        (kind.clone(), &content["schema"])
    }

    /// A stream, until an event of one of these names: each of its events compared with its description.
    fn follow(&self, address: &str, ends: &[&str]) -> BTreeSet<String> {
        let content = &self.document["paths"][LIVE]["get"]["responses"]["200"]["content"];
        let described = &content["text/event-stream"]["x-event-data"];
        let (mut name, mut names) = (String::new(), BTreeSet::new());
        for line in self.page.follow(address) {
            if let Some(event) = line.strip_prefix("event: ") {
                name = event.to_owned();
            }
            if let Some(data) = line.strip_prefix("data: ") {
                let data: Value = serde_json::from_str(data).unwrap();
                let errors = Schemas(&self.document).errors(&described[&name], &data);
                assert!(errors.is_empty(), "{address}: {name}: {errors:#?}\n{data}");
                names.insert(name.clone());
                if ends.contains(&&*name) {
                    return names;
                }
            }
        }
        panic!("{address}: no end: {names:?}");
    }
}

fn query(parameters: &[(&str, &str)]) -> String {
    let pairs = parameters.iter().map(|(name, value)| format!("{name}={}", encoded(value)));
    format!("?{}", pairs.collect::<Vec<_>>().join("&"))
}

fn example(parameter: &Parameter) -> String {
    parameter.example.clone().unwrap_or_else(|| panic!("{} has no example", parameter.name))
}

/// The required parameters of an address with their examples.
fn required(all: &[Parameter]) -> Vec<(&str, &str)> {
    let required = all.iter().filter(|it| it.is_required);
    required.map(|it| (it.name.as_str(), it.example.as_deref().unwrap())).collect()
}

#[test]
fn the_description_is_whole() {
    let shop = Shop::open();
    let described = Described::at(&shop.path, NOW);
    let document = &described.document;
    assert_eq!((&document["openapi"], &document["servers"][0]["url"]), (&json!("3.1.0"), &json!("/")));
    assert_eq!(document["info"]["version"], env!("CARGO_PKG_VERSION"));
    let written = document.to_string();
    for (part, names) in document["components"].as_object().unwrap() {
        for name in names.as_object().unwrap().keys() {
            let is_used = written.contains(&format!("\"#/components/{part}/{name}\""));
            assert!(is_used || part == "securitySchemes", "nothing uses {part}/{name}");
        }
    }
    for name in written.split("\"$ref\":\"#").skip(1).map(|rest| rest.split('"').next().unwrap()) {
        assert!(document.pointer(name).is_some(), "there is no {name}");
    }
    let is_sentence = |text: &Value| text.as_str().is_some_and(|text| text.ends_with('.'));
    for parameter in document["components"]["parameters"].as_object().unwrap().values() {
        assert!(is_sentence(&parameter["description"]), "{parameter}");
    }
    for (path, methods) in document["paths"].as_object().unwrap() {
        assert_eq!(methods.as_object().unwrap().keys().collect::<Vec<_>>(), ["get"], "{path}");
        assert!(is_sentence(&methods["get"]["summary"]), "{path}");
    }
}

#[test]
fn every_path_answers_as_described() {
    let shop = Shop::open();
    let described = Described::at(&shop.path, NOW);
    let paths = described.paths();
    for path in paths.iter().filter(|path| *path != LIVE) {
        let address = described.address(path, &mut example);
        let all = described.parameters(path, "query");
        let required = required(&all);
        let plain = described.ask(path, &format!("{address}{}", query(&required)));
        assert_eq!(plain.status, 200, "{address}: {}", plain.text);
        for it in all.iter().filter(|it| it.name != "cursor") {
            let others: Vec<_> = required.iter().copied().filter(|(name, _)| *name != it.name).collect();
            let with = |value: &str| {
                let asked = [&others[..], &[(it.name.as_str(), value)]].concat();
                described.ask(path, &format!("{address}{}", query(&asked)))
            };
            assert_eq!(with(&example(it)).status, 200, "{address}: {}", it.name);
            if it.is_required {
                let without = described.ask(path, &format!("{address}{}", query(&others)));
                assert_eq!((without.status, &without.json()["parameter"]), (400, &json!(it.name)), "{path}");
            }
            if let Some(default) = it.schema.get("default") {
                assert_eq!(with(&text(default)).text, plain.text, "{address}: {} by default", it.name);
            }
            let (bounds, beyond) = bounds(it);
            for value in bounds {
                assert_eq!(with(&value).status, 200, "{address}: {}={value}", it.name);
            }
            for value in beyond {
                let problem = with(&value);
                assert_eq!(problem.status, 400, "{address}: {}={value}: {}", it.name, problem.text);
                assert_eq!(problem.json()["parameter"], it.name, "{address}: {}={value}", it.name);
            }
        }
        is_closed(&described, path, &plain);
        let responses = &described.document["paths"][path]["get"]["responses"];
        let has_tags = responses["200"]["headers"]["ETag"].is_object();
        assert_eq!(has_tags, responses["304"].is_object(), "{path}");
        if let Some(tag) = plain.header("etag") {
            let again = described.page.unless("GET", &format!("{address}{}", query(&required)), tag);
            assert!(has_tags && again.status == 304, "{path}: {}", again.status);
        }
    }
    let page = described.ask("/v1/changes", "/v1/changes?limit=3");
    let cursor = text(&page.json()["next"]);
    let next = described.ask("/v1/changes", &format!("/v1/changes?limit=3&cursor={cursor}"));
    assert_eq!(next.json()["items"].as_array().unwrap().len(), 3);
    let wrong = described.ask("/v1/changes", &format!("/v1/changes?ns=shop&cursor={cursor}"));
    assert_eq!((wrong.status, &wrong.json()["parameter"]), (400, &json!("cursor")));
    for fold in ["0", "1"] {
        let names = described.follow(&format!("{LIVE}?after=0&fold={fold}"), &["through"]);
        assert!(names.is_superset(&["change", "gap"].map(str::to_owned).into()), "{names:?}");
    }
}

/// Values that a parameter has and values that it has not, by its schema or by its name.
fn bounds(parameter: &Parameter) -> (Vec<String>, Vec<String>) {
    let schema = &parameter.schema;
    if let Some(values) = schema["enum"].as_array() {
        return (values.iter().map(text).collect(), vec!["sideways".to_owned()]);
    }
    if schema["type"] == "integer" {
        let (least, most) = (schema["minimum"].as_i64().unwrap(), schema["maximum"].as_i64());
        let beyond = [Some(least - 1), most.map(|most| most + 1)];
        let beyond = beyond.into_iter().flatten().map(|it| it.to_string()).chain(["x".to_owned()]);
        // A change of any number need not be there.
        let within = match most {
            Some(most) => vec![least.to_string(), most.to_string()],
            None => Vec::new(),
        };
        return (within, beyond.collect());
    }
    let wrong = match parameter.name.as_str() {
        "since" | "until" | "at" | "from" => "soon",
        "path" => "a[",
        "kind" => "dragons",
        "change" => "broken",
        // Any text is one, or another parameter is named.
        "q" | "ns" | "name" | "by" | "user" | "to" => return (Vec::new(), Vec::new()),
        other => panic!("a wrong value of {other}?"),
    };
    (Vec::new(), vec![wrong.to_owned()])
}

/// A field more than the description has is found, wherever in the answer it is.
fn is_closed(described: &Described, path: &str, answer: &Answer) {
    if path.ends_with("openapi.json") {
        return;
    }
    let (_, schema) = described.described(path, 200);
    let answer = answer.json();
    let mut places = vec![String::new()];
    while let Some(place) = places.pop() {
        let value = answer.pointer(&place).unwrap();
        match value {
            Value::Array(list) => places.extend((0..list.len()).map(|at| format!("{place}/{at}"))),
            Value::Object(map) => {
                let names = map.keys().filter(|name| !OPEN.contains(&name.as_str()));
                places.extend(
                    names.map(|name| format!("{place}/{}", name.replace('~', "~0").replace('/', "~1"))),
                );
                let mut more = answer.clone();
                more.pointer_mut(&place).unwrap()["surprise"] = json!("more");
                let errors = Schemas(&described.document).errors(schema, &more);
                assert!(!errors.is_empty(), "{path}: the description lets {place} have any field");
            }
            _ => {}
        }
    }
}

#[test]
fn the_parameters_are_those_that_the_page_knows() {
    let shop = Shop::open();
    let described = Described::at(&shop.path, NOW);
    for path in described.paths() {
        let address = described.address(&path, &mut example);
        let answer = described.ask(&path, &format!("{address}?nonsense=1"));
        let problem = answer.json();
        assert_eq!((answer.status, &problem["parameter"]), (400, &json!("nonsense")), "{address}");
        let detail = text(&problem["detail"]);
        let (_, names) = detail.split_once(" here; there ").unwrap();
        let names = names.trim_end_matches('.');
        let names = names.strip_prefix("are ").or(names.strip_prefix("is ")).unwrap();
        let known: BTreeSet<String> =
            names.split(", ").filter(|name| *name != "none").map(str::to_owned).collect();
        let all: BTreeSet<String> =
            described.parameters(&path, "query").into_iter().map(|it| it.name).collect();
        assert_eq!(all, known, "{path}");
    }
}

#[test]
fn what_is_not_described_is_not_there() {
    let shop = Shop::open();
    let described = Described::at(&shop.path, NOW);
    let mut addresses: Vec<String> =
        ["/v1/", "/v1/nothing", "/v1/stories", "/v1/objects", "/v1/objects/deploy"].map(str::to_owned).into();
    addresses.push("/v1/objects/deploy/shop".to_owned());
    for path in described.paths() {
        let address = described.address(&path, &mut example);
        // `changes` has numbers below it, and an object what is told of it.
        addresses.extend([format!("{address}/nothing"), format!("{address}/1/1"), format!("{address}/")]);
    }
    for address in addresses {
        let answer = described.page.get(&address);
        assert_eq!(answer.status, 404, "{address}: {}", answer.text);
        let (_, schema) = described.described("/v1/changes/{number}", 404);
        assert_eq!(Schemas(&described.document).errors(schema, &answer.json()), [""; 0], "{address}");
    }
    // Who is outside, and who asks for something else.
    let (_, schema) = described.described("/v1/changes", 500);
    let host = described.page.host.clone();
    for (method, host, status) in
        [("GET", host.as_str(), 403), ("POST", host.as_str(), 405), ("GET", "evil.example", 421)]
    {
        let answer = described.page.ask(method, "/v1/changes", host, None);
        assert_eq!(answer.status, status, "{}", answer.text);
        assert_eq!(Schemas(&described.document).errors(schema, &answer.json()), [""; 0], "{status}");
    }
}

#[test]
fn a_random_history_is_answered_as_described() {
    for seed in 0..support::times(2) {
        let mut random = Rng::with_seed(seed);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("history.db");
        let mut cast = Cast::new(World::open(&path, [7; 32]));
        plays(&mut cast, &mut random, 120);
        let (from, to) = (crate::queries::world::at("14:00:00"), cast.now);
        drop(cast);
        let now = to + jiff::SignedDuration::from_hours(2);
        let described = Described::at(&path, &format!("{now}[UTC]"));
        let stories: Vec<String> =
            described.ask("/v1/changes", "/v1/changes?fold=1&limit=1000").json()["items"]
                .as_array()
                .unwrap()
                .iter()
                .filter_map(|item| item["story"]["id"].as_u64())
                .map(|id| id.to_string())
                .collect();
        assert!(stories.len() > 3, "seed {seed}");
        let mut counts: BTreeMap<u16, u32> = BTreeMap::new();
        let value = |random: &mut Rng, it: &Parameter| -> String {
            if let Some(values) = it.schema["enum"].as_array() {
                return text(random.choice(values).unwrap());
            }
            let time = |random: &mut Rng| {
                let micros = random.i64(from.as_microsecond()..=to.as_microsecond());
                jiff::Timestamp::from_microsecond(micros).unwrap().to_string()
            };
            match it.name.as_str() {
                "since" | "until" | "at" | "from" | "to" => match random.u32(..6) {
                    0 => "-30m".to_owned(),
                    1 => "yesterday 14:05".to_owned(),
                    2 => "#7".to_owned(),
                    _ => time(random),
                },
                "id" => random.choice(&stories).unwrap().clone(),
                "start" | "limit" => random.u32(..40).to_string(),
                "number" | "rev" | "before" | "after" => random.u32(..200).to_string(),
                "kind" | "resource" => {
                    (*random.choice(&["deploy", "po", "rs", "no", "events", "deploy,po", "x"]).unwrap())
                        .to_owned()
                }
                "ns" | "namespace" => (*random.choice(&["shop", "shop", "-", "blog"]).unwrap()).to_owned(),
                "name" | "q" => (*random.choice(&["cart", "pay", "web-0", "w*"]).unwrap()).to_owned(),
                "by" => (*random.choice(&["argocd", "kube*", "nobody"]).unwrap()).to_owned(),
                "user" => (*random.choice(&["jane", "system:*"]).unwrap()).to_owned(),
                "path" => (*random.choice(&["status", "spec.replicas", "x"]).unwrap()).to_owned(),
                "change" => (*random.choice(&["added", "updated,deleted", "x"]).unwrap()).to_owned(),
                "cursor" => "1.5..0".to_owned(),
                other => panic!("a value of {other}?"),
            }
        };
        for path in described.paths().iter().filter(|path| *path != LIVE) {
            let all = described.parameters(path, "query");
            for _ in 0..40 {
                let address = described.address(path, &mut |it| value(&mut random, it));
                let mut chosen = Vec::new();
                for it in &all {
                    if it.is_required || random.u32(..4) == 0 {
                        chosen.push((it.name.as_str(), value(&mut random, it)));
                    }
                }
                let pairs: Vec<(&str, &str)> =
                    chosen.iter().map(|(name, value)| (*name, value.as_str())).collect();
                let answer = described.ask(path, &format!("{address}{}", query(&pairs)));
                *counts.entry(answer.status).or_default() += 1;
            }
        }
        assert!(counts.keys().eq(&[200, 400, 404]) && counts[&200] > 200, "seed {seed}: {counts:?}");
        let names = described.follow(&format!("{LIVE}?after=0&events=1"), &["through", "lag"]);
        assert!(names.contains("lag") || names.contains("change"), "{names:?}");
        let names = described.follow(&format!("{LIVE}?after=0&fold=1"), &["through", "lag"]);
        assert!(names.contains("lag") || names.contains("story"), "{names:?}");
    }
}
