//! `/v1` answers what the command line answers.

use fastrand::Rng;
use serde_json::{Value, json};

use super::browser::{NOW, Page};
use crate::queries::run::outputs;
use crate::queries::shop::Shop;
use crate::queries::world::World;
use crate::stories::cast::Cast;
use crate::stories::random::plays;
use crate::support;

/// All items of a question, page by page.
fn items(page: &Page, question: &str, random: &mut Rng) -> Vec<String> {
    let (mut items, mut cursor) = (Vec::new(), String::new());
    for _ in 0..10_000 {
        let limit = random.usize(1..30);
        let answer = page.get(&format!("/v1/changes?{question}&limit={limit}{cursor}"));
        assert_eq!(answer.status, 200, "{question}: {}", answer.text);
        // The items as they are: another reader of JSON may order their fields.
        let (_, rest) = answer.text.split_once(r#"{"items":["#).unwrap();
        let json = answer.json();
        let mut left = rest;
        for _ in 0..json["items"].as_array().unwrap().len() {
            let mut values = serde_json::Deserializer::from_str(left).into_iter::<Value>();
            values.next().unwrap().unwrap();
            let end = values.byte_offset();
            items.push(left[..end].to_owned());
            left = left[end..].trim_start_matches(',');
        }
        match json["next"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return items,
        }
    }
    panic!("{question}: no end");
}

#[test]
fn pages_of_the_log_are_the_log() {
    for seed in 0..support::times(3) {
        let mut random = Rng::with_seed(seed);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("history.db");
        let mut cast = Cast::new(World::open(&path, [7; 32]));
        plays(&mut cast, &mut random, 150);
        let now = cast.now + jiff::SignedDuration::from_hours(5);
        drop(cast);
        let now = format!("{now}[UTC]");
        let page = Page::at(&path, &now);
        for (arguments, question) in [
            ("", "since=1970-01-01"),
            ("--reverse", "order=oldest"),
            ("--fold", "fold=1"),
            ("--fold --reverse", "fold=1&order=oldest"),
            ("--fold deploy", "fold=1&kind=deploy"),
            ("--fold pods --events", "fold=1&kind=pods&events=1"),
            ("deploy,no -n shop", "kind=deploy,no&ns=shop"),
            ("deploy/cart", "kind=deploy&name=cart"),
            ("deploy/cart", "kind=deploy/cart"),
            ("--manager argocd", "by=argocd"),
            ("--path status --change updated", "path=status&change=updated"),
            ("--fold --change added,deleted", "fold=1&change=added,deleted"),
        ] {
            let mut all: Vec<&str> = vec!["log", "-o", "json", "--now", &now];
            all.extend(arguments.split_whitespace());
            let (out, err, code) = outputs(&path, &all);
            assert_eq!(code, 0, "{err}");
            let lines: Vec<&str> = out.lines().collect();
            let items = items(&page, question, &mut random);
            assert_eq!(items.len(), lines.len(), "seed {seed}: {question}");
            for (item, line) in items.iter().zip(lines) {
                assert_eq!(item, line, "seed {seed}: {question}");
            }
        }
    }
}

#[test]
fn answers_are_those_of_the_commands() {
    let shop = Shop::open();
    let page = Page::at(&shop.path, NOW);
    let json_of = |arguments: &[&str]| -> Value {
        let (out, err, _) = outputs(&shop.path, arguments);
        serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out}{err}"))
    };
    let asked = |path: &str| page.get(path).json();

    assert_eq!(
        asked("/v1/objects/deploy/shop/cart/blame"),
        json_of(&["blame", "deploy/cart", "-n", "shop", "-o", "json"])
    );
    let shown = json_of(&["show", "9", "-o", "json"]);
    assert_eq!(asked("/v1/changes/9"), shown["change"]);
    let whole = asked("/v1/changes/9?objects=1");
    assert_eq!(whole["new"], asked("/v1/objects/cm/shop/app?rev=9&managed=1")["object"]);
    assert_eq!(whole["patch"][0]["op"], "replace", "{whole}");
    let state = json_of(&["get", "deploy", "-A", "--at", "2026-03-01T14:06:00Z", "-o", "json"]);
    let objects = asked("/v1/state?kind=deploy&at=2026-03-01T14:06:00Z");
    assert_eq!(objects["items"][0]["object"], state["items"][0]);
    assert_eq!(objects["total"], 1);
    let diff = asked("/v1/diff?from=2026-03-01T14:02:00Z&to=2026-03-01T14:08:00Z&kind=cm");
    let (out, _, _) = outputs(
        &shop.path,
        &["diff", "cm", "--from", "2026-03-01T14:02:00Z", "--to", "2026-03-01T14:08:00Z", "-o", "json"],
    );
    let line: Value = serde_json::from_str(out.lines().next().unwrap()).unwrap();
    assert_eq!(diff["items"][0], line);

    let histogram = asked("/v1/histogram?since=2026-03-01T14:00:00Z&until=2026-03-01T15:00:00Z");
    assert_eq!(histogram["step_s"], 60);
    let of = |name: &str| -> u64 {
        histogram["series"][name].as_array().unwrap().iter().map(|it| it.as_u64().unwrap()).sum()
    };
    assert_eq!(
        (of("added"), of("updated"), of("deleted"), histogram["exact"].clone()),
        (4, 6, 2, json!(true))
    );
    let facets = asked("/v1/facets?of=kind&since=2026-03-01T14:00:00Z");
    assert_eq!(facets["items"][0], json!({"value": "deployments.apps", "count": 4}));
    assert_eq!(asked("/v1/gaps")["items"].as_array().unwrap().len(), 2);
    assert_eq!(asked("/v1/status")["cluster"], "prod");
    assert_eq!(asked("/v1/objects/cm/shop/app/versions")["items"].as_array().unwrap().len(), 2);
}

