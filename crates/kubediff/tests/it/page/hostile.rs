//! Content of the cluster stays text on the page.

use serde_json::{Value, json};

use super::browser::{Page, links};
use crate::queries::world::World;

const MARKUP: &str = "<script>alert(1)</script>\"'><img src=x onerror=alert(1)>{{7*7}}{% raw %}";
const BIDI: &str = "\u{202e}txt.exe\u{2066}\u{0}\u{1b}[31m\u{200b}";

fn object(kind: &str, name: &str, value: &Value) -> Value {
    json!({
        "apiVersion": "v1", "kind": kind,
        "metadata": {
            "name": name, "namespace": "shop", "uid": format!("{kind}-{name}"), "creationTimestamp": "2026-03-01T12:00:00Z",
            "labels": {MARKUP: BIDI}, "annotations": {"a": MARKUP, BIDI: "b"},
        },
        "data": {"text": value, MARKUP: "x\ny", "long": "a".repeat(100_000)},
    })
}

#[test]
fn markup_and_invisible_characters_stay_text_on_every_screen() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("history.db");
    let mut world = World::open(&path, [7; 32]);
    world.keeps_events();
    for name in ["plain", MARKUP, "a/b%2F..", BIDI, "."] {
        world.wrote("14:00:00", MARKUP, object("ConfigMap", name, &json!(MARKUP)));
        world.wrote(
            "14:01:00",
            BIDI,
            object("ConfigMap", name, &json!(format!("{BIDI}\n{MARKUP}\n{MARKUP}"))),
        );
        world.wrote("14:01:30", BIDI, object("ConfigMap", name, &json!(format!("{BIDI}\nother\n{MARKUP}"))));
    }
    world.wrote("14:02:00", "kubelet", json!({
        "apiVersion": "v1", "kind": "Event", "reason": MARKUP, "message": format!("{MARKUP}{BIDI}"), "type": MARKUP,
        "metadata": {"name": "e", "namespace": "shop", "uid": "e", "creationTimestamp": "2026-03-01T14:02:00Z"},
        "involvedObject": {"kind": MARKUP, "namespace": "shop", "name": BIDI, "uid": "ConfigMap-plain"},
        "source": {"component": MARKUP},
    }));
    world.gap("14:03:00", "14:04:00", Some(MARKUP), BIDI);
    drop(world);
    let page = Page::at(&path, "2026-03-01T14:10:00Z[UTC]");
    let mut paths = vec![
        "/".to_owned(),
        "/?fold=0&events=1".to_owned(),
        "/at/2026-03-01T14:01:00Z/?kind=cm".to_owned(),
        "/diff?from=14:00&to=14:02".to_owned(),
        "/about".to_owned(),
        format!("/?q={}", percent(MARKUP)),
        format!("/?ns={}&by={}", percent(MARKUP), percent(MARKUP)),
        format!("/{}", percent(MARKUP)),
        format!("/search?s={}", percent(MARKUP)),
        format!("/?since={}", percent(MARKUP)),
    ];
    for number in 1..=17 {
        paths.push(format!("/change/{number}"));
    }
    let mut objects = Vec::new();
    let mut looked = 0;
    while let Some(path) = paths.pop() {
        let answer = page.get(&path);
        assert!(answer.status < 500, "{path}: {}", answer.text);
        looked += 1;
        let html = answer.header("content-type").is_some_and(|kind| kind.starts_with("text/html"));
        if !html {
            continue;
        }
        for forbidden in
            ["<img", "<script>", "onerror=alert(1)>", "\u{202e}", "\u{1b}", "\u{200b}", "\u{0}", ">49<"]
        {
            assert!(!answer.text.contains(forbidden), "{path}: {forbidden:?}");
        }
        assert_eq!(answer.text.matches("<script").count(), 1, "{path}");
        let own =
            links(&answer.text).into_iter().filter(|link| link.starts_with("/o/") && !objects.contains(link));
        let own: Vec<String> = own.take(30).collect();
        for link in own {
            objects.push(link.clone());
            paths.push(link);
        }
    }
    assert!(looked > 40, "{looked}");
    // The object whose name is a way to another place is found at its own.
    assert!(objects.iter().any(|link| link.contains("/a%2Fb%252F..")), "{objects:?}");
}

fn percent(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

/// A config map may have a megabyte, and its page has the first lines of it.
#[test]
fn very_long_values_are_cut() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("history.db");
    let mut world = World::open(&path, [7; 32]);
    for time in ["14:00:00", "14:01:00"] {
        let lines: String = (0..20_000).map(|line| format!("line {line} at {time}\n")).collect();
        world.wrote(time, "kubectl", object("ConfigMap", "big", &json!(lines)));
    }
    drop(world);
    let page = Page::at(&path, "2026-03-01T14:10:00Z[UTC]");
    for path in ["/", "/change/2", "/o/cm/shop/big", "/o/cm/shop/big?tab=diff", "/diff?from=14:00&to=14:02"] {
        let answer = page.get(path);
        assert_eq!(answer.status, 200, "{path}");
        assert!(answer.text.len() < 2_500_000, "{path}: {}", answer.text.len());
    }
    assert!(page.get("/o/cm/shop/big").text.contains("more lines"));
}
