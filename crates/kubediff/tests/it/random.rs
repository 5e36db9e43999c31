//! Random objects that look like those of a cluster, and random edits of them.

use fastrand::Rng;
use serde_json::{Map, Value, json};

const NAMES: &[&str] = &[
    "name",
    "type",
    "key",
    "id",
    "containers",
    "ports",
    "port",
    "containerPort",
    "protocol",
    "env",
    "conditions",
    "images",
    "verbs",
    "finalizers",
    "tolerations",
    "volumes",
    "subjects",
    "kind",
    "data",
    "app.yaml",
    "a/b~c",
    "x",
    "y",
    "",
    "0",
    "-",
];

/// A value, smaller the deeper it is.
pub(crate) fn value(rng: &mut Rng, depth: u32) -> Value {
    match rng.u32(0..if depth == 0 { 7 } else { 12 }) {
        0 => Value::Null,
        1 => rng.bool().into(),
        2 => rng.i64(-3..4).into(),
        3 => (f64::from(rng.i32(-9..9)) / 4.0).into(),
        4 => text(rng).into(),
        5 => (*rng.choice(["a", "b", "c", "d"].iter()).unwrap()).into(),
        6 => u64::MAX.into(),
        7 | 8 => keyed_list(rng, depth),
        9 => (0..rng.usize(0..7)).map(|_| value(rng, depth - 1)).collect(),
        _ => map(rng, depth),
    }
}

fn map(rng: &mut Rng, depth: u32) -> Value {
    let mut map = Map::new();
    for _ in 0..rng.usize(0..6) {
        let name = (*rng.choice(NAMES).unwrap()).to_owned();
        map.insert(name, value(rng, depth - 1));
    }
    Value::Object(map)
}

/// Elements that mostly have the key that they should, and mostly each another one.
fn keyed_list(rng: &mut Rng, depth: u32) -> Value {
    let key = *rng.choice(["name", "type", "containerPort", "port", "kind"].iter()).unwrap();
    let mut elements: Vec<Value> = (0..rng.usize(0..7))
        .map(|at| {
            let mut element = json!({"v": value(rng, depth - 1)});
            let at = if rng.u32(0..20) == 0 { 0 } else { at };
            element[key] = if key.ends_with("ort") { at.into() } else { format!("n{at}").into() };
            element
        })
        .collect();
    rng.shuffle(&mut elements);
    elements.into()
}

/// Text: a word, lines, or a document.
fn text(rng: &mut Rng) -> String {
    let lines = |rng: &mut Rng| -> String {
        (0..rng.usize(0..8))
            .map(|_| *rng.choice(["a: 1\n", "b: x\n", "c:\n", "  - d\n", "plain", "\n"].iter()).unwrap())
            .collect()
    };
    match rng.u32(0..4) {
        0 => value(rng, 1).to_string(),
        1 | 2 => lines(rng),
        _ => (0..rng.usize(0..4)).map(|_| rng.char('\0'..='\u{2100}')).collect(),
    }
}

/// Changes some of `value`: fields come, go and change, elements too, and lists are shuffled.
pub(crate) fn edit(rng: &mut Rng, value: &mut Value, depth: u32) {
    let another = |rng: &mut Rng| self::value(rng, depth.saturating_sub(1));
    match value {
        Value::Object(map) if depth > 0 && !map.is_empty() => match rng.u32(0..8) {
            0 => {
                let name = (*rng.choice(NAMES).unwrap()).to_owned();
                map.insert(name, another(rng));
            }
            1 => {
                let name = rng.choice(map.keys()).unwrap().clone();
                map.remove(&name);
            }
            _ => {
                let name = rng.choice(map.keys()).unwrap().clone();
                edit(rng, &mut map[&name], depth - 1);
            }
        },
        Value::Array(list) if depth > 0 && !list.is_empty() => match rng.u32(0..6) {
            0 => list.insert(rng.usize(0..=list.len()), another(rng)),
            1 => {
                list.remove(rng.usize(0..list.len()));
            }
            2 => rng.shuffle(list),
            3 => list.push(list[rng.usize(0..list.len())].clone()),
            _ => {
                let at = rng.usize(0..list.len());
                edit(rng, &mut list[at], depth - 1);
            }
        },
        other => *other = another(rng),
    }
}

/// Two states of one object; sometimes of two that have nothing in common.
pub(crate) fn pair(rng: &mut Rng) -> (Value, Value) {
    let old = value(rng, 4);
    let mut new = if rng.u32(0..10) == 0 { value(rng, 4) } else { old.clone() };
    for _ in 0..rng.usize(0..5) {
        edit(rng, &mut new, 5);
    }
    (old, new)
}