#[test]
fn a_wrong_question_is_a_problem_that_names_its_parameter() {
    let shop = Shop::open();
    let page = Page::at(&shop.path, NOW);
    for (path, status, named) in [
        ("/v1/changes?since=soon", 400, "since"),
        ("/v1/changes?since=14:05&until=14:00", 400, "until"),
        ("/v1/changes?kind=dragons", 400, "kind"),
        ("/v1/changes?cursor=1.2..0", 400, "cursor"),
        ("/v1/changes?change=broken", 400, "change"),
        ("/v1/changes?order=sideways", 400, "order"),
        ("/v1/changes?limits=3", 400, "limits"),
        ("/v1/changes?path=a[", 400, "path"),
        ("/v1/facets?of=mood", 400, "of"),
        ("/v1/diff", 400, "from"),
        ("/v1/state", 400, "kind"),
        ("/v1/state?kind=pods&at=2030-01-01", 400, "at"),
        ("/v1/state?kind=pods&start=-1", 400, "start"),
        ("/v1/changes?limit=0", 400, "limit"),
        ("/v1/changes?fold=yes", 400, "fold"),
        ("/v1/live?foo=1", 400, "foo"),
        ("/v1/objects/deploy/shop/cart?rev=x", 400, "rev"),
        ("/v1/changes/99999", 404, ""),
        ("/v1/stories/99999", 404, ""),
        ("/v1/objects/deploy/shop/none", 404, ""),
        ("/v1/objects/deploy/shop/cart?at=2026-03-01T13:00:00Z", 404, ""),
        ("/v1/nothing", 404, ""),
    ] {
        let answer = page.get(path);
        assert_eq!(answer.status, status, "{path}: {}", answer.text);
        assert_eq!(answer.header("content-type"), Some("application/problem+json"), "{path}");
        let problem = answer.json();
        assert_eq!(
            (problem["status"].as_u64(), problem["title"].is_string()),
            (Some(status.into()), true),
            "{path}"
        );
        assert_eq!(problem["parameter"].as_str().unwrap_or_default(), named, "{path}: {problem}");
    }
}
