//! `kubediff`'s secrets: a value planted in an object of any kind is in none of its texts.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use kubediff::render::{Renderer, json_line};
use kubediff::{Change, Gvk, Noise, Origin, Profile, Schemas, Secrets, Sighting, States, Tally};
use serde_json::{Map, Value, json};

use crate::{Choices, seeds};

const KINDS: [&str; 5] = ["ConfigMap", "Pod", "Secret", "Event", "Vault"];
const NAMES: [&str; 10] = [
    "spec",
    "data",
    "stringData",
    "items",
    "containers",
    "name",
    "app.yaml",
    "kind",
    "annotations",
    "labels",
];
const WORDS: [&str; 8] = [
    "Secret",
    "SecretList",
    "a: 1\n",
    "{\"a\": \"b\"}",
    "kind: Secret\n---\n",
    "\\",
    "%2",
    "<hmac:0 1 bytes>",
];
/// None of these is in a hash, a time or a name.
const LETTERS: [char; 10] = ['J', 'Q', 'X', 'Z', 'q', 'z', '"', '\\', '%', 'ß'];

/// The bytes are decisions on what to build.
pub fn run(input: &[u8]) {
    let mut choices = Choices::new(input);
    let values = [value(&mut choices), value(&mut choices)];
    let profile =
        Profile { noise: Noise::default(), secrets: Secrets::with_key([7; 32]), schemas: Schemas::default() };
    let secret = |value: &str| json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "data": {"k": BASE64.encode(value)}});
    let [before, after] = [&values[0], &values[1]].map(|value| secret(value));
    profile.secrets.learn(&Gvk::new("v1", "Secret"), &before);
    check(&profile, &values, Some(&before), Some(&after));

    let kind = choices.pick(&KINDS).copied().unwrap_or_default();
    let object = |choices: &mut Choices<'_>| {
        let mut object = json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": "x", "uid": "1"}});
        object["metadata"]["annotations"] = any(choices, &values, 2);
        for name in ["spec", "data", "status"] {
            object[name] = any(choices, &values, 4);
        }
        object
    };
    let (old, new) = (object(&mut choices), object(&mut choices));
    check(&profile, &values, Some(&old), Some(&new));
    check(&profile, &values, None, Some(&new));
}

/// A value that no text has by chance.
fn value(choices: &mut Choices<'_>) -> String {
    let length = 12 + choices.below(30);
    // A name of letters alone would be a field's.
    std::iter::once('7').chain((0..length).map(|_| choices.pick(&LETTERS).copied().unwrap_or('J'))).collect()
}

/// Anything, with values in it.
fn any(choices: &mut Choices<'_>, values: &[String; 2], depth: usize) -> Value {
    match choices.below(if depth == 0 { 3 } else { 6 }) {
        0 => planted(choices, values).into(),
        1 => choices.pick(&WORDS).copied().unwrap_or_default().into(),
        2 => choices.number(0..1000).into(),
        3 => (0..choices.below(4)).map(|_| any(choices, values, depth - 1)).collect(),
        _ => {
            let mut map = Map::new();
            for _ in 0..choices.below(4) {
                let name = match choices.below(6) {
                    0 => planted(choices, values),
                    _ => choices.pick(&NAMES).copied().unwrap_or_default().to_owned(),
                };
                map.insert(name, any(choices, values, depth - 1));
            }
            map.into()
        }
    }
}

/// A text that holds a value in one of the forms that are recognised.
fn planted(choices: &mut Choices<'_>, values: &[String; 2]) -> String {
    let value = choices.pick(values).cloned().unwrap_or_default();
    let padding = "pad".get(..choices.below(4)).unwrap_or_default();
    match choices.below(7) {
        0 => value,
        1 => format!("{padding}{value}{padding}"),
        2 => BASE64.encode(format!("{padding}{value}{padding}")),
        3 => BASE64.encode(BASE64.encode(format!("{padding}{value}"))),
        4 => value.bytes().map(|byte| format!("%{byte:02x}")).collect(),
        5 => json!({ "a": value }).to_string(),
        _ => format!("kind: Secret\nstringData:\n  {padding}: '{value}'\n"),
    }
}

fn check(profile: &Profile, values: &[String; 2], old: Option<&Value>, new: Option<&Value>) {
    let kind = new.or(old).and_then(|object| object["kind"].as_str()).unwrap_or_default();
    let sighting = Sighting {
        cluster: None,
        gvk: &Gvk::new("v1", kind),
        resource: "things",
        observed_at: jiff::Timestamp::UNIX_EPOCH,
        origin: Origin::Watch,
    };
    let [old, new] = [old, new].map(|state| state.map(Value::to_string));
    let states = States::read(old.as_ref().map(String::as_bytes), new.as_ref().map(String::as_bytes));
    let states = states.expect("the states are JSON");
    let compared = Change::between(&sighting, states, 1, profile, &mut Tally::default());
    let Some(change) = compared.change() else { return };
    let renderer = Renderer {
        width: 10_000,
        time_zone: jiff::tz::TimeZone::UTC,
        max_differences: 1_000,
        max_lines: 1_000,
        show_dropped: true,
        log: true,
    };
    let texts = [
        json_line(&change.with_objects()).expect("a change can be JSON"),
        serde_json::to_string(&change.patch()).expect("a patch can be JSON"),
        renderer.text(&change),
        change.summary.clone(),
    ];
    for text in &texts {
        for value in values {
            let escaped = json!(value).to_string();
            let percent: String = value.bytes().map(|byte| format!("%{byte:02x}")).collect();
            for form in [value.as_str(), escaped.trim_matches('"'), &percent] {
                assert!(!text.contains(form), "{form:?} in {text}");
            }
            for bytes in [value.clone(), BASE64.encode(value)] {
                // The last group of base64 depends on what follows the value, too.
                let encoded = BASE64.encode(&bytes);
                let inner = encoded.get(..encoded.len() - 4).unwrap_or_default();
                assert!(!text.contains(inner), "{inner:?}, base64 of {bytes:?}, in {text}");
            }
        }
    }
}

/// Decisions.
pub fn example(seed: u64) -> Vec<u8> {
    seeds::bytes(seed, 600)
}
