//! Rows as they come.

use serde_json::Value;

use super::browser::{Page, text};
use crate::queries::world::World;
use crate::stories::cast::{CONTROLLER, Cast, replica_set};

/// The next event with a name: its id and its data.
fn next(lines: &mut impl Iterator<Item = String>, name: &str) -> (u64, Value) {
    let (mut of, mut id) = (String::new(), 0);
    for line in lines {
        if let Some(name) = line.strip_prefix("event: ") {
            name.clone_into(&mut of);
        }
        if let Some(number) = line.strip_prefix("id: ") {
            id = number.parse().unwrap();
        }
        if let Some(data) = line.strip_prefix("data: ")
            && of == name
        {
            return (id, serde_json::from_str(data).unwrap());
        }
    }
    panic!("no {name}");
}

#[test]
fn new_records_come_by_themselves_and_a_client_goes_on_where_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("history.db");
    let mut cast = Cast::new(World::open(&path, [7; 32]));
    cast.has_deployment("cart", "shop/cart:1", &["cart-a"]);
    cast.passes(60.0);
    let page = Page::at(&path, "2026-03-01T14:30:00Z[UTC]");
    let mut html = page.follow("/live");
    let mut json = page.follow("/v1/live?kind=deploy");
    assert!(html.by_ref().any(|line| line.is_empty()) && json.by_ref().any(|line| line.is_empty()), "heads");

    cast.rolls_out("cart", "argocd", "shop/cart:2");
    let (id, data) = next(&mut html, "rows");
    assert_eq!(data["count"], 1);
    let shown = text(data["html"].as_str().unwrap());
    assert!(shown.contains("shop/cart") && shown.contains("image web 1 -> 2"), "{shown}");
    let (change, data) = next(&mut json, "change");
    assert_eq!((change, data["name"].as_str()), (id, Some("cart")), "{data}");
    drop((html, json));

    // While nobody listens.
    cast.passes(1.0);
    cast.writes(CONTROLLER, replica_set("cart", "new", "shop/cart:2", 1, 2));
    cast.starts("cart", "new", "cart-b");
    let mut html = page.follow(&format!("/live?after={id}"));
    assert!(html.by_ref().any(|line| line.is_empty()), "head");
    let (later, data) = next(&mut html, "rows");
    assert!(later > id);
    let shown = text(data["html"].as_str().unwrap());
    // The pod is a part of the rollout by now, whose row takes the place of that of the change.
    assert!(shown.contains("rolling out"), "{shown}");
    assert!(data["gone"].as_array().unwrap().contains(&format!("change/{id}").into()), "{data}");
}
