//! Tables of built-in kinds, compared with those of a real server.

use std::time::Duration;

use super::*;

fn resource(qualified: &str) -> Resource {
    let (plural, group) = qualified.split_once('.').unwrap_or((qualified, ""));
    Resource {
        group: group.into(),
        version: "v1".into(),
        plural: plural.into(),
        singular: "".into(),
        kind: "".into(),
        list_kind: "".into(),
        namespaced: true,
        short_names: Vec::new(),
        categories: Vec::new(),
        verbs: Vec::new(),
        subresources: Vec::new(),
        selectable: Vec::new(),
        columns: Columns::BuiltIn,
        typed_items: false,
        stored_version: None,
    }
}

/// Objects, with the cells and conditions that kube-apiserver 1.36 printed for them at the recorded time; 1.37, where it
/// prints other columns or a kind that 1.36 did not have.
#[test]
fn cells_are_those_of_a_real_server() {
    let golden: Value = serde_json::from_str(include_str!("golden.json")).unwrap();
    let mut differences = Vec::new();
    for row in golden.as_array().unwrap() {
        let name = row["resource"].as_str().unwrap();
        let now = time::parse(row["now"].as_str().unwrap()).unwrap();
        let printer = Printer::of(&resource(name));
        let ours = json!([printer.cells(&row["object"], now), printer.conditions(&row["object"])]);
        let real = json!([row["cells"], row["conditions"]]);
        if ours != real {
            differences.push(format!("{name} {}: {ours} is not {real}", row["object"]["metadata"]["name"]));
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
    assert!(golden.as_array().unwrap().len() >= 100);
}

#[test]
fn every_resource_with_columns_has_as_many_cells() {
    let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
    let mut seen = 0;
    for name in columns::resources() {
        let printer = Printer::of(&resource(name));
        assert!(matches!(printer.cells, Cells::BuiltIn(_)), "{name}");
        let too_many = usize::from(name == "ipaddresses.networking.k8s.io");
        assert_eq!(printer.cells(&json!({}), now).len(), printer.columns().len() + too_many, "{name}");
        assert!(printer.columns().iter().all(|column| column["name"].is_string()), "{name}");
        seen += 1;
    }
    assert!(seen >= 55, "only {seen} tables");
}

#[test]
fn a_kind_without_columns_shows_name_and_creation_time() {
    let printer = Printer::of(&resource("limitranges"));
    let names: Vec<Value> = printer.columns().into_iter().map(|column| column["name"].clone()).collect();
    assert_eq!(names, ["Name", "Created At"]);
    let object = json!({"metadata": {"name": "a", "creationTimestamp": "2026-11-21T11:00:00Z"}});
    assert_eq!(printer.cells(&object, SystemTime::UNIX_EPOCH), ["a", "2026-11-21T11:00:00Z"]);
}

/// The output of a real server for this object: only the first value counts, and only if it has the column's type.
#[test]
fn declared_columns_show_what_they_declare() {
    let column = |kind: &str, json_path: &str| crate::Column {
        name: "C".into(),
        kind: kind.into(),
        format: "".into(),
        description: "".into(),
        priority: 0,
        json_path: json_path.into(),
    };
    let object = json!({
        "metadata": {"name": "w1", "creationTimestamp": "2026-11-21T11:54:00Z"},
        "spec": {"replicas": 3, "num": 1.5, "flag": true, "when": "2026-11-21T11:00:00Z", "text": "12", "nul": null,
                 "items": [{"name": "a"}, {"name": "b"}], "obj": {"x": 1}},
    });
    let cases = [
        ("integer", ".spec.replicas", json!(3)),
        ("integer", ".spec.num", json!(1)),
        ("integer", ".spec.text", json!(null)),
        ("number", ".spec.num", json!(1.5)),
        ("boolean", ".spec.flag", json!(true)),
        ("boolean", ".spec.text", json!(null)),
        ("string", ".spec.replicas", json!("3")),
        ("string", ".spec.flag", json!("true")),
        ("string", ".spec.num", json!("1.5")),
        ("string", ".spec.items[*].name", json!("a")),
        ("string", ".spec.obj", json!(r#"{"x":1}"#)),
        ("string", ".spec.nul", json!(null)),
        ("string", ".spec.nothing", json!(null)),
        ("string", "not a path", json!(null)),
        ("date", ".spec.when", json!("54m")),
        ("date", ".spec.text", json!("<invalid>")),
        ("date", ".metadata.creationTimestamp", json!("0s")),
    ];
    let declared = cases.iter().map(|(kind, path, _)| column(kind, path)).collect();
    let printer = Printer::of(&Resource {
        columns: Columns::Declared(declared),
        ..resource("widgets.shop.example.com")
    });
    let now = time::parse("2026-11-21T11:54:00Z").unwrap();
    let cells = printer.cells(&object, now);
    assert_eq!(cells[0], "w1");
    for ((kind, path, expected), cell) in cases.iter().zip(&cells[1..]) {
        assert_eq!(cell, expected, "{kind} {path}");
    }
}

#[test]
fn ages_get_coarser_as_they_grow() {
    let (minute, hour, day) = (60, 3_600, 86_400);
    for (seconds, expected) in [
        (0, "0s"),
        (119, "119s"),
        (120, "2m"),
        (130, "2m10s"),
        (10 * minute, "10m"),
        (179 * minute, "179m"),
        (3 * hour, "3h"),
        (3 * hour + 5 * minute, "3h5m"),
        (8 * hour + 5 * minute, "8h"),
        (47 * hour, "47h"),
        (49 * hour, "2d1h"),
        (8 * day, "8d"),
        (729 * day, "729d"),
        (731 * day, "2y1d"),
        (8 * 365 * day, "8y"),
    ] {
        assert_eq!(time::human(Duration::from_secs(seconds)), expected, "{seconds}");
    }
    let now = SystemTime::UNIX_EPOCH;
    assert_eq!(time::between(now + Duration::from_secs(1), now), "0s");
    assert_eq!(time::between(now + Duration::from_secs(2), now), "<invalid>");
}
